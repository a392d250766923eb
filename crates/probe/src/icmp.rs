//! ICMP Echo (RFC 792, RFC 4443), over the kernel's ICMP sockets, which need no privilege.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Protocol, SocketFlags, SocketType, ipproto, socket_with};
use tokio::net::UdpSocket;
use weir_core::monitor::ProbeOutcome;
use weir_event_loop::random;

use super::failure::{Deadline, Failure, Step};
use super::udp::DatagramSettings;

/// Size of the header: type, code, checksum, identifier, sequence.
const HEADER_BYTES: usize = 8;
/// Size of the random text that identifies the answer.
const TEXT_BYTES: usize = 16;
/// Size of the receive buffer. It exceeds the size of an answer, so a longer datagram is not taken for one.
const ANSWER_BYTES_MAX: usize = 64;

const ECHO_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// Advice for administrators about the required permission.
const NOT_ALLOWED: &str = "ICMP is not allowed for the group of this process: \
                           `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"` allows it";

/// Groups whose processes may use ICMP sockets.
const GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";

/// The reason why this process cannot send echo requests, if it is known in advance. No socket is opened.
pub fn obstacle() -> Option<&'static str> {
    let range = std::fs::read_to_string(GROUPS).ok()?;
    let groups = rustix::process::getgroups().unwrap_or_default();
    let groups = groups.into_iter().chain([rustix::process::getegid()]);
    let groups: Vec<u32> = groups.map(|group| group.as_raw()).collect();
    (!is_allowed(&range, &groups)).then_some(NOT_ALLOWED)
}

/// Whether one of these groups is in the range, which has its first and its last group. An unknown form forbids nothing.
fn is_allowed(range: &str, groups: &[u32]) -> bool {
    let mut ends = range.split_whitespace().map(str::parse::<u32>);
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else { return true };
    groups.iter().any(|group| (first..=last).contains(group))
}

/// Sends an echo request, and waits for its reply.
pub(super) async fn ask(
    way: &DatagramSettings,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let socket = connect(way)?;
    let text: [u8; TEXT_BYTES] = random::bytes();
    let (kind, wanted) = match way.address {
        SocketAddr::V4(_) => (ECHO_V4, ECHO_REPLY_V4),
        SocketAddr::V6(_) => (ECHO_V6, ECHO_REPLY_V6),
    };
    // The kernel fills in checksum and identifier.
    let request = [&[kind, 0, 0, 0, 0, 0, 0, 1][..], &text].concat();
    let sent = deadline.within(Step::Listening, socket.send(&request)).await?;
    sent.map_err(Failure::connecting)?;
    let mut received = [0; ANSWER_BYTES_MAX];
    loop {
        let length = deadline.within(Step::Listening, socket.recv(&mut received)).await?;
        let length = length.map_err(Failure::connecting)?;
        if is_echo(&received[..length], wanted, &text) {
            return Ok(ProbeOutcome::Passed);
        }
    }
}

/// Whether this is the reply to the echo request.
fn is_echo(answer: &[u8], kind: u8, text: &[u8]) -> bool {
    answer
        .split_at_checked(HEADER_BYTES)
        .is_some_and(|(head, echoed)| head[..2] == [kind, 0] && echoed == text)
}

/// An ICMP socket that is connected to this address.
fn connect(way: &DatagramSettings) -> Result<UdpSocket, Failure> {
    let (family, protocol): (AddressFamily, Protocol) = match way.address {
        SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(protocol)).map_err(not_made)?;
    if let Some(source) = &way.source {
        let own: IpAddr = source.address;
        net::bind(&socket, &SocketAddr::new(own, 0))
            .map_err(|error| Failure::connecting(error.into()))?;
    }
    // ICMP has no ports.
    let member = SocketAddr::new(way.address.ip(), 0);
    net::connect(&socket, &member).map_err(|error| Failure::connecting(error.into()))?;
    UdpSocket::from_std(socket.into()).map_err(Failure::Local)
}

/// The failure if no socket can be opened. The member's state stays unknown.
fn not_made(error: Errno) -> Failure {
    Failure::Local(match error {
        Errno::ACCESS | Errno::PERM => io::Error::other(NOT_ALLOWED),
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes() {
        let check = |answer: &[u8], expected| {
            assert_eq!(is_echo(answer, 0, b"text"), expected, "{answer:?}")
        };
        check(b"\0\0\xab\xcd\x01\x02\x00\x01text", true);
        check(b"\x08\0\xab\xcd\x01\x02\x00\x01text", false);
        check(b"\0\x01\xab\xcd\x01\x02\x00\x01text", false);
        check(b"\0\0\xab\xcd\x01\x02\x00\x01texts", false);
        check(b"\0\0\xab\xcd\x01\x02\x00\x01tex", false);
        check(b"\0\0\xab\xcd\x01\x02\x00", false);
        check(b"", false);
    }

    #[test]
    fn groups_are_allowed_by_their_range() {
        let check = |range, groups: &[u32], expected| {
            assert_eq!(is_allowed(range, groups), expected, "{range:?} {groups:?}");
        };
        check("0\t2147483647\n", &[1_000], true);
        check("1\t0\n", &[0, 1], false);
        check("100 200", &[99, 201], false);
        check("100 200", &[99, 200], true);
        check("", &[0], true);
    }

    #[test]
    fn a_lack_of_permission_says_how_to_get_it() {
        let failure = not_made(Errno::ACCESS);
        assert!(!failure.is_conclusive());
        assert!(failure.to_string().contains("net.ipv4.ping_group_range"), "{failure}");
        assert!(!not_made(Errno::MFILE).is_conclusive());
    }
}
