//! Requests of a client to which idle member connections belong.

use std::rc::Rc;

use weir_exchange::arena::{ClientKey, ConnectionKey, ExchangeKey};
use weir_exchange::local::pool::Preference;
use weir_exchange::parts::request::Wanted;
use weir_exchange::transaction::Transaction;

use crate::worker::Worker;

/// Sends a request to the member at which a connection belongs to its client, unless persistence says otherwise.
pub fn prefer(worker: &mut Worker, key: ClientKey, exchange: ExchangeKey) {
    let Some(bound) = worker.world.of_clients.bound.get(&key.to_bits()) else { return };
    let Some(exchange) = worker.exchanges.get_mut(exchange).and_then(Transaction::http_mut) else {
        return;
    };
    exchange.request.wanted = Wanted::OfClient;
    let members = &exchange.ends.tries.pool.members;
    let place = |key: &ConnectionKey| {
        let connection = worker.world.members.get(*key)?;
        members.iter().position(|member| Rc::ptr_eq(member, &connection.member))
    };
    let place = bound.keys().iter().rev().find_map(place);
    let preference = &mut exchange.ends.tries.preference;
    if let (Some(place), Preference::Any | Preference::Key(_)) = (place, *preference) {
        *preference = Preference::Member(place as u32);
    }
}
