//! The HTTP/1 codec of this test's clients and members. weir's output must be strict, so the parser is strict.

use weir_testing::Random;

use crate::message::{Fields, Name, name_of};
use crate::plan::{Body, Framing};
use crate::tag::{Id, Key, Part};

/// Maximum length of a head.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// A head, without the headers for framing and connection.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The request line or the status line.
    pub start: String,
    /// The headers, with names in lower case.
    pub fields: Fields,
    /// The value of Content-Length.
    pub length: Option<usize>,
    /// Whether Transfer-Encoding is `chunked`.
    pub is_chunked: bool,
    /// The tokens of Connection.
    pub connection: Vec<String>,
    /// The value of Upgrade.
    pub upgrade: Option<String>,
}

impl Head {
    /// Whether Connection contains this token.
    pub fn has_option(&self, option: &str) -> bool {
        self.connection.iter().any(|it| it == option)
    }
}

/// Parses the next head of the input. Returns it with its length; `None`: it is incomplete.
pub fn take_head(input: &[u8]) -> Result<Option<(Head, usize)>, String> {
    let Some(end) = end_of_head(&input[..input.len().min(HEAD_BYTES_MAX)]) else {
        return match input.len() > HEAD_BYTES_MAX {
            true => Err("an endless head".to_owned()),
            false => Ok(None),
        };
    };
    let text = std::str::from_utf8(&input[..end]).map_err(|_| "a head that is no text")?;
    let mut lines = text.split("\r\n");
    let fields = Fields::with_capacity(16);
    let mut head =
        Head { start: lines.next().unwrap_or_default().to_owned(), fields, ..Head::default() };
    if head.start.bytes().any(|byte| byte < b' ') {
        return Err(format!("start line {:?}", head.start));
    }
    for line in lines {
        let (name, value) = field_of(line)?;
        head.note(name, value)?;
    }
    if head.length.is_some() && head.is_chunked {
        return Err("Content-Length beside Transfer-Encoding".to_owned());
    }
    Ok(Some((head, end + 4)))
}

/// The position of the CRLF CRLF after a head. The search skips most bytes, because it looks for the last of the four.
fn end_of_head(input: &[u8]) -> Option<usize> {
    let mut at = 3;
    while let Some(byte) = input.get(at) {
        at += match byte {
            b'\n' if input[at - 3..=at] == *b"\r\n\r\n" => return Some(at - 3),
            b'\n' => 2,
            b'\r' => 1,
            _ => 4,
        };
    }
    None
}

fn field_of(line: &str) -> Result<(Name, String), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let parts = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")));
    match parts {
        Some((name, value))
            if !name.is_empty()
                && name.bytes().all(is_token)
                && value.trim() == value
                && value.bytes().all(|byte| byte >= b' ') =>
        {
            Ok((name_of(name), value.to_owned()))
        }
        _ => Err(format!("field line {line:?}")),
    }
}

impl Head {
    fn note(&mut self, name: Name, value: String) -> Result<(), String> {
        let is_first = match &*name {
            "content-length" => {
                let length = value.parse().map_err(|_| format!("Content-Length {value:?}"))?;
                self.length.replace(length).is_none()
            }
            "transfer-encoding" if value != "chunked" => {
                return Err(format!("Transfer-Encoding {value:?}"));
            }
            "transfer-encoding" => !std::mem::replace(&mut self.is_chunked, true),
            "connection" => {
                let tokens = value.split(',').map(|token| token.trim().to_ascii_lowercase());
                self.connection.extend(tokens);
                true
            }
            "upgrade" => self.upgrade.replace(value).is_none(),
            _ => {
                self.fields.push((name, value));
                return Ok(());
            }
        };
        if is_first { Ok(()) } else { Err(format!("repeated {name}")) }
    }
}

/// The result of one step of a body reader.
#[derive(Debug)]
pub enum Step<'a> {
    /// The input is incomplete.
    More,
    /// Data.
    Data(&'a [u8]),
    /// The body is complete, with these trailers.
    End(Fields),
}

/// The state of a parser of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyReader {
    /// This number of bytes remains.
    Length(usize),
    /// The body ends with the connection.
    UntilClose,
    /// The size of a chunk follows.
    Size,
    /// This number of bytes of a chunk remains.
    Chunk(usize),
    /// Trailers follow.
    Trailers,
}

impl BodyReader {
    /// The reader for the body of a request.
    pub fn of_request(head: &Head) -> Self {
        if head.is_chunked { Self::Size } else { Self::Length(head.length.unwrap_or(0)) }
    }

    /// The reader for the body of a response. `to_head`: to a HEAD request.
    pub fn of_response(head: &Head, status: u16, to_head: bool) -> Self {
        match (to_head || matches!(status, 100..=199 | 204 | 304), head.length) {
            (true, _) => Self::Length(0),
            _ if head.is_chunked => Self::Size,
            (_, Some(length)) => Self::Length(length),
            (_, None) => Self::UntilClose,
        }
    }

    /// Parses one step. Returns the number of consumed bytes of the input.
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), String> {
        match *self {
            Self::Length(0) => Ok((0, Step::End(Fields::new()))),
            Self::Length(_) | Self::UntilClose | Self::Chunk(1..) if input.is_empty() => {
                Ok((0, Step::More))
            }
            Self::Length(left) => {
                let length = left.min(input.len());
                *self = Self::Length(left - length);
                Ok((length, Step::Data(&input[..length])))
            }
            Self::UntilClose => Ok((input.len(), Step::Data(input))),
            Self::Size => {
                let Some(line) = line_of(input, 20)? else { return Ok((0, Step::More)) };
                let is_digits = !line.is_empty() && line.bytes().all(|it| it.is_ascii_hexdigit());
                let size = usize::from_str_radix(line, 16).ok().filter(|_| is_digits);
                let size = size.ok_or_else(|| format!("chunk size {line:?}"))?;
                *self = if size == 0 { Self::Trailers } else { Self::Chunk(size) };
                Ok((line.len() + 2, Step::Data(b"")))
            }
            Self::Chunk(0) => {
                let Some(line) = line_of(input, 2)? else { return Ok((0, Step::More)) };
                if !line.is_empty() {
                    return Err(format!("{line:?} behind a chunk"));
                }
                *self = Self::Size;
                Ok((2, Step::Data(b"")))
            }
            Self::Chunk(left) => {
                let length = left.min(input.len());
                *self = Self::Chunk(left - length);
                Ok((length, Step::Data(&input[..length])))
            }
            Self::Trailers => trailers_of(input),
        }
    }
}

/// The line at the start of the input, without its line end; longer lines than this are errors.
fn line_of(input: &[u8], bytes_max: usize) -> Result<Option<&str>, String> {
    let found = input.windows(2).take(bytes_max + 1).position(|window| window == b"\r\n");
    let line = &input[..found.unwrap_or(input.len().min(bytes_max + 2))];
    let text = std::str::from_utf8(line).ok().filter(|it| it.bytes().all(|byte| byte >= b' '));
    match (found, text) {
        (Some(_), Some(text)) => Ok(Some(text)),
        (None, _) if input.len() <= bytes_max => Ok(None),
        _ => Err(format!("line \"{}\"", line.escape_ascii())),
    }
}

fn trailers_of(input: &[u8]) -> Result<(usize, Step<'_>), String> {
    let (mut fields, mut at) = (Fields::new(), 0);
    while let Some(line) = line_of(&input[at..], 4_096)? {
        at += line.len() + 2;
        if line.is_empty() {
            return Ok((at, Step::End(fields)));
        }
        fields.push(field_of(line)?);
    }
    Ok((0, Step::More))
}

/// Writes a head.
pub fn write_head(start: &str, fields: &Fields, out: &mut Vec<u8>) {
    out.reserve(1_024);
    out.extend_from_slice(start.as_bytes());
    for (name, value) in fields {
        for text in ["\r\n", name, ": ", value] {
            out.extend_from_slice(text.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// The header that declares the framing of a body, if any.
pub fn framing_field(body: &Body) -> Option<(Name, String)> {
    match body.framing {
        Framing::Empty | Framing::UntilClose => None,
        Framing::Length => Some(("content-length".into(), body.bytes.to_string())),
        Framing::Chunked => Some(("transfer-encoding".into(), "chunked".to_owned())),
    }
}

/// Writes a body and its trailers. A chunked body has chunks of random sizes.
pub fn write_body(
    (key, id, part): (Key, Id, Part),
    body: &Body,
    trailers: &Fields,
    random: &mut Random,
    out: &mut Vec<u8>,
) {
    let write = |from: usize, length: usize, out: &mut Vec<u8>| {
        let start = out.len();
        out.resize(start + length, 0);
        key.fill(id, part, from, &mut out[start..]);
    };
    if body.framing != Framing::Chunked {
        return write(0, body.bytes, out);
    }
    let chunk_max = [40, 1_000, 9_000, 100_000][random.below(4)].max(body.bytes / 200);
    let mut at = 0;
    while at < body.bytes {
        let length = (1 + random.below(chunk_max)).min(body.bytes - at);
        out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        write(at, length, out);
        out.extend_from_slice(b"\r\n");
        at += length;
    }
    write_head("0", trailers, out);
}

#[test]
fn heads_and_bodies_are_read_strictly() {
    for head in [
        "HTTP/1.1 200 OK\r\nname : value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname:value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname: value \r\n\r\n",
        "HTTP/1.1 200 OK\r\n: value\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\nname: value\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    ] {
        assert!(take_head(head.as_bytes()).is_err(), "{head:?}");
    }
    let read = |mut input: &[u8]| {
        let (mut body, mut data) = (BodyReader::Size, Vec::new());
        loop {
            let (length, step) = body.step(input)?;
            match step {
                Step::More => return Ok((data, None)),
                Step::Data(more) => data.extend_from_slice(more),
                Step::End(trailers) => return Ok((data, Some(trailers))),
            }
            input = &input[length..];
        }
    };
    let trailers = vec![("x-trailer".into(), "1".to_owned())];
    let whole: &[u8] = b"3\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n";
    assert_eq!(read(whole), Ok::<_, String>((b"abc".to_vec(), Some(trailers))));
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]).map(|(_, end)| end), Ok(None), "{length}");
    }
    for body in [
        "\r\n",
        "+3\r\nabc\r\n",
        "3 \r\nabc\r\n",
        "3;a\r\nabc\r\n",
        "3\r\nabcd\r\n",
        "HTTP/1.1 400 Bad Request",
    ] {
        assert!(read(body.as_bytes()).is_err(), "{body:?}");
    }
}
