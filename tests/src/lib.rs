//! Shared harness of the scenario tests: the proxy under test, scripted members and raw clients.
//!
//! Everything listens on loopback, on leased ports. The code that starts a process also ends it.

pub mod apache;
pub mod client;
pub mod datagrams;
pub mod gate;
pub mod http2;
pub mod jar;
pub mod jwt;
pub mod load;
pub mod member;
pub mod namespaces;
pub mod nginx;
pub mod otlp;
pub mod packages;
pub mod pattern;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod repository;
pub mod source;
pub mod stream;
pub mod temp;
pub mod tls;
pub mod tools;
pub mod torn;
pub mod websocket;
pub mod wire;

pub use weir_testing::hpack;

use std::time::{Duration, Instant};

/// Maximum duration of a single step; then the scenario fails. It is long, because a busy machine must not make it fail.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Repeats a check until it succeeds; panics with `what` after `timeout`.
#[track_caller]
pub fn eventually(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + timeout;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {timeout:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
