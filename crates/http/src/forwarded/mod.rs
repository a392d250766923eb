//! The client's address from the headers of proxies: X-Forwarded-For, and Forwarded (RFC 7239).
//!
//! Every proxy appends the address that *it* saw to the list, so only the part written by known proxies can be trusted.
//! [`client_address`] walks from the right: while an address belongs to a trusted proxy, the element to its left was
//! written by that proxy. The first address that is not trusted is the client's; everything further left may be
//! invented.
//!
//! A malformed element ends the walk at the proxy that forwarded it: nothing further left is trusted.

mod element;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use element::{Element, Malformed, elements, write_element};

use crate::chars::trim_ows;

/// Maximum number of trusted proxies that are followed.
pub const HOPS_MAX: usize = 32;

/// Longest text of an address: IPv6 with an embedded IPv4 address, brackets and a port.
const NODE_BYTES_MAX: usize = 53;

/// The field that the trusted proxies write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// X-Forwarded-For: a list of addresses.
    XForwardedFor,
    /// Forwarded: a list of elements, of which `for` is used.
    Forwarded,
}

/// The client's address: the connection's peer, or the address from trusted proxies.
///
/// `fields` are the values of all fields of this name in the order of the message. IPv4-mapped IPv6 addresses count as
/// IPv4 addresses, for `is_trusted` and in the result.
///
/// Cost: at most [`HOPS_MAX`] elements of X-Forwarded-For are looked at; of Forwarded, whose quoted
/// strings can only be read from the left, each field from which an element is taken is read completely.
pub fn client_address<'a>(
    peer: IpAddr,
    source: Source,
    fields: impl DoubleEndedIterator<Item = &'a [u8]>,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut walk = Walk { client: peer.to_canonical(), hops_left: HOPS_MAX, is_trusted };
    for field in fields.rev() {
        let goes_on = match source {
            Source::XForwardedFor => walk.through_list(field),
            Source::Forwarded => walk.through_elements(field),
        };
        if !goes_on {
            break;
        }
    }
    walk.client
}

struct Walk<Trust> {
    /// The address that is trusted so far.
    client: IpAddr,
    hops_left: usize,
    is_trusted: Trust,
}

impl<Trust: Fn(IpAddr) -> bool> Walk<Trust> {
    /// Processes the next element to the left; `told` returns its address. Returns whether the walk continues.
    fn step(&mut self, told: impl FnOnce() -> Option<IpAddr>) -> bool {
        if self.hops_left == 0 || !(self.is_trusted)(self.client) {
            return false;
        }
        self.hops_left -= 1;
        match told() {
            Some(ip) => {
                self.client = ip.to_canonical();
                true
            }
            None => false,
        }
    }

    fn through_list(&mut self, field: &[u8]) -> bool {
        let mut elements = field.rsplit(|byte| *byte == b',').map(trim_ows);
        elements.all(|element| {
            // Empty elements are ignored (RFC 9110 section 5.6.1.2).
            element.is_empty() || self.step(|| parse_address(element).map(|(ip, _)| ip))
        })
    }

    fn through_elements(&mut self, field: &[u8]) -> bool {
        if self.hops_left == 0 || !(self.is_trusted)(self.client) {
            return false;
        }
        // The last elements, in a ring, because their number is unknown before the end.
        let mut last = [None; HOPS_MAX];
        let mut count = 0;
        for element in elements(field) {
            let Ok(element) = element else {
                return false;
            };
            last[count % HOPS_MAX] = element.client_ip();
            count += 1;
        }
        (count.saturating_sub(HOPS_MAX)..count).rev().all(|at| self.step(|| last[at % HOPS_MAX]))
    }
}

/// Parses an address as proxies write it: IPv4 or IPv6, IPv6 with or without brackets, and a port after
/// IPv4 or after brackets.
pub fn parse_address(text: &[u8]) -> Option<(IpAddr, Option<u16>)> {
    if text.len() > NODE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Some(bracketed) = text.strip_prefix('[') {
        let (ip, rest) = bracketed.split_once(']')?;
        let port = match rest {
            "" => None,
            _ => Some(parse_port(rest.strip_prefix(':')?)?),
        };
        return Some((ip.parse::<Ipv6Addr>().ok()?.into(), port));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some((ip, None));
    }
    let (ip, port) = text.split_once(':')?;
    Some((ip.parse::<Ipv4Addr>().ok()?.into(), Some(parse_port(port)?)))
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Whether a value is a complete list of elements. An incomplete one, for example with an unterminated string, would
/// swallow an appended element.
pub fn is_whole(field: &[u8]) -> bool {
    elements(field).all(|element| element.is_ok())
}

/// Appends the values of `existing` fields, in order, as the beginning of one field's value; one further element
/// follows.
pub fn write_existing<'a>(existing: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for value in existing {
        let value = trim_ows(value);
        if !value.is_empty() {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
}

#[cfg(test)]
mod tests;
