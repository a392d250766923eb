//! `source`: the local addresses of connections to members.

use serde_json::{Value, json};

use crate::address::{PortRange, SourceAddress};
use crate::decode::{Context, Decode, OneOrMany, Registry, Spanned};
use crate::document::{Node, NodeValue};

/// The word for the client's address.
const CLIENT: &str = "client";

section! {
    /// Source addresses and ports of connections to members.
    SourcePorts at "pools.NAME.source" {
        /// One or several addresses, which weir uses in turn.
        required addresses: OneOrMany<Spanned<SourceAddress>>;
        /// The source ports. They must be within `net.ipv4.ip_local_port_range` (unlike those of `fast_l4`); weir checks this when the configuration takes effect. Needs Linux 6.3. Default: the kernel selects the port.
        optional ports: PortRange;
    }
    later []
}

/// An address, several, a map with ports, or the client's address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SourceOr {
    Client,
    Addresses(Vec<Spanned<SourceAddress>>),
    Ports(SourcePorts),
}

impl Decode for SourceOr {
    fn expected() -> String {
        "an IP address without a port, a list of them, a map with `addresses`, or `client`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let addresses = OneOrMany::<Spanned<SourceAddress>>::schema(registry);
        json!({ "anyOf": [{ "const": CLIENT }, addresses, SourcePorts::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::Map(_) => SourcePorts::decode(node, context).map(Self::Ports),
            NodeValue::Scalar(scalar) if scalar.text == CLIENT => Some(Self::Client),
            _ => OneOrMany::decode(node, context).map(|found| Self::Addresses(found.0)),
        }
    }
}
