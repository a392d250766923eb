//! Resets to both ends of a flow that was ended.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RawProtocol, SendFlags, SocketFlags, SocketType};

use crate::error::{Error, kernel};
use crate::{End, EndedFlow};

/// Sends resets to both ends of ended flows, with the expected sequence numbers (RFC 5961), as if they came from the
/// other end.
#[derive(Debug)]
pub struct Resetter {
    v4: OwnedFd,
    /// `None`: this host has no IPv6.
    v6: Option<OwnedFd>,
}

const TCP_HEADER_BYTES: usize = 20;
const FLAG_RST: u8 = 4;

impl Resetter {
    /// Opens the raw sockets; needs CAP_NET_RAW. They belong to the network namespace of the calling thread.
    pub fn open() -> Result<Self, Error> {
        let raw = |family| {
            let protocol = RawProtocol::new(libc::IPPROTO_RAW as u32).map(Protocol::from_raw);
            rustix::net::socket_with(
                family,
                SocketType::RAW,
                SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
                protocol,
            )
        };
        let v4 = raw(AddressFamily::INET).map_err(|error| cannot_open(&error))?;
        Ok(Self { v4, v6: if_supported(raw(AddressFamily::INET6))? })
    }

    /// Sends a reset to both ends if the flow's settings require it. Returns how many ends got one.
    pub fn reset(&mut self, ended: &EndedFlow) -> Result<u32, Error> {
        if !ended.reset {
            return Ok(0);
        }
        let flow = &ended.flow;
        self.send_all(flow.destination, flow.client, ended.client_expects)?;
        let Some(member_expects) = ended.member_expects else { return Ok(1) };
        self.send_all(flow.source, flow.target, member_expects)?;
        Ok(2)
    }

    /// It is unknown whether the last bytes have arrived: the end accepts one of the two numbers.
    fn send_all(&self, from: End, to: End, [first, second]: [u32; 2]) -> Result<(), Error> {
        self.send(from, to, first)?;
        if second == first { Ok(()) } else { self.send(from, to, second) }
    }

    fn send(&self, from: End, to: End, sequence: u32) -> Result<(), Error> {
        let (socket, packet) = match (from.address, to.address) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                (&self.v4, packet_v4(source, target, from.port, to.port, sequence))
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let socket = self
                    .v6
                    .as_ref()
                    .ok_or_else(|| kernel("sending a reset", "this host has no IPv6".to_owned()))?;
                (socket, packet_v6(source, target, from.port, to.port, sequence))
            }
            _ => return Err(kernel("sending a reset", "its ends are of two families".to_owned())),
        };
        // Raw sockets ignore the port of the address; IPv6 accepts only 0.
        let address = SocketAddr::new(to.address, 0);
        rustix::net::sendto(socket, &packet, SendFlags::empty(), &address).map(drop).map_err(
            |error| kernel(&format!("sending a reset to {}", to.address), error.to_string()),
        )
    }
}

/// `None` with `ipv6.disable=1`.
fn if_supported(opened: Result<OwnedFd, Errno>) -> Result<Option<OwnedFd>, Error> {
    match opened {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AFNOSUPPORT) => Ok(None),
        Err(error) => Err(cannot_open(&error)),
    }
}

fn cannot_open(error: &Errno) -> Error {
    const WHAT: &str = "opening a raw socket for resets";
    match *error {
        Errno::PERM | Errno::ACCESS => Error::NotPermitted { what: WHAT.to_owned() },
        error => kernel(WHAT, error.to_string()),
    }
}

/// The complement of the one's complement sum of the parts.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let mut sum: u32 = 0;
    for part in parts {
        for word in part.chunks(2) {
            sum += u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn segment(
    source: &[u8],
    target: &[u8],
    source_port: u16,
    target_port: u16,
    sequence: u32,
) -> [u8; TCP_HEADER_BYTES] {
    let mut segment = [0; TCP_HEADER_BYTES];
    segment[0..2].copy_from_slice(&source_port.to_be_bytes());
    segment[2..4].copy_from_slice(&target_port.to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = FLAG_RST;
    let pseudo = [0, libc::IPPROTO_TCP as u8, 0, TCP_HEADER_BYTES as u8];
    let sum = checksum(&[source, target, &pseudo, &segment]);
    segment[16..18].copy_from_slice(&sum);
    segment
}

fn packet_v4(
    source: Ipv4Addr,
    target: Ipv4Addr,
    source_port: u16,
    target_port: u16,
    sequence: u32,
) -> Vec<u8> {
    let (source, target) = (source.octets(), target.octets());
    let mut header = [0u8; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(20 + TCP_HEADER_BYTES as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = libc::IPPROTO_TCP as u8;
    header[12..16].copy_from_slice(&source);
    header[16..20].copy_from_slice(&target);
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [&header[..], &segment(&source, &target, source_port, target_port, sequence)].concat()
}

fn packet_v6(
    source: Ipv6Addr,
    target: Ipv6Addr,
    source_port: u16,
    target_port: u16,
    sequence: u32,
) -> Vec<u8> {
    let (source, target) = (source.octets(), target.octets());
    let mut header = [0u8; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(TCP_HEADER_BYTES as u16).to_be_bytes());
    header[6] = libc::IPPROTO_TCP as u8;
    header[7] = 64;
    header[8..24].copy_from_slice(&source);
    header[24..40].copy_from_slice(&target);
    [&header[..], &segment(&source, &target, source_port, target_port, sequence)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_ipv6_has_no_socket_for_it() {
        assert!(matches!(if_supported(Err(Errno::AFNOSUPPORT)), Ok(None)));
        assert!(matches!(if_supported(Err(Errno::PERM)), Err(Error::NotPermitted { .. })));
        assert!(matches!(if_supported(Err(Errno::MFILE)), Err(Error::Kernel { .. })));
    }

    /// The sum over all words, including the checksum, is zero.
    #[test]
    fn checksums_hold() {
        let v4 = packet_v4([192, 0, 2, 1].into(), [10, 0, 0, 9].into(), 80, 40_001, 0xfedc_ba98);
        assert_eq!(checksum(&[&v4[..20]]), [0, 0]);
        assert_eq!(checksum(&[&v4[12..20], &[0, 6, 0, 20], &v4[20..]]), [0, 0]);
        let v6 = packet_v6(
            "2001:db8::1".parse().unwrap(),
            "2001:db8:1::9".parse().unwrap(),
            443,
            40_001,
            7,
        );
        assert_eq!(checksum(&[&v6[8..40], &[0, 6, 0, 20], &v6[40..]]), [0, 0]);
        assert_eq!(v6[40 + 13], FLAG_RST);
    }
}
