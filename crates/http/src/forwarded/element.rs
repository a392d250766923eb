//! One element of a Forwarded field (RFC 7239 section 4): `for=192.0.2.1;proto=https;by="[::1]:80"`.

use std::borrow::Cow;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use super::parse_address;
use crate::chars::{is_ows, is_token_byte, token_length};
use crate::ip_text::write_ip;

/// The statement of one proxy. Missing parameters, and parameters other than these four, are `None`.
///
/// Nodes (`for`, `by`) are an address, perhaps with a port, `unknown`, or an identifier that starts with an underscore
/// and hides the address (section 6.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element<'a> {
    /// `for`: the client of the proxy.
    pub client: Option<Cow<'a, [u8]>>,
    /// `by`: the address at which the proxy received the request.
    pub by: Option<Cow<'a, [u8]>>,
    /// `host`: the Host field that the proxy received.
    pub host: Option<Cow<'a, [u8]>>,
    /// `proto`: the scheme of the request to the proxy.
    pub proto: Option<Cow<'a, [u8]>>,
}

/// The rest of a Forwarded field is not a list of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl Element<'_> {
    /// The address in `for`, unless it is hidden or malformed. IPv6 must be bracketed (section 6.1).
    pub fn client_ip(&self) -> Option<IpAddr> {
        let node = self.client.as_deref()?;
        if let Some((ip, _)) = parse_address(node) {
            return (ip.is_ipv4() || node.starts_with(b"[")).then_some(ip);
        }
        // `1.2.3.4:_hidden`: a port, too, may be hidden (section 6.2).
        let hidden_port = memchr::memrchr(b':', node)?;
        let is_hidden =
            matches!(&node[hidden_port + 1..], [b'_', rest @ ..] if is_obfuscated(rest));
        let (ip, port) = parse_address(&node[..hidden_port])?;
        (is_hidden && port.is_none() && (ip.is_ipv4() || node.starts_with(b"["))).then_some(ip)
    }
}

/// `1*( ALPHA / DIGIT / "." / "_" / "-")`, the rest of an identifier behind its underscore.
fn is_obfuscated(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// The elements of a Forwarded field's value, in order; ends after the first malformed one.
///
/// Empty elements are ignored. A parameter that occurs twice in an element makes the element malformed (section
/// 4: "MUST NOT occur more than once").
pub fn elements(value: &[u8]) -> impl Iterator<Item = Result<Element<'_>, Malformed>> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let mut input = skip_ows(rest.take()?);
        while let [b',', tail @ ..] = input {
            input = skip_ows(tail);
        }
        if input.is_empty() {
            return None;
        }
        let Some((element, tail)) = parse_element(input) else {
            return Some(Err(Malformed));
        };
        rest = Some(tail);
        Some(Ok(element))
    })
}

/// The element at the start of `input`, and the rest: nothing, or from a comma on.
fn parse_element(mut input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let mut element = Element::default();
    loop {
        // Empty pairs are allowed: `[ forwarded-pair ] *( ";" [ forwarded-pair ] )`.
        if !matches!(input.first(), None | Some(b';' | b',')) {
            input = parse_pair(input, &mut element)?;
        }
        input = skip_ows(input);
        match input {
            [] | [b',', ..] => return Some((element, input)),
            [b';', tail @ ..] => input = skip_ows(tail),
            _ => return None,
        }
    }
}

/// Parses the pair at the start of `input` into the element. Returns the rest.
fn parse_pair<'a>(input: &'a [u8], element: &mut Element<'a>) -> Option<&'a [u8]> {
    let (name, rest) = input.split_at(token_length(input));
    let rest = rest.strip_prefix(b"=")?;
    let (value, rest) = parse_value(rest)?;
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let place = if is("for") {
        &mut element.client
    } else if is("by") {
        &mut element.by
    } else if is("host") {
        &mut element.host
    } else if is("proto") {
        &mut element.proto
    } else {
        return (!name.is_empty()).then_some(rest);
    };
    place.replace(value).is_none().then_some(rest)
}

/// A token or a quoted string (RFC 9110 section 5.6.4), and the rest. Colons and brackets are accepted without quotes
/// too: proxies omit them around ports and IPv6 addresses.
fn parse_value(input: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(quoted) = input.strip_prefix(b"\"") else {
        let is_part = |byte: &u8| is_token_byte(*byte) || b":[]".contains(byte);
        let length = input.iter().position(|byte| !is_part(byte)).unwrap_or(input.len());
        let (value, rest) = input.split_at(length);
        return (!value.is_empty()).then_some((Cow::Borrowed(value), rest));
    };
    let mut unescaped: Option<Vec<u8>> = None;
    let mut at = 0;
    loop {
        match *quoted.get(at)? {
            b'"' => break,
            b'\\' => {
                let escaped = *quoted.get(at + 1)?;
                unescaped.get_or_insert_with(|| quoted[..at].to_vec()).push(escaped);
                at += 2;
            }
            byte => {
                if let Some(unescaped) = &mut unescaped {
                    unescaped.push(byte);
                }
                at += 1;
            }
        }
    }
    let value = unescaped.map_or(Cow::Borrowed(&quoted[..at]), Cow::Owned);
    Some((value, &quoted[at + 1..]))
}

fn skip_ows(mut input: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = input
        && is_ows(*first)
    {
        input = rest;
    }
    input
}

/// Appends an element with the client (with the port if `client` has one that is not 0), the host and the scheme.
pub fn write_element(client: SocketAddr, host: Option<&[u8]>, proto: &[u8], out: &mut Vec<u8>) {
    let has_port = client.port() != 0;
    // Neither a colon nor a bracket may stand in a token.
    let quote: &[u8] = if client.is_ipv6() || has_port { b"\"" } else { b"" };
    let (before, after): (&[u8], &[u8]) = if client.is_ipv6() { (b"[", b"]") } else { (b"", b"") };
    out.extend_from_slice(b"for=");
    out.extend_from_slice(quote);
    out.extend_from_slice(before);
    write_ip(client.ip(), out);
    out.extend_from_slice(after);
    if has_port {
        write!(out, ":{}", client.port()).expect("a vector takes what is written to it");
    }
    out.extend_from_slice(quote);
    if let Some(host) = host {
        out.extend_from_slice(b";host=");
        write_value(host, out);
    }
    out.extend_from_slice(b";proto=");
    write_value(proto, out);
}

/// A value as a token, or as a quoted string if it is not a token.
fn write_value(value: &[u8], out: &mut Vec<u8>) {
    if !value.is_empty() && token_length(value) == value.len() {
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
