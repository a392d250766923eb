//! Addresses of the configuration as the event loop takes them.

use weir_config::snapshot::Address;
use weir_event_loop::Endpoint;

/// Where this address is.
pub fn endpoint(address: &Address) -> Endpoint<'_> {
    match address {
        Address::Socket(address) => Endpoint::Socket(*address),
        Address::Unix(path) => Endpoint::Unix(path),
        Address::Udp(address) => Endpoint::Datagrams(*address),
    }
}
