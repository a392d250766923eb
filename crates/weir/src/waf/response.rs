//! A response from a file.

use std::path::Path;

use weir_http::h1::{ParseProgress, parse_response};
use weir_http::message::{Method, ResponseHead};

use super::request::{HeadSettings, protocol};
use super::wire;

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub protocol: Vec<u8>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Parses a file in HTTP/1 format. Without Content-Length, the body extends to the end of the file.
    pub fn of_file(path: &Path, method: &[u8]) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::of_bytes(&bytes, method).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn of_bytes(bytes: &[u8], method: &[u8]) -> Result<Self, String> {
        let (input, body) = wire::normalised(bytes);
        let (limits, mut head) = (HeadSettings::default().head, ResponseHead::new());
        match parse_response(&input, &limits, Method::of(method), &mut head) {
            Ok(ParseProgress::Complete { length }) if length == input.len() => {}
            Ok(_) => return Err("it does not begin with a status line".into()),
            Err(error) => return Err(format!("it cannot be read: {error}")),
        }
        let fields = head.fields.iter().map(|it| (it.name.of(&input), it.value.of(&input)));
        Ok(Self {
            status: head.status,
            protocol: protocol(head.version).to_vec(),
            headers: fields.map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
            body: wire::body(body, head.framing, "response")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_answers() {
        let text = b"HTTP/1.1 500 Oh no\nContent-Type: text/html\n\nstack\n";
        let answer = Answer::of_bytes(text, b"GET").expect("an answer");
        let headers = vec![(b"Content-Type".to_vec(), b"text/html".to_vec())];
        let body = b"stack\n".to_vec();
        let expected = Answer { status: 500, protocol: b"HTTP/1.1".to_vec(), headers, body };
        assert_eq!(answer, expected);
        for (text, expected) in [
            ("HTTP/1.1 200 OK\nContent-Length: 3\n\nab", "2 of 3 bytes"),
            ("<html>", "cannot be read"),
            ("", "cannot be read"),
        ] {
            let error = Answer::of_bytes(text.as_bytes(), b"GET").expect_err(text);
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
