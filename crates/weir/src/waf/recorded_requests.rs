//! Recorded requests in the log, to be judged again.

use weir_waf::inspection::BodyLength;

use super::request::Trial;
use weir_control::firewall::line::{LoggedRequest, bytes};

/// The recorded request; `None`: the record is incomplete or invalid.
pub fn trial(recorded: &LoggedRequest) -> Option<Trial> {
    let head = bytes(&recorded.head);
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let first = lines.next()?;
    let (method, rest) = split(first, b' ')?;
    let at = rest.iter().rposition(|byte| *byte == b' ')?;
    let (received_target, protocol) = (&rest[..at], &rest[at + 1..]);
    let fields = lines.filter(|line| !line.is_empty()).map(|line| {
        let (name, value) = split(line, b':')?;
        Some((name.to_vec(), value.trim_ascii().to_vec()))
    });
    let headers: Vec<(Vec<u8>, Vec<u8>)> = fields.collect::<Option<_>>()?;
    let body = from_base64(recorded.body.as_deref().unwrap_or_default())?;
    Some(Trial {
        method: method.to_vec(),
        received_target: received_target.to_vec(),
        target: recorded.member_target.as_deref().map_or(received_target.to_vec(), bytes),
        protocol: protocol.to_vec(),
        length: length(&headers, &body),
        headers,
        body,
    })
}

/// The length of the body according to the fields. HTTP/2 permits a body without Content-Length.
fn length(headers: &[(Vec<u8>, Vec<u8>)], body: &[u8]) -> BodyLength {
    let value = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        found.map(|(_, value)| &value[..])
    };
    let known = value("content-length").and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    match known {
        Some(0) => BodyLength::None,
        Some(bytes) => BodyLength::Known(bytes),
        None if body.is_empty() && value("transfer-encoding").is_none() => BodyLength::None,
        None => BodyLength::Unknown,
    }
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

/// Decodes base64 (RFC 4648, section 4).
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').bytes().map(|digit| match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(digit?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_requests() {
        let recorded = LoggedRequest {
            head: "POST http://h//a HTTP/2.0\r\nHost: h\r\nX: y:\u{e9}\r\n\r\n".into(),
            member_target: Some("/a".into()),
            body: Some("YWL/".into()),
        };
        let headers = [(&b"Host"[..], &b"h"[..]), (b"X", b"y:\xe9")];
        let expected = Trial {
            method: b"POST".to_vec(),
            received_target: b"http://h//a".to_vec(),
            target: b"/a".to_vec(),
            protocol: b"HTTP/2.0".to_vec(),
            headers: headers.map(|(name, value)| (name.to_vec(), value.to_vec())).to_vec(),
            body: b"ab\xff".to_vec(),
            length: BodyLength::Unknown,
        };
        assert_eq!(trial(&recorded).expect("a request"), expected);
        for (head, body) in [("", ""), ("GET /", ""), ("GET / HTTP/1.1\r\nx", ""), ("GET / H", "%")]
        {
            let recorded =
                LoggedRequest { head: head.into(), member_target: None, body: Some(body.into()) };
            assert_eq!(trial(&recorded), None, "{head} {body}");
        }
    }

    #[test]
    fn base64() {
        for (text, expected) in [("", &b""[..]), ("Zg==", b"f"), ("Zm8=", b"fo"), ("Zm9v", b"foo")]
        {
            assert_eq!(from_base64(text).as_deref(), Some(expected), "{text}");
        }
    }
}
