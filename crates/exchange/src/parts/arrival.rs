//! A received request, with facts about its connection.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::ClientAddress;
use weir_core::expression::Facts;
use weir_http::message::{RequestHead, Scheme};

use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::local::around::Around;
use crate::local::client_address::client_of;
use crate::local::client_tls::ClientTls;
use crate::local::table::LocalServer;
use crate::parts::account::Logged;

/// A request that has come.
pub struct Arrival<'a> {
    /// Its head.
    pub head: &'a RequestHead,
    /// The text of the head's spans.
    pub input: &'a [u8],
    /// Which decides about it: where it came in, or that which it was handed to.
    pub server: &'a Rc<LocalServer>,
    /// Where it comes from, where decisions look at that.
    pub from: Option<Whence>,
    /// It came before the handshake was done.
    pub is_early: bool,
    /// The handshake of its connection was for another name.
    pub is_misdirected: bool,
    /// Its connection may carry another.
    pub may_go_on: bool,
}

/// Where a request comes from.
#[derive(Clone)]
pub struct Whence {
    /// The connection's peer.
    pub peer: Option<SocketAddr>,
    /// The address that the client connected to, if it is one.
    pub listen: Option<SocketAddr>,
    /// The TLS that it came through.
    pub tls: Option<Rc<ClientTls>>,
    /// How it came in, if another virtual server has handed it over.
    pub entry: Option<Rc<Entry>>,
}

/// How a request came in that was handed over: no rule that has changed it since may change who its client is.
pub struct Entry {
    /// Where it came in.
    pub server: Rc<LocalServer>,
    /// Its client, as that has found it.
    pub client: Option<SocketAddr>,
}

impl Arrival<'_> {
    /// Whether it is forwarded as it came: there is nothing to decide about it, and nothing to tell its member.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.server.is_plain
            && !self.is_early
            && !self.is_misdirected
            && !self.head.announces_trailers
    }

    /// The connection's peer.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.from.as_ref()?.peer
    }

    /// The TLS that it came through.
    pub fn tls(&self) -> Option<&Rc<ClientTls>> {
        self.from.as_ref()?.tls.as_ref()
    }

    /// How its client is found: that is a matter of the virtual server whose connection it has.
    pub fn client_address(&self) -> &ClientAddress {
        &self.entry().map_or(self.server, |entry| &entry.server).settings().client_address
    }

    /// Its client.
    pub fn client(&self) -> Option<SocketAddr> {
        match self.entry() {
            Some(entry) => entry.client,
            None => client_of(self.client_address(), self.peer(), self.head, self.input),
        }
    }

    /// How it came in, if it was handed over.
    pub fn entry(&self) -> Option<&Rc<Entry>> {
        self.from.as_ref()?.entry.as_ref()
    }

    /// Its facts for rules.
    pub fn facts<'a>(&'a self, around: &'a Around<'a>) -> Facts<'a> {
        Facts {
            request: self.head,
            request_input: self.input,
            client: self.client(),
            server: self.from.as_ref().and_then(|from| from.listen),
            scheme: if self.tls().is_some() { Scheme::Https } else { Scheme::Http },
            tls: self.tls().map(|tls| tls.facts()),
            response: None,
            datagram: None,
            around,
            unix_s: None,
        }
    }
}

/// The owner of the new transaction, and the data to create it.
pub struct Registration {
    /// Its key.
    pub key: ExchangeKey,
    /// The client's connection.
    pub client: ClientKey,
    /// The stream of that, with HTTP/2.
    pub stream: Option<StreamKey>,
    /// How it is logged.
    pub logged: Logged,
    /// Its part of the log's line.
    pub log_request: Vec<u8>,
}
