//! weir's own cookies, which are not forwarded to members.

use std::sync::Arc;

use super::{PoolId, TOKEN_BYTES, Token};

/// The cookies of a request that belong to weir and are not forwarded to members.
#[derive(Debug, Clone)]
pub struct HiddenCookies {
    /// Configured names of weir's cookies.
    names: Vec<Arc<str>>,
    /// Configured names of weir's cookies that are forwarded to members.
    shown: Vec<Arc<str>>,
    /// The ids of pools, in ascending order.
    pools: Arc<[PoolId]>,
}

impl HiddenCookies {
    /// Cookies with the configured `names`, and cookies with tokens of `pools` (in ascending order) under any name
    /// except those in `shown`.
    pub fn new(names: Vec<Arc<str>>, shown: Vec<Arc<str>>, pools: Arc<[PoolId]>) -> Self {
        debug_assert!(pools.is_sorted());
        Self { names, shown, pools }
    }

    /// Whether a cookie is not forwarded. This is the case if one of these holds:
    /// - it has a configured name, whatever its value;
    /// - its name is a configured name, `-` and the id of one of the pools (a former form);
    /// - its value begins with a token, and has a token of one of the pools: its name was configured earlier, or is
    ///   configured elsewhere.
    pub fn contains(&self, cookie_name: &[u8], value: &[u8]) -> bool {
        let is_it = |name: &Arc<str>| name.as_bytes() == cookie_name;
        if self.names.iter().any(is_it) {
            return true;
        }
        if self.shown.iter().any(is_it) {
            return false;
        }
        let is_known = |id: PoolId| self.pools.binary_search(&id).is_ok();
        let former = |name: &Arc<str>| PoolId::of_former_name(cookie_name, name);
        if self.names.iter().filter_map(former).any(is_known) {
            return true;
        }
        // One byte distinguishes most values from tokens.
        let may_be_tokens = value.len() == TOKEN_BYTES || value.get(TOKEN_BYTES) == Some(&b'.');
        may_be_tokens && Token::all(value).filter_map(|token| token.pool).any(is_known)
    }
}
