//! An upgrade: another process of weir takes the place of this one, and no connection is lost.
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
//! Both have the same sockets, so connections that wait in the kernel's queues are accepted by either. Until the new
//! process serves, the running one does as if nothing was. If the new process fails, ends or is too late, it is ended, and
//! the reason reported. If the running process ends meanwhile, the new one serves in its place.
//!
//! Handed over are listening sockets, secrets of session tickets, tables of persistence with their keys, and states of
//! members that a command has set. Everything else is each process' own: counters, health, limits, sessions.

mod launch;
pub(crate) mod manager_sockets;
pub(crate) mod predecessor;
pub mod process;
pub mod reports;
pub(crate) mod successor;
mod wire;

pub(crate) use launch::Launch;
pub(crate) use wire::Failed;
