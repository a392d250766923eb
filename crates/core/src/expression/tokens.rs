//! Tokens that expressions read: each is verified at its first use, and once per request.

use std::sync::Arc;

use super::facts::Facts;
use crate::jwt::{Claims, Refusal, TokenCache, TokenReader};

/// A worker's results for the tokens of a request, by the readers' numbers.
#[derive(Debug)]
pub(super) struct Tokens(Box<[Token]>);

#[derive(Debug)]
struct Token {
    reader: Arc<TokenReader>,
    /// The results belong to the request with this stamp.
    stamp: u32,
    found: Result<Arc<Claims>, Refusal>,
    cache: TokenCache,
}

impl Tokens {
    pub fn new<'r>(readers: impl Iterator<Item = &'r Arc<TokenReader>>) -> Self {
        let token = |reader: &Arc<TokenReader>| Token {
            reader: Arc::clone(reader),
            stamp: 0,
            found: Err(Refusal::Missing),
            cache: TokenCache::default(),
        };
        Self(readers.map(token).collect())
    }

    /// The claims of the token of the request with this stamp. Without a time no token is accepted.
    pub fn read(
        &mut self,
        number: u32,
        stamp: u32,
        facts: &Facts<'_>,
    ) -> Result<&Arc<Claims>, Refusal> {
        let token = &mut self.0[number as usize];
        if token.stamp != stamp {
            token.stamp = stamp;
            let place = &token.reader.settings.place;
            let found = place.find(facts.request, facts.request_input);
            token.found = match (found, facts.unix_s) {
                (Err(refusal), _) => Err(refusal),
                (Ok(_), None) => Err(Refusal::NoTime),
                (Ok(bytes), Some(now_s)) => token.reader.read(bytes, now_s, &mut token.cache),
            };
        }
        token.found.as_ref().map_err(|refusal| *refusal)
    }

    /// Clears the cache when the stamps wrap around.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|token| token.stamp = 0);
    }
}
