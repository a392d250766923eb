//! The admin listeners of the process. They follow the addresses of the active configuration, come from the predecessor, and go
//! to the successor.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use weir_config::snapshot::{Address, ListenPoint};
use weir_event_loop::error_text::io_error_text;

use super::Error;
use crate::admin::{Admin, OpenConnections};
use crate::events::Events;
use crate::observed_state::ObservedState;

/// All admin listeners.
pub(super) struct AdminListeners {
    observed: Arc<ObservedState>,
    events: Events,
    /// The open listeners with their addresses from the file, in which port 0 stays port 0.
    open: Vec<(Address, Admin)>,
    /// Inherited sockets, until the first configuration is active.
    inherited: Vec<(Address, OwnedFd)>,
    /// Connections to listeners that were handed over.
    handed_over: Vec<OpenConnections>,
}

impl AdminListeners {
    /// Opens the listeners of the first configuration, except those whose sockets are inherited.
    pub(super) async fn open(
        inherited: Vec<(Address, OwnedFd)>,
        observed: &Arc<ObservedState>,
        events: &Events,
    ) -> Result<Self, Error> {
        let (observed, events) = (Arc::clone(observed), events.clone());
        let mut listeners =
            Self { observed, events, open: Vec::new(), inherited, handed_over: Vec::new() };
        let table = listeners.observed.table();
        let wanted = &table.snapshot.admin.listen;
        weir_outgoing::avoid(wanted.iter());
        for address in wanted {
            if listeners.inherited.iter().any(|(inherited, _)| inherited == address) {
                continue;
            }
            let started = listeners.start(address).await;
            started.map_err(|error| Error::Admin(address.clone(), error))?;
        }
        Ok(listeners)
    }

    async fn start(&mut self, address: &Address) -> io::Result<()> {
        let admin = Admin::start(address, Arc::clone(&self.observed), self.events.clone()).await?;
        self.open.push((address.clone(), admin));
        Ok(())
    }

    /// The address of the first listener, with its real port.
    pub(super) fn first_address(&self) -> Option<&Address> {
        self.open.first().map(|(_, admin)| admin.address())
    }

    /// The addresses of the open listeners, as in the file.
    fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.open.iter().map(|(asked, _)| asked)
    }

    /// Moves the listeners to these addresses. If one of them cannot be bound, the old listeners stay, because users may know
    /// only these.
    pub(super) async fn move_to(&mut self, wanted: &[Address]) {
        weir_outgoing::avoid(wanted.iter().chain(self.addresses()));
        let mut are_all_there = true;
        for address in wanted {
            if self.addresses().any(|asked| asked == address) {
                continue;
            }
            if let Err(error) = self.start(address).await {
                are_all_there = false;
                let error = io_error_text(&error);
                let old: Vec<String> = self.addresses().map(Address::to_string).collect();
                let old = if old.is_empty() { "off".to_owned() } else { old.join(", ") };
                let what = format_args!("stays {old}: cannot listen on {address}: {error}");
                self.events.error("admin listener", what);
            }
        }
        if are_all_there {
            self.open.retain(|(asked, _)| wanted.contains(asked));
        }
    }

    /// Opens the inherited listeners at these addresses, and drops the others. `is_of_manager`: whether a socket belongs to the
    /// service manager, so that its file must stay.
    pub(super) fn adopt(
        &mut self,
        wanted: &[Address],
        is_of_manager: impl Fn(&ListenPoint) -> bool,
    ) {
        for (address, socket) in std::mem::take(&mut self.inherited) {
            if !wanted.contains(&address) {
                if let Address::Unix(path) = &address {
                    // An error means that the file is gone already.
                    let _ = std::fs::remove_file(path);
                }
                continue;
            }
            let (observed, events) = (Arc::clone(&self.observed), self.events.clone());
            match Admin::adopt(&address, socket, observed, events) {
                Ok(mut admin) => {
                    if is_of_manager(&ListenPoint::from(address.clone())) {
                        admin.keep_file();
                    }
                    self.open.push((address, admin));
                }
                Err(error) => {
                    let error = io_error_text(&error);
                    let what = format_args!("is off: cannot listen on {address}: {error}");
                    self.events.error("admin listener", what);
                }
            }
        }
    }

    /// Duplicates of the sockets, for a new process.
    pub(super) fn duplicate(&self) -> io::Result<Vec<(ListenPoint, OwnedFd)>> {
        let duplicate = |(asked, admin): &(Address, Admin)| {
            Ok((ListenPoint::from(asked.clone()), admin.duplicate()?))
        };
        self.open.iter().map(duplicate).collect()
    }

    /// Stops accepting: another process serves these addresses.
    pub(super) fn hand_over(&mut self) {
        self.handed_over = self.open.drain(..).map(|(_, admin)| admin.hand_over()).collect();
    }

    /// Waits a short time until the connections of clients that connected before the handover are closed.
    pub(super) async fn handed_over_closed(&self) {
        for connections in &self.handed_over {
            connections.closed().await;
        }
    }
}
