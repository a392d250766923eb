//! Reads a message body to its end, trailers included.

use weir_http::edits::TrailerEdits;
use weir_http::h1::{
    self, BodyDecoder, BodyError, BodyStep, HeadLimits, HeadScan, ParseProgress, TrailerError,
};
use weir_http::message::Framing;

/// Limits of heads and trailer sections that a benchmark reads. They exceed all received ones, so they have no effect.
pub const HEAD_LIMITS: HeadLimits = HeadLimits { head_size_max: 64 * 1024, headers_max: 256 };

/// The result of feeding bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedResult {
    /// All bytes were used, and the message needs more.
    NeedMore,
    /// The message has ended.
    Done {
        /// Number of used bytes.
        consumed: usize,
    },
}

/// The body is malformed.
#[derive(Debug)]
pub struct Malformed;

impl From<BodyError> for Malformed {
    fn from(_: BodyError) -> Self {
        Self
    }
}

impl From<TrailerError> for Malformed {
    fn from(_: TrailerError) -> Self {
        Self
    }
}

/// Reads one body.
#[derive(Debug)]
pub struct BodyReader {
    decoder: BodyDecoder,
    /// The received part of the trailer section.
    trailers: Option<Trailers>,
}

#[derive(Debug)]
struct Trailers {
    bytes: Vec<u8>,
    scan: HeadScan,
}

impl BodyReader {
    /// A reader of a body with this framing.
    pub fn new(framing: Framing) -> Self {
        Self { decoder: BodyDecoder::new(framing, None), trailers: None }
    }

    /// Whether the end of the connection would complete the body.
    pub fn may_end_at_eof(&self) -> bool {
        self.decoder.may_end_at_eof()
    }

    /// Processes received bytes; passes body data to `on_data`.
    pub fn feed(
        &mut self,
        input: &[u8],
        mut on_data: impl FnMut(&[u8]),
    ) -> Result<FeedResult, Malformed> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if self.trailers.is_some() {
                return Ok(match self.feed_trailers(rest)? {
                    FeedResult::Done { consumed } => FeedResult::Done { consumed: at + consumed },
                    FeedResult::NeedMore => FeedResult::NeedMore,
                });
            }
            match self.decoder.decode(rest)? {
                BodyStep::Data { start, end } => {
                    on_data(&rest[start..end]);
                    at += end;
                }
                BodyStep::NeedMore { .. } => return Ok(FeedResult::NeedMore),
                BodyStep::End { consumed } => {
                    return Ok(FeedResult::Done { consumed: at + consumed });
                }
                BodyStep::Trailers { consumed } => {
                    at += consumed;
                    self.trailers = Some(Trailers { bytes: Vec::new(), scan: HeadScan::section() });
                }
            }
        }
    }

    fn feed_trailers(&mut self, input: &[u8]) -> Result<FeedResult, Malformed> {
        let Some(trailers) = &mut self.trailers else {
            return Ok(FeedResult::NeedMore);
        };
        let before = trailers.bytes.len();
        trailers.bytes.extend_from_slice(input);
        if !trailers.scan.scan(&trailers.bytes, &HEAD_LIMITS) {
            return Ok(FeedResult::NeedMore);
        }
        let mut fields = Vec::new();
        let edits = TrailerEdits::Keep;
        Ok(match h1::parse_trailers(&trailers.bytes, &HEAD_LIMITS, edits, &mut fields)? {
            ParseProgress::Complete { length } => FeedResult::Done { consumed: length - before },
            ParseProgress::Partial => FeedResult::NeedMore,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_to_their_end_however_they_are_cut() {
        let cases: &[(Framing, &[u8], &[u8], usize)] = &[
            (Framing::None, b"next", b"", 4),
            (Framing::Length(5), b"hellonext", b"hello", 4),
            (Framing::Chunked, b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\nnext", b"hello", 4),
            (Framing::Chunked, b"5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\nnext", b"hello", 4),
        ];
        for (framing, wire, data, beyond) in cases {
            for cut in 0..=wire.len() {
                let mut reader = BodyReader::new(*framing);
                let mut found = Vec::new();
                let first =
                    reader.feed(&wire[..cut], |data| found.extend_from_slice(data)).unwrap();
                let used = match first {
                    FeedResult::Done { consumed } => consumed,
                    FeedResult::NeedMore => {
                        let rest = &wire[cut..];
                        match reader.feed(rest, |data| found.extend_from_slice(data)).unwrap() {
                            FeedResult::Done { consumed } => cut + consumed,
                            FeedResult::NeedMore => panic!("{framing:?} cut at {cut} does not end"),
                        }
                    }
                };
                assert_eq!(found, *data, "{framing:?} cut at {cut}");
                assert_eq!(wire.len() - used, *beyond, "{framing:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for wire in [&b"x\r\n"[..], b"5\r\nhelloX", b"0\r\nno colon\r\n\r\n"] {
            assert!(BodyReader::new(Framing::Chunked).feed(wire, |_| {}).is_err(), "{wire:?}");
        }
    }
}
