//! An admin listener that goes from one process to another: connections that wait in its queue are not lost.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use weir_config::snapshot::Address;

use super::{Admin, CONNECTIONS_MAX};
use crate::events::Events;
use crate::observed::Observed;

/// A listener that is open.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// With its file, and the file's inode.
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
    /// Answers on a listener of before this process from now on. Must be called within a tokio runtime.
    pub fn adopt(
        address: &Address,
        socket: OwnedFd,
        observed: Arc<Observed>,
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
                // Without a file there is nothing to remove.
                let inode = std::fs::metadata(path).map_or(0, |metadata| metadata.ino());
                Listener::Unix(UnixListener::from_std(listener)?, path.clone(), inode)
            }
        };
        Self::serve(address, listener, observed, events)
    }

    /// The listener once more, for another process.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.duplicate.try_clone()
    }

    /// Leaves the file of a unix socket when it ends: it is another process'.
    pub fn keep_file(&mut self) {
        self.socket_file = None;
    }

    /// Stops accepting, for another process does. Returns the connections that are open.
    pub(crate) fn hand_over(mut self) -> OpenConnections {
        self.keep_file();
        OpenConnections(Arc::clone(&self.permits))
    }
}

/// Connections of an admin listener that is another process' now.
#[derive(Debug)]
pub(crate) struct OpenConnections(Arc<Semaphore>);

/// The longest wait for answers that are under way. A client without a request gives way to the end of the process then.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(1);

impl OpenConnections {
    /// Returns when all are closed, or have had their time.
    pub(crate) async fn closed(&self) {
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        // Whether they are closed or not: the process ends.
        let _ = tokio::time::timeout(ANSWERS_TIMEOUT, self.0.acquire_many(all)).await;
    }
}
