//! One connection's TLS: bytes of the network in, plaintext out, and the other way round. No socket.
//!
//! | state | event | next state |
//! |---|---|---|
//! | `Handshake` | a record | `Handshake`; rustls's answer must be sent |
//! | `Handshake` | accepted early data (0-RTT) | `Handshake`, already established: data goes both ways through rustls |
//! | `Handshake` | the peer's Finished | `Open`: the keys leave rustls |
//! | `Open` | a record | `Open`: data, or a change of keys |
//! | `Open` | close_notify | `Open`, and nothing more is read |
//! | `Handshake` | a server that does not agree to the required protocol | `Failed`; waiting data is not sent |
//! | any | a protocol violation | `Failed`: an alert must be sent, then the end |
//!
//! rustls does the handshake, one record at a time. Data is encrypted and decrypted here ([`crate::protection`]); only
//! the parts of rustls that renew keys and store sessions stay ([`rustls::kernel`]).

use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, ReadEarlyData, UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, ServerConfig, SupportedCipherSuite};

use crate::error::{Alert, TlsError};
use crate::open::{Kernel, Open};
use crate::protection::{OVERHEAD_BYTES_MAX, Opener, Sealer, TAG_BYTES};
use crate::protocol::Protocol;
use crate::record::{
    ContentType, EXPANSION_BYTES_MAX_12, Framed, HEADER_BYTES, PLAINTEXT_BYTES_MAX, read_header,
};
use crate::sealed::Sealed;
use crate::step::Step;

/// The results of a handshake.
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
    /// Data comes before the handshake is done: until [`Step::Confirmed`].
    pub is_early: bool,
    /// The peer's certificates, its own first.
    pub peer_certificates: Vec<CertificateDer<'static>>,
}

/// One connection's TLS.
pub struct Session {
    state: State,
    /// Data to send once the handshake is complete.
    waiting: Vec<u8>,
    established: Option<Box<Established>>,
    /// The protocol of sent data: without the peer's agreement (ALPN) the handshake fails.
    required: Option<Protocol>,
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
    /// Early data is accepted, and the results so far were reported.
    is_early: bool,
    /// The front of the input is a record of early data that rustls has opened.
    early: Option<EarlyRecord>,
}

/// A record whose plaintext stands where it was received, behind the header.
struct EarlyRecord {
    bytes: usize,
    data_bytes: usize,
}

/// The result of passing records to rustls.
enum Progress {
    /// More input is needed.
    More,
    /// Early data was decrypted.
    Early,
    /// The handshake is done.
    Done,
}

enum Connection {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// The next step that rustls needs after a record.
enum Wants {
    /// Another record.
    Record,
    /// The handshake must be continued.
    Again,
    /// Early data was accepted.
    Taken(Vec<u8>),
    /// Nothing more: the handshake is done.
    Nothing,
}

impl Session {
    /// A connection that a client has opened.
    pub fn server(config: &Arc<ServerConfig>) -> Result<Self, TlsError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(config));
        connection.map(|it| Self::begin(Connection::Server(it))).map_err(TlsError::Handshake)
    }

    /// A connection to a server of this name. [`Self::step`] without input returns the first message.
    pub fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name);
        connection.map(|it| Self::begin(Connection::Client(it))).map_err(TlsError::Handshake)
    }

    fn begin(connection: Connection) -> Self {
        let state =
            State::Handshake(Handshake { connection, seen_bytes: 0, is_early: false, early: None });
        Self { state, waiting: Vec::new(), established: None, required: None }
    }

    /// Nothing is sent to a peer that does not agree to this protocol: the handshake fails instead.
    #[must_use]
    pub fn requiring(mut self, protocol: Protocol) -> Self {
        self.required = Some(protocol);
        self
    }

    /// Whether the handshake is still under way, and nothing can be sent yet.
    pub fn is_handshaking(&self) -> bool {
        matches!(&self.state, State::Handshake(handshake) if !handshake.is_early)
    }

    /// The results of the handshake; returned once.
    pub fn established(&mut self) -> Option<Box<Established>> {
        self.established.take()
    }

    /// Bytes of plaintext that wait for the end of the handshake.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Processes `input[*consumed..]`, the peer's bytes in order, and moves `consumed` behind the processed part.
    /// Output is appended to `out`. To be called again until it returns [`Step::More`] or [`Step::Failed`]; the
    /// unconsumed rest must be passed again, before later bytes.
    pub fn step(&mut self, input: &mut [u8], consumed: &mut usize, out: &mut Sealed) -> Step {
        let result = match &mut self.state {
            State::Handshake(handshake) => match handshake.step(input, consumed, out) {
                Ok(Progress::Done) => self.open(out),
                Ok(Progress::More) => Ok(Step::More),
                Ok(Progress::Early) => self.early(consumed),
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

    /// Early data has come: returns the session's facts first, then the data.
    fn early(&mut self, consumed: &mut usize) -> Result<Step, TlsError> {
        let State::Handshake(handshake) = &mut self.state else {
            return Err(TlsError::Internal("early data after the handshake"));
        };
        if !handshake.is_early {
            handshake.is_early = true;
            let mut established = handshake.established()?;
            established.is_early = true;
            self.established = Some(Box::new(established));
            return Ok(Step::Established);
        }
        let Some(EarlyRecord { bytes, data_bytes }) = handshake.early.take() else {
            return Err(TlsError::Internal("early data that is not there"));
        };
        let start = *consumed + HEADER_BYTES;
        *consumed += bytes;
        Ok(Step::Data { start, end: start + data_bytes })
    }

    /// The handshake is done.
    fn open(&mut self, out: &mut Sealed) -> Result<Step, TlsError> {
        let State::Handshake(handshake) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(TlsError::Internal("a handshake that is done twice"));
        };
        let was_early = handshake.is_early;
        let (open, established) = handshake.finish()?;
        if let Some(protocol) = self.required
            && established.alpn.as_deref() != Some(protocol.identifier())
        {
            return Err(TlsError::NotAgreed(protocol));
        }
        self.state = State::Open(open);
        if !was_early {
            self.established = Some(Box::new(established));
        }
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.seal(&[IoSlice::new(&waiting)], out)?;
        }
        Ok(if was_early { Step::Confirmed } else { Step::Established })
    }

    /// Encrypts `parts`, one after the other, into `out`; until the handshake is complete they are kept instead.
    pub fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut Sealed) -> Result<(), TlsError> {
        match &mut self.state {
            // Waiting data waits to the end: nothing may overtake it.
            State::Handshake(handshake) if self.waiting.is_empty() && handshake.may_send() => {
                handshake.seal(parts, out)
            }
            State::Handshake(_) => {
                parts.iter().for_each(|part| self.waiting.extend_from_slice(part));
                Ok(())
            }
            State::Open(open) => open.seal(parts, out),
            State::Failed => Ok(()),
        }
    }

    /// Takes back the data that waits for the end of the handshake.
    pub fn take_waiting(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.waiting)
    }

    #[cfg(test)]
    pub(crate) fn open_for_test(&mut self) -> Option<&mut Open> {
        match &mut self.state {
            State::Open(open) => Some(open),
            State::Handshake(_) | State::Failed => None,
        }
    }

    /// Says that nothing more will be sent.
    pub fn close(&mut self, out: &mut Sealed) {
        match &mut self.state {
            State::Open(open) => open.close(out),
            State::Handshake(handshake) if self.waiting.is_empty() && handshake.may_send() => {
                handshake.close(out);
            }
            State::Handshake(_) | State::Failed => {}
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Handshake(_) => "Handshake",
            State::Open(_) => "Open",
            State::Failed => "Failed",
        };
        f.debug_struct("Session").field("state", &state).finish_non_exhaustive()
    }
}

impl Handshake {
    /// Shows rustls the next record, as often as there is one.
    fn step(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut Sealed,
    ) -> Result<Progress, TlsError> {
        while self.early.is_none() {
            match self.advance(input, consumed, out) {
                Ok(Wants::Nothing) => return Ok(Progress::Done),
                Ok(Wants::Again) => {}
                Ok(Wants::Taken(data)) => self.take_early(&data, &mut input[*consumed..])?,
                Ok(Wants::Record) => {
                    if self.was_dropped(&input[*consumed..][..self.seen_bytes]) {
                        *consumed += self.seen_bytes;
                        self.seen_bytes = 0;
                    }
                    let behind = &input[*consumed + self.seen_bytes..];
                    if behind.first().is_some_and(|&first| ContentType::of(first).is_none()) {
                        let seen = &input[*consumed..][..self.seen_bytes];
                        return Err(self.refuse_unknown_type(seen, out));
                    }
                    let Some(bytes) = next_record(behind) else { return Ok(Progress::More) };
                    self.seen_bytes += bytes;
                }
                Err(error) => {
                    // The rest of its output, the alert last. Asked again, it would process the refused input again.
                    while self.wants_write()
                        && matches!(self.advance(input, consumed, out), Ok(Wants::Again))
                    {
                    }
                    return Err(TlsError::Handshake(error));
                }
            }
        }
        Ok(Progress::Early)
    }

    /// Puts early data where its record was received, the last that rustls was shown.
    fn take_early(&mut self, data: &[u8], record: &mut [u8]) -> Result<(), TlsError> {
        let bytes = std::mem::take(&mut self.seen_bytes);
        let place = record.get_mut(..bytes).and_then(|all| all.get_mut(HEADER_BYTES..));
        let place = place.and_then(|text| text.get_mut(..data.len()));
        let place = place.ok_or(TlsError::Internal("early data without its record"))?;
        place.copy_from_slice(data);
        self.early = Some(EarlyRecord { bytes, data_bytes: data.len() });
        Ok(())
    }

    /// Whether rustls encrypts outgoing data. If a part of a message has come, rustls would have to see it again first.
    fn may_send(&self) -> bool {
        self.is_early && self.seen_bytes == 0
    }

    /// See [`Session::seal`]: before the handshake is done, which is seldom, and takes a copy.
    fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut Sealed) -> Result<(), TlsError> {
        let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        let records = whole.len().div_ceil(PLAINTEXT_BYTES_MAX);
        let bytes = whole.len() + records * OVERHEAD_BYTES_MAX;
        let exhausted = TlsError::Internal("a key that has protected all it may");
        let sealed = self.write(|traffic| traffic.encrypt(&whole, out.room(bytes)).ok());
        out.filled(sealed.ok_or(exhausted)?);
        Ok(())
    }

    fn close(&mut self, out: &mut Sealed) {
        let sealed = self.write(|it| it.queue_close_notify(out.room(OVERHEAD_BYTES_MAX + 2)).ok());
        out.filled(sealed.unwrap_or(0));
    }

    /// Has rustls seal something; of it nothing is to be shown or sent.
    fn write(
        &mut self,
        with: impl FnOnce(&mut WriteTraffic<'_, ServerConnectionData>) -> Option<usize>,
    ) -> Option<usize> {
        let Connection::Server(it) = &mut self.connection else {
            return None;
        };
        match it.process_tls_records(&mut []).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => with(&mut traffic),
            _ => None,
        }
    }

    fn wants_write(&self) -> bool {
        match &self.connection {
            Connection::Server(it) => it.wants_write(),
            Connection::Client(it) => it.wants_write(),
        }
    }

    /// Passes rustls the bytes that it has seen and not discarded, as it requires each time: it has recorded the places
    /// of message parts in them.
    fn advance(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut Sealed,
    ) -> Result<Wants, rustls::Error> {
        let seen = &mut input[*consumed..][..self.seen_bytes];
        let (discard, wants) = match &mut self.connection {
            Connection::Server(it) => advance(it.process_tls_records(seen), early_data, out),
            // Clients send early data but do not receive any.
            Connection::Client(it) => advance(it.process_tls_records(seen), |_| Vec::new(), out),
        };
        if matches!(wants, Ok(Wants::Taken(_))) {
            // The data is decrypted in place, in its record.
            return wants;
        }
        *consumed += discard;
        self.seen_bytes -= discard;
        match wants {
            // Data may be sent before the client's Finished.
            Ok(Wants::Nothing) if self.is_handshaking() => Ok(Wants::Record),
            other => other,
        }
    }

    fn is_handshaking(&self) -> bool {
        match &self.connection {
            Connection::Server(it) => it.is_handshaking(),
            Connection::Client(it) => it.is_handshaking(),
        }
    }

    fn established(&self) -> Result<Established, TlsError> {
        match &self.connection {
            Connection::Server(it) => established(it),
            Connection::Client(it) => established(it),
        }
    }

    /// Whether `seen`, which rustls has kept, is a dropped record of refused early data. rustls would process and count
    /// it again with each further record.
    ///
    /// aws-lc clears records that it cannot decrypt. A decrypted record is never all zero: it contains its type.
    fn was_dropped(&self, seen: &[u8]) -> bool {
        let Framed::Header(header) = read_header(seen, EXPANSION_BYTES_MAX_12) else {
            return false;
        };
        let is_alone = seen.len() == HEADER_BYTES + header.length;
        let is_protected = header.content == ContentType::ApplicationData;
        let text = seen.get(HEADER_BYTES..seen.len().saturating_sub(TAG_BYTES)).unwrap_or_default();
        matches!(self.connection, Connection::Server(_))
            && is_alone
            && is_protected
            && text.iter().all(|&byte| byte == 0)
    }

    /// A record of an unknown type has come (RFC 8446 section 5). rustls would wait for all of it, and send another
    /// alert. Instead it gets a byte sequence behind the seen bytes that is invalid in any state.
    fn refuse_unknown_type(&mut self, seen: &[u8], out: &mut Sealed) -> TlsError {
        let misplaced: [u8; 6] = match self.version() {
            // Nothing was agreed on, so nothing is protected.
            None => {
                out.append(&Alert::UnexpectedMessage.record());
                return TlsError::PeerMisbehaved("a record of unknown type");
            }
            // ChangeCipherSpec that says something (RFC 8446 section 5).
            Some(ProtocolVersion::TLSv1_3) => [20, 3, 3, 0, 1, 0],
            Some(_) => [23, 3, 3, 0, 1, 0],
        };
        let mut shown = [seen, &misplaced].concat();
        self.seen_bytes = shown.len();
        // The first look is for the error, the second for the alert.
        for _ in 0..2 {
            let _ = self.advance(&mut shown, &mut 0, out);
        }
        TlsError::PeerMisbehaved("a record of unknown type")
    }

    fn version(&self) -> Option<ProtocolVersion> {
        match &self.connection {
            Connection::Server(it) => it.protocol_version(),
            Connection::Client(it) => it.protocol_version(),
        }
    }

    /// Takes the keys out of rustls.
    fn finish(self) -> Result<(Open, Established), TlsError> {
        let established = self.established()?;
        let (secrets, kernel) = match self.connection {
            Connection::Server(it) => {
                let taken = it.dangerous_into_kernel_connection();
                let (secrets, kernel) = taken.map_err(TlsError::Handshake)?;
                (secrets, Kernel::Server(kernel))
            }
            Connection::Client(it) => {
                let taken = it.dangerous_into_kernel_connection();
                let (secrets, kernel) = taken.map_err(TlsError::Handshake)?;
                (secrets, Kernel::Client(kernel))
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
        is_early: false,
        peer_certificates: certificates.iter().map(|it| it.clone().into_owned()).collect(),
    })
}

/// Does the step that rustls needs. Returns how many bytes are processed, and the next step.
fn advance<D>(
    status: UnbufferedStatus<'_, '_, D>,
    take: impl FnOnce(ReadEarlyData<'_, '_, D>) -> Vec<u8>,
    out: &mut Sealed,
) -> (usize, Result<Wants, rustls::Error>) {
    let wants = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            // Encoding into an empty buffer returns the needed size.
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
        Ok(ConnectionState::ReadEarlyData(early)) => Ok(Wants::Taken(take(early))),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Wants::Nothing),
        Ok(ConnectionState::BlockedHandshake) => Ok(Wants::Record),
        Ok(_) => Err(rustls::Error::General("the handshake ended before it was done".into())),
        Err(error) => Err(error),
    };
    (status.discard, wants)
}

/// The contents of an early data record.
fn early_data(mut early: ReadEarlyData<'_, '_, ServerConnectionData>) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some(Ok(record)) = early.next_record() {
        data.extend_from_slice(record.payload);
    }
    data
}

/// The length of the record at the front, if it is complete. Invalid records are passed to rustls unchanged, so that it
/// reports the error.
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
