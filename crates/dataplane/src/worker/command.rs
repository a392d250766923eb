//! Commands of the control plane to a worker.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_config::snapshot::ListenPoint;
use weir_exchange::shared::live::LiveTable;

/// On the control socket: a listener, as ancillary data.
pub const LISTENER_MESSAGE: u8 = b'L';
/// On the control socket: a command is in the channel.
pub const COMMAND_MESSAGE: u8 = b'C';

/// A message of the control plane. It is put into the channel first, then announced on the control socket. Listeners
/// are sent on the socket before the command that names them.
#[derive(Debug)]
pub enum Command {
    /// Make another table active.
    Apply {
        /// The table.
        table: Arc<LiveTable>,
        /// The addresses of the listeners that were sent before, in their order.
        added: Vec<ListenPoint>,
        /// Listeners to close.
        removed: Vec<ListenPoint>,
    },
    /// Accept no more connections; end after the last client, at the latest after `timeout_ms`.
    Drain {
        /// The time that open transactions have.
        timeout_ms: u64,
        /// Another process accepts connections and reads datagrams; idle HTTP/1 clients may send one more request
        /// within this time. `None`: no other process serves, and idle clients are closed at once.
        idle_ms: Option<u64>,
    },
    /// End now.
    Stop,
    /// Start or stop recording all requests.
    Follow(bool),
    /// Set this flag to show that the loop makes turns.
    Answer(Arc<AtomicBool>),
    /// Open a file, for tests.
    #[cfg(test)]
    Open(std::path::PathBuf, std::sync::mpsc::Sender<std::io::Result<()>>),
    /// Panic, for tests.
    #[cfg(test)]
    Panic,
    /// Block until this channel has a message, for tests.
    #[cfg(test)]
    Wait(std::sync::mpsc::Receiver<()>),
}
