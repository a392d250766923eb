//! Shared harness of the scenario tests: a proxy under test, members that follow a script, raw clients.
//!
//! Everything listens on loopback, on leased ports; each starter of a process also ends it.

pub mod apache;
pub mod bench;
pub mod client;
pub mod datagrams;
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
pub mod websocket;
pub mod wire;

pub use weir_testing::hpack;

use std::time::{Duration, Instant};

/// Longest that any single step of a scenario may take before the scenario fails.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks repeatedly until the condition holds; panics with `what` if it does not hold in time.
#[track_caller]
pub fn eventually(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + timeout;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {timeout:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
