//! The address that a client connected to.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::{Address, ListenPoint};
use weir_event_loop::{Descriptor, EventLoop, Token};

/// The address that a client connected to. It has the size of one pointer. The clients of a listener share one value, until
/// the kernel is asked for one of them.
#[derive(Clone)]
pub struct Destination(Rc<Place>);

struct Place {
    listen: ListenPoint,
    /// The kernel's answer; `None`: the kernel was not asked.
    real: Option<SocketAddr>,
}

impl Destination {
    /// The destination of a listener's clients.
    pub fn new(listen: ListenPoint) -> Self {
        Self(Rc::new(Place { listen, real: None }))
    }

    /// The listener's address: the virtual server that listens there serves the client.
    pub fn listen(&self) -> &ListenPoint {
        &self.0.listen
    }

    /// The address and the port; `None`: a unix socket. If the listener uses all addresses, they are exact only after
    /// [`Self::learn`].
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.real.or(self.0.listen.address.socket())
    }

    /// Asks the kernel, once, if the listener's address or port is a wildcard.
    pub fn learn(&mut self, io: &mut EventLoop, token: Token) {
        let Address::Socket(listen) = self.0.listen.address else { return };
        let is_known = !listen.ip().is_unspecified() && listen.port() != 0;
        if is_known || self.0.real.is_some() {
            return;
        }
        if let Some(real) = io.sockets.descriptor(token).and_then(Descriptor::local_address) {
            self.0 = Rc::new(Place { listen: self.0.listen.clone(), real: Some(real) });
        }
    }
}
