//! The forms in which heads of requests are written.

use weir_config::snapshot::Snapshot;

/// The forms in which a request's head is written for members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forms {
    /// Text for HTTP/1.
    Text,
    /// Lines for HTTP/2 streams.
    Lines,
    /// Both, because a fallback pool needs the other form.
    Both,
}

impl Forms {
    /// The forms for this pool.
    pub fn of(snapshot: &Snapshot, index: usize) -> Self {
        let is_http2 = snapshot.pools[index].http2;
        let mut seen = vec![index];
        let mut looked_at = 0;
        while let Some(&pool) = seen.get(looked_at) {
            looked_at += 1;
            for next in snapshot.pools[pool].instead.pools() {
                if snapshot.pools[next].http2 != is_http2 {
                    return Self::Both;
                }
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        if is_http2 { Self::Lines } else { Self::Text }
    }
}
