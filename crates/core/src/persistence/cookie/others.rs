//! Tokens of other pools, which the client gets back when its cookie is set.

use super::{POOL_ID_BYTES, SEPARATOR, TOKEN_BYTES, TOKENS_MAX, Token, pieces};

/// Maximum number of other pools' tokens that are examined in one request. A client has one cookie of a name, or one for
/// each path and domain.
const TOKENS_SEEN_MAX: u32 = 4 * TOKENS_MAX as u32;

/// The tokens of other pools in a client's cookie. The value is reused and keeps its capacity.
///
/// Only the form of these tokens was checked: letters, digits, `-` and `_`.
#[derive(Debug, Clone, Default)]
pub struct OtherTokens {
    /// The tokens, each with a separator before it.
    text: Vec<u8>,
    count: usize,
    seen: u32,
}

impl OtherTokens {
    /// Removes the tokens and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.count = 0;
        self.seen = 0;
    }

    /// The tokens that follow the pool's own token in a cookie's value.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Adds a token at the end, unless there is a token of the same pool or no room. So the oldest tokens are dropped.
    pub(super) fn keep(&mut self, token: Token<'_>) {
        if self.count == TOKENS_MAX - 1 || self.seen == TOKENS_SEEN_MAX {
            return;
        }
        self.seen += 1;
        let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if token.text.iter().all(is_base64url) && !self.has(token.text) {
            self.text.push(SEPARATOR);
            self.text.extend_from_slice(token.text);
            self.count += 1;
        }
    }

    fn has(&self, token: &[u8]) -> bool {
        let what_counts = if token.len() == TOKEN_BYTES { POOL_ID_BYTES } else { token.len() };
        pieces(&self.text)
            .any(|kept| kept.len() == token.len() && kept[..what_counts] == token[..what_counts])
    }
}
