//! Netlink queries: capabilities of devices, routes of packets, and idle neighbours.
//! `man 7 netlink`, `man 7 rtnetlink`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, recv, sendto, socket,
};

use crate::error::{Error, kernel};

/// Timeout for an answer of the kernel, which normally comes with the call.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of one part of an answer; the kernel's parts are smaller.
const PART_BYTES_MAX: usize = 1 << 16;

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

const RTM_GETLINK: u16 = 18;
const IFLA_ADDRESS: u16 = 1;
/// `struct ifinfomsg`.
const LINK_BYTES: usize = 16;

const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NDA_DST: u16 = 1;
const NTF_USE: u8 = 1;
const NUD_STALE: u16 = 4;
/// `struct ndmsg`.
const NEIGHBOUR_BYTES: usize = 12;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_MULTIPATH: u16 = 9;
const RTA_NH_ID: u16 = 30;
/// Requests all paths of a route, instead of one of them.
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// `struct rtmsg`.
const ROUTE_BYTES: usize = 12;
/// `struct rtnexthop`.
const NEXT_HOP_BYTES: usize = 8;

const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const FRA_PRIORITY: u16 = 6;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
const FR_ACT_TO_TBL: u8 = 1;
const FIB_RULE_PERMANENT: u32 = 1;
/// `struct fib_rule_hdr`.
const RULE_BYTES: usize = 12;

/// Multicast groups of notifications: `RTNLGRP_IPV4_ROUTE` and `RTNLGRP_IPV4_RULE`.
const ROUTES_AND_RULES: u32 = 1 << 6 | 1 << 7;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 4;
/// `struct genlmsghdr`.
const GENERIC_BYTES: usize = 4;

/// A hardware address of Ethernet.
pub type Hardware = [u8; 6];

/// Maximum number of neighbours per confirmation.
const CONFIRMED_MAX: usize = 1_024;

/// The hardware address of a device; `None`: not an Ethernet device.
pub fn hardware_of(index: u32) -> Result<Option<Hardware>, Error> {
    let fail = |error: Errno| kernel("reading an interface's hardware address", error.to_string());
    let mut body = [0; LINK_BYTES];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let answers = Socket::open(None).and_then(|it| it.ask(RTM_GETLINK, 0, &body)).map_err(fail)?;
    let address = |answer: &Vec<u8>| {
        let found = attribute(answer.get(LINK_BYTES..)?, IFLA_ADDRESS)?;
        found.try_into().ok()
    };
    Ok(answers.iter().find_map(address))
}

/// Whether a device's driver sends packets that XDP hands to it. It may also depend on the programs attached at its
/// peer.
pub fn sends_for_xdp(index: u32) -> Result<bool, Error> {
    let fail = |error: Errno| kernel("reading what an interface can do", error.to_string());
    let features = || -> Result<u64, Errno> {
        let socket = Socket::open(Some(GENERIC))?;
        let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        put_attribute(&mut body, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
        let answers = socket.ask(GENL_ID_CTRL, 0, &body)?;
        let family = first(&answers, CTRL_ATTR_FAMILY_ID).ok_or(Errno::NOENT)?;
        let family = u16::from_ne_bytes(family.try_into().map_err(|_| Errno::BADMSG)?);
        let mut body = vec![NETDEV_CMD_DEV_GET, 1, 0, 0];
        put_attribute(&mut body, NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes());
        let answers = socket.ask(family, 0, &body)?;
        let features = first(&answers, NETDEV_A_DEV_XDP_FEATURES).ok_or(Errno::NOENT)?;
        Ok(u64::from_ne_bytes(features.try_into().map_err(|_| Errno::BADMSG)?))
    };
    Ok(features().map_err(fail)? & NETDEV_XDP_ACT_NDO_XMIT != 0)
}

/// The devices by which the kernel reaches these addresses.
pub fn devices_toward(addresses: &BTreeSet<IpAddr>) -> Result<BTreeSet<u32>, Error> {
    let fail = |error: Errno| kernel("asking for routes", error.to_string());
    let socket = Socket::open(None).map_err(fail)?;
    let mut devices = BTreeSet::new();
    for address in addresses {
        let (family, octets) = match address {
            IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
            IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
        };
        let mut body = vec![0; ROUTE_BYTES];
        body[0] = family.as_raw() as u8;
        body[1] = octets.len() as u8 * 8;
        body[8..].copy_from_slice(&RTM_F_FIB_MATCH.to_ne_bytes());
        put_attribute(&mut body, RTA_DST, &octets);
        // An error means that there is no route.
        for route in socket.ask(RTM_GETROUTE, 0, &body).unwrap_or_default() {
            devices.extend(devices_of(route.get(ROUTE_BYTES..).unwrap_or_default()));
        }
    }
    Ok(devices)
}

/// The devices in the attributes of a route.
fn devices_of(attributes: &[u8]) -> Vec<u32> {
    let index = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
    let mut devices: Vec<u32> =
        attribute(attributes, RTA_OIF).and_then(index).into_iter().collect();
    let mut hops = attribute(attributes, RTA_MULTIPATH).unwrap_or_default();
    while hops.len() >= NEXT_HOP_BYTES {
        devices.extend(index(&hops[4..NEXT_HOP_BYTES]));
        let length = usize::from(u16::from_ne_bytes([hops[0], hops[1]])).next_multiple_of(4);
        hops = hops.get(length.max(NEXT_HOP_BYTES)..).unwrap_or_default();
    }
    devices
}

/// The kind of a change of routes or rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A new route or rule that depends only on the destination.
    Plain,
    /// A new route or rule that may depend on more.
    DependsOnMore,
    /// A removed route or rule.
    Gone,
}

impl Notice {
    fn of(kind: u16, body: &[u8]) -> Self {
        match kind {
            RTM_NEWROUTE if is_route_plain(body) => Self::Plain,
            RTM_NEWRULE if is_rule_plain(body) => Self::Plain,
            RTM_NEWROUTE | RTM_NEWRULE => Self::DependsOnMore,
            _ => Self::Gone,
        }
    }
}

/// A socket that receives changes of routes and rules of IPv4.
pub fn route_notices() -> Result<OwnedFd, Errno> {
    let socket = Socket::open(None)?.0;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, ROUTES_AND_RULES))?;
    Ok(socket)
}

/// The received changes; `None`: no more. `NOBUFS`: some were lost.
pub fn read_notices(socket: &OwnedFd) -> Result<Option<Vec<Notice>>, Errno> {
    let mut part = vec![0; PART_BYTES_MAX];
    let length = match recv(socket, part.as_mut_slice(), RecvFlags::DONTWAIT) {
        Ok((length, _)) => length,
        Err(Errno::AGAIN) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut notices = Vec::new();
    take_part(&part[..length], |kind, body| {
        notices.push(Notice::of(kind, body));
        true
    })?;
    Ok(Some(notices))
}

/// Whether IPv4 routes depend only on the destination, by all rules and routes.
pub fn are_routes_plain() -> Result<bool, Errno> {
    let mut header = [0; RULE_BYTES];
    header[0] = AddressFamily::INET.as_raw() as u8;
    // Headers of rules and routes have the same length, and their first byte is the family.
    const { assert!(RULE_BYTES == ROUTE_BYTES) };
    for (kind, is_plain) in
        [(RTM_GETRULE, is_rule_plain as fn(&[u8]) -> bool), (RTM_GETROUTE, is_route_plain)]
    {
        let mut are_plain = true;
        Socket::open(None)?.each(kind, NLM_F_DUMP, &header, |_, body| {
            are_plain &= is_plain(body);
            are_plain
        })?;
        if !are_plain {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a rule selects a table for all packets alike.
fn is_rule_plain(rule: &[u8]) -> bool {
    let Some((header, attributes)) = rule.split_at_checked(RULE_BYTES) else { return false };
    let has_no_selector = header[1..4] == [0; 3] && header[7] == FR_ACT_TO_TBL;
    let flags = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
    let is_plain = |(kind, value): (u16, &[u8])| match kind {
        FRA_PRIORITY | FRA_TABLE | FRA_PROTOCOL => true,
        FRA_SUPPRESS_PREFIXLEN => value == [0xff; 4],
        _ => false,
    };
    has_no_selector
        && flags & !FIB_RULE_PERMANENT == 0
        && all_attributes(attributes, is_plain) == Some(true)
}

/// Whether a route has one path for all packets. A route with a next hop object may have several.
fn is_route_plain(route: &[u8]) -> bool {
    let Some(attributes) = route.get(ROUTE_BYTES..) else { return false };
    let is_plain = |(kind, _): (u16, &[u8])| kind != RTA_MULTIPATH && kind != RTA_NH_ID;
    all_attributes(attributes, is_plain) == Some(true)
}

/// Makes the kernel confirm stale neighbours behind these devices; `None`: behind all. The kernel confirms neighbours
/// only for its own packets, not for packets that programs send, so a changed hardware address would otherwise never be
/// noticed. Returns the number of neighbours.
pub fn confirm_neighbours(devices: Option<&BTreeSet<u32>>) -> Result<usize, Error> {
    let fail = |error: Errno| kernel("having neighbours confirmed", error.to_string());
    let socket = Socket::open(None).map_err(fail)?;
    let all = socket.ask(RTM_GETNEIGH, NLM_F_DUMP, &[0; NEIGHBOUR_BYTES]).map_err(fail)?;
    let is_wanted = |neighbour: &[u8]| {
        is_stale(neighbour)
            && devices.is_none_or(|devices| devices.contains(&device_of_neighbour(neighbour)))
    };
    let mut confirmed = 0;
    for neighbour in all.iter().filter(|it| is_wanted(it)).take(CONFIRMED_MAX) {
        let Some(address) = attribute(&neighbour[NEIGHBOUR_BYTES..], NDA_DST) else { continue };
        let mut body = neighbour[..NEIGHBOUR_BYTES].to_vec();
        body[10] |= NTF_USE;
        put_attribute(&mut body, NDA_DST, address);
        match socket.ask(RTM_NEWNEIGH, NLM_F_ACK, &body) {
            Ok(_) => confirmed += 1,
            // The neighbour or its device was removed meanwhile.
            Err(Errno::NOENT | Errno::NODEV) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Ok(confirmed)
}

fn device_of_neighbour(neighbour: &[u8]) -> u32 {
    u32::from_ne_bytes([neighbour[4], neighbour[5], neighbour[6], neighbour[7]])
}

fn is_stale(neighbour: &[u8]) -> bool {
    let state = |bytes: &[u8]| u16::from_ne_bytes([bytes[8], bytes[9]]);
    neighbour.len() > NEIGHBOUR_BYTES && state(neighbour) & NUD_STALE != 0
}

/// The first attribute of this kind in any of the answers.
fn first(answers: &[Vec<u8>], kind: u16) -> Option<&[u8]> {
    answers.iter().find_map(|answer| attribute(answer.get(GENERIC_BYTES..)?, kind))
}

fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut found = None;
    all_attributes(bytes, |(kind, value)| {
        found = (kind == wanted).then_some(value);
        found.is_none()
    })?;
    found
}

/// Whether the condition holds for all attributes; `None`: they are truncated.
fn all_attributes<'a>(
    mut bytes: &'a [u8],
    mut is_so: impl FnMut((u16, &'a [u8])) -> bool,
) -> Option<bool> {
    /// The highest two bits are flags.
    const KIND: u16 = 0x3fff;
    while let [a, b, c, d, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let kind = u16::from_ne_bytes([c, d]) & KIND;
        let value = bytes.get(4..length)?;
        if !is_so((kind, value)) {
            return Some(false);
        }
        // The padding of the last attribute may be missing.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(true)
}

fn put_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = 4 + value.len();
    body.extend_from_slice(&(length as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len() + length.next_multiple_of(4) - length, 0);
}

struct Socket(OwnedFd);

impl Socket {
    /// A socket for routes and devices if no protocol is given.
    fn open(protocol: Option<Protocol>) -> Result<Self, Errno> {
        let socket = socket(AddressFamily::NETLINK, SocketType::DGRAM, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        Ok(Self(socket))
    }

    /// The kernel's answers, without headers.
    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let mut answers = Vec::new();
        self.each(kind, flags, body, |_, answer| {
            answers.push(answer.to_vec());
            true
        })?;
        Ok(answers)
    }

    /// Passes the kernel's answers on, as kind and body, until the receiver stops.
    fn each(
        &self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut take: impl FnMut(u16, &[u8]) -> bool,
    ) -> Result<(), Errno> {
        let mut request = Vec::with_capacity(HEADER_BYTES + body.len());
        request.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        request.extend_from_slice(&kind.to_ne_bytes());
        request.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        request.extend_from_slice(&[0; 8]);
        request.extend_from_slice(body);
        sendto(&self.0, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let is_dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        let mut part = vec![0; PART_BYTES_MAX];
        loop {
            let (length, _) = recv(&self.0, part.as_mut_slice(), RecvFlags::empty())?;
            if take_part(&part[..length], &mut take)? || !is_dump {
                return Ok(());
            }
        }
    }
}

/// Processes the messages of one part. Returns whether this was the last part.
fn take_part(mut part: &[u8], mut take: impl FnMut(u16, &[u8]) -> bool) -> Result<bool, Errno> {
    while let [a, b, c, d, e, f, ..] = *part {
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let body = part.get(HEADER_BYTES..length).ok_or(Errno::BADMSG)?;
        match u16::from_ne_bytes([e, f]) {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return if code == 0 { Ok(true) } else { Err(Errno::from_raw_os_error(-code)) };
            }
            kind => {
                if !take(kind, body) {
                    return Ok(true);
                }
            }
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_address_and_sends_nothing_for_xdp() {
        let loopback = crate::index_of("lo").unwrap();
        assert_eq!(hardware_of(loopback).unwrap(), Some([0; 6]));
        assert!(!sends_for_xdp(loopback).unwrap());
        assert!(hardware_of(u32::MAX >> 1).is_err());
    }

    #[test]
    fn each_way_of_a_route_is_found() {
        let mut route = Vec::new();
        put_attribute(&mut route, RTA_OIF, &7u32.to_ne_bytes());
        assert_eq!(devices_of(&route), [7]);
        let mut hops = Vec::new();
        for (device, attributes) in [(8u32, 8), (9, 0)] {
            hops.extend_from_slice(&(NEXT_HOP_BYTES as u16 + attributes).to_ne_bytes());
            hops.extend_from_slice(&[0; 2]);
            hops.extend_from_slice(&device.to_ne_bytes());
            hops.resize(hops.len() + usize::from(attributes), 1);
        }
        let mut route = Vec::new();
        put_attribute(&mut route, RTA_MULTIPATH, &hops);
        assert_eq!(devices_of(&route), [8, 9]);
        assert_eq!(devices_of(&route[..route.len() - 1]), [0; 0]);
        let loopback = crate::index_of("lo").unwrap();
        let ways = devices_toward(&BTreeSet::from([IpAddr::from([127, 0, 0, 1])])).unwrap();
        assert_eq!(ways, BTreeSet::from([loopback]));
    }

    #[test]
    fn attributes_are_found_and_cut_ones_are_not() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 1, b"abc");
        put_attribute(&mut bytes, 2, b"defg");
        assert_eq!(attribute(&bytes, 2), Some(&b"defg"[..]));
        assert_eq!(attribute(&bytes[..bytes.len() - 1], 2), None);
        assert_eq!(attribute(&bytes, 3), None);
        assert_eq!(attribute(&[0; 8], 3), None);
        assert!(take_part(&[255; 20], |_, _| true).is_err());
        let mut error = [0; 20];
        error[0] = 20;
        error[4] = 2;
        error[16..].copy_from_slice(&(-19i32).to_ne_bytes());
        assert_eq!(take_part(&error, |_, _| true), Err(Errno::NODEV));
    }

    /// The header of a rule to a table, or of a route, and attributes.
    fn told(header: [u8; 12], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut told = header.to_vec();
        attributes.iter().for_each(|(kind, value)| put_attribute(&mut told, *kind, value));
        told
    }

    #[test]
    fn what_chooses_a_way_by_more_than_the_destination_is_not_plain() {
        let to_table = [2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0];
        let changed = |place: usize, value: u8| {
            let mut header = to_table;
            header[place] = value;
            header
        };
        let usual: &[(u16, &[u8])] = &[
            (FRA_TABLE, &[254, 0, 0, 0]),
            (FRA_SUPPRESS_PREFIXLEN, &[255; 4]),
            (FRA_PROTOCOL, &[2]),
        ];
        assert_eq!(Notice::of(RTM_NEWRULE, &told(to_table, usual)), Notice::Plain);
        assert_eq!(Notice::of(RTM_NEWRULE, &told(changed(8, 1), usual)), Notice::Plain);
        // Destination, source, type of service, an action without effect, "not".
        for header in [(1, 24), (2, 24), (3, 16), (7, 6), (8, 2)] {
            let rule = told(changed(header.0, header.1), usual);
            assert_eq!(Notice::of(RTM_NEWRULE, &rule), Notice::DependsOnMore, "{header:?}");
        }
        // A source, a mark, a device, tables of VRF, ports, and attributes of later kernels.
        for kind in [2, 10, 3, 19, 23, 24, 77] {
            let rule = told(to_table, &[(FRA_TABLE, &[254, 0, 0, 0]), (kind, &[0; 4])]);
            assert_eq!(Notice::of(RTM_NEWRULE, &rule), Notice::DependsOnMore, "{kind}");
        }
        let short = told(to_table, &[(FRA_SUPPRESS_PREFIXLEN, &[0; 4])]);
        assert_eq!(Notice::of(RTM_NEWRULE, &short), Notice::DependsOnMore);

        let route = [2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let to: (u16, &[u8]) = (RTA_DST, &[10, 0, 2, 0]);
        assert_eq!(
            Notice::of(RTM_NEWROUTE, &told(route, &[to, (RTA_OIF, &[3, 0, 0, 0])])),
            Notice::Plain
        );
        for kind in [RTA_MULTIPATH, RTA_NH_ID] {
            let several = told(route, &[to, (kind, &[0; 8])]);
            assert_eq!(Notice::of(RTM_NEWROUTE, &several), Notice::DependsOnMore);
        }
        assert_eq!(Notice::of(RTM_NEWROUTE, &route[..8]), Notice::DependsOnMore);
        assert_eq!(Notice::of(RTM_NEWROUTE + 1, &route), Notice::Gone);
        assert_eq!(Notice::of(RTM_NEWRULE + 1, &to_table), Notice::Gone);
    }
}
