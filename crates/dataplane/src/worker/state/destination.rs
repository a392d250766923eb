//! Where a client has connected to.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::Address;
use weir_event_loop::{Descriptor, EventLoop, Token};

/// Where a client has connected to.
pub struct Destination {
    listen: Rc<Address>,
    /// What the kernel says, once it was asked.
    real: Option<SocketAddr>,
}

impl Destination {
    /// That of a client that came in by this listener.
    pub fn new(listen: Rc<Address>) -> Self {
        Self { listen, real: None }
    }

    /// The listener's address: whichever virtual server listens there serves the client.
    pub fn listen(&self) -> &Address {
        &self.listen
    }

    /// The address and port, if it has such. Of a listener for all addresses they are known after [`Self::learn`].
    pub fn address(&self) -> Option<SocketAddr> {
        self.real.or(match &*self.listen {
            Address::Socket(address) => Some(*address),
            Address::Unix(_) => None,
        })
    }

    /// Asks the kernel, once, where the listener's address does not tell.
    pub fn learn(&mut self, io: &mut EventLoop, token: Token) {
        let Address::Socket(listen) = &*self.listen else { return };
        if self.real.is_none() && (listen.ip().is_unspecified() || listen.port() == 0) {
            self.real = io.descriptor(token).and_then(Descriptor::local_address);
        }
    }
}
