//! Errors of TLS.

use std::fmt;

use rustls::Error;

use crate::protocol::Protocol;
use crate::record::{ContentType, HEADER_BYTES, LEGACY_VERSION};
use crate::words::{alert, explain};

/// Size of an unprotected alert in bytes.
const ALERT_RECORD_BYTES: usize = HEADER_BYTES + 2;

/// The reason why TLS failed on a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum TlsError {
    /// The peer violated the protocol.
    PeerMisbehaved(&'static str),
    /// The peer ended the connection with an alert, which has this number.
    Alert(u8),
    /// The handshake failed, with this error of rustls.
    Handshake(Error),
    /// A record failed authentication: it was changed in transit, or encrypted with another key.
    Forged,
    /// The server did not select the required protocol (RFC 7301).
    NotAgreed(Protocol),
    /// An error in weir.
    Internal(&'static str),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerMisbehaved(what) => f.write_str(what),
            Self::Alert(number) => f.write_str(&alert(*number)),
            Self::Handshake(error) => f.write_str(&explain(error)),
            Self::Forged => f.write_str("a record was changed in transit, or its key differs"),
            Self::NotAgreed(protocol) => write!(f, "it does not agree to {protocol} (ALPN)"),
            Self::Internal(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for TlsError {}

/// The alerts that weir sends itself (RFC 8446 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alert {
    /// The sender sends no more data.
    CloseNotify,
    /// A message arrived in the wrong state.
    UnexpectedMessage,
    /// A record cannot be decrypted.
    BadRecordMac,
    /// A record is too long.
    RecordOverflow,
    /// A message cannot be read.
    DecodeError,
    /// A field has an invalid value.
    IllegalParameter,
    /// The version is not supported.
    ProtocolVersion,
    /// The requested name is unknown (RFC 6066 section 3).
    UnrecognizedName,
    /// TLS 1.2: renegotiation is refused (RFC 5246 section 7.2.2). A warning.
    NoRenegotiation,
}

impl Alert {
    /// The level and the number.
    pub fn bytes(self) -> [u8; 2] {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        match self {
            Self::CloseNotify => [WARNING, 0],
            Self::UnexpectedMessage => [FATAL, 10],
            Self::BadRecordMac => [FATAL, 20],
            Self::RecordOverflow => [FATAL, 22],
            Self::DecodeError => [FATAL, 50],
            Self::IllegalParameter => [FATAL, 47],
            Self::ProtocolVersion => [FATAL, 70],
            Self::NoRenegotiation => [WARNING, 100],
            Self::UnrecognizedName => [FATAL, 112],
        }
    }

    /// The alert as an unprotected record, for use before keys are negotiated.
    pub fn record(self) -> [u8; ALERT_RECORD_BYTES] {
        let [level, number] = self.bytes();
        let [major, minor] = LEGACY_VERSION;
        [ContentType::Alert.number(), major, minor, 0, 2, level, number]
    }
}
