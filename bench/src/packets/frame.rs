//! The generator's frame, and the program that gives each copy its flow.

use std::net::Ipv4Addr;

use super::bpf::Instruction;

/// Ethernet, IPv4, UDP and 18 bytes of data: the shortest Ethernet frame without its checksum.
pub const FRAME_BYTES: usize = 60;
/// Maximum number of flows. They differ by the source port and the lower 4 bits of the source address.
pub const FLOWS_MAX: u32 = 1 << 20;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_PROTOCOL: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
/// Offsets of the bytes that the program writes.
const IDENTIFICATION_LOW_AT: i16 = 19;
const SOURCE_LOW_AT: i16 = 29;
const SOURCE_PORT_AT: i16 = 34;
/// End of the headers, in whole words.
const WRITTEN_UNTIL: usize = 44;
const WORD_BYTES: usize = 4;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// A UDP frame. The last byte of `source` must be 0: the program counts it up to 15.
///
/// The program subtracts from the identification the value that it adds to the address, so the header checksum stays
/// correct. The UDP checksum is 0, which means no checksum (RFC 768).
pub fn frame(
    (from, to): (Mac, Mac),
    source: Ipv4Addr,
    (destination, port): (Ipv4Addr, u16),
) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip_bytes = (FRAME_BYTES - ETHERNET_BYTES) as u16;
    let ip = &mut frame[ETHERNET_BYTES..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&ip_bytes.to_be_bytes());
    ip[4..6].copy_from_slice(&[0xff, 0xff]);
    ip[8] = TIME_TO_LIVE;
    ip[9] = UDP_PROTOCOL;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    let checksum = checksum(&ip[..IP_BYTES]);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = &mut ip[IP_BYTES..];
    udp[2..4].copy_from_slice(&port.to_be_bytes());
    udp[4..6].copy_from_slice(&(ip_bytes - IP_BYTES as u16).to_be_bytes());
    frame
}

/// The checksum of a header (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_TX: i32 = 3;
const TIME_HELPER: i32 = 5;
const RANDOM_HELPER: i32 = 7;

/// Maximum number of clock readings between two packets.
const LOOKS_MAX: i32 = 800;
/// Shortest duration of a clock reading.
const LOOK_NS: u32 = 5;
/// Longest supported time between two packets.
pub const INTERVAL_NS_MAX: u32 = LOOKS_MAX as u32 * LOOK_NS;

const fn op(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: from << 4 | to, offset, immediate }
}
const fn set(to: u8, immediate: i32) -> Instruction {
    op(0xb7, to, 0, 0, immediate)
}
const fn copy(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}
const fn and(to: u8, immediate: i32) -> Instruction {
    op(0x57, to, 0, 0, immediate)
}
const fn load_32(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x61, to, from, offset, 0)
}
const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// Instructions that wait until this time has passed since the program began.
fn wait(interval_ns: u32) -> [Instruction; 8] {
    debug_assert!(interval_ns <= INTERVAL_NS_MAX);
    [
        op(0x85, 0, 0, 0, TIME_HELPER),
        copy(8, 0),
        set(9, 0),
        // The loop that reads the clock.
        op(0x07, 9, 0, 0, 1),
        op(0x85, 0, 0, 0, TIME_HELPER),
        op(0x1f, 0, 8, 0, 0),
        op(0x35, 0, 0, 1, interval_ns as i32),
        op(0xa5, 9, 0, -5, LOOKS_MAX),
    ]
}

/// The program that writes `frame` over a received frame, gives it a random one of `flows` flows (a power of two), and
/// sends it after `interval_ns`, or at once if that is 0.
///
/// It writes the headers each time, because the kernel reuses the memory of returned frames, and forwarders have
/// changed their addresses.
pub fn sender(flows: u32, interval_ns: u32, frame: &[u8; FRAME_BYTES]) -> Vec<Instruction> {
    debug_assert!(flows.is_power_of_two() && flows <= FLOWS_MAX);
    let words = frame[..WRITTEN_UNTIL].chunks_exact(WORD_BYTES).enumerate();
    let headers = words.map(|(place, word)| {
        let word = i32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        op(0x62, 2, 0, (place * WORD_BYTES) as i16, word)
    });
    let mut written: Vec<Instruction> = headers.collect();
    written.extend([
        // The source port gets the lower 16 bits.
        op(0x6b, 2, 7, SOURCE_PORT_AT, 0),
        // The source address gets the upper bits.
        op(0x77, 7, 0, 0, 16),
        and(7, 0xff),
        op(0x73, 2, 7, SOURCE_LOW_AT, 0),
        set(5, 0xff),
        op(0x1f, 5, 7, 0, 0),
        op(0x73, 2, 5, IDENTIFICATION_LOW_AT, 0),
        set(0, XDP_TX),
        EXIT,
    ]);
    let mut program = vec![copy(6, 1)];
    if interval_ns > 0 {
        program.extend(wait(interval_ns));
    }
    program.extend([
        op(0x85, 0, 0, 0, RANDOM_HELPER),
        copy(7, 0),
        and(7, (flows - 1) as i32),
        // r2 is the start of the frame, r3 its end.
        load_32(2, 6, 0),
        load_32(3, 6, 4),
        copy(4, 2),
        op(0x07, 4, 0, 0, WRITTEN_UNTIL as i32),
        // If the frame is too short, skip the writes and drop it.
        op(0x2d, 4, 3, written.len() as i16, 0),
    ]);
    program.extend(written);
    program.extend([set(0, XDP_DROP), EXIT]);
    program
}

/// The program that drops IPv4 packets and passes all others, because ARP must still work.
pub fn sink() -> Vec<Instruction> {
    vec![
        load_32(2, 1, 0),
        load_32(3, 1, 4),
        copy(4, 2),
        op(0x07, 4, 0, 0, ETHERNET_BYTES as i32),
        op(0x2d, 4, 3, 4, 0),
        // The EtherType, in network order.
        op(0x69, 4, 2, 12, 0),
        op(0x55, 4, 0, 2, u16::from_ne_bytes([0x08, 0x00]) as i32),
        set(0, XDP_DROP),
        EXIT,
        set(0, XDP_PASS),
        EXIT,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the program's change for a flow to a frame.
    fn with_flow(frame: &mut [u8], flow: u32) {
        frame[SOURCE_PORT_AT as usize..][..2].copy_from_slice(&(flow as u16).to_ne_bytes());
        let upper = (flow >> 16) as u8;
        frame[SOURCE_LOW_AT as usize] = upper;
        frame[IDENTIFICATION_LOW_AT as usize] = 0xff - upper;
    }

    #[test]
    fn the_header_of_every_flow_has_a_good_checksum() {
        let source = Ipv4Addr::new(198, 18, 16, 0);
        let to = (Ipv4Addr::new(198, 18, 32, 1), 5_353);
        let mut frame = frame(([2; 6], [4; 6]), source, to);
        for flow in [0, 1, 0xffff, 0x1_0000, 0x7_1234, FLOWS_MAX - 1] {
            with_flow(&mut frame, flow);
            assert_eq!(checksum(&frame[ETHERNET_BYTES..][..IP_BYTES]), 0, "{flow:#x}");
        }
        assert_eq!(frame[26..30], [198, 18, 16, 15]);
        assert_eq!(frame[36..38], 5_353_u16.to_be_bytes());
        assert_eq!(frame[16..18], [0, 46]);
        assert_eq!(frame[38..40], [0, 26]);
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // The example from RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
