//! The event loop knows a socket's owner by a number, weir by a key.

use weir_event_loop::OwnerKey;
use weir_exchange::arena::Key;

/// The number that stands for a key.
#[inline]
pub fn owner_key<K>(key: Key<K>) -> OwnerKey {
    OwnerKey::new(key.to_bits())
}

/// The key that a number stands for.
#[inline]
pub fn key_of<K>(owner: OwnerKey) -> Option<Key<K>> {
    Key::from_bits(owner.bits())
}
