//! Listening sockets opened by other processes: the predecessor of this process, or a service manager.
//!
//! Connections in their queues are not lost, and the addresses always have a listener. Each socket serves its own address in
//! the configuration. If the number of workers differs, some workers get several sockets of an address, or sockets are
//! added.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use weir_config::snapshot::{Address, ListenPoint, Snapshot, VirtualServer};
use weir_event_loop::adopted_sockets;

use crate::binding::{BindError, addresses, options};
use crate::endpoint::endpoint;

/// The inherited sockets, by address.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    sockets: HashMap<ListenPoint, Vec<OwnedFd>>,
    /// Addresses that another process serves. The files of their unix sockets must not be removed.
    served_elsewhere: HashSet<ListenPoint>,
    /// Addresses whose sockets a service manager has opened and keeps open.
    of_manager: HashSet<ListenPoint>,
}

impl InheritedSockets {
    /// The sockets by address. A service manager has opened those of `of_manager`; the others belong to the predecessor of
    /// this process, which still serves them.
    pub fn new(
        sockets: HashMap<ListenPoint, Vec<OwnedFd>>,
        of_manager: HashSet<ListenPoint>,
    ) -> Self {
        let served_elsewhere = sockets.keys().cloned().collect();
        Self { sockets, served_elsewhere, of_manager }
    }

    /// The addresses of all sockets.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenPoint> {
        self.sockets.keys()
    }

    /// Removes and returns the sockets of a snapshot's addresses, with at least one socket per worker.
    pub fn take(
        &mut self,
        snapshot: &Snapshot,
        workers: usize,
    ) -> Result<HashMap<ListenPoint, Vec<OwnedFd>>, BindError> {
        let mut taken = HashMap::new();
        if self.sockets.is_empty() {
            return Ok(taken);
        }
        for (server, address) in addresses(snapshot) {
            let Some(sockets) = self.sockets.remove(address) else { continue };
            let is_of_manager = self.of_manager.contains(address);
            let fitted =
                fit(sockets, server, address, workers, is_of_manager).map_err(|error| {
                    let virtual_server = server.name.clone();
                    BindError::Listen { virtual_server, address: address.clone(), error }
                })?;
            taken.insert(address.clone(), fitted);
        }
        Ok(taken)
    }

    /// The addresses whose sockets were opened by a service manager.
    pub fn of_manager(&self) -> impl Iterator<Item = &ListenPoint> {
        self.of_manager.iter()
    }

    /// Closes the remaining sockets, when this process is the only one that serves. Returns their addresses.
    pub fn let_go(&mut self) -> Vec<ListenPoint> {
        self.served_elsewhere.clear();
        self.sockets.drain().map(|(address, _)| address).collect()
    }

    /// Records that another process serves these addresses.
    pub fn hand_over(&mut self, addresses: impl Iterator<Item = ListenPoint>) {
        self.served_elsewhere.extend(addresses);
    }

    /// Whether the file of a unix socket belongs to another process that serves it, or to a service manager.
    pub fn is_file_of_others(&self, address: &ListenPoint) -> bool {
        self.served_elsewhere.contains(address) || self.of_manager.contains(address)
    }
}

/// Sets the socket options of an address, and adds sockets until each worker has one. A service manager keeps
/// its sockets open while this process restarts. The queue of another socket would end with this process, so workers share the
/// manager's.
fn fit(
    mut sockets: Vec<OwnedFd>,
    server: &VirtualServer,
    address: &ListenPoint,
    workers: usize,
    is_of_manager: bool,
) -> io::Result<Vec<OwnedFd>> {
    let (at, options) = (endpoint(&address.address), options(server, address));
    for socket in &sockets {
        adopted_sockets::prepare(socket, at, options)?;
    }
    if matches!(address.address, Address::Unix(_)) {
        // All sockets of a unix address share one queue.
        sockets.truncate(workers);
    }
    let missing = workers.saturating_sub(sockets.len());
    let added = match is_of_manager && !matches!(address.address, Address::Udp(_)) {
        true => adopted_sockets::duplicates(&sockets, missing)?,
        // Datagrams of one client must reach one worker.
        false => adopted_sockets::more(&sockets, at, missing, options)?,
    };
    sockets.extend(added);
    Ok(sockets)
}

/// Duplicates of all listeners, for another process.
pub fn duplicates<'s>(
    listeners: impl Iterator<Item = (&'s ListenPoint, &'s Vec<Option<OwnedFd>>)>,
) -> io::Result<Vec<(ListenPoint, Vec<OwnedFd>)>> {
    let of_one = |(address, sockets): (&ListenPoint, &Vec<Option<OwnedFd>>)| {
        // All workers share the queue of a unix socket.
        let is_unix = matches!(address.address, Address::Unix(_));
        let sockets = sockets.iter().flatten().take(if is_unix { 1 } else { usize::MAX });
        let copies = sockets.map(|socket| socket.as_fd().try_clone_to_owned());
        Ok((address.clone(), copies.collect::<io::Result<_>>()?))
    };
    listeners.map(of_one).collect()
}
