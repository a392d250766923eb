//! A received request, with facts about its connection.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::ClientAddress;
use weir_core::expression::Facts;
use weir_http::message::{RequestHead, Scheme};

use crate::arena::{ClientKey, ExchangeKey, StreamKey};
use crate::local::client_address::client_of;
use crate::local::client_tls::ClientTls;
use crate::local::surroundings::RequestSurroundings;
use crate::local::table::LocalServer;
use crate::parts::account::LogOutput;

/// A received request.
pub struct Arrival<'a> {
    /// The head.
    pub head: &'a RequestHead,
    /// The text of the head's spans.
    pub input: &'a [u8],
    /// The virtual server that decides: that of the listener, or the one to which the request was handed over.
    pub server: &'a Rc<LocalServer>,
    /// The origin; `None`: no decision needs it.
    pub from: Option<RequestOrigin>,
    /// Whether it arrived as early data, before the handshake was complete.
    pub is_early: bool,
    /// Whether member connections belong to the client connection.
    pub is_bound: bool,
    /// Whether the connection's handshake was for another name.
    pub is_misdirected: bool,
    /// Whether the connection may carry another request.
    pub may_go_on: bool,
}

/// The origin of a request.
#[derive(Clone)]
pub struct RequestOrigin {
    /// The connection's peer.
    pub peer: Option<SocketAddr>,
    /// The address that the client connected to; `None`: a unix socket.
    pub listen: Option<SocketAddr>,
    /// The TLS of the connection.
    pub tls: Option<Rc<ClientTls>>,
    /// The facts at its entry, if another virtual server has handed it over.
    pub entry: Option<Rc<Entry>>,
}

/// Facts from before a request was handed over: later changes by rules cannot change the client.
pub struct Entry {
    /// The virtual server of the listener.
    pub server: Rc<LocalServer>,
    /// The client, as that virtual server has determined it.
    pub client: Option<SocketAddr>,
}

impl Arrival<'_> {
    /// Whether it is forwarded as received: no decision is needed, and nothing is added for the member.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.server.is_plain
            && !(self.is_early | self.is_bound)
            && !self.is_misdirected
            && !self.head.unusual.may_need_edits
    }

    /// Whether it is plain apart from ACME challenges, and requests no pending challenge.
    pub fn is_plain_else(&self) -> bool {
        self.server.is_plain_else
            && !(self.is_early | self.is_bound)
            && !self.is_misdirected
            && !self.head.unusual.may_need_edits
    }

    /// The connection's peer.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.from.as_ref()?.peer
    }

    /// The TLS of the connection.
    pub fn tls(&self) -> Option<&Rc<ClientTls>> {
        self.from.as_ref()?.tls.as_ref()
    }

    /// The settings that determine the client: those of the virtual server of the listener.
    pub fn client_address(&self) -> &ClientAddress {
        &self.entry().map_or(self.server, |entry| &entry.server).settings().client_address
    }

    /// The client's address.
    pub fn client(&self) -> Option<SocketAddr> {
        match self.entry() {
            Some(entry) => entry.client,
            None => client_of(self.client_address(), self.peer(), self.head, self.input),
        }
    }

    /// The facts at its entry, if it was handed over.
    pub fn entry(&self) -> Option<&Rc<Entry>> {
        self.from.as_ref()?.entry.as_ref()
    }

    /// The facts for rules.
    pub fn facts<'a>(&'a self, around: &'a RequestSurroundings<'a>) -> Facts<'a> {
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

/// The data for a new transaction.
pub struct Registration {
    /// The key of the transaction.
    pub key: ExchangeKey,
    /// The client connection.
    pub client: ClientKey,
    /// The client's stream; `None`: HTTP/1.
    pub stream: Option<StreamKey>,
    /// The format of the access log.
    pub logged: LogOutput,
    /// The request's part of the log line.
    pub log_request: Vec<u8>,
}
