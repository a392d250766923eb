//! Requests of a client to which idle member connections belong.

use std::rc::Rc;

use weir_exchange::arena::{ClientKey, ConnectionKey};
use weir_exchange::local::pool::Preference;
use weir_exchange::parts::request::ConnectionChoice;
use weir_exchange::transaction::exchange::Exchange;

use crate::worker::world::World;

/// Sends a request to the member at which a connection belongs to its client, unless persistence says otherwise.
pub fn prefer(exchange: &mut Exchange, world: &World, key: ClientKey) {
    let Some(bound) = world.members.bound.get(&key.to_bits()) else { return };
    exchange.request.wanted = ConnectionChoice::OfClient;
    let members = &exchange.ends.tries.pool.members;
    let place = |key: &ConnectionKey| {
        let connection = world.members.all.get(*key)?;
        members.iter().position(|member| Rc::ptr_eq(member, &connection.member))
    };
    let place = bound.keys().iter().rev().find_map(place);
    let preference = &mut exchange.ends.tries.preference;
    if let (Some(place), Preference::Any | Preference::Key(_)) = (place, *preference) {
        *preference = Preference::Member(place as u32);
    }
}
