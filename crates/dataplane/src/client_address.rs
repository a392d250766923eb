//! Who the client of a request is, and what its member is told of that.

use std::net::SocketAddr;

use weir_config::snapshot::{ClientAddress, Forwarding};
use weir_core::expression::Facts;
use weir_http::edits::RequestEdits;
use weir_http::forwarded::{self, Source as Told};
use weir_http::message::{Field, RequestHead, Scheme};
use weir_http::write_ip;

/// The values of the fields of this name, which is in lower case.
pub fn named<'a>(
    fields: &'a [Field],
    input: &'a [u8],
    name: &'a [u8],
) -> impl DoubleEndedIterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| {
            field.name.len() == name.len() && field.name.of(input).eq_ignore_ascii_case(name)
        })
        .map(move |field| field.value.of(input))
}

/// The client of a request: the other end of the connection, or whom trusted proxies name.
pub fn client_of(
    settings: &ClientAddress,
    peer: Option<SocketAddr>,
    head: &RequestHead,
    input: &[u8],
) -> Option<SocketAddr> {
    let peer = peer?;
    if !settings.trust.contains(peer.ip()) {
        return Some(peer);
    }
    let is_forwarded = settings.header.eq_ignore_ascii_case("forwarded");
    let told = if is_forwarded { Told::Forwarded } else { Told::XForwardedFor };
    let fields = named(&head.fields, input, settings.header.as_bytes());
    let client =
        forwarded::client_address(peer.ip(), told, fields, |ip| settings.trust.contains(ip));
    // Nobody tells the port of who is behind a proxy.
    Some(if client == peer.ip().to_canonical() { peer } else { SocketAddr::new(client, 0) })
}

/// Tells the member who the client is, as far as that is wanted. What is appended is the other end of the
/// connection, as every proxy does it; what replaces all is the client that was found out.
pub fn tell_member(
    settings: &ClientAddress,
    peer: Option<SocketAddr>,
    facts: &Facts<'_>,
    edits: &mut RequestEdits,
    scratch: &mut Vec<u8>,
) {
    let (head, input) = (facts.request, facts.request_input);
    let scheme: &[u8] = match facts.scheme {
        Scheme::Http => b"http",
        Scheme::Https => b"https",
    };
    let told = |how| match how {
        Forwarding::Append => peer,
        Forwarding::Replace | Forwarding::Off => facts.client,
    };
    let existing = |how, name| {
        (how == Forwarding::Append).then(|| named(&head.fields, input, name)).into_iter().flatten()
    };
    match (settings.x_forwarded_for, told(settings.x_forwarded_for)) {
        (Forwarding::Off, _) | (Forwarding::Append, None) => {}
        // A client without an address does not get to name one.
        (Forwarding::Replace, None) => edits.fields.remove(b"X-Forwarded-For"),
        (how, Some(client)) => {
            scratch.clear();
            let write = |out: &mut Vec<u8>| write_ip(client.ip().to_canonical(), out);
            forwarded::write_appended(existing(how, b"x-forwarded-for"), write, scratch);
            edits.fields.set(b"X-Forwarded-For", |out| out.extend_from_slice(scratch));
        }
    }
    match (settings.forwarded, told(settings.forwarded)) {
        (Forwarding::Off, _) | (Forwarding::Append, None) => {}
        (Forwarding::Replace, None) => edits.fields.remove(b"Forwarded"),
        (how, Some(client)) => {
            scratch.clear();
            let host = Some(head.authority(input)).filter(|host| !host.is_empty());
            let write = |out: &mut Vec<u8>| forwarded::write_element(client, host, scheme, out);
            let existing = existing(how, b"forwarded").filter(|value| forwarded::is_whole(value));
            forwarded::write_appended(existing, write, scratch);
            edits.fields.set(b"Forwarded", |out| out.extend_from_slice(scratch));
        }
    }
    if settings.x_forwarded_proto {
        // A trusted proxy knows better what the client asked for, and of whom.
        let is_trusted = peer.is_some_and(|peer| settings.trust.contains(peer.ip()));
        let is_told = |name| is_trusted && named(&head.fields, input, name).next().is_some();
        if !is_told(b"x-forwarded-proto") {
            edits.fields.set(b"X-Forwarded-Proto", |out| out.extend_from_slice(scheme));
        }
        if !is_told(b"x-forwarded-host") {
            let host = head.authority(input);
            edits.fields.set(b"X-Forwarded-Host", |out| out.extend_from_slice(host));
        }
    }
}
