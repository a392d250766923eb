//! A place among the handshakes under way.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use weir_exchange::local::table::LocalServer;

/// One handshake among those under way; given back by `Drop`, so that a panic gives it back too.
#[derive(Debug)]
pub struct HandshakePlace {
    pub under_way: Arc<AtomicU32>,
    /// Which clients were let in when it began.
    pub lets_in: Arc<[u8]>,
}

impl HandshakePlace {
    /// A place, if there is one.
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
