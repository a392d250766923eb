//! The client of a request, and the headers that tell the member about it.

use std::net::SocketAddr;

use weir_config::snapshot::{ClientAddress, Forwarding};
use weir_core::expression::{AddressSet, Facts};
use weir_http::edits::{FieldEdits, RequestEdits};
use weir_http::forwarded::{self, Source as Told};
use weir_http::message::{Field, RequestHead, Scheme};
use weir_http::write_ip;

/// The values of all fields with this name, which must be in lower case.
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

/// The client's address of a request: the connection's peer, or the address from trusted proxies.
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
    // The port of a client behind a proxy is unknown.
    Some(if client == peer.ip().to_canonical() { peer } else { SocketAddr::new(client, 0) })
}

/// The client of a request, if trusted proxies name an address other than the connection's peer.
pub fn named_client(
    settings: &ClientAddress,
    peer: Option<SocketAddr>,
    head: &RequestHead,
    input: &[u8],
) -> Option<SocketAddr> {
    if settings.trust.is_empty() {
        return None;
    }
    client_of(settings, peer, head, input).filter(|client| Some(*client) != peer)
}

/// Adds the client's address to the request for the member, as configured. `append` adds the connection's peer, as
/// every proxy does; `replace` sends only the client's address. `trust`: the trusted proxies of the virtual server that
/// received the request. `asked`: the host and port that the client requested.
pub fn tell_member(
    (settings, trust): (&ClientAddress, &AddressSet),
    peer: Option<SocketAddr>,
    (facts, asked): (&Facts<'_>, &[u8]),
    edits: &mut RequestEdits,
    scratch: &mut Vec<u8>,
) {
    let scheme: &[u8] = match facts.scheme {
        Scheme::Http => b"http",
        Scheme::Https => b"https",
    };
    let told = |how| match how {
        Forwarding::Append => peer,
        Forwarding::Replace | Forwarding::Off => facts.client,
    };
    match (settings.x_forwarded_for, told(settings.x_forwarded_for)) {
        (Forwarding::Off, _) | (Forwarding::Append, None) => {}
        // For a client without an address, the field is removed: it came from the client itself.
        (Forwarding::Replace, None) => edits.fields.remove(b"X-Forwarded-For"),
        (how, Some(client)) => {
            scratch.clear();
            if how == Forwarding::Append {
                let existing = existing(b"x-forwarded-for", facts, &edits.fields);
                forwarded::write_existing(existing, scratch);
            }
            write_ip(client.ip().to_canonical(), scratch);
            edits.fields.set(b"X-Forwarded-For", |out| out.extend_from_slice(scratch));
        }
    }
    match (settings.forwarded, told(settings.forwarded)) {
        (Forwarding::Off, _) | (Forwarding::Append, None) => {}
        (Forwarding::Replace, None) => edits.fields.remove(b"Forwarded"),
        (how, Some(client)) => {
            scratch.clear();
            if how == Forwarding::Append {
                let existing = existing(b"forwarded", facts, &edits.fields);
                let whole = existing.filter(|value| forwarded::is_whole(value));
                forwarded::write_existing(whole, scratch);
            }
            let host = Some(asked).filter(|host| !host.is_empty());
            forwarded::write_element(client, host, scheme, scratch);
            edits.fields.set(b"Forwarded", |out| out.extend_from_slice(scratch));
        }
    }
    if settings.x_forwarded_proto {
        let of_rules = |edits: &RequestEdits, name: &[u8]| {
            edits.fields.added().any(|(added, _)| added.eq_ignore_ascii_case(name))
        };
        if !of_rules(edits, b"x-forwarded-proto") {
            // A trusted proxy knows the scheme and host that the client requested.
            let is_trusted = peer.is_some_and(|peer| trust.contains(peer.ip()));
            let told = existing(b"x-forwarded-proto", facts, &edits.fields).next();
            let scheme = told.filter(|_| is_trusted).unwrap_or(scheme);
            scratch.clear();
            scratch.extend_from_slice(scheme);
            edits.fields.set(b"X-Forwarded-Proto", |out| out.extend_from_slice(scratch));
        }
        if !of_rules(edits, b"x-forwarded-host") {
            edits.fields.set(b"X-Forwarded-Host", |out| out.extend_from_slice(asked));
        }
    }
}

/// The scheme of a request: from a trusted proxy's header, or from the connection.
pub fn scheme_of<'a>(
    settings: &ClientAddress,
    peer: Option<SocketAddr>,
    facts: &Facts<'a>,
) -> &'a [u8] {
    let is_trusted = peer.is_some_and(|peer| settings.trust.contains(peer.ip()));
    let (fields, input) = (&facts.request.fields, facts.request_input);
    let told = named(fields, input, b"x-forwarded-proto").next().filter(|_| is_trusted);
    told.unwrap_or(facts.scheme.name().as_bytes())
}

/// The values of this field in the request for the member: received ones, and those of rules.
fn existing<'a>(
    name: &'a [u8],
    facts: &'a Facts<'_>,
    fields: &'a FieldEdits,
) -> impl Iterator<Item = &'a [u8]> {
    let received = named(&facts.request.fields, facts.request_input, name);
    let added = fields.added().filter(|(added, _)| added.eq_ignore_ascii_case(name));
    received.filter(|_| !fields.withholds(name)).chain(added.map(|(_, value)| value))
}
