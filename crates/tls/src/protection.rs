//! Encryption and decryption of records in place.
//!
//! After the handshake, each direction of a connection has a key and a sequence number. The keys come from
//! [`rustls::ConnectionTrafficSecrets`]. The algorithms are those of rustls, but need no copy and no allocation: a record is
//! decrypted in its receive buffer, and encrypted from the plaintext's buffer into the send buffer.
//!
//! | | TLS 1.2 (RFC 5288, RFC 7905) | TLS 1.3 (RFC 8446 section 5) |
//! |---|---|---|
//! | nonce, AES-GCM | 4 bytes of the key block, 8 bytes in the record | static 12 bytes xor sequence number |
//! | nonce, ChaCha20-Poly1305 | static 12 bytes xor sequence number | the same |
//! | additional data | sequence number, type, version, length | the header of the record |
//! | type | in the header | the last byte of the plaintext that is not 0 |

use std::fmt;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use rustls::ConnectionTrafficSecrets;

use crate::record::{ContentType, HEADER_BYTES, LEGACY_VERSION, PLAINTEXT_BYTES_MAX};

/// Size of the tag of the supported AEAD algorithms, in bytes.
pub const TAG_BYTES: usize = 16;
/// Size of the nonce in a TLS 1.2 record with AES-GCM, in bytes.
const EXPLICIT_NONCE_BYTES: usize = 8;
/// Maximum number of bytes that a record needs in addition to its plaintext.
pub const OVERHEAD_BYTES_MAX: usize = HEADER_BYTES + EXPLICIT_NONCE_BYTES + TAG_BYTES;
/// Maximum number of records per AES-GCM key. RFC 8446 section 5.5 permits 2^24.5 records of maximum size.
const GCM_RECORDS_MAX: u64 = 1 << 24;

/// The protection of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// TLS 1.2 with AES-GCM.
    Gcm12,
    /// TLS 1.2 with ChaCha20-Poly1305.
    ChaCha12,
    /// TLS 1.3 with AES-GCM.
    Gcm13,
    /// TLS 1.3 with ChaCha20-Poly1305.
    ChaCha13,
}

impl Scheme {
    fn is_13(self) -> bool {
        matches!(self, Self::Gcm13 | Self::ChaCha13)
    }

    /// Number of bytes between the header and the encrypted part.
    fn explicit_bytes(self) -> usize {
        if self == Self::Gcm12 { EXPLICIT_NONCE_BYTES } else { 0 }
    }

    /// Number of bytes of the content type within the encrypted part.
    fn type_bytes(self) -> usize {
        usize::from(self.is_13())
    }

    /// Maximum number of records per key.
    fn records_max(self) -> u64 {
        match self {
            Self::Gcm12 | Self::Gcm13 => GCM_RECORDS_MAX,
            // No limit (RFC 8446 section 5.5).
            Self::ChaCha12 | Self::ChaCha13 => u64::MAX,
        }
    }
}

/// The key and the sequence number of one direction.
struct Protection {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    scheme: Scheme,
    sequence: u64,
}

/// An error: the keys of a handshake are of an unsupported kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownSecrets;

impl Protection {
    fn new(
        secrets: ConnectionTrafficSecrets,
        sequence: u64,
        is_13: bool,
    ) -> Result<Self, UnknownSecrets> {
        let (algorithm, key, iv, is_gcm): (&'static Algorithm, _, _, _) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv, true),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv, true),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&CHACHA20_POLY1305, key, iv, false)
            }
            _ => return Err(UnknownSecrets),
        };
        let unbound = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| UnknownSecrets)?;
        let iv: [u8; NONCE_LEN] = iv.as_ref().try_into().map_err(|_| UnknownSecrets)?;
        let scheme = match (is_13, is_gcm) {
            (false, true) => Scheme::Gcm12,
            (false, false) => Scheme::ChaCha12,
            (true, true) => Scheme::Gcm13,
            (true, false) => Scheme::ChaCha13,
        };
        Ok(Self { key: LessSafeKey::new(unbound), iv, scheme, sequence })
    }

    /// The static bytes, xor the sequence number.
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// The additional data of a TLS 1.2 record.
    fn data_12(&self, content: ContentType, plaintext_bytes: usize) -> [u8; 13] {
        let mut data = [0; 13];
        data[..8].copy_from_slice(&self.sequence.to_be_bytes());
        data[8] = content.number();
        data[9..11].copy_from_slice(&LEGACY_VERSION);
        data[11..].copy_from_slice(&(plaintext_bytes as u16).to_be_bytes());
        data
    }
}

impl fmt::Debug for Protection {
    /// Does not write the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection")
            .field("scheme", &self.scheme)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// Decrypts the records of one direction.
#[derive(Debug)]
pub struct Opener(Protection);

/// The reason why a record cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The record was encrypted with another key, or changed in transit.
    Forged,
    /// The plaintext exceeds the maximum size.
    TooLong,
    /// The plaintext has no content type: only padding.
    Empty,
    /// The content type is unknown.
    UnknownType,
}

/// A decrypted record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecryptedRecord {
    /// The content type.
    pub content: ContentType,
    /// The index of the first plaintext byte in the record.
    pub start: usize,
    /// The index after the last plaintext byte.
    pub end: usize,
}

impl Opener {
    /// A decryptor with these secrets. `sequence`: the number of the first record.
    pub fn new(
        secrets: ConnectionTrafficSecrets,
        sequence: u64,
        is_13: bool,
    ) -> Result<Self, UnknownSecrets> {
        Protection::new(secrets, sequence, is_13).map(Self)
    }

    /// Decrypts a complete record in place. `record` includes the header, and `content` is the type in it.
    pub fn open(
        &mut self,
        content: ContentType,
        record: &mut [u8],
    ) -> Result<DecryptedRecord, OpenError> {
        let Self(protection) = self;
        let scheme = protection.scheme;
        let start = HEADER_BYTES + scheme.explicit_bytes();
        let Some(sealed_bytes) = record.len().checked_sub(start).filter(|&all| all >= TAG_BYTES)
        else {
            return Err(OpenError::Forged);
        };
        let (header, sealed) = record.split_at_mut(start);
        let opened = if scheme.is_13() {
            let nonce = Nonce::assume_unique_for_key(protection.nonce());
            protection.key.open_in_place(nonce, Aad::from(&header[..HEADER_BYTES]), sealed)
        } else {
            let mut nonce = protection.nonce();
            if scheme == Scheme::Gcm12 {
                nonce[..4].copy_from_slice(&protection.iv[..4]);
                nonce[4..].copy_from_slice(&header[HEADER_BYTES..]);
            }
            let data = protection.data_12(content, sealed_bytes - TAG_BYTES);
            let nonce = Nonce::assume_unique_for_key(nonce);
            protection.key.open_in_place(nonce, Aad::from(data), sealed)
        };
        let plaintext = opened.map_err(|_| OpenError::Forged)?;
        protection.sequence += 1;
        if plaintext.len() > PLAINTEXT_BYTES_MAX + scheme.type_bytes() {
            return Err(OpenError::TooLong);
        }
        let (content, length) = match scheme.is_13() {
            false => (content, plaintext.len()),
            true => {
                let last = plaintext.iter().rposition(|&byte| byte != 0).ok_or(OpenError::Empty)?;
                (ContentType::of(plaintext[last]).ok_or(OpenError::UnknownType)?, last)
            }
        };
        Ok(DecryptedRecord { content, start, end: start + length })
    }
}

/// Encrypts the records of one direction.
#[derive(Debug)]
pub struct Sealer(Protection);

/// An error: the key has reached its maximum number of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyExhausted;

impl Sealer {
    /// An encryptor with these secrets. `sequence`: the number of the first record.
    pub fn new(
        secrets: ConnectionTrafficSecrets,
        sequence: u64,
        is_13: bool,
    ) -> Result<Self, UnknownSecrets> {
        Protection::new(secrets, sequence, is_13).map(Self)
    }

    /// The number of records that the key may still protect.
    pub fn records_left(&self) -> u64 {
        self.0.scheme.records_max().saturating_sub(self.0.sequence)
    }

    /// Size of a record with this much plaintext, in bytes.
    pub fn record_bytes(&self, plaintext_bytes: usize) -> usize {
        let scheme = self.0.scheme;
        HEADER_BYTES + scheme.explicit_bytes() + plaintext_bytes + scheme.type_bytes() + TAG_BYTES
    }

    /// Encrypts the concatenation of `parts` as one record at the start of `out`. Returns its length,
    /// [`record_bytes`](Self::record_bytes).
    ///
    /// The plaintext has at most [`PLAINTEXT_BYTES_MAX`] bytes, and `out` has enough space for the record.
    pub fn seal(
        &mut self,
        content: ContentType,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<usize, KeyExhausted> {
        let plaintext_bytes: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(plaintext_bytes <= PLAINTEXT_BYTES_MAX, "it is for the caller to divide");
        if self.records_left() == 0 {
            return Err(KeyExhausted);
        }
        let record_bytes = self.record_bytes(plaintext_bytes);
        let Self(protection) = self;
        let scheme = protection.scheme;
        let record = &mut out[..record_bytes];
        let start = HEADER_BYTES + scheme.explicit_bytes();
        let nonce = protection.nonce();
        let outer = if scheme.is_13() { ContentType::ApplicationData } else { content };
        record[0] = outer.number();
        record[1..3].copy_from_slice(&LEGACY_VERSION);
        record[3..HEADER_BYTES]
            .copy_from_slice(&((record_bytes - HEADER_BYTES) as u16).to_be_bytes());
        if scheme == Scheme::Gcm12 {
            record[HEADER_BYTES..start].copy_from_slice(&nonce[4..]);
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (header, sealed) = record.split_at_mut(start);
        let (text, tail) = sealed.split_at_mut(plaintext_bytes);
        let inner = [content.number()];
        let inner = &inner[..scheme.type_bytes()];
        let done = if scheme.is_13() {
            let data = Aad::from(&header[..HEADER_BYTES]);
            seal_parts(&protection.key, nonce, data, parts, text, inner, tail)
        } else {
            let data = Aad::from(protection.data_12(content, plaintext_bytes));
            seal_parts(&protection.key, nonce, data, parts, text, inner, tail)
        };
        protection.sequence += 1;
        // Only wrong lengths cause an error, and these are correct.
        done.map(|()| record_bytes).map_err(|_| KeyExhausted)
    }
}

/// Encrypts `parts` into `text`, and `inner` and the tag into `tail`. A single part is not copied first.
fn seal_parts(
    key: &LessSafeKey,
    nonce: Nonce,
    data: Aad<impl AsRef<[u8]>>,
    parts: &[&[u8]],
    text: &mut [u8],
    inner: &[u8],
    tail: &mut [u8],
) -> Result<(), aws_lc_rs::error::Unspecified> {
    if let [whole] = parts {
        return key.seal_out_of_place_scatter(nonce, data, whole, text, inner, tail);
    }
    let mut at = 0;
    for part in parts {
        text[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    key.seal_in_place_scatter(nonce, data, text, inner, tail)
}
