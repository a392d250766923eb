//! Source addresses of connections to members.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::SourceAddress;
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::raw;
use crate::raw::source::SourceOr;
use crate::snapshot::{Source, SourceAddresses};

/// Maximum number of source addresses of a pool: a connection may look for a free port on each of them.
const SOURCE_ADDRESSES_MAX: usize = 64;

/// The source addresses of a pool.
pub(super) fn source(raw: &raw::Pool, context: &mut Context) -> Source {
    let Some(given) = &raw.source else {
        return Source::System;
    };
    let (addresses, ports) = match &given.value {
        SourceOr::Client => {
            refuse_shared_connections(raw, context);
            return Source::Client;
        }
        SourceOr::Addresses(addresses) => (addresses.as_slice(), None),
        SourceOr::Ports(map) => {
            let addresses = map.addresses.as_ref().map_or(&[][..], |addresses| &addresses.value.0);
            (addresses, map.ports.as_ref().map(|ports| (ports.value.first, ports.value.last)))
        }
    };
    if addresses.len() > SOURCE_ADDRESSES_MAX {
        let message = format!(
            "`source` has {} addresses, at most {SOURCE_ADDRESSES_MAX} are possible",
            addresses.len()
        );
        context.error_help(given.span, message, "remove some");
    }
    let addresses = each_once(addresses, context);
    Source::Addresses(Arc::new(SourceAddresses { addresses, ports }))
}

fn each_once(addresses: &[Spanned<SourceAddress>], context: &mut Context) -> Vec<IpAddr> {
    let mut places: HashMap<IpAddr, Span> = HashMap::new();
    for Spanned { value: SourceAddress(address), span, .. } in addresses {
        if let Some(first) = places.insert(*address, *span) {
            let place = context.place(first, *span);
            let message = format!("`{address}` is listed twice: first in {place}");
            context.error_help(*span, message, "keep one");
        }
    }
    addresses.iter().map(|address| address.value.0).collect()
}

/// Reports source `client` for shared connections: a connection for many clients cannot have one client's address.
fn refuse_shared_connections(raw: &raw::Pool, context: &mut Context) {
    if raw.http2.value {
        context.error_help(
            raw.http2.span,
            "`http2` cannot be used with `source: client`: a connection that many clients share cannot come from one client",
            "remove one of them, or tell members the client's address by `x_forwarded_for`",
        );
    }
}
