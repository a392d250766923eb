//! The data of a response that decides whether it is good, for all versions of HTTP.

use std::io::Read as _;

use weir_http::message::ResponseHead;

use super::fault::Fault;
use super::plan::{Checksum, Expectation, Gzip};

/// Length of the end of a gzip stream (RFC 1952 section 2.3.1): CRC-32 and length of the contents.
const GZIP_TRAILER_BYTES: usize = 8;

/// The received part of a response.
#[derive(Debug, Default)]
pub struct Answer {
    status: u16,
    body_bytes: u64,
    checksum: Option<crc32fast::Hasher>,
    coded: Option<CompressedBody>,
}

/// A body that should be compressed.
#[derive(Debug, Default)]
struct CompressedBody {
    /// Whether the head has `Content-Encoding: gzip`.
    is_gzip: bool,
    /// The last bytes of the body.
    tail: [u8; GZIP_TRAILER_BYTES],
    /// The whole body, if it must be decompressed.
    whole: Option<Vec<u8>>,
}

/// Facts about the first good response to a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirstSeen {
    /// The checksum of its body, if all responses must have the same.
    pub checksum: Option<u32>,
    /// Whether its body was decompressed as a check.
    pub was_unpacked: bool,
}

impl Answer {
    /// Prepares for the next response. `first` has the facts about earlier responses to the same request.
    pub fn restart(&mut self, expect: &Expectation, first: &FirstSeen) {
        self.status = 0;
        self.body_bytes = 0;
        self.checksum = expect.checksum.is_wanted().then(crc32fast::Hasher::new);
        self.coded = expect.gzip.map(|_| CompressedBody {
            whole: (!first.was_unpacked).then(Vec::new),
            ..CompressedBody::default()
        });
    }

    /// Processes the final head, which was parsed from `text`.
    pub fn begin(&mut self, head: &ResponseHead, text: &[u8]) {
        self.status = head.status;
        if let Some(coded) = &mut self.coded {
            coded.is_gzip = head.fields.iter().any(|field| {
                field.name.of(text).eq_ignore_ascii_case(b"content-encoding")
                    && field.value.of(text).eq_ignore_ascii_case(b"gzip")
            });
        }
    }

    /// Processes bytes of the body.
    #[inline]
    pub fn data(&mut self, data: &[u8]) {
        self.body_bytes += data.len() as u64;
        if let Some(checksum) = &mut self.checksum {
            checksum.update(data);
        }
        if let Some(coded) = &mut self.coded {
            coded.data(data);
        }
    }

    /// The status; 0 before the head.
    #[cfg(test)]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Number of body bytes so far.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Why a complete response is not as expected; `None` for a good one. `first` has the facts about the first
    /// response to this request; the first response sets them.
    pub fn judge(
        &self,
        expect: &Expectation,
        is_head_request: bool,
        first: &mut FirstSeen,
    ) -> Option<Fault> {
        let status_is_good = match expect.status {
            Some(status) => self.status == status,
            None => (200..400).contains(&self.status),
        };
        if !status_is_good {
            return Some(Fault::Status(self.status));
        }
        if is_head_request {
            return None;
        }
        let found = self.body_bytes;
        if let Some(expected) = expect.body_bytes.filter(|expected| *expected != found) {
            return Some(Fault::Length { found, expected });
        }
        if let (Some(coded), Some(expected)) = (&self.coded, &expect.gzip) {
            let fault = coded.judge(expected);
            first.was_unpacked |= fault.is_none();
            return fault;
        }
        let found = self.checksum.as_ref()?.clone().finalize();
        let expected = match expect.checksum {
            Checksum::Ignored => return None,
            Checksum::Crc32(expected) => expected,
            Checksum::AsFirst => *first.checksum.get_or_insert(found),
        };
        (found != expected).then_some(Fault::Checksum { found, expected })
    }
}

impl CompressedBody {
    fn data(&mut self, data: &[u8]) {
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(data);
        }
        match data.len().checked_sub(GZIP_TRAILER_BYTES) {
            Some(start) => self.tail.copy_from_slice(&data[start..]),
            None => {
                self.tail.rotate_left(data.len());
                self.tail[GZIP_TRAILER_BYTES - data.len()..].copy_from_slice(data);
            }
        }
    }

    /// Compares the trailer of every response with the expected checksum and length. Also decompresses the first
    /// response.
    fn judge(&self, expected: &Gzip) -> Option<Fault> {
        if !self.is_gzip {
            return Some(Fault::NotCompressed);
        }
        let [a, b, c, d, e, f, g, h] = self.tail;
        let (crc32, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if u64::from(length) != expected.body_bytes {
            return Some(Fault::Length { found: length.into(), expected: expected.body_bytes });
        }
        if crc32 != expected.crc32 {
            return Some(Fault::Checksum { found: crc32, expected: expected.crc32 });
        }
        let mut unpacked = Vec::new();
        let whole = self.whole.as_deref()?;
        // One byte more than expected shows that the content is too long.
        let mut bounded = flate2::read::GzDecoder::new(whole).take(expected.body_bytes + 1);
        if bounded.read_to_end(&mut unpacked).is_err() {
            return Some(Fault::Body);
        }
        let found = crc32fast::hash(&unpacked);
        let is_it = unpacked.len() as u64 == expected.body_bytes && found == expected.crc32;
        (!is_it).then_some(Fault::Checksum { found, expected: expected.crc32 })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::load_outcome::ErrorKind;
    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
        gzip.write_all(text).expect("memory");
        gzip.finish().expect("memory")
    }

    /// The fault of a body received in pieces of `step` bytes, and whether it was decompressed.
    fn judged(
        body: &[u8],
        step: usize,
        is_gzip: bool,
        expected: Gzip,
    ) -> (Option<ErrorKind>, bool) {
        let expect = Expectation {
            status: Some(200),
            body_bytes: None,
            checksum: Checksum::Ignored,
            gzip: Some(expected),
        };
        let (mut answer, mut first) = (Answer::default(), FirstSeen::default());
        answer.restart(&expect, &first);
        let text = b"Content-Encoding: gzip\r\n";
        let mut head = ResponseHead::new();
        let whole =
            [&b"HTTP/1.1 200 OK\r\n"[..], if is_gzip { text } else { b"" }, b"\r\n"].concat();
        let limits = crate::body_reader::HEAD_LIMITS;
        let method = weir_http::message::Method::Get;
        weir_http::h1::parse_response(&whole, &limits, method, &mut head).expect("a head");
        answer.begin(&head, &whole);
        body.chunks(step).for_each(|part| answer.data(part));
        let fault = answer.judge(&expect, false, &mut first);
        (fault.map(|fault| fault.kind()), first.was_unpacked)
    }

    #[test]
    fn compressed_bodies_are_judged_by_what_is_in_them() {
        let text = b"Weirgate decides how much water goes which way. ".repeat(40);
        let expected = Gzip { body_bytes: text.len() as u64, crc32: crc32fast::hash(&text) };
        let good = packed(&text);
        for step in [1, 3, 7, 8, 9, good.len()] {
            assert_eq!(judged(&good, step, true, expected), (None, true), "{step}");
        }
        let check = |body: &[u8], is_gzip, expected, kind| {
            assert_eq!(judged(body, 64, is_gzip, expected), (Some(kind), false));
        };
        check(&text, false, expected, ErrorKind::NotCompressed);
        let shorter = Gzip { body_bytes: 1, ..expected };
        check(&good, true, shorter, ErrorKind::Length);
        check(&good, true, Gzip { crc32: 1, ..expected }, ErrorKind::Checksum);
        let mut broken = good.clone();
        broken[good.len() / 2] ^= 0xff;
        assert!(judged(&broken, 64, true, expected).0.is_some());
        check(b"", true, expected, ErrorKind::Length);
    }

    #[test]
    fn one_response_is_unpacked_and_the_others_by_their_trailer() {
        let expect = Expectation {
            status: None,
            body_bytes: None,
            checksum: Checksum::Ignored,
            gzip: Some(Gzip { body_bytes: 3, crc32: crc32fast::hash(b"abc") }),
        };
        let first = FirstSeen { was_unpacked: true, ..FirstSeen::default() };
        let mut answer = Answer::default();
        answer.restart(&expect, &FirstSeen::default());
        assert!(answer.coded.as_ref().is_some_and(|coded| coded.whole.is_some()));
        answer.restart(&expect, &first);
        assert!(answer.coded.as_ref().is_some_and(|coded| coded.whole.is_none()));
    }
}
