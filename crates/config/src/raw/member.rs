//! `members`: the servers of a pool.

use serde_json::{Value, json};

use super::monitor::Monitor;
use crate::address::Endpoint;
use crate::decode::{Context, Decode, List, Registry, Section as _, Spanned};
use crate::scalar::Whole;
use crate::shapes::{Connections, Weight};
use crate::tree::{Node, NodeValue};

section! {
    /// One server of a pool. A member without further settings can be written as its address alone.
    Member at "pools.NAME.members[]" {
        /// The address of the server. A name is resolved repeatedly, and each address found becomes a member. The port may be omitted if all virtual servers of the pool are of `type: tcp`: the port that the client connected to is then used.
        required address: Endpoint;
        /// The share of the traffic relative to other members. 0: no new clients; clients with persistence stay, as with `state: drain`.
        default weight: Weight = Whole(1);
        /// Most open requests, over all workers. Default: no limit.
        optional connections_max: Connections;
        /// Most requests per second, over all workers. Default: no limit.
        optional requests_per_second_max: Connections;
        /// Members of the highest priority get the traffic while enough of them are up, see `priority` of the pool.
        default priority: Whole<u16, 0, 65_535> = Whole(0);
        /// The traffic of the member.
        default state: MemberState = MemberState::Enabled;
        /// Health checks of this member, instead of the pool's. `[]`: no checks; the member always counts as up. `monitors_min` applies to them; if there are fewer, all must pass.
        optional monitors: List<Spanned<Monitor>>;
    }
    later []
}

choice! {
    /// The traffic that a member gets.
    MemberState {
        /// It gets its share.
        Enabled = "enabled",
        /// It gets no new clients; clients with persistence stay.
        Drain = "drain",
        /// It gets no new requests.
        Disabled = "disabled",
    }
    later [] maps []
}

/// A member: its address, or a map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberEntry(pub Member);

impl Decode for MemberEntry {
    fn expected() -> String {
        "an address, or a map with `address`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [Endpoint::schema(registry), Member::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::Scalar(_) => {
                let address = Spanned::<Endpoint>::decode(node, context)?;
                Some(Self(Member { address: Some(address), ..Member::absent() }))
            }
            _ => Member::decode(node, context).map(Self),
        }
    }
}
