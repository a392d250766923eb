//! `members`: the servers of a pool.

use serde_json::{Value, json};

use super::monitor::Monitor;
use crate::decode::{Context, Decode, List, Registry, Section as _, Spanned};
use crate::document::{Node, NodeValue};
use crate::endpoint::Endpoint;
use crate::scalar::Whole;
use crate::shapes::{Connections, Weight};

section! {
    /// One server of a pool. A member without further settings can be written as its address alone.
    Member at "pools.NAME.members[]" {
        /// The address of the server. weir resolves a name repeatedly; each address found becomes a member. If no virtual server of `type: http` uses the pool, the port may be omitted; weir then uses the port that the client connected to.
        required address: Endpoint;
        /// The share of traffic, relative to the weights of the other members. 0: no new clients; clients with persistence stay, as with `state: drain`.
        default weight: Weight = Whole(1);
        /// Maximum number of open requests (with `type: tcp`: connections), over all workers. Default: no limit.
        optional connections_max: Connections;
        /// Maximum number of requests per second, over all workers. Default: no limit.
        optional requests_per_second_max: Connections;
        /// Members of the highest priority get the traffic while at least `priority.active_members_min` of them are up (see the pool).
        default priority: Whole<u16, 0, 65_535> = Whole(0);
        /// The administrative state of the member.
        default state: MemberState = MemberState::Enabled;
        /// Health checks of this member, instead of the pool's. `[]`: no checks; the member always counts as up. `monitors_min` of the pool also applies here; if the member has fewer monitors than that, all must pass.
        optional monitors: List<Spanned<Monitor>>;
    }
    later []
}

choice! {
    /// The administrative state of a member.
    MemberState {
        /// The member gets its share of the traffic.
        Enabled = "enabled",
        /// The member gets no new clients. Clients with persistence stay, except with persistence by a hash (`mode: passive`, `path_parameter`, `hash`).
        Drain = "drain",
        /// The member gets no new requests.
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
