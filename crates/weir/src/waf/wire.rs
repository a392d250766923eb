//! Conversion of messages in files to their form in transit.

use weir_http::h1::{BodyDecoder, BodyStep};
use weir_http::message::Framing;

/// The head with CR LF at the end of each line, and the rest.
pub fn normalised(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut head = Vec::new();
    let mut rest = bytes;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, behind) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_last = line.is_empty() && !head.is_empty();
        head.extend_from_slice(line);
        head.extend_from_slice(b"\r\n");
        if is_last || behind.is_empty() {
            if !is_last {
                head.extend_from_slice(b"\r\n");
            }
            return (head, behind);
        }
        rest = behind;
    }
}

/// The data of a body with this framing. `what`: a request or a response, for error messages.
pub fn body(bytes: &[u8], framing: Framing, what: &str) -> Result<Vec<u8>, String> {
    let (mut decoder, mut data, mut at) = (BodyDecoder::new(framing, None), Vec::new(), 0);
    loop {
        match decoder.decode(&bytes[at..]) {
            Ok(BodyStep::Data { start, end }) => {
                data.extend_from_slice(&bytes[at + start..at + end]);
                at += end;
            }
            Ok(BodyStep::NeedMore { .. }) if decoder.may_end_at_eof() => return Ok(data),
            Ok(BodyStep::NeedMore { .. }) => return Err(too_short(&data, framing, what)),
            Ok(BodyStep::Trailers { consumed }) => {
                at += consumed;
                let end = bytes[at..].windows(4).position(|window| window == b"\r\n\r\n");
                let end = end.ok_or_else(|| too_short(&data, framing, what))?;
                return nothing_more(&bytes[at + end + 4..], framing, what).map(|()| data);
            }
            Ok(BodyStep::End { consumed }) => {
                return nothing_more(&bytes[at + consumed..], framing, what).map(|()| data);
            }
            Err(error) => return Err(format!("the body of the {what} cannot be read: {error}")),
        }
    }
}

fn too_short(data: &[u8], framing: Framing, what: &str) -> String {
    let there = data.len();
    match framing {
        Framing::Length(length) => format!(
            "the body of the {what} is too short: {there} of {length} bytes that Content-Length says"
        ),
        _ => format!(
            "the body of the {what} is too short: its last chunk or what follows it is missing"
        ),
    }
}

fn nothing_more(rest: &[u8], framing: Framing, what: &str) -> Result<(), String> {
    let more = match rest.len() {
        0 => return Ok(()),
        1 => "1 byte".to_owned(),
        more => format!("{more} bytes"),
    };
    Err(match framing {
        Framing::None => format!(
            "the {what} has no body, but {more} behind its head: say `Content-Length: {}`",
            rest.len()
        ),
        Framing::Length(length) => format!(
            "the body of the {what} is too long: {more} behind the {length} that Content-Length says"
        ),
        _ => format!("the body of the {what} is too long: {more} behind its last chunk"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_usual_line_ends() {
        for (bytes, head, rest) in [
            ("a\nb\n\nc\nd", "a\r\nb\r\n\r\n", "c\nd"),
            ("a\r\nb\r\n\r\nc\r\nd", "a\r\nb\r\n\r\n", "c\r\nd"),
            ("a\nb", "a\r\nb\r\n\r\n", ""),
            ("a\n", "a\r\n\r\n", ""),
        ] {
            let (made, behind) = normalised(bytes.as_bytes());
            assert_eq!((&made[..], behind), (head.as_bytes(), rest.as_bytes()), "{bytes:?}");
        }
    }

    #[test]
    fn bodies_are_as_long_as_they_say() {
        for (bytes, framing, expected) in [
            ("", Framing::None, Ok("")),
            ("abc", Framing::Length(3), Ok("abc")),
            ("2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", Framing::Chunked, Ok("abc")),
            ("1\r\na\r\n0\r\nX: y\r\n\r\n", Framing::Chunked, Ok("a")),
            ("abc", Framing::UntilClose, Ok("abc")),
            ("ab", Framing::Length(3), Err("2 of 3 bytes")),
            ("abcd", Framing::Length(3), Err("1 byte behind the 3")),
            ("abcd", Framing::None, Err("say `Content-Length: 4`")),
            ("5\r\nab", Framing::Chunked, Err("too short")),
            ("0\r\n\r\nab", Framing::Chunked, Err("2 bytes behind its last chunk")),
            ("x\r\n", Framing::Chunked, Err("malformed chunk size")),
        ] {
            match (body(bytes.as_bytes(), framing, "request"), expected) {
                (Ok(made), Ok(expected)) => assert_eq!(made, expected.as_bytes(), "{bytes:?}"),
                (Err(told), Err(expected)) => assert!(told.contains(expected), "{told}"),
                other => panic!("{bytes:?}: {other:?}"),
            }
        }
    }
}
