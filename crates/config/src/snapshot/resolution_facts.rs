//! What a configuration is with the addresses of its names.

use std::sync::Arc;

use super::Pool;

/// What follows from the addresses that the names of a configuration have now.
#[derive(Debug, Clone, Default)]
pub struct ResolutionFacts {
    /// A fingerprint of the configuration, of the files that it names, and of the addresses of its names. It stays the same if
    /// a reload has changed nothing.
    pub content: u64,
    /// The sum of the fingerprints of all pools' addresses, which is part of `content`.
    pub(crate) addresses: u64,
    /// Pools without configured members: requests do not wait for a member of them.
    pub pools_to_be_filled: Vec<Arc<str>>,
}

impl ResolutionFacts {
    /// Whether the configuration has members for this pool, and none of their names has an address.
    pub fn lacks_addresses(&self, pool: &Pool) -> bool {
        pool.members.is_empty() && !self.pools_to_be_filled.contains(&pool.name)
    }
}
