//! Conversion between the event loop's numbers for owners of sockets and weir's keys.

use weir_event_loop::OwnerKey;
use weir_exchange::arena::Key;

/// The number of a key.
#[inline]
pub fn owner_key<K>(key: Key<K>) -> OwnerKey {
    OwnerKey::new(key.to_bits())
}

/// The key of a number.
#[inline]
pub fn key_of<K>(owner: OwnerKey) -> Option<Key<K>> {
    Key::from_bits(owner.bits())
}
