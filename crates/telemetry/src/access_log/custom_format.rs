//! Lines in a custom format of the configuration.
//!
//! Values of the request head are stored unformatted, each preceded by its tag and its length. They are written when the
//! request ends, in the latest custom format.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_config::snapshot::{LogField, LogFormat, LogLine, LogPiece};
use weir_core::expression::TlsFacts;
use weir_event_loop::wall_clock::Date;
use weir_http::message::RequestHead;
use weir_http::write_ip;

use super::entry::{
    Entry, HeadFieldValues, RequestId, put_address_text, put_marks, put_quoted, put_rules,
    version_of,
};
use crate::json::{SHOWN_BYTES_MAX, put_id, put_json_string, put_number, put_three_digits};

/// A custom format, and the number that the worker has assigned to it.
#[derive(Debug, Clone)]
pub struct CustomFormat {
    /// Identifies the format that stored data belongs to.
    pub number: u8,
    /// The format.
    pub format: Arc<LogFormat>,
    /// The JSON keys of the format, in order: `"status":`.
    keys: Vec<Box<[u8]>>,
    /// The parts of a request head that the format contains.
    head: HeadFields,
}

/// The parts of a request head that a format contains.
#[derive(Debug, Clone, Copy)]
struct HeadFields {
    method: bool,
    host: bool,
    target: bool,
    version: bool,
    referer: bool,
    user_agent: bool,
}

/// Tags of a request's stored data; [`HEADERS`] and higher values are header fields of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredField {
    Client = 0,
    Method = 1,
    Host = 2,
    Target = 3,
    Version = 4,
    Referer = 5,
    UserAgent = 6,
    ServerName = 7,
    DatagramsReceived = 8,
    DatagramsSent = 9,
}

/// The tag of the first header field.
const HEADERS: u8 = 64;

impl CustomFormat {
    /// Prepares a format, so that writing a line needs no search in the list of fields.
    pub fn new(number: u8, format: &Arc<LogFormat>) -> Self {
        let key = |field: &LogField| {
            let mut key = Vec::new();
            put_json_string(&mut key, name(format, *field).as_bytes());
            key.push(b':');
            key.into_boxed_slice()
        };
        let keys = match &format.line {
            LogLine::Json(fields) => fields.iter().map(key).collect(),
            LogLine::Text(_) => Vec::new(),
        };
        let head = HeadFields {
            method: format.shows(LogField::Method),
            host: format.shows(LogField::Host),
            target: format.shows(LogField::Target),
            version: format.shows(LogField::Version),
            referer: format.shows(LogField::Referer),
            user_agent: format.shows(LogField::UserAgent),
        };
        Self { number, format: Arc::clone(format), keys, head }
    }

    /// Stores the parts of a request head that lines contain.
    pub fn keep_head(
        &self,
        client: Option<SocketAddr>,
        head: &RequestHead,
        input: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.begin(out);
        if let Some(client) = client {
            let mut text = Vec::new();
            put_address_text(&mut text, client);
            keep(out, StoredField::Client as u8, &text);
        }
        let shown = &self.head;
        if shown.method {
            keep(out, StoredField::Method as u8, head.method_text.of(input));
        }
        if shown.host {
            keep(out, StoredField::Host as u8, head.authority(input));
        }
        if shown.target {
            keep(out, StoredField::Target as u8, head.target.of(input));
        }
        if shown.version {
            keep(out, StoredField::Version as u8, version_of(head).as_bytes());
        }
        if shown.referer || shown.user_agent {
            let HeadFieldValues { referer, user_agent } = HeadFieldValues::of(head, input);
            if shown.referer {
                keep(out, StoredField::Referer as u8, referer);
            }
            if shown.user_agent {
                keep(out, StoredField::UserAgent as u8, user_agent);
            }
        }
        let value = |name: &[u8]| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(input).eq_ignore_ascii_case(name));
            found.map(|field| field.value.of(input))
        };
        for (tag, name) in (HEADERS..).zip(&self.format.headers) {
            if let Some(value) = value(name.as_bytes()) {
                keep(out, tag, value);
            }
        }
    }

    /// Stores the server name of a connection without requests.
    pub fn keep_server_name(&self, server_name: &str, out: &mut Vec<u8>) {
        self.begin(out);
        keep(out, StoredField::ServerName as u8, server_name.as_bytes());
    }

    /// Stores the numbers of a session's datagrams.
    pub fn keep_datagrams(&self, (received, sent): (u64, u64), out: &mut Vec<u8>) {
        self.begin(out);
        for (tag, number) in
            [(StoredField::DatagramsReceived, received), (StoredField::DatagramsSent, sent)]
        {
            let mut text = Vec::new();
            put_number(&mut text, number);
            keep(out, tag as u8, &text);
        }
    }

    fn begin(&self, out: &mut Vec<u8>) {
        if out.is_empty() {
            out.push(self.number);
        }
    }

    /// Writes one line.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        entry: &Entry<'_>,
        (date, millisecond): (&Date, u64),
        of_log: u128,
    ) {
        let line = Line { given: self, entry, date, millisecond, of_log };
        match &self.format.line {
            LogLine::Json(fields) => line.json(fields, out),
            LogLine::Text(pieces) => line.text(pieces, out),
        }
        out.push(b'\n');
    }
}

fn keep(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    // An empty value counts as missing.
    if value.is_empty() {
        return;
    }
    let value = &value[..value.len().min(SHOWN_BYTES_MAX)];
    out.push(tag);
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
}

/// The stored value with this tag.
fn kept(mut rest: &[u8], wanted: u8) -> Option<&[u8]> {
    while let [tag, low, high, behind @ ..] = rest {
        let (value, next) =
            behind.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
        if *tag == wanted {
            return Some(value);
        }
        rest = next;
    }
    None
}

/// The value of a field.
enum Value<'a> {
    /// Bytes from the client, or a name.
    Text(&'a [u8]),
    /// Generated text.
    Made(Vec<u8>),
    Number(u64),
    /// A list as JSON.
    List(Vec<u8>),
}

/// The name of a field in JSON lines.
fn name(format: &LogFormat, field: LogField) -> &str {
    if let LogField::Header(place) = field {
        return format.headers.get(usize::from(place)).map_or("", |name| name);
    }
    LogField::NAMED.iter().find(|(_, named)| *named == field).map_or("", |(name, _)| name)
}

struct Line<'a> {
    given: &'a CustomFormat,
    entry: &'a Entry<'a>,
    date: &'a Date,
    millisecond: u64,
    of_log: u128,
}

impl Line<'_> {
    fn json(&self, fields: &[LogField], out: &mut Vec<u8>) {
        out.push(b'{');
        let mut is_first = true;
        for (&field, key) in fields.iter().zip(&self.given.keys) {
            let Some(value) = self.value(field) else { continue };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(key);
            match value {
                Value::Text(text) => put_json_string(out, text),
                Value::Made(text) => put_json_string(out, &text),
                Value::Number(number) => put_number(out, number),
                Value::List(list) => out.extend_from_slice(&list),
            }
        }
        out.push(b'}');
    }

    fn text(&self, pieces: &[LogPiece], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                LogPiece::Literal(literal) => out.extend_from_slice(literal),
                LogPiece::Field { field, keeps_spaces } => match self.value(*field) {
                    None => out.push(b'-'),
                    Some(Value::Text(text)) => put_text(out, text, *keeps_spaces),
                    Some(Value::Made(text) | Value::List(text)) => {
                        put_text(out, &text, *keeps_spaces);
                    }
                    Some(Value::Number(number)) => put_number(out, number),
                },
            }
        }
    }

    /// The value of a field; `None`: unknown.
    fn value(&self, field: LogField) -> Option<Value<'_>> {
        let entry = self.entry;
        Some(match field {
            LogField::Time => Value::Made({
                let mut text = self.date.iso.as_bytes().to_vec();
                text.push(b'.');
                put_three_digits(&mut text, self.millisecond);
                text.push(b'Z');
                text
            }),
            LogField::TimeCombined => Value::Text(self.date.combined.as_bytes()),
            LogField::RequestId => match entry.request_id {
                RequestId::OfLog => Value::Made(id_text(self.of_log)),
                RequestId::Made(id) => Value::Made(id_text(id)),
                RequestId::Taken(id) => Value::Text(id),
            },
            LogField::TraceId => Value::Made(id_text(entry.decided.trace?.0)),
            LogField::SpanId => {
                Value::Made(format!("{:016x}", entry.decided.trace?.1).into_bytes())
            }
            LogField::Client | LogField::ClientIp | LogField::Peer => self.end(field)?,
            LogField::VirtualServer => Value::Text(entry.server.as_bytes()),
            LogField::EnteredAt => Value::Text(entry.decided.entered_at?.as_bytes()),
            LogField::Method => self.kept(StoredField::Method)?,
            LogField::Host => self.kept(StoredField::Host)?,
            LogField::Target => self.kept(StoredField::Target)?,
            LogField::Version => self.kept(StoredField::Version)?,
            LogField::Referer => self.kept(StoredField::Referer)?,
            LogField::UserAgent => self.kept(StoredField::UserAgent)?,
            LogField::User if entry.decided.user.is_empty() => return None,
            LogField::User => Value::Text(entry.decided.user),
            LogField::ServerName => self.kept(StoredField::ServerName)?,
            LogField::DatagramsReceived => self.kept_number(StoredField::DatagramsReceived)?,
            LogField::DatagramsSent => self.kept_number(StoredField::DatagramsSent)?,
            LogField::Header(place) => self.kept_at(HEADERS.saturating_add(place))?,
            LogField::Pool => Value::Text(entry.pool.filter(|it| !it.is_empty())?.as_bytes()),
            LogField::Member => Value::Text(entry.member.filter(|it| !it.is_empty())?.as_bytes()),
            LogField::Status => Value::Number(entry.status.into()),
            LogField::BytesReceived => Value::Number(entry.bytes_received),
            LogField::BytesSent => Value::Number(entry.bytes_sent),
            LogField::BodyBytesSent => {
                Value::Number(entry.bytes_sent.saturating_sub(entry.head_bytes_sent))
            }
            LogField::Retries => Value::Number(entry.retries.into()),
            LogField::Reuse => Value::Text(entry.decided.is_bound.then_some(b"client")?),
            LogField::QueueUs => Value::Number(entry.queue_us),
            LogField::ConnectUs => Value::Number(entry.connect_us),
            LogField::FirstByteUs => Value::Number(entry.first_byte_us),
            LogField::TotalUs => Value::Number(entry.total_us),
            LogField::Marks | LogField::Rules => self.list(field)?,
            LogField::Persistence => Value::Text(entry.decided.persistence?.as_str().as_bytes()),
            LogField::TlsVersion => Value::Text(self.tls()?.version.as_bytes()),
            LogField::TlsCipher => Value::Text(self.tls()?.cipher.as_bytes()),
            LogField::TlsError => Value::Text(entry.tls.err()?.as_bytes()),
            LogField::Termination => Value::Text(entry.termination.as_str().as_bytes()),
        })
    }

    fn end(&self, field: LogField) -> Option<Value<'_>> {
        let named = self.kept(StoredField::Client);
        let address = match (field, named) {
            (LogField::Client, Some(named)) => return Some(named),
            (LogField::ClientIp, Some(Value::Text(named))) => {
                return Some(Value::Made(without_port(named)));
            }
            (LogField::Peer, _) => self.entry.peer,
            _ => self.entry.client,
        };
        let mut text = Vec::new();
        match (address, field) {
            (None, _) => text.extend_from_slice(b"unix"),
            (Some(address), LogField::ClientIp) => write_ip(address.ip(), &mut text),
            (Some(address), _) => put_address_text(&mut text, address),
        }
        Some(Value::Made(text))
    }

    fn list(&self, field: LogField) -> Option<Value<'_>> {
        let (decided, mut list) = (&self.entry.decided, Vec::new());
        match field {
            LogField::Rules if decided.has_rules() => put_rules(&mut list, decided),
            LogField::Marks => put_marks(&mut list, decided.shown_marks()?),
            _ => return None,
        }
        Some(Value::List(list))
    }

    fn tls(&self) -> Option<&TlsFacts<'_>> {
        self.entry.tls.as_ref().ok()?.as_ref().filter(|tls| !tls.version.is_empty())
    }

    fn kept(&self, tag: StoredField) -> Option<Value<'_>> {
        self.kept_at(tag as u8)
    }

    fn kept_at(&self, tag: u8) -> Option<Value<'_>> {
        let (number, rest) = self.entry.request.split_first()?;
        // In another format, the tag may belong to a different header field.
        let is_known = tag < HEADERS || *number == self.given.number;
        kept(rest, tag).filter(|_| is_known).map(Value::Text)
    }

    fn kept_number(&self, tag: StoredField) -> Option<Value<'_>> {
        let Some(Value::Text(text)) = self.kept(tag) else { return None };
        std::str::from_utf8(text).ok()?.parse().ok().map(Value::Number)
    }
}

/// Writes a value. Spaces are escaped unless the field `keeps_spaces`: a client must not be able to add columns to the line.
fn put_text(out: &mut Vec<u8>, value: &[u8], keeps_spaces: bool) {
    if keeps_spaces {
        return put_quoted(out, value);
    }
    let value = &value[..value.len().min(SHOWN_BYTES_MAX)];
    for (number, word) in value.split(|byte| *byte == b' ').enumerate() {
        if number > 0 {
            out.extend_from_slice(b"\\x20");
        }
        put_quoted(out, word);
    }
}

fn id_text(id: u128) -> Vec<u8> {
    let mut text = Vec::with_capacity(32);
    put_id(&mut text, id);
    text
}

/// A stored address, without its port.
fn without_port(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    match text.parse::<SocketAddr>() {
        Ok(address) => address.ip().to_string().into_bytes(),
        Err(_) => text.into_owned().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again() {
        let mut out = Vec::new();
        keep(&mut out, StoredField::Method as u8, b"GET");
        keep(&mut out, StoredField::Referer as u8, b"");
        keep(&mut out, StoredField::Target as u8, &[b'a'; 3_000]);
        keep(&mut out, HEADERS + 1, b"\0\xff");
        assert_eq!(kept(&out, StoredField::Method as u8), Some(&b"GET"[..]));
        assert_eq!(kept(&out, StoredField::Referer as u8), None);
        assert_eq!(kept(&out, StoredField::Target as u8).map(<[u8]>::len), Some(SHOWN_BYTES_MAX));
        assert_eq!(kept(&out, HEADERS + 1), Some(&b"\0\xff"[..]));
        assert_eq!(kept(&out, HEADERS), None);
        for cut in 0..out.len() {
            // If the data is truncated, only complete values are read.
            let method = kept(&out[..cut], StoredField::Method as u8);
            assert!(matches!(method, None | Some(b"GET")), "{method:?}");
        }
    }

    #[test]
    fn a_value_is_one_word_unless_it_stands_between_quotation_marks() {
        for (value, keeps_spaces, expected) in [
            (&b"a b"[..], true, "a b"),
            (b"a b", false, "a\\x20b"),
            (b"  ", false, "\\x20\\x20"),
            (b"a\" 200\t\\", false, "a\\x22\\x20200\\x09\\x5C"),
        ] {
            let mut out = Vec::new();
            put_text(&mut out, value, keeps_spaces);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        put_text(&mut out, &[b' '; 3_000], false);
        assert_eq!(out.len(), SHOWN_BYTES_MAX * 4);
    }

    #[test]
    fn every_field_is_documented() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");
        let docs = std::fs::read_to_string(docs).expect("the document");
        for (name, _) in LogField::NAMED {
            let rows = docs.lines().filter(|line| line.starts_with("| `"));
            let named = rows.filter_map(|row| row[2..].split('|').next());
            assert!(named.into_iter().any(|cell| cell.contains(&format!("`{name}`"))), "{name}");
        }
    }
}
