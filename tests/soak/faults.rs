//! Faults of the members and their times. Only a fault explains an error.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use weir_tests::member::{Exchange, Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::ports::Lease;
use weir_tests::websocket;

/// A kill explains failures up to this time after it, because closed sockets are detected with the next event.
const AFTERMATH: Duration = Duration::from_millis(500);
/// Size of the bodies of `/download`.
pub const DOWNLOAD_BYTES: u64 = 4 * 1024 * 1024;
const BLOCK_BYTES: usize = 64 * 1024;

/// The times at which members were killed, and whether the soak is over.
#[derive(Debug, Default)]
pub struct Faults {
    kills: Mutex<Vec<Instant>>,
    stopped: AtomicBool,
}

impl Faults {
    /// Whether a member was killed during the work that started at `start`.
    pub fn explain(&self, start: Instant) -> bool {
        let kills = self.kills.lock().unwrap_or_else(PoisonError::into_inner);
        kills.iter().rev().any(|&killed| killed + AFTERMATH >= start)
    }

    /// Stops the load.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Whether the load has to stop.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// The members, each with a permanent address.
#[derive(Debug)]
pub struct Members(Vec<(Lease, Option<Member>)>);

impl Members {
    /// Starts this number of members.
    pub fn start(count: usize) -> Self {
        let members = (0..count).map(|_| {
            let lease = Lease::new();
            let member = start(lease.address());
            (lease, Some(member))
        });
        Self(members.collect())
    }

    /// The addresses of all members, running or not.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|(lease, _)| lease.address()).collect()
    }

    /// Kills a member with all its connections.
    pub fn kill(&mut self, turn: usize, faults: &Faults) {
        let index = turn % self.0.len();
        faults.kills.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        self.0[index].1 = None;
        // Closing many connections takes a moment, so the end of the kill is recorded, too.
        faults.kills.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }

    /// Restarts a member.
    pub fn restart(&mut self, turn: usize) {
        let index = turn % self.0.len();
        let (lease, member) = &mut self.0[index];
        if member.is_none() {
            *member = Some(start(lease.address()));
        }
    }

    /// Leaves the members running until the process ends.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

fn start(address: SocketAddr) -> Member {
    Member::on(address, false, serve)
}

fn serve(exchange: &mut Exchange) -> std::io::Result<Then> {
    match exchange.request.target() {
        "/download" => {
            exchange
                .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD_BYTES}\r\n\r\n"))?;
            let mut block = vec![0; BLOCK_BYTES];
            for offset in (0..DOWNLOAD_BYTES).step_by(BLOCK_BYTES) {
                pattern::fill(&mut block, offset);
                exchange.send(&block)?;
            }
            Ok(Then::KeepAlive)
        }
        "/upload" => {
            let mut checker = Checker::default();
            exchange.read_body(|bytes| checker.take(bytes))?;
            exchange.answer(checker.verdict())
        }
        "/chat" => websocket::serve(exchange),
        _ => exchange.answer("ok"),
    }
}
