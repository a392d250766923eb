//! `members`: the servers of a pool.

use serde_json::{Value, json};

use super::monitor::Monitor;
use crate::address::Endpoint;
use crate::decode::{Context, Decode, List, Registry, Section as _, Spanned};
use crate::scalar::Whole;
use crate::shapes::{Connections, Weight};
use crate::tree::{Node, NodeValue};

section! {
    /// One server of a pool; a member without further settings is written as its address alone.
    Member at "pools.NAME.members[]" {
        /// Where it listens. A name is resolved again and again, and every address found is a member of its own. Without a port (only where all virtual servers of the pool are of `type: tcp`): at the port that the client connected to.
        required address: Endpoint;
        /// Its share of the traffic, in relation to the other members. 0: nothing new but requests of clients that are kept at it, as with `state: drain`.
        default weight: Weight = Whole(1);
        /// Requests that may occupy it at a time, over all workers. Default: no limit.
        optional connections_max: Connections;
        /// Requests per second that it may get, over all workers. Default: no limit.
        optional requests_per_second_max: Connections;
        /// Members of the highest priority get the traffic as long as enough of them are up, see `priority` of the pool.
        default priority: Whole<u16, 0, 65_535> = Whole(0);
        /// `drain`: nothing new but requests of clients that are kept at it. `disabled`: nothing new at all.
        default state: MemberState = MemberState::Enabled;
        /// Health checks of this member alone, in place of the pool's; `[]`: none, and it is always taken to be up. `monitors_min` counts among them, and all must pass where it has fewer.
        optional monitors: List<Spanned<Monitor>>;
    }
    later []
}

choice! {
    /// What a member may get.
    MemberState {
        /// Its share.
        Enabled = "enabled",
        /// Its persistent clients only.
        Drain = "drain",
        /// Nothing.
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
