//! A place in the count of concurrent handshakes.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use weir_exchange::local::table::LocalServer;

/// A place in the count of concurrent handshakes. It is released on drop, also after a panic.
#[derive(Debug)]
pub struct HandshakePlace {
    pub under_way: Arc<AtomicU32>,
    /// The identifier of the settings for client certificates at the start of the handshake.
    pub lets_in: Arc<[u8]>,
}

impl HandshakePlace {
    /// Takes a place; `None`: the virtual server has no TLS, or the maximum is reached.
    pub fn take(server: &LocalServer) -> Option<Self> {
        let tls = server.tls.as_ref()?;
        let under_way = &tls.handshakes;
        let max = server.settings().tls.as_ref().and_then(|tls| tls.handshakes_max);
        let before = under_way.fetch_add(1, Relaxed);
        let lets_in = Arc::clone(&tls.lets_in);
        let place = Self { under_way: Arc::clone(under_way), lets_in };
        max.is_none_or(|max| before < max).then_some(place)
    }
}

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Relaxed);
    }
}
