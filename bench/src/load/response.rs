//! Parses the responses of an HTTP/1 connection, one after another.

use weir_http::h1::{self, HeadScan, ParseProgress};
use weir_http::message::{Framing, Method, ResponseHead};

use super::answer::{Answer, FirstSeen};
use super::fault::Fault;
use super::plan::Expectation;
use crate::body_reader::{BodyReader, FeedResult, HEAD_LIMITS};

/// Parses the responses of one connection.
#[derive(Debug)]
pub struct ResponseReader {
    phase: Phase,
    /// The received part of an incomplete head.
    partial: Vec<u8>,
    scan: HeadScan,
    keep_alive: bool,
    answer: Answer,
}

impl Default for ResponseReader {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
enum Phase {
    Head,
    Body(BodyReader),
    Done,
}

impl ResponseReader {
    /// A reader that waits for a response.
    pub fn new() -> Self {
        Self {
            phase: Phase::Head,
            partial: Vec::new(),
            scan: HeadScan::section(),
            keep_alive: true,
            answer: Answer::default(),
        }
    }

    /// Prepares for the next response; see [`Answer::restart`].
    pub fn restart(&mut self, expect: &Expectation, first: &FirstSeen) {
        self.phase = Phase::Head;
        self.partial.clear();
        self.answer.restart(expect, first);
    }

    /// Processes received bytes. `head` is scratch space.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        is_head_request: bool,
        head: &mut ResponseHead,
    ) -> Result<FeedResult, Fault> {
        let length = input.len();
        loop {
            match &mut self.phase {
                Phase::Done => return Ok(FeedResult::Done { consumed: length - input.len() }),
                Phase::Head if input.is_empty() => return Ok(FeedResult::NeedMore),
                Phase::Head => {
                    let used = self.feed_head(input, is_head_request, head)?;
                    input = &input[used..];
                }
                Phase::Body(body) => {
                    let answer = &mut self.answer;
                    let fed = body.feed(input, |data| answer.data(data));
                    match fed.map_err(|_| Fault::Body)? {
                        FeedResult::NeedMore => return Ok(FeedResult::NeedMore),
                        FeedResult::Done { consumed } => {
                            input = &input[consumed..];
                            self.phase = Phase::Done;
                        }
                    }
                }
            }
        }
    }

    /// Whether no byte of the response has arrived.
    pub fn is_untouched(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.partial.is_empty()
    }

    /// Handles the end of the connection: an error if the response is incomplete.
    pub fn end(&mut self) -> Result<(), Fault> {
        match &self.phase {
            Phase::Body(body) if body.may_end_at_eof() => {
                self.phase = Phase::Done;
                self.keep_alive = false;
                Ok(())
            }
            _ => Err(Fault::Short),
        }
    }

    /// Whether the connection can be reused for another request.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// The received part of the response.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    fn feed_head(
        &mut self,
        input: &[u8],
        is_head_request: bool,
        head: &mut ResponseHead,
    ) -> Result<usize, Fault> {
        let method = if is_head_request { Method::Head } else { Method::Get };
        let parse = |input: &[u8], head: &mut ResponseHead| {
            h1::parse_response(input, &HEAD_LIMITS, method, head).map_err(Fault::Head)
        };
        if self.partial.is_empty() {
            return match parse(input, head)? {
                ParseProgress::Complete { length } => {
                    self.begin_body(head, &input[..length]);
                    Ok(length)
                }
                ParseProgress::Partial => {
                    self.partial.extend_from_slice(input);
                    self.scan = HeadScan::section();
                    self.scan.scan(&self.partial, &HEAD_LIMITS);
                    Ok(input.len())
                }
            };
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        if !self.scan.scan(&self.partial, &HEAD_LIMITS) {
            return Ok(input.len());
        }
        match parse(&self.partial, head)? {
            ParseProgress::Complete { length } => {
                let text = std::mem::take(&mut self.partial);
                self.begin_body(head, &text[..length]);
                self.partial = text;
                self.partial.clear();
                Ok(length - before)
            }
            ParseProgress::Partial => Ok(input.len()),
        }
    }

    fn begin_body(&mut self, head: &ResponseHead, text: &[u8]) {
        if head.is_interim() {
            return;
        }
        self.answer.begin(head, text);
        self.keep_alive = head.keep_alive;
        // After an upgrade the connection does not speak HTTP.
        self.keep_alive &= head.status != 101;
        self.phase = match head.framing {
            Framing::None => Phase::Done,
            framing => Phase::Body(BodyReader::new(framing)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_outcome::ErrorKind;
    use super::super::plan::Checksum;
    use super::*;

    fn expectation() -> Expectation {
        Expectation { status: None, body_bytes: None, checksum: Checksum::Ignored, gzip: None }
    }

    fn seen(reader: &ResponseReader) -> (u16, u64) {
        (reader.answer.status(), reader.answer.body_bytes())
    }

    /// Parses `wire`, split in two at every position. All results must be equal.
    fn check(wire: &str, is_head: bool, expected: Result<(u16, u64, bool, usize), ErrorKind>) {
        for cut in 0..=wire.len() {
            let (mut reader, mut head) = (ResponseReader::new(), ResponseHead::new());
            let mut found = Err(ErrorKind::Short);
            let mut at = 0;
            for part in [&wire[..cut], &wire[cut..]] {
                match reader.feed(part.as_bytes(), is_head, &mut head) {
                    Ok(FeedResult::NeedMore) => at += part.len(),
                    Ok(FeedResult::Done { consumed }) => {
                        let beyond = wire.len() - at - consumed;
                        let (status, body_bytes) = seen(&reader);
                        found = Ok((status, body_bytes, reader.keep_alive, beyond));
                        break;
                    }
                    Err(fault) => {
                        found = Err(fault.kind());
                        break;
                    }
                }
            }
            if found == Err(ErrorKind::Short) && reader.end().is_ok() {
                let (status, body_bytes) = seen(&reader);
                found = Ok((status, body_bytes, reader.keep_alive, 0));
            }
            assert_eq!(found, expected, "{wire:?} cut at {cut}");
        }
    }

    #[test]
    fn responses_are_read_however_they_are_cut() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, Ok((200, 2, true, 0)));
        check("HTTP/1.1 204 No\r\n\r\nrest", false, Ok((204, 0, true, 4)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, Ok((200, 0, true, 0)));
        check(
            "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            false,
            Ok((200, 0, true, 0)),
        );
        check(
            "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\nT: x\r\n\r\n",
            false,
            Ok((500, 2, false, 0)),
        );
        check("HTTP/1.0 200 OK\r\n\r\nuntil the end", false, Ok((200, 13, false, 0)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", false, Err(ErrorKind::Short));
        check("", false, Err(ErrorKind::Short));
        check("HTTP/1.1 200 OK\r\nContent-Len", false, Err(ErrorKind::Short));
        check("SSH-2.0-OpenSSH\r\n\r\n", false, Err(ErrorKind::Malformed));
    }

    #[test]
    fn responses_are_judged_by_what_was_expected() {
        let check = |expect: Expectation, fault: Option<ErrorKind>| {
            let (mut reader, mut head) = (ResponseReader::new(), ResponseHead::new());
            let mut first = FirstSeen { checksum: Some(7), was_unpacked: false };
            reader.restart(&expect, &first);
            let wire = b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n123456789";
            assert_eq!(
                reader.feed(wire, false, &mut head),
                Ok(FeedResult::Done { consumed: wire.len() })
            );
            assert_eq!(
                reader.answer.judge(&expect, false, &mut first).map(|fault| fault.kind()),
                fault,
                "{expect:?}"
            );
        };
        check(expectation(), None);
        check(Expectation { status: Some(201), ..expectation() }, None);
        check(Expectation { status: Some(200), ..expectation() }, Some(ErrorKind::Status));
        check(Expectation { body_bytes: Some(9), ..expectation() }, None);
        check(Expectation { body_bytes: Some(8), ..expectation() }, Some(ErrorKind::Length));
        // The check value of CRC-32 (IEEE).
        let crc32 = |value| Expectation { checksum: Checksum::Crc32(value), ..expectation() };
        check(crc32(0xcbf4_3926), None);
        check(crc32(0), Some(ErrorKind::Checksum));
        let as_first = Expectation { checksum: Checksum::AsFirst, ..expectation() };
        check(as_first, Some(ErrorKind::Checksum));
    }

    /// The result of parsing a whole connection, split at `cuts`. An incomplete head is parsed only when its end
    /// arrives, so input that is malformed and truncated may count as either.
    fn outcome(wire: &[u8], mut cuts: impl FnMut(usize) -> usize) -> Option<(u16, u64, usize)> {
        let (mut reader, mut head) = (ResponseReader::new(), ResponseHead::new());
        let mut at = 0;
        while at < wire.len() {
            let part = &wire[at..at + cuts(wire.len() - at).clamp(1, wire.len() - at)];
            match reader.feed(part, false, &mut head) {
                Ok(FeedResult::NeedMore) => at += part.len(),
                Ok(FeedResult::Done { consumed }) => {
                    assert!(consumed <= part.len());
                    let (status, body_bytes) = seen(&reader);
                    return Some((status, body_bytes, at + consumed));
                }
                Err(_) => return None,
            }
        }
        let ended = reader.end();
        let (status, body_bytes) = seen(&reader);
        ended.ok().map(|()| (status, body_bytes, at))
    }

    #[test]
    fn damaged_responses_are_judged_alike_however_they_are_cut() {
        const WHOLE: [&str; 4] = [
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nServer: x\r\n\r\nhello, world",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\
             7;a=b\r\n, world\r\n0\r\nA: b\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ];
        for seed in 1..=2_000_u64 {
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut draw = |bound: usize| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random % bound as u64) as usize
            };
            let mut wire = WHOLE[draw(WHOLE.len())].as_bytes().to_vec();
            for _ in 0..draw(4) {
                let at = draw(wire.len());
                match draw(3) {
                    0 => wire[at] = b"\r\n :0;x\0"[draw(8)],
                    1 if wire.len() > 1 => drop(wire.remove(at)),
                    _ => wire.truncate(at.max(1)),
                }
            }
            let whole = outcome(&wire, |left| left);
            for _ in 0..4 {
                let cut = outcome(&wire, |left| 1 + draw(left.min(9)));
                assert_eq!(cut, whole, "seed {seed}: {:?}", String::from_utf8_lossy(&wire));
            }
        }
    }
}
