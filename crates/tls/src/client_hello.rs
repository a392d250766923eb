//! Reads a ClientHello before the handshake: the requested server name and the offered protocols.
//!
//! They select the certificate and the settings of the handshake, or the pool of a connection that is not decrypted. Only
//! these parts are read; the handshake validates the rest. Sources: RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3, RFC
//! 7301 section 3.1.

use rustls::pki_types::ServerName;

use crate::error::Alert;
use crate::record::{ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, RecordStart, read_header};

/// Maximum size of a ClientHello in bytes. With post-quantum key shares, typical ones have 2 KiB.
pub const CLIENT_HELLO_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of records in which a ClientHello may arrive.
pub const CLIENT_HELLO_RECORDS_MAX: usize = 64;
/// Maximum number of bytes needed for a result: a complete ClientHello, and one more record.
pub const COLLECTED_BYTES_MAX: usize =
    CLIENT_HELLO_BYTES_MAX + CLIENT_HELLO_RECORDS_MAX * HEADER_BYTES + PLAINTEXT_BYTES_MAX;
/// Maximum length of a name (RFC 1035 section 2.3.4, as text).
pub const SERVER_NAME_BYTES_MAX: usize = 253;

const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const EARLY_DATA: u16 = 42;
const HOST_NAME: u8 = 0;
const TLS_12: [u8; 2] = [3, 3];
const TLS_13: [u8; 2] = [3, 4];
/// The header of a handshake message: type and length.
const MESSAGE_HEADER_BYTES: usize = 4;

/// The contents of a ClientHello.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The requested name, in lower case and without a port; empty: absent or invalid.
    pub server_name: String,
    /// The form of the name.
    pub name_form: NameForm,
    /// The offered protocols, as encoded in the extension.
    pub alpn: Vec<u8>,
    /// Whether the client offers TLS 1.3.
    pub offers_13: bool,
    /// Whether early data follows (0-RTT).
    pub has_early_data: bool,
    /// Whether the client supports no version above TLS 1.1.
    pub is_old: bool,
}

impl ClientHello {
    /// The offered protocols.
    pub fn protocols(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Reader(&self.alpn);
        std::iter::from_fn(move || rest.vector_8())
    }
}

/// The form in which a client sends a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameForm {
    /// The client requests no name.
    #[default]
    Absent,
    /// A valid name (RFC 6066); or an IP address, which the handshake treats as absent.
    Sound,
    /// An invalid form, for example with a port. The name can select the pool of a connection that is not decrypted, but a
    /// handshake would be refused, because it uses the original bytes.
    Odd,
}

/// The result of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peek {
    /// The input is incomplete: at least this many bytes are needed in total.
    Partial(usize),
    /// A complete ClientHello.
    Hello(ClientHello),
    /// The input is not a ClientHello: the reason, and the alert for the client.
    Malformed(&'static str, Alert),
}

/// Reads the first bytes of a connection.
///
/// Cost: O(input). A caller that waits for the bytes in [`Peek::Partial`] calls it at most [`CLIENT_HELLO_RECORDS_MAX`]
/// times.
pub fn peek(input: &[u8]) -> Peek {
    let mut message = Vec::new();
    let mut rest = input;
    for _ in 0..CLIENT_HELLO_RECORDS_MAX {
        let at = input.len() - rest.len();
        let header = match read_header(rest, 0) {
            RecordStart::Header(header) => header,
            RecordStart::Partial => return Peek::Partial(at + HEADER_BYTES),
            RecordStart::Malformed => {
                let is_known = rest.first().is_some_and(|&it| ContentType::of(it).is_some());
                let alert =
                    if is_known { Alert::ProtocolVersion } else { Alert::UnexpectedMessage };
                return Peek::Malformed("not a record of TLS", alert);
            }
            RecordStart::TooLong => {
                return Peek::Malformed("a record that is too long", Alert::RecordOverflow);
            }
        };
        if header.content != ContentType::Handshake {
            return Peek::Malformed("a record before the ClientHello", Alert::UnexpectedMessage);
        }
        if header.length == 0 {
            let what = "an empty record before the ClientHello";
            return Peek::Malformed(what, Alert::UnexpectedMessage);
        }
        let Some(fragment) = rest.get(HEADER_BYTES..HEADER_BYTES + header.length) else {
            let first = message.first().or(rest.get(HEADER_BYTES));
            return match first {
                Some(&first) if first != CLIENT_HELLO => {
                    Peek::Malformed("not a ClientHello", Alert::UnexpectedMessage)
                }
                _ => Peek::Partial(at + HEADER_BYTES + header.length),
            };
        };
        rest = &rest[HEADER_BYTES + header.length..];
        // Usually, one record contains the whole message.
        let whole = if message.is_empty() {
            fragment
        } else {
            message.extend_from_slice(fragment);
            &message
        };
        match message_body(whole) {
            Ok(Some(body)) => {
                return match read(body) {
                    Some(hello) => Peek::Hello(hello),
                    None => {
                        Peek::Malformed("a ClientHello that cannot be read", Alert::DecodeError)
                    }
                };
            }
            Ok(None) => {}
            Err((why, alert)) => return Peek::Malformed(why, alert),
        }
        if message.is_empty() {
            message.extend_from_slice(fragment);
        }
    }
    Peek::Malformed("a ClientHello in too many records", Alert::DecodeError)
}

/// Whether a client with these first bytes understands alerts.
pub fn begins_a_handshake(input: &[u8]) -> bool {
    input.first() == Some(&ContentType::Handshake.number())
}

/// The body of the message, if it is complete.
fn message_body(message: &[u8]) -> Result<Option<&[u8]>, (&'static str, Alert)> {
    if message.first().is_some_and(|&first| first != CLIENT_HELLO) {
        return Err(("not a ClientHello", Alert::UnexpectedMessage));
    }
    let Some((header, body)) = message.split_at_checked(MESSAGE_HEADER_BYTES) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
    if length > CLIENT_HELLO_BYTES_MAX {
        return Err(("a ClientHello that is too long", Alert::IllegalParameter));
    }
    Ok(body.get(..length))
}

fn read(body: &[u8]) -> Option<ClientHello> {
    const VERSION_AND_RANDOM_BYTES: usize = 2 + 32;
    let mut body = Reader(body);
    let version = body.take(VERSION_AND_RANDOM_BYTES)?;
    body.vector_8()?; // session id
    body.vector_16()?; // cipher suites
    body.vector_8()?; // compression methods
    let is_old = version.first_chunk().is_some_and(|version| *version < TLS_12);
    let mut hello = ClientHello { is_old, ..ClientHello::default() };
    if body.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(body.vector_16()?);
    while !extensions.0.is_empty() {
        let kind = extensions.number_16()?;
        let mut content = Reader(extensions.vector_16()?);
        match kind {
            SERVER_NAME => (hello.server_name, hello.name_form) = server_name(content)?,
            ALPN => hello.alpn = content.vector_16()?.to_vec(),
            SUPPORTED_VERSIONS => {
                let versions = content.vector_8()?;
                hello.offers_13 = versions.chunks(2).any(|version| version == TLS_13);
                // The list counts, not the version in front (RFC 8446 section 4.2.1).
                hello.is_old = !versions.chunks(2).any(|it| it == TLS_12 || it == TLS_13);
            }
            EARLY_DATA => hello.has_early_data = true,
            _ => {}
        }
    }
    Some(hello)
}

/// The first host name of the list. An invalid DNS name counts as absent, because no certificate contains it.
fn server_name(mut content: Reader<'_>) -> Option<(String, NameForm)> {
    let mut names = Reader(content.vector_16()?);
    if names.0.is_empty() {
        return None;
    }
    while !names.0.is_empty() {
        let kind = names.take(1)?[0];
        let name = names.vector_16()?;
        if kind == HOST_NAME && name.is_empty() {
            return None;
        }
        if kind == HOST_NAME {
            // rustls would reject an invalid name.
            let is_sound = ServerName::try_from(name).is_ok();
            let form = if is_sound { NameForm::Sound } else { NameForm::Odd };
            let name = canonical_name(without_port(name)).unwrap_or_default();
            return Some((name, form));
        }
    }
    Some((String::new(), NameForm::Odd))
}

/// A name without the port that some clients append.
fn without_port(name: &[u8]) -> &[u8] {
    const PORT_DIGITS_MAX: usize = 5;
    let Some(colon) = name.iter().rposition(|&byte| byte == b':') else {
        return name;
    };
    let port = &name[colon + 1..];
    let is_port =
        (1..=PORT_DIGITS_MAX).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    if is_port { &name[..colon] } else { name }
}

/// A valid DNS name in lower case and without a final dot; `None`: the name is invalid.
pub fn canonical_name(name: &[u8]) -> Option<String> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_sound = |label: &[u8]| {
        (1..=63).contains(&label.len())
            && label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let fits = name.len() <= SERVER_NAME_BYTES_MAX;
    if !fits || !name.split(|&byte| byte == b'.').all(is_sound) {
        return None;
    }
    Some(String::from_utf8_lossy(name).to_ascii_lowercase())
}

/// Reads numbers and vectors from the front.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number_16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector_8(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(usize::from(length))
    }

    fn vector_16(&mut self) -> Option<&'a [u8]> {
        let length = self.number_16()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests;
