//! A connection after its handshake: data in both directions, key updates, and closing.
//!
//! | record | TLS 1.2 | TLS 1.3 |
//! |---|---|---|
//! | application data | data | data |
//! | close_notify | end of data | end of data |
//! | another alert | warnings are ignored, up to a limit; others are errors | user_canceled is ignored; others are errors |
//! | KeyUpdate | an error | updates the key for receiving, and on request the key for sending |
//! | NewSessionTicket | an error | stored by a client; an error for a server |
//! | HelloRequest, ClientHello | refused with a warning (RFC 5746), up to a limit | an error |
//! | anything else | an error | an error |

use std::io::IoSlice;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;

use crate::error::{Alert, TlsError};
use crate::protection::{OpenError, Opener, Sealer};
use crate::record::{
    ContentType, EXPANSION_BYTES_MAX_12, EXPANSION_BYTES_MAX_13, HEADER_BYTES, PLAINTEXT_BYTES_MAX,
    RecordStart, read_header,
};
use crate::record_buffer::RecordBuffer;
use crate::step::Step;

/// Maximum number of records without data between two records with data. No peer needs more.
const IDLE_RECORDS_MAX: u8 = 32;
/// Maximum number of requests for renegotiation that are refused (TLS 1.2). The next one ends the connection.
const REFUSALS_MAX: u8 = 8;
/// Maximum size of a message after the handshake in bytes. It is sufficient for any ticket.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// A TLS 1.3 key is updated when it may protect fewer records than this: the records of one response.
const RENEW_RECORDS_LEFT: u64 = 1 << 12;

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
const MESSAGE_HEADER_BYTES: usize = 4;

/// The state of rustls that is needed after the handshake.
pub(crate) enum Kernel {
    Server(KernelConnection<ServerConnectionData>),
    Client(KernelConnection<ClientConnectionData>),
}

/// A connection after its handshake.
pub struct Open {
    opener: Opener,
    sealer: Sealer,
    kernel: Kernel,
    is_13: bool,
    /// The received part of a message that arrives in several records.
    message: Vec<u8>,
    /// The number of records without data since the last record with data.
    idle_records: u8,
    /// The number of requests for renegotiation.
    refusals: u8,
    /// Whether the peer has sent close_notify.
    has_ended: bool,
    /// Whether no more data may be sent.
    is_closed: bool,
}

impl Open {
    pub fn new(opener: Opener, sealer: Sealer, kernel: Kernel, is_13: bool) -> Self {
        Self {
            opener,
            sealer,
            kernel,
            is_13,
            message: Vec::new(),
            idle_records: 0,
            refusals: 0,
            has_ended: false,
            is_closed: false,
        }
    }

    /// See [`crate::session::Session::step`].
    pub fn step(
        &mut self,
        input: &mut [u8],
        consumed: &mut usize,
        out: &mut RecordBuffer,
    ) -> Result<Step, TlsError> {
        while !self.has_ended {
            let at = *consumed;
            let Some((content, bytes)) = self.next_record(&input[at..], out)? else {
                return Ok(Step::More);
            };
            *consumed = at + bytes;
            let record = &mut input[at..at + bytes];
            let opened = match self.opener.open(content, record) {
                Ok(opened) => opened,
                Err(error) => return Err(self.refuse_record(error, out)),
            };
            let plaintext = &record[opened.start..opened.end];
            if opened.content == ContentType::ApplicationData && !plaintext.is_empty() {
                if !self.message.is_empty() {
                    return Err(self.misbehaved("data within a message", out));
                }
                self.idle_records = 0;
                return Ok(Step::Data { start: at + opened.start, end: at + opened.end });
            }
            self.idle_records += 1;
            if self.idle_records > IDLE_RECORDS_MAX {
                return Err(self.misbehaved("too many records without data", out));
            }
            match opened.content {
                ContentType::ApplicationData => {}
                ContentType::Alert => {
                    if self.is_end(plaintext, out)? {
                        self.has_ended = true;
                        return Ok(Step::Ended);
                    }
                }
                ContentType::Handshake => self.handshake(plaintext, out)?,
                ContentType::ChangeCipherSpec => {
                    return Err(self.misbehaved("ChangeCipherSpec after the handshake", out));
                }
            }
        }
        // Data after close_notify is ignored (RFC 8446 section 6.1).
        *consumed = input.len();
        Ok(Step::More)
    }

    /// The type and the length of the next record, if it is complete.
    fn next_record(
        &mut self,
        input: &[u8],
        out: &mut RecordBuffer,
    ) -> Result<Option<(ContentType, usize)>, TlsError> {
        let expansion = if self.is_13 { EXPANSION_BYTES_MAX_13 } else { EXPANSION_BYTES_MAX_12 };
        let header = match read_header(input, expansion) {
            RecordStart::Header(header) => header,
            RecordStart::Partial => return Ok(None),
            RecordStart::Malformed => return Err(self.misbehaved("not a record of TLS", out)),
            RecordStart::TooLong => {
                self.alert(Alert::RecordOverflow, out);
                return Err(TlsError::PeerMisbehaved("a record that is too long"));
            }
        };
        // In TLS 1.3, protected records have this type (RFC 8446 section 5.2).
        if self.is_13 && header.content != ContentType::ApplicationData {
            return Err(self.misbehaved("a record that is not protected", out));
        }
        let bytes = HEADER_BYTES + header.length;
        Ok((input.len() >= bytes).then_some((header.content, bytes)))
    }

    fn refuse_record(&mut self, error: OpenError, out: &mut RecordBuffer) -> TlsError {
        let (alert, error) = match error {
            OpenError::Forged => (Alert::BadRecordMac, TlsError::Forged),
            OpenError::TooLong => {
                (Alert::RecordOverflow, TlsError::PeerMisbehaved("a record that is too long"))
            }
            OpenError::Empty => {
                (Alert::UnexpectedMessage, TlsError::PeerMisbehaved("a record without a type"))
            }
            OpenError::UnknownType => {
                (Alert::UnexpectedMessage, TlsError::PeerMisbehaved("a record of unknown type"))
            }
        };
        self.alert(alert, out);
        error
    }

    /// Handles a received alert. Returns whether it is close_notify.
    fn is_end(&mut self, alert: &[u8], out: &mut RecordBuffer) -> Result<bool, TlsError> {
        const WARNING: u8 = 1;
        const CLOSE_NOTIFY: u8 = 0;
        const USER_CANCELED: u8 = 90;
        let [level, number] = *alert else {
            self.alert(Alert::DecodeError, out);
            return Err(TlsError::PeerMisbehaved("an alert that cannot be read"));
        };
        match number {
            CLOSE_NOTIFY => Ok(true),
            // This alert precedes close_notify (RFC 8446 section 6.1).
            USER_CANCELED if self.is_13 => Ok(false),
            _ if !self.is_13 && level == WARNING => Ok(false),
            _ => Err(TlsError::Alert(number)),
        }
    }

    /// Handles received bytes of handshake messages.
    fn handshake(&mut self, bytes: &[u8], out: &mut RecordBuffer) -> Result<(), TlsError> {
        if bytes.is_empty() {
            return Err(self.misbehaved("an empty record of the handshake", out));
        }
        self.message.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.message);
        let mut rest = &all[..];
        while let Some((header, behind)) = rest.split_at_checked(MESSAGE_HEADER_BYTES) {
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            if length > MESSAGE_BYTES_MAX {
                self.alert(Alert::IllegalParameter, out);
                return Err(TlsError::PeerMisbehaved("a message that is too long"));
            }
            let Some((body, behind)) = behind.split_at_checked(length) else { break };
            self.handshake_message(header[0], body, behind.is_empty(), out)?;
            rest = behind;
        }
        self.message = rest.to_vec();
        Ok(())
    }

    fn handshake_message(
        &mut self,
        kind: u8,
        body: &[u8],
        ends_record: bool,
        out: &mut RecordBuffer,
    ) -> Result<(), TlsError> {
        match (kind, &mut self.kernel) {
            (KEY_UPDATE, _) if self.is_13 => self.update_keys(body, ends_record, out),
            (NEW_SESSION_TICKET, Kernel::Client(kernel)) if self.is_13 => {
                kernel.handle_new_session_ticket(body).map_err(|error| {
                    self.alert(Alert::DecodeError, out);
                    TlsError::Handshake(error)
                })
            }
            (CLIENT_HELLO, Kernel::Server(_)) | (HELLO_REQUEST, Kernel::Client(_))
                if !self.is_13 =>
            {
                self.refusals += 1;
                if self.refusals > REFUSALS_MAX {
                    return Err(self.misbehaved("it keeps asking for another handshake", out));
                }
                self.alert(Alert::NoRenegotiation, out);
                Ok(())
            }
            _ => Err(self.misbehaved("a message of the handshake after its end", out)),
        }
    }

    /// Handles a KeyUpdate: the peer's next record has another key (RFC 8446 section 4.6.3).
    fn update_keys(
        &mut self,
        body: &[u8],
        ends_record: bool,
        out: &mut RecordBuffer,
    ) -> Result<(), TlsError> {
        const NOT_REQUESTED: &[u8] = &[0];
        const REQUESTED: &[u8] = &[1];
        if !ends_record {
            // A message before a change of keys must end its record (RFC 8446 section 5.1).
            return Err(self.misbehaved("KeyUpdate within a record", out));
        }
        let is_requested = match body {
            NOT_REQUESTED => false,
            REQUESTED => true,
            &[_] => {
                self.alert(Alert::IllegalParameter, out);
                return Err(TlsError::PeerMisbehaved("KeyUpdate with an unknown request"));
            }
            _ => {
                self.alert(Alert::DecodeError, out);
                return Err(TlsError::PeerMisbehaved("KeyUpdate that cannot be read"));
            }
        };
        let renewed = match &mut self.kernel {
            Kernel::Server(kernel) => kernel.update_rx_secret(),
            Kernel::Client(kernel) => kernel.update_rx_secret(),
        };
        let (sequence, secrets) = renewed.map_err(TlsError::Handshake)?;
        self.opener = Opener::new(secrets, sequence, true).map_err(|_| unknown_suite())?;
        if is_requested && !self.is_closed {
            self.renew(out)?;
        }
        Ok(())
    }

    /// Sends a KeyUpdate, and changes to the next key for sending.
    fn renew(&mut self, out: &mut RecordBuffer) -> Result<(), TlsError> {
        self.seal_record(ContentType::Handshake, &[&[KEY_UPDATE, 0, 0, 1, 0]], out)?;
        let renewed = match &mut self.kernel {
            Kernel::Server(kernel) => kernel.update_tx_secret(),
            Kernel::Client(kernel) => kernel.update_tx_secret(),
        };
        let (sequence, secrets) = renewed.map_err(TlsError::Handshake)?;
        self.sealer = Sealer::new(secrets, sequence, true).map_err(|_| unknown_suite())?;
        Ok(())
    }

    /// Encrypts the concatenation of `parts`, in records of maximum size.
    pub fn seal(&mut self, parts: &[IoSlice<'_>], out: &mut RecordBuffer) -> Result<(), TlsError> {
        if self.is_closed {
            return Ok(());
        }
        // Maximum number of parts per record. A part is, for example, a head, a chunk size, data, or the end of a chunk.
        const PARTS_MAX: usize = 20;
        let mut record: [&[u8]; PARTS_MAX] = [&[]; PARTS_MAX];
        let (mut count, mut room) = (0, PLAINTEXT_BYTES_MAX);
        for part in parts {
            let mut part: &[u8] = part;
            while !part.is_empty() {
                let (now, later) = part.split_at(part.len().min(room));
                record[count] = now;
                (count, room, part) = (count + 1, room - now.len(), later);
                if room == 0 || count == PARTS_MAX {
                    self.seal_record(ContentType::ApplicationData, &record[..count], out)?;
                    (count, room) = (0, PLAINTEXT_BYTES_MAX);
                }
            }
        }
        if count > 0 {
            self.seal_record(ContentType::ApplicationData, &record[..count], out)?;
        }
        if self.is_13 && self.sealer.records_left() < RENEW_RECORDS_LEFT {
            self.renew(out)?;
        }
        Ok(())
    }

    fn seal_record(
        &mut self,
        content: ContentType,
        parts: &[&[u8]],
        out: &mut RecordBuffer,
    ) -> Result<(), TlsError> {
        let plaintext_bytes = parts.iter().map(|part| part.len()).sum();
        let bytes = self.sealer.record_bytes(plaintext_bytes);
        let sealed = self.sealer.seal(content, parts, out.room(bytes));
        out.filled(sealed.map_err(|_| TlsError::Internal("a key that has protected all it may"))?);
        Ok(())
    }

    /// Sends close_notify.
    pub fn close(&mut self, out: &mut RecordBuffer) {
        self.alert(Alert::CloseNotify, out);
    }

    fn misbehaved(&mut self, what: &'static str, out: &mut RecordBuffer) -> TlsError {
        self.alert(Alert::UnexpectedMessage, out);
        TlsError::PeerMisbehaved(what)
    }

    /// Sends an alert. After it, nothing more is sent, except after a warning.
    fn alert(&mut self, alert: Alert, out: &mut RecordBuffer) {
        if self.is_closed {
            return;
        }
        self.is_closed = alert != Alert::NoRenegotiation;
        // If no further record can be encrypted, the peer only receives the end of the connection.
        let _ = self.seal_record(ContentType::Alert, &[&alert.bytes()], out);
    }
}

fn unknown_suite() -> TlsError {
    TlsError::Internal("a cipher suite that only rustls knows")
}

#[cfg(test)]
mod tests;
