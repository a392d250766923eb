//! One connection's TLS: bytes of the network in, plaintext out, and the other way round. No socket.
//!
//! | state | on | becomes |
//! |---|---|---|
//! | `Handshake` | a record | `Handshake`; what rustls answers is to be sent |
//! | `Handshake` | the peer's Finished | `Open`: the keys leave rustls |
//! | `Open` | a record | `Open`: data, or what concerns the keys |
//! | `Open` | close_notify | `Open`, and nothing more is read |
//! | any | what is against the protocol | `Failed`: an alert is to be sent, then the end |
//!
//! The handshake is rustls's, one record at a time. Data is sealed and opened here ([`crate::protection`]); of
//! rustls only what renews keys and remembers sessions stays ([`rustls::kernel`]).

use std::io::IoSlice;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, ServerConfig, SupportedCipherSuite};

use crate::error::TlsError;
use crate::open::Open;
use crate::protection::{Opener, Sealer};
use crate::record::{EXPANSION_BYTES_MAX_12, Framed, HEADER_BYTES, read_header};
use crate::sealed::Sealed;

/// What came of looking at received bytes.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing more can be done with what is here.
    More,
    /// Plaintext, in the bytes that were looked at.
    Data {
        /// Its first byte.
        start: usize,
        /// One past its last.
        end: usize,
    },
    /// The handshake is done: [`Session::established`] says with what. What was to be sent until then is sealed.
    Established,
    /// The peer will send nothing more.
    Ended,
    /// It is over. An alert may be in what is to be sent.
    Failed(TlsError),
}

/// What a handshake agreed on.
#[derive(Debug, Clone)]
pub struct Established {
    /// The version.
    pub version: ProtocolVersion,
    /// The cipher suite.
    pub suite: SupportedCipherSuite,
    /// The application's protocol, where one was agreed on.
    pub alpn: Option<Box<[u8]>>,
    /// An earlier session went on.
    pub is_resumed: bool,
    /// The peer's certificates, its own first.
    pub peer_certificates: Vec<CertificateDer<'static>>,
}

/// One connection's TLS.
pub struct Session {
    state: State,
    /// What is to be sent once the handshake is done.
    waiting: Vec<u8>,
    established: Option<Box<Established>>,
}

#[expect(clippy::large_enum_variant, reason = "a session is boxed, and lives in one of two")]
enum State {
    Handshake(Handshake),
    Open(Open),
    Failed,
}

/// A handshake under way.
struct Handshake {
    connection: Connection,
    /// Bytes at the front of the input that are of records which rustls has seen.
    seen_bytes: usize,
}

enum Connection {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// What is left of rustls after the handshake.
pub(crate) enum Kernel {
    Server(KernelConnection<ServerConnectionData>),
    Client(KernelConnection<ClientConnectionData>),
}

/// What rustls wants, once it has seen a record.
enum Wants {
    /// Another record.
    Record,
    /// To be asked again.
    Again,
    /// Nothing more: the handshake is done.
    Nothing,
}

impl Session {
    /// A connection that a client has opened.
    pub fn server(config: &Arc<ServerConfig>) -> Result<Self, TlsError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(config));
        connection.map(|it| Self::begin(Connection::Server(it))).map_err(TlsError::Handshake)
    }

    /// A connection to a server of this name. [`Self::step`] with nothing says what to send first.
    pub fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name);
        connection.map(|it| Self::begin(Connection::Client(it))).map_err(TlsError::Handshake)
    }

    fn begin(connection: Connection) -> Self {
        let state = State::Handshake(Handshake { connection, seen_bytes: 0 });
        Self { state, waiting: Vec::new(), established: None }
    }

    /// Whether the handshake is still under way.
    pub fn is_handshaking(&self) -> bool {
        matches!(self.state, State::Handshake(_))
    }

    /// What the handshake agreed on; given once.
    pub fn established(&mut self) -> Option<Box<Established>> {
        self.established.take()
    }

    /// Bytes of plaintext that wait for the end of the handshake.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Looks at `input[*consumed..]`, which are bytes of the peer in order, and moves `consumed` behind what is done
    /// with. What has to be sent is appended to `out`. To be called again until it says [`Step::More`] or
    /// [`Step::Failed`]; what is not consumed then comes again, before what arrives later.
    pub fn step(&mut self, input: &mut [u8], consumed: &mut usize, out: &mut Sealed) -> Step {
        let result = match &mut self.state {
            State::Handshake(handshake) => match handshake.step(input, consumed, out) {
                Ok(true) => self.open(out),
                Ok(false) => Ok(Step::More),
                Err(error) => Err(error),
            },
            State::Open(open) => open.step(input, consumed, out),
            State::Failed => Ok(Step::More),
        };
        result.unwrap_or_else(|error| {
            self.state = State::Failed;
            self.waiting = Vec::new();
            Step::Failed(error)
        })
    }

    /// The handshake is done.
    fn open(&mut self, out: &mut Sealed) -> Result<Step, TlsError> {
        let State::Handshake(handshake) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(TlsError::Internal("a handshake that is done twice"));
        };
        let (open, established) = handshake.finish()?;
        self.state = State::Open(open);
        self.established = Some(Box::new(established));
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.seal(&[IoSlice::new(&waiting)], out)?;
        }
        Ok(Step::Established)
    }

    /// Seals what `parts` give, one after the other, into `out`; until the handshake is done it is kept instead.
    pub fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut Sealed) -> Result<(), TlsError> {
        match &mut self.state {
            State::Handshake(_) => {
                parts.iter().for_each(|part| self.waiting.extend_from_slice(part));
                Ok(())
            }
            State::Open(open) => open.seal(parts, out),
            State::Failed => Ok(()),
        }
    }

    /// Takes back what waits for the end of the handshake.
    pub fn take_waiting(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.waiting)
    }

    /// Says that nothing more will be sent.
    pub fn close(&mut self, out: &mut Sealed) {
        if let State::Open(open) = &mut self.state {
            open.close(out);
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Handshake(_) => "Handshake",
            State::Open(_) => "Open",
            State::Failed => "Failed",
        };
        f.debug_struct("Session").field("state", &state).finish_non_exhaustive()
    }
}

impl Handshake {
    /// Shows rustls the next record, as often as there is one. True: the handshake is done.
    fn step(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut Sealed,
    ) -> Result<bool, TlsError> {
        loop {
            match self.advance(input, consumed, out) {
                Ok(Wants::Nothing) => return Ok(true),
                Ok(Wants::Again) => {}
                Ok(Wants::Record) => {
                    let behind = &input[*consumed + self.seen_bytes..];
                    let Some(bytes) = next_record(behind) else { return Ok(false) };
                    self.seen_bytes += bytes;
                }
                Err(error) => {
                    // What it still has for the peer, the alert last. Asked again it would look at what it has
                    // refused.
                    while self.wants_write()
                        && matches!(self.advance(input, consumed, out), Ok(Wants::Again))
                    {
                    }
                    return Err(TlsError::Handshake(error));
                }
            }
        }
    }

    fn wants_write(&self) -> bool {
        match &self.connection {
            Connection::Server(it) => it.wants_write(),
            Connection::Client(it) => it.wants_write(),
        }
    }

    /// Shows rustls what it has seen and not discarded, as it must be shown each time: it has noted where in it
    /// the parts of a message are.
    fn advance(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut Sealed,
    ) -> Result<Wants, rustls::Error> {
        let seen = &mut input[*consumed..][..self.seen_bytes];
        let (discard, wants) = match &mut self.connection {
            Connection::Server(it) => advance(it.process_tls_records(seen), out),
            Connection::Client(it) => advance(it.process_tls_records(seen), out),
        };
        *consumed += discard;
        self.seen_bytes -= discard;
        wants
    }

    /// Takes the keys out of rustls.
    fn finish(self) -> Result<(Open, Established), TlsError> {
        let (established, secrets, kernel) = match self.connection {
            Connection::Server(it) => {
                let established = established(&it)?;
                let taken = it.dangerous_into_kernel_connection();
                let (secrets, kernel) = taken.map_err(TlsError::Handshake)?;
                (established, secrets, Kernel::Server(kernel))
            }
            Connection::Client(it) => {
                let established = established(&it)?;
                let taken = it.dangerous_into_kernel_connection();
                let (secrets, kernel) = taken.map_err(TlsError::Handshake)?;
                (established, secrets, Kernel::Client(kernel))
            }
        };
        let is_13 = established.version == ProtocolVersion::TLSv1_3;
        let unknown = |_| TlsError::Internal("a cipher suite that only rustls knows");
        let opener = Opener::new(secrets.rx.1, secrets.rx.0, is_13).map_err(unknown)?;
        let sealer = Sealer::new(secrets.tx.1, secrets.tx.0, is_13).map_err(unknown)?;
        Ok((Open::new(opener, sealer, kernel, is_13), established))
    }
}

fn established<D>(
    connection: &rustls::unbuffered::UnbufferedConnectionCommon<D>,
) -> Result<Established, TlsError> {
    let unfinished = TlsError::Internal("a handshake that is not done");
    let (Some(version), Some(suite)) =
        (connection.protocol_version(), connection.negotiated_cipher_suite())
    else {
        return Err(unfinished);
    };
    let certificates = connection.peer_certificates().unwrap_or_default();
    Ok(Established {
        version,
        suite,
        alpn: connection.alpn_protocol().map(Box::from),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        peer_certificates: certificates.iter().map(|it| it.clone().into_owned()).collect(),
    })
}

/// Does what rustls wants done. How many bytes it is done with, and what it wants next.
fn advance<D>(
    status: UnbufferedStatus<'_, '_, D>,
    out: &mut Sealed,
) -> (usize, Result<Wants, rustls::Error>) {
    let wants = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            // An empty room tells how much is needed.
            let bytes = match data.encode(&mut []) {
                Err(EncodeError::InsufficientSize(size)) => size.required_size,
                Ok(_) | Err(EncodeError::AlreadyEncoded) => 0,
            };
            let encoded = data.encode(out.room(bytes)).unwrap_or(0);
            out.filled(encoded);
            Ok(Wants::Again)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(Wants::Again)
        }
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Wants::Nothing),
        Ok(ConnectionState::BlockedHandshake) => Ok(Wants::Record),
        Ok(_) => Err(rustls::Error::General("the handshake ended before it was done".into())),
        Err(error) => Err(error),
    };
    (status.discard, wants)
}

/// The length of the record at the front, once it is whole. What is no record is shown to rustls as it is, so that it
/// says what is wrong with it.
fn next_record(input: &[u8]) -> Option<usize> {
    match read_header(input, EXPANSION_BYTES_MAX_12) {
        Framed::Header(header) => {
            let bytes = HEADER_BYTES + header.length;
            (input.len() >= bytes).then_some(bytes)
        }
        Framed::Partial => None,
        Framed::Malformed | Framed::TooLong => {
            Some(input.len().min(HEADER_BYTES)).filter(|&all| all == HEADER_BYTES)
        }
    }
}
