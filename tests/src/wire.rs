//! A minimal HTTP/1.1 parser of the harness, independent of the codec under test.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;

/// Bytes read from a socket at a time.
const READ_BYTES: usize = 64 * 1024;
/// Longest accepted line of a head or chunk header.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// A message head: its first line and its headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Request line or status line.
    pub start: String,
    /// The headers in order of arrival, with names as received.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Parses the lines before the empty line.
    pub fn parse(lines: &str) -> Self {
        let mut lines = lines.split("\r\n").filter(|line| !line.is_empty());
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Self { start, fields }
    }

    /// Values of all headers of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Value of the first header of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether a comma-separated header has this token.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(','))
            .any(|part| part.trim().eq_ignore_ascii_case(token))
    }

    /// The framing of the body according to the headers; `None` if no header determines it.
    pub fn framing(&self) -> Option<Framing> {
        if self.has_token("transfer-encoding", "chunked") {
            return Some(Framing::Chunked);
        }
        let length = self.field("content-length")?;
        Some(Framing::Length(length.parse().unwrap_or_else(|_| panic!("Content-Length: {length}"))))
    }
}

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this number of bytes.
    Length(u64),
    /// After the last chunk and the trailers.
    Chunked,
    /// At the end of the connection.
    UntilClose,
}

/// A buffered reader of messages.
#[derive(Debug)]
pub struct Reader {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
}

impl Reader {
    /// Reads from this stream.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new(), start: 0 }
    }

    /// The underlying stream. It lacks the bytes that the reader has buffered.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Bytes received and not consumed yet.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let length = self.buffer.len();
        self.buffer.resize(length + READ_BYTES, 0);
        let result = self.stream.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + result.as_ref().copied().unwrap_or(0));
        result
    }

    /// The bytes up to and including `end`; `None` if the peer closed before it sent any byte.
    fn until(&mut self, end: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let from = searched.max(end.len()) - end.len();
            let found = self.buffered()[from..].windows(end.len()).position(|window| window == end);
            if let Some(position) = found {
                let length = from + position + end.len();
                let bytes = self.buffered()[..length].to_vec();
                self.start += length;
                return Ok(Some(bytes));
            }
            searched = self.buffered().len();
            if searched > LINE_BYTES_MAX {
                return Err(io::Error::new(ErrorKind::InvalidData, "endless head"));
            }
            if self.fill()? == 0 {
                return match self.buffered() {
                    [] => Ok(None),
                    cut => Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        format!("ended within {:?}", String::from_utf8_lossy(cut)),
                    )),
                };
            }
        }
    }

    /// The next head; `None` if the peer closed between two messages.
    pub fn head(&mut self) -> io::Result<Option<Head>> {
        let Some(bytes) = self.until(b"\r\n\r\n")? else {
            return Ok(None);
        };
        Ok(Some(Head::parse(&String::from_utf8_lossy(&bytes))))
    }

    /// Reads a body and passes it on in pieces; returns its trailers. An early end is `UnexpectedEof`.
    pub fn body(&mut self, framing: Framing, mut take: impl FnMut(&[u8])) -> io::Result<Head> {
        match framing {
            Framing::Length(length) => self.exactly(length, &mut take)?,
            Framing::Chunked => return self.chunked(&mut take),
            Framing::UntilClose => loop {
                let length = self.buffered().len();
                take(self.buffered());
                self.start += length;
                if self.fill()? == 0 {
                    break;
                }
            },
        }
        Ok(Head::default())
    }

    fn exactly(&mut self, length: u64, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.buffered().is_empty() && self.fill()? == 0 {
                let message = format!("{left} of {length} bytes are missing");
                return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
            }
            let count = self.buffered().len().min(usize::try_from(left).unwrap_or(usize::MAX));
            take(&self.buffered()[..count]);
            self.start += count;
            left -= count as u64;
        }
        Ok(())
    }

    fn line(&mut self) -> io::Result<String> {
        let line = self.until(b"\r\n")?;
        let line =
            line.ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "ended between chunks"))?;
        Ok(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned())
    }

    fn chunked(&mut self, take: &mut impl FnMut(&[u8])) -> io::Result<Head> {
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(digits, 16).map_err(|_| {
                io::Error::new(ErrorKind::InvalidData, format!("chunk size {line:?}"))
            })?;
            if size == 0 {
                break;
            }
            self.exactly(size, take)?;
            let end = self.line()?;
            if !end.is_empty() {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    format!("{end:?} after a chunk"),
                ));
            }
        }
        let mut trailers = Head::default();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(trailers);
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            trailers.fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Received bytes without any framing (for tunnels); 0 at the end.
    pub fn some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            return self.stream.read(buffer);
        }
        let count = self.buffered().len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.buffered()[..count]);
        self.start += count;
        Ok(count)
    }

    /// All bytes until the peer closes. An error counts as the end.
    pub fn rest(&mut self) -> Vec<u8> {
        while matches!(self.fill(), Ok(count) if count > 0) {}
        let rest = self.buffered().to_vec();
        self.start = self.buffer.len();
        rest
    }
}
