//! `allowed_clients` of virtual servers: the networks of the clients that may connect.

use std::sync::Arc;

use weir_core::expression::AddressSet;

use crate::decode::Context;
use crate::document::Span;
use crate::raw;
use crate::snapshot::packet::Prefix;
use crate::snapshot::{Address, ListenPoint};

/// Maximum number of networks. The condition of the policy with all of them is far below the limits of expressions.
const NETWORKS_MAX: usize = 1_024;

/// Checks the list against the addresses that the virtual server listens on.
pub(super) fn are_sound(
    raw: &raw::VirtualServer,
    listen: &[(ListenPoint, Span)],
    context: &mut Context,
) -> bool {
    let Some(listed) = &raw.allowed_clients else { return true };
    if listed.value.len() > NETWORKS_MAX {
        let message = format!("`allowed_clients` has more than {NETWORKS_MAX} networks");
        let help = match raw.kind.value {
            raw::VirtualServerType::Http | raw::VirtualServerType::Tcp => {
                "put them into a data set, and reset others by a rule of `connection_policies`"
            }
            _ => "join networks, or use `deny` and `allow` of `packet_path`",
        };
        context.error_help(listed.span, message, help);
        return false;
    }
    let unix = listen.iter().find(|(point, _)| matches!(point.address, Address::Unix(_)));
    if let Some((point, span)) = unix {
        let message =
            format!("clients of `{point}` have no address: `allowed_clients` would refuse all");
        let help = "listen on an IP address, or use the permissions of the socket instead of `allowed_clients`";
        context.error_help(*span, message, help);
        return false;
    }
    true
}

/// The condition under which a client is refused, and the place of the key; `None`: never.
pub(super) fn refusing(raw: &raw::VirtualServer) -> Option<(String, Span)> {
    let listed = raw.allowed_clients.as_ref()?;
    let networks: Vec<String> =
        listed.iter().map(|network| format!("'{}'", network.value.0)).collect();
    Some((format!("!(client.ip in [{}])", networks.join(", ")), listed.span))
}

/// The addresses of the list; `None`: all clients are allowed.
pub(super) fn addresses(raw: &raw::VirtualServer) -> Option<AddressSet> {
    let listed = raw.allowed_clients.as_ref()?;
    Some(AddressSet::new(listed.iter().map(|network| network.value.0)))
}

/// The list as prefixes; `None`: all clients are allowed.
pub(super) fn prefixes(raw: &raw::VirtualServer) -> Option<Arc<[Prefix]>> {
    let listed = raw.allowed_clients.as_ref()?;
    let prefix = |network: weir_core::expression::Network| {
        let (address, length) = network.prefix();
        Prefix { address, length }
    };
    Some(listed.iter().map(|network| prefix(network.value.0)).collect())
}
