//! Tokens whose signatures were good: the same token comes with each request of a session.

use std::sync::Arc;

use aws_lc_rs::digest;

use super::{Claims, Keys, Refusal};

/// Tokens of one reader that a worker remembers. Each has one place, where it takes that of another.
pub const TOKENS_MAX: usize = 256;
/// A longer token is verified each time, which bounds the memory of claims.
pub const REMEMBERED_BYTES_MAX: usize = 4 * 1024;

// One byte of the hash says where a token is.
const _: () = assert!(TOKENS_MAX == 1 << u8::BITS);

/// Tokens by their hashes, with the keys that they were verified by. Whether they are in time is not remembered.
#[derive(Debug, Default)]
pub struct TokenCache(Vec<Option<Entry>>);

#[derive(Debug)]
struct Entry {
    hash: [u8; digest::SHA256_OUTPUT_LEN],
    keys: Arc<Keys>,
    claims: Arc<Claims>,
}

impl TokenCache {
    /// The claims of a token, from here if it has been verified with these keys.
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
