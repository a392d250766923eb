//! A simulated user, which has one connection at a time.

use std::net::IpAddr;

use weir_event_loop::Token;

use super::http2::Http2Client;
use super::response::ResponseReader;
use super::under_way::Request;

/// A user.
#[derive(Debug)]
pub struct User {
    /// The user's group of targets; see [`super::targets`].
    pub group: u32,
    /// The source address; `None`: the system chooses.
    pub source: Option<IpAddr>,
    /// The user's connection.
    pub token: Option<Token>,
    /// The user's state.
    pub state: State,
    /// Number of requests begun on the connection.
    pub requests: u64,
    /// Whether its first attempt at a connection has ended.
    pub was_attempted: bool,
    /// The parser of its responses.
    pub reader: ResponseReader,
    /// The HTTP/2 connection, if the plan uses HTTP/2.
    pub http2: Option<Box<Http2Client>>,
}

/// The state of a user.
#[derive(Debug, Clone, Copy)]
pub enum State {
    /// No connection; waits for its turn to open one.
    Closed,
    /// The TCP connection is being opened.
    Connecting {
        /// Start of the attempt.
        since_us: u64,
    },
    /// The TLS handshake is in progress.
    Handshaking {
        /// Start of the attempt, TCP included.
        since_us: u64,
    },
    /// Connected, without an open request.
    Idle,
    /// Waits for a response.
    Busy(Request),
    /// Connected with HTTP/2; the streams have the requests.
    Multiplexed,
    /// The last response is complete; the server is about to close the connection.
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
