//! A cache of tokens with verified signatures: the requests of a session contain the same token.

use std::sync::Arc;

use aws_lc_rs::digest;

use super::{Claims, Keys, Refusal};

/// Maximum number of tokens of a reader that a worker caches. Each token has one slot, where it replaces another token.
pub const TOKENS_MAX: usize = 256;
/// Maximum length of a cached token: longer ones are verified each time, which limits the memory for claims.
pub const REMEMBERED_BYTES_MAX: usize = 4 * 1024;

// One byte of the hash selects the slot.
const _: () = assert!(TOKENS_MAX == 1 << u8::BITS);

/// Tokens by their hashes, with the keys that verified them. The validity period is not cached.
#[derive(Debug, Default)]
pub struct TokenCache(Vec<Option<Entry>>);

#[derive(Debug)]
struct Entry {
    hash: [u8; digest::SHA256_OUTPUT_LEN],
    keys: Arc<Keys>,
    claims: Arc<Claims>,
}

impl TokenCache {
    /// The claims of a token, from the cache if it was verified with these keys.
    pub(super) fn get(
        &mut self,
        token: &[u8],
        keys: &Arc<Keys>,
        verify: impl FnOnce() -> Result<Arc<Claims>, Refusal>,
    ) -> Result<Arc<Claims>, Refusal> {
        if token.len() > REMEMBERED_BYTES_MAX {
            return verify();
        }
        let mut hash = [0; digest::SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest::digest(&digest::SHA256, token).as_ref());
        let place = usize::from(hash[0]);
        if let Some(Some(entry)) = self.0.get(place)
            && entry.hash == hash
            && Arc::ptr_eq(&entry.keys, keys)
        {
            return Ok(Arc::clone(&entry.claims));
        }
        let claims = verify()?;
        if self.0.is_empty() {
            self.0.resize_with(TOKENS_MAX, || None);
        }
        self.0[place] = Some(Entry { hash, keys: Arc::clone(keys), claims: Arc::clone(&claims) });
        Ok(claims)
    }
}
