//! Hands an admin listener over to another process without losing connections in its queue.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use weir_config::snapshot::Address;

use super::Admin;
use super::connections::Connections;
use crate::events::Events;
use crate::observed_state::ObservedState;

/// An open listener.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// A unix socket, its file, and the inode of the file.
    Unix(UnixListener, PathBuf, u64),
}

impl Listener {
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Self::Unix(listener, ..) => listener.as_fd().try_clone_to_owned(),
        }
    }
}

impl Admin {
    /// Begins to serve on a listener that another process has opened. Must be called within a tokio runtime.
    pub fn adopt(
        address: &Address,
        socket: OwnedFd,
        observed: Arc<ObservedState>,
        events: Events,
    ) -> io::Result<Self> {
        let listener = match address {
            Address::Socket(_) | Address::Udp(_) => {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Listener::Tcp(TcpListener::from_std(listener)?)
            }
            Address::Unix(path) => {
                let listener = std::os::unix::net::UnixListener::from(socket);
                listener.set_nonblocking(true)?;
                // Without the file, there is nothing to remove later.
                let inode = std::fs::metadata(path).map_or(0, |metadata| metadata.ino());
                Listener::Unix(UnixListener::from_std(listener)?, path.clone(), inode)
            }
        };
        Self::serve(address, listener, observed, events)
    }

    /// A duplicate of the listener for another process.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.duplicate.try_clone()
    }

    /// Does not remove the file of a unix socket when the listener is dropped: another process uses it.
    pub fn keep_file(&mut self) {
        self.socket_file = None;
    }

    /// Stops accepting, because another process accepts. Returns the open connections.
    pub(crate) fn hand_over(mut self) -> OpenConnections {
        self.keep_file();
        OpenConnections(self.connections.clone())
    }
}

/// Open connections of an admin listener that was handed over.
#[derive(Debug)]
pub(crate) struct OpenConnections(Connections);

/// Maximum wait for the answers to open requests. The process then ends, even if idle clients stay connected.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(1);

impl OpenConnections {
    /// Waits until all connections are closed, or the maximum wait is over.
    pub(crate) async fn closed(&self) {
        // The process ends in either case.
        let _ = tokio::time::timeout(ANSWERS_TIMEOUT, self.0.closed()).await;
    }
}
