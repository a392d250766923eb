//! An upgrade: another process of weir takes over from this one without losing a connection.
//!
//! ```text
//! running process                          new process
//! starts it, with a private socket ──────▶ standard input
//! sends listening sockets, secrets ──────▶ reads and checks the file, resolves names, starts monitors
//! leaves the packet path ◀──────────────── if it has one, too
//!                         ◀─────────────── first probes are in: ready
//! sends tables of persistence ───────────▶ takes them over
//! go ────────────────────────────────────▶ accepts connections
//! drains ◀──────────────────────────────── serves
//! ```
//!
//! Both processes have the same sockets, so either can accept connections from the kernel's queues. Until the new
//! process serves, the running one works as before. If the new process fails, ends or is late, it is killed, and the
//! reason is reported. If the running process ends during the upgrade, the new one serves in its place.
//!
//! The handover includes the listening sockets, the secrets of session tickets, the persistence tables with their keys, and
//! member states set by commands. Each process has its own counters, health, limits and sessions.

mod launch;
pub(crate) mod manager_sockets;
pub(crate) mod predecessor;
pub mod process;
pub mod reports;
pub(crate) mod successor;
mod wire;

pub(crate) use launch::Launch;
pub(crate) use wire::UpgradeFailure;
