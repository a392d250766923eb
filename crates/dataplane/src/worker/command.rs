//! Commands from the control plane and other threads to a worker.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_config::snapshot::ListenPoint;
use weir_exchange::parts::inspection_job::InspectionJob;
use weir_exchange::shared::live::LiveTable;

use crate::sessions::AskedSessions;

/// Message on the control socket: a listener, as ancillary data.
pub const LISTENER_MESSAGE: u8 = b'L';
/// Message on the control socket: the channel has a command.
pub const COMMAND_MESSAGE: u8 = b'C';

/// A command of the control plane. It is first put into the channel, and then announced on the control socket. Listeners are
/// sent on the control socket before the command that contains their addresses.
#[derive(Debug)]
pub enum Command {
    /// Activates another table.
    Apply {
        /// The table.
        table: Arc<LiveTable>,
        /// The addresses of the listeners that were sent before the command, in the same order.
        added: Vec<ListenPoint>,
        /// The addresses of the listeners to close.
        removed: Vec<ListenPoint>,
    },
    /// Takes other members of some pools.
    Members {
        /// A table that differs from the active one in nothing else.
        table: Arc<LiveTable>,
        /// The indexes of these pools in its snapshot.
        pools: Arc<[usize]>,
    },
    /// Accepts no more connections. The worker ends after the last client, at the latest after `timeout_ms`.
    Drain {
        /// The time limit for open transactions.
        timeout_ms: u64,
        /// Another process accepts connections and reads datagrams. Idle HTTP/1 clients may send one more request within
        /// this time. `None`: no other process serves, and idle clients are closed at once.
        idle_ms: Option<u64>,
    },
    /// Ends the worker at once.
    Stop,
    /// Lists or ends sessions.
    Sessions(AskedSessions),
    /// Starts or stops recording all requests.
    Follow(bool),
    /// An inspection is back. It is not from the control plane, but from a thread for inspections.
    Inspected(Box<InspectionJob>),
    /// A log line that a thread for inspections has written found no place in the queue of its log, or its writing panicked.
    LineDropped,
    /// Sets this flag, which shows that the loop makes turns.
    Answer(Arc<AtomicBool>),
    /// Sets what inspections need.
    #[cfg(feature = "simulation")]
    SetInspections {
        /// Whether each leaves its first turn as soon as it can.
        are_all_long: bool,
        /// The clock of processor time.
        cpu_us: fn() -> u64,
    },
    /// Opens a file, for tests.
    #[cfg(test)]
    Open(std::path::PathBuf, std::sync::mpsc::Sender<std::io::Result<()>>),
    /// Panics, for tests.
    #[cfg(test)]
    Panic,
    /// Blocks until this channel has a message, for tests.
    #[cfg(test)]
    Wait(std::sync::mpsc::Receiver<()>),
}
