//! What is to be done after an event of a client connection.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::termination::Termination;

use crate::worker::state::client_end::ClientEnd;

/// What is to be done after an event of a client connection.
pub enum ClientStep {
    /// Nothing.
    Nothing,
    /// The connection ends.
    End(ClientEnd),
    /// The connection continues between requests: with the next one, if it has arrived.
    Next,
    /// The transaction of an HTTP/1 or relayed client is told.
    Tell(ExchangeKey, ClientNews),
    /// The transaction of an HTTP/1 or relayed client is abandoned for this reason, and the connection ends.
    Abandon(ExchangeKey, Termination, ClientEnd),
    /// The connection with HTTP/2 ends, with all its exchanges. Each exchange writes its own log line.
    EndStreams(Termination, ClientEnd),
    /// A relay begins, or the first bytes are awaited, of which most relays need none.
    ReadPreface,
    /// The exchanges of an HTTP/2 client continue after all queued data was sent.
    StreamsDrained,
    /// The deadlines of the streams of an HTTP/2 client are checked.
    CheckStreams,
    /// The decrypted data of the client is relayed to a member of the pool with this index. The name is that of the handshake.
    Relay(usize, String),
}

/// What a transaction is told of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientNews {
    /// It has taken all data.
    Took,
    /// It has sent FIN.
    Finished,
    /// Its deadline has passed.
    TimedOut,
}
