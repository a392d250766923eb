//! The TLS of one connection, without a socket: converts between network bytes and plaintext.
//!
//! | state | event | next state |
//! |---|---|---|
//! | `Handshake` | a record | `Handshake`: the output of rustls must be sent |
//! | `Handshake` | accepted early data (0-RTT) | `Handshake`, but established: rustls encrypts and decrypts data |
//! | `Handshake` | the peer's Finished | `Open`: the keys are taken from rustls |
//! | `Open` | a record | `Open`: data, or a key update |
//! | `Open` | close_notify | `Open`: no more data is read |
//! | `Handshake` | the end, but the server has not selected the required protocol | `Failed`: stored data is dropped |
//! | any | a protocol violation | `Failed`: an alert must be sent, then the connection closed |
//!
//! rustls performs the handshake, one record at a time. After it, data is encrypted and decrypted here
//! ([`crate::protection`]). Only the parts of rustls that renew keys and store sessions are still used then
//! ([`rustls::kernel`]).

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
    ContentType, EXPANSION_BYTES_MAX_12, HEADER_BYTES, PLAINTEXT_BYTES_MAX, RecordStart,
    read_header,
};
use crate::record_buffer::RecordBuffer;
use crate::step::Step;

/// The results of a handshake.
#[derive(Debug, Clone)]
pub struct HandshakeResult {
    /// The TLS version.
    pub version: ProtocolVersion,
    /// The cipher suite.
    pub suite: SupportedCipherSuite,
    /// The application protocol, if one was negotiated.
    pub alpn: Option<Box<[u8]>>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Whether early data is delivered before the handshake is complete: until [`Step::Confirmed`].
    pub is_early: bool,
    /// The peer's certificate chain, which starts with its own certificate.
    pub peer_certificates: Vec<CertificateDer<'static>>,
}

/// The TLS of one connection.
pub struct Session {
    state: State,
    /// Data to be sent when the handshake is complete.
    waiting: Vec<u8>,
    established: Option<Box<HandshakeResult>>,
    /// The required application protocol (ALPN). If the peer does not select it, the handshake fails.
    required: Option<Protocol>,
}

#[expect(clippy::large_enum_variant, reason = "a session is boxed, and lives in one of two")]
enum State {
    Handshake(Handshake),
    Open(Open),
    Failed,
}

/// A handshake in progress.
struct Handshake {
    connection: Connection,
    /// Number of bytes at the front of the input that were passed to rustls and not discarded.
    seen_bytes: usize,
    /// Whether early data was accepted, and the results of the handshake so far were reported.
    is_early: bool,
    /// The record of early data at the front of the input that rustls has decrypted.
    early: Option<EarlyRecord>,
}

/// A record whose plaintext is in the input, after the record header.
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
    /// The handshake is complete.
    Done,
}

enum Connection {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// The next step that rustls requires.
enum HandshakeStep {
    /// Needs another record.
    Record,
    /// Must be called again.
    Again,
    /// Returned this early data.
    Taken(Vec<u8>),
    /// Needs nothing: the handshake is complete.
    Nothing,
}

impl Session {
    /// Starts a session for a connection that a client has opened.
    pub fn server(config: &Arc<ServerConfig>) -> Result<Self, TlsError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(config));
        connection.map(|it| Self::begin(Connection::Server(it))).map_err(TlsError::Handshake)
    }

    /// Starts a session with a server of this name. [`Self::step`] without input returns the first message.
    pub fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name);
        connection.map(|it| Self::begin(Connection::Client(it))).map_err(TlsError::Handshake)
    }

    fn begin(connection: Connection) -> Self {
        let state =
            State::Handshake(Handshake { connection, seen_bytes: 0, is_early: false, early: None });
        Self { state, waiting: Vec::new(), established: None, required: None }
    }

    /// Requires that the peer selects this protocol. Otherwise the handshake fails, and no data is sent.
    #[must_use]
    pub fn requiring(mut self, protocol: Protocol) -> Self {
        self.required = Some(protocol);
        self
    }

    /// Whether the handshake is in progress, and no data can be sent yet.
    pub fn is_handshaking(&self) -> bool {
        matches!(&self.state, State::Handshake(handshake) if !handshake.is_early)
    }

    /// Removes and returns the results of the handshake.
    pub fn established(&mut self) -> Option<Box<HandshakeResult>> {
        self.established.take()
    }

    /// The number of plaintext bytes that wait for the end of the handshake.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Processes `input[*consumed..]`, the peer's bytes in order, and advances `consumed` beyond the processed part. Output
    /// is appended to `out`. The caller must repeat the call until it returns [`Step::More`] or [`Step::Failed`], and must
    /// pass the unconsumed rest again, before later bytes.
    pub fn step(&mut self, input: &mut [u8], consumed: &mut usize, out: &mut RecordBuffer) -> Step {
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

    /// Handles early data: first returns the results of the handshake, then the data.
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

    /// Handles the end of the handshake.
    fn open(&mut self, out: &mut RecordBuffer) -> Result<Step, TlsError> {
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

    /// Encrypts the concatenation of `parts` into `out`. Until the handshake is complete, it is stored instead.
    pub fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut RecordBuffer) -> Result<(), TlsError> {
        match &mut self.state {
            // Later data must not overtake stored data, which is sent at the end of the handshake.
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

    /// Removes and returns the data that waits for the end of the handshake.
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

    /// Sends close_notify.
    pub fn close(&mut self, out: &mut RecordBuffer) {
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
    /// Passes complete records to rustls, one at a time.
    fn step(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut RecordBuffer,
    ) -> Result<Progress, TlsError> {
        while self.early.is_none() {
            match self.advance(input, consumed, out) {
                Ok(HandshakeStep::Nothing) => return Ok(Progress::Done),
                Ok(HandshakeStep::Again) => {}
                Ok(HandshakeStep::Taken(data)) => {
                    self.take_early(&data, &mut input[*consumed..])?
                }
                Ok(HandshakeStep::Record) => {
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
                    // rustls still has to write its output, which ends with the alert. It must not be called without output
                    // to write, because it would process the refused input again.
                    while self.wants_write()
                        && matches!(self.advance(input, consumed, out), Ok(HandshakeStep::Again))
                    {
                    }
                    return Err(TlsError::Handshake(error));
                }
            }
        }
        Ok(Progress::Early)
    }

    /// Copies early data to its record in the input, which is the last record that rustls was passed.
    fn take_early(&mut self, data: &[u8], record: &mut [u8]) -> Result<(), TlsError> {
        let bytes = std::mem::take(&mut self.seen_bytes);
        let place = record.get_mut(..bytes).and_then(|all| all.get_mut(HEADER_BYTES..));
        let place = place.and_then(|text| text.get_mut(..data.len()));
        let place = place.ok_or(TlsError::Internal("early data without its record"))?;
        place.copy_from_slice(data);
        self.early = Some(EarlyRecord { bytes, data_bytes: data.len() });
        Ok(())
    }

    /// Whether rustls can encrypt data now. It cannot if the input contains a part of a message, which must be passed to it
    /// again first.
    fn may_send(&self) -> bool {
        self.is_early && self.seen_bytes == 0
    }

    /// See [`Session::seal`]. This is used before the handshake is complete, which is rare, and copies the data.
    fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut RecordBuffer) -> Result<(), TlsError> {
        let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        let records = whole.len().div_ceil(PLAINTEXT_BYTES_MAX);
        let bytes = whole.len() + records * OVERHEAD_BYTES_MAX;
        let exhausted = TlsError::Internal("a key that has protected all it may");
        let sealed = self.write(|traffic| traffic.encrypt(&whole, out.room(bytes)).ok());
        out.filled(sealed.ok_or(exhausted)?);
        Ok(())
    }

    fn close(&mut self, out: &mut RecordBuffer) {
        let sealed = self.write(|it| it.queue_close_notify(out.room(OVERHEAD_BYTES_MAX + 2)).ok());
        out.filled(sealed.unwrap_or(0));
    }

    /// Encrypts with rustls. It must have no unprocessed input and no pending output.
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

    /// Passes rustls the bytes that it has seen and not discarded. It requires them in each call, because it has recorded
    /// the positions of message parts in them.
    fn advance(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut RecordBuffer,
    ) -> Result<HandshakeStep, rustls::Error> {
        let seen = &mut input[*consumed..][..self.seen_bytes];
        let (discard, wants) = match &mut self.connection {
            Connection::Server(it) => advance(it.process_tls_records(seen), early_data, out),
            // Clients send early data, but never receive any.
            Connection::Client(it) => advance(it.process_tls_records(seen), |_| Vec::new(), out),
        };
        if matches!(wants, Ok(HandshakeStep::Taken(_))) {
            // The data is copied to its record, which must not be discarded yet.
            return wants;
        }
        *consumed += discard;
        self.seen_bytes -= discard;
        match wants {
            // Data may be sent before the client's Finished has arrived.
            Ok(HandshakeStep::Nothing) if self.is_handshaking() => Ok(HandshakeStep::Record),
            other => other,
        }
    }

    fn is_handshaking(&self) -> bool {
        match &self.connection {
            Connection::Server(it) => it.is_handshaking(),
            Connection::Client(it) => it.is_handshaking(),
        }
    }

    fn established(&self) -> Result<HandshakeResult, TlsError> {
        match &self.connection {
            Connection::Server(it) => established(it),
            Connection::Client(it) => established(it),
        }
    }

    /// Whether `seen`, which rustls has not discarded, is a record of rejected early data. If it stayed in the input, rustls
    /// would process and count it again with each further record.
    ///
    /// aws-lc zeroes records that it cannot decrypt. A decrypted record is never all zero, because it contains its type.
    fn was_dropped(&self, seen: &[u8]) -> bool {
        let RecordStart::Header(header) = read_header(seen, EXPANSION_BYTES_MAX_12) else {
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

    /// Rejects a record of unknown type (RFC 8446 section 5). rustls would wait for the complete record, and send another
    /// alert. Instead, it is passed bytes after the seen ones that are invalid in every state.
    fn refuse_unknown_type(&mut self, seen: &[u8], out: &mut RecordBuffer) -> TlsError {
        let misplaced: [u8; 6] = match self.version() {
            // No version is negotiated, so the alert is not encrypted.
            None => {
                out.append(&Alert::UnexpectedMessage.record());
                return TlsError::PeerMisbehaved("a record of unknown type");
            }
            // A ChangeCipherSpec with an invalid value (RFC 8446 section 5).
            Some(ProtocolVersion::TLSv1_3) => [20, 3, 3, 0, 1, 0],
            Some(_) => [23, 3, 3, 0, 1, 0],
        };
        let mut shown = [seen, &misplaced].concat();
        self.seen_bytes = shown.len();
        // The first call returns the error, the second call the alert.
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

    /// Takes the keys from rustls, and ends the handshake.
    fn finish(self) -> Result<(Open, HandshakeResult), TlsError> {
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
) -> Result<HandshakeResult, TlsError> {
    let unfinished = TlsError::Internal("a handshake that is not done");
    let (Some(version), Some(suite)) =
        (connection.protocol_version(), connection.negotiated_cipher_suite())
    else {
        return Err(unfinished);
    };
    let certificates = connection.peer_certificates().unwrap_or_default();
    Ok(HandshakeResult {
        version,
        suite,
        alpn: connection.alpn_protocol().map(Box::from),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        is_early: false,
        peer_certificates: certificates.iter().map(|it| it.clone().into_owned()).collect(),
    })
}

/// Performs the step that rustls requires. Returns the number of processed bytes, and the next step.
fn advance<D>(
    status: UnbufferedStatus<'_, '_, D>,
    take: impl FnOnce(ReadEarlyData<'_, '_, D>) -> Vec<u8>,
    out: &mut RecordBuffer,
) -> (usize, Result<HandshakeStep, rustls::Error>) {
    let wants = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            // With an empty buffer, the call returns the required size.
            let bytes = match data.encode(&mut []) {
                Err(EncodeError::InsufficientSize(size)) => size.required_size,
                Ok(_) | Err(EncodeError::AlreadyEncoded) => 0,
            };
            let encoded = data.encode(out.room(bytes)).unwrap_or(0);
            out.filled(encoded);
            Ok(HandshakeStep::Again)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(HandshakeStep::Again)
        }
        Ok(ConnectionState::ReadEarlyData(early)) => Ok(HandshakeStep::Taken(take(early))),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(HandshakeStep::Nothing),
        Ok(ConnectionState::BlockedHandshake) => Ok(HandshakeStep::Record),
        Ok(_) => Err(rustls::Error::General("the handshake ended before it was done".into())),
        Err(error) => Err(error),
    };
    (status.discard, wants)
}

/// The contents of a record of early data.
fn early_data(mut early: ReadEarlyData<'_, '_, ServerConnectionData>) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some(Ok(record)) = early.next_record() {
        data.extend_from_slice(record.payload);
    }
    data
}

/// The length of the first record, if it is complete. Of an invalid record, the header is passed to rustls, so that rustls
/// reports the error.
fn next_record(input: &[u8]) -> Option<usize> {
    match read_header(input, EXPANSION_BYTES_MAX_12) {
        RecordStart::Header(header) => {
            let bytes = HEADER_BYTES + header.length;
            (input.len() >= bytes).then_some(bytes)
        }
        RecordStart::Partial => None,
        RecordStart::Malformed | RecordStart::TooLong => {
            Some(input.len().min(HEADER_BYTES)).filter(|&all| all == HEADER_BYTES)
        }
    }
}
