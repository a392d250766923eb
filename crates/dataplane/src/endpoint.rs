//! Conversion of configured addresses to those of the event loop.

use weir_config::snapshot::Address;
use weir_event_loop::Endpoint;

/// The event loop's form of an address.
pub fn endpoint(address: &Address) -> Endpoint<'_> {
    match address {
        Address::Socket(address) => Endpoint::Socket(*address),
        Address::Unix(path) => Endpoint::Unix(path),
        Address::Udp(address) => Endpoint::Datagrams(*address),
    }
}
