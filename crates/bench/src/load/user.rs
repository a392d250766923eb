//! One simulated user: a place for one connection at a time.

use std::net::IpAddr;

use weir_event_loop::Token;

use super::http2::Http2Client;
use super::response::ResponseReader;
use super::under_way::Request;

/// A user.
#[derive(Debug)]
pub struct User {
    /// Which group of targets it asks; see [`super::targets`].
    pub group: u32,
    /// Where it connects from.
    pub source: Option<IpAddr>,
    /// Its connection.
    pub token: Option<Token>,
    /// Its state.
    pub state: State,
    /// Requests begun on the connection.
    pub requests: u64,
    /// Whether a connection was tried at all.
    pub was_attempted: bool,
    /// Reads its responses.
    pub reader: ResponseReader,
    /// HTTP/2 of the connection.
    pub http2: Option<Box<Http2Client>>,
}

/// The state of a user.
#[derive(Debug, Clone, Copy)]
pub enum State {
    /// Without a connection; it waits for its turn to open one.
    Closed,
    /// TCP is being opened.
    Connecting {
        /// Since when.
        since_us: u64,
    },
    /// TLS is being opened.
    Handshaking {
        /// Since when, TCP included.
        since_us: u64,
    },
    /// Connected, nothing asked.
    Idle,
    /// Waits for a response.
    Busy(Request),
    /// Connected by HTTP/2; the streams have the requests.
    Multiplexed,
    /// Its last response is there; the server is about to close.
    Ending,
}

impl User {
    /// A user without a connection.
    pub fn new(group: u32, source: Option<IpAddr>) -> Self {
        Self {
            group,
            source,
            token: None,
            state: State::Closed,
            requests: 0,
            was_attempted: false,
            reader: ResponseReader::new(),
            http2: None,
        }
    }
}
