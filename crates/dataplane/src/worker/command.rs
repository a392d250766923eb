//! Commands of the control plane to a worker.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_config::snapshot::ListenPoint;
use weir_exchange::shared::live::LiveTable;

/// On the control socket: a listener, as ancillary data.
pub const LISTENER_MESSAGE: u8 = b'L';
/// On the control socket: a command is in the channel.
pub const COMMAND_MESSAGE: u8 = b'C';

/// A message of the control plane. It is put into the channel first and announced on the control
/// socket after it; listeners travel on the socket before the command that names them.
#[derive(Debug)]
pub enum Command {
    /// Another table is active.
    Apply {
        /// The table.
        table: Arc<LiveTable>,
        /// Addresses of the listeners handed over, in their order.
        added: Vec<ListenPoint>,
        /// Listeners to close.
        removed: Vec<ListenPoint>,
    },
    /// Accept nothing more; end when the last client has gone, at the latest after this time.
    Drain {
        /// For the transactions under way.
        timeout_ms: u64,
        /// Another process accepts at the listeners, and reads from those of datagrams; idle clients of HTTP/1 may make
        /// one more request within this time. `None`: nobody does, and idle clients go at once.
        idle_ms: Option<u64>,
    },
    /// End now.
    Stop,
    /// Set this, to show that the worker makes turns.
    Answer(Arc<AtomicBool>),
    /// Open a file, for tests.
    #[cfg(test)]
    Open(std::path::PathBuf, std::sync::mpsc::Sender<std::io::Result<()>>),
    /// Panic, for tests.
    #[cfg(test)]
    Panic,
    /// Do nothing until this says something, for tests.
    #[cfg(test)]
    Wait(std::sync::mpsc::Receiver<()>),
}
