//! `aws-chunked`, in which clients of S3 send bodies: chunks with signatures, and trailers behind the last one.

use super::InflateProblem;
use super::step::Step;

/// Maximum length of the line in front of a chunk, and of all trailers. A signature has about 90 bytes.
const LINE_BYTES_MAX: usize = 1_024;
/// Maximum number of digits of a length.
const DIGITS_MAX: usize = 8;

/// An incremental decoder.
#[derive(Debug)]
pub(super) struct Chunks {
    place: Place,
    /// The current line, or the trailers.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the line in front of a chunk.
    Line,
    /// In a chunk, with the number of bytes to come.
    Data(usize),
    /// In the line end behind a chunk, with the number of bytes to come.
    LineEnd(usize),
    Trailers,
    End,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self { place: Place::Line, line: Vec::new() }
    }

    /// Decodes as much as fits in `out`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, InflateProblem> {
        let (mut taken, mut written) = (0, 0);
        while let Some(byte) = input.get(taken)
            && self.place != Place::End
        {
            if let Place::Data(left) = self.place {
                let length = left.min(input.len() - taken).min(out.len() - written);
                if length == 0 {
                    break;
                }
                out[written..written + length].copy_from_slice(&input[taken..taken + length]);
                (taken, written) = (taken + length, written + length);
                self.place =
                    if left == length { Place::LineEnd(2) } else { Place::Data(left - length) };
                continue;
            }
            taken += 1;
            self.between(*byte)?;
        }
        Ok(Step { taken, written, is_end: self.place == Place::End })
    }

    /// Takes a byte that is not in a chunk.
    fn between(&mut self, byte: u8) -> Result<(), InflateProblem> {
        if let Place::LineEnd(left) = self.place {
            self.place = if left == 1 { Place::Line } else { Place::LineEnd(1) };
            let expected = if left == 1 { b'\n' } else { b'\r' };
            return if byte == expected { Ok(()) } else { Err(InflateProblem::Malformed) };
        }
        self.line.push(byte);
        if self.line.len() > LINE_BYTES_MAX {
            return Err(InflateProblem::Malformed);
        }
        if self.place == Place::Trailers {
            if matches!(&self.line[..], b"\r\n") || self.line.ends_with(b"\r\n\r\n") {
                self.place = Place::End;
            }
        } else if byte == b'\n' {
            self.place = match length_of(&self.line).ok_or(InflateProblem::Malformed)? {
                0 => Place::Trailers,
                length => Place::Data(length),
            };
            self.line.clear();
        }
        Ok(())
    }
}

/// The length in a line such as `400;chunk-signature=0a1b`.
fn length_of(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r\n")?;
    let (digits, signature) = match memchr::memchr(b';', line) {
        Some(at) => (&line[..at], &line[at..]),
        None => (line, &b""[..]),
    };
    let signature = signature.strip_prefix(b";chunk-signature=").unwrap_or(signature);
    let is_sound = digits.iter().all(u8::is_ascii_hexdigit)
        && (1..=DIGITS_MAX).contains(&digits.len())
        && signature.iter().all(u8::is_ascii_alphanumeric);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_sound)?;
    usize::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &[u8], piece: usize) -> Result<(Vec<u8>, bool), InflateProblem> {
        let (mut chunks, mut text, mut is_end) = (Chunks::new(), Vec::new(), false);
        for piece in body.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let mut out = [0; 3];
                let step = chunks.step(rest, &mut out)?;
                text.extend_from_slice(&out[..step.written]);
                rest = &rest[step.taken..];
                is_end = step.is_end;
                if step.is_end {
                    return if rest.is_empty() {
                        Ok((text, true))
                    } else {
                        Err(InflateProblem::Trailing)
                    };
                }
            }
        }
        Ok((text, is_end))
    }

    #[test]
    fn chunks_are_joined() {
        let wrong = Err(InflateProblem::Malformed);
        for (body, expected) in [
            (
                "5;chunk-signature=abc\r\nhello\r\n0;chunk-signature=def\r\n\r\n",
                Ok((b"hello".to_vec(), true)),
            ),
            (
                "2\r\nhe\r\nA\r\nllo world!\r\n0\r\nx-amz-checksum-crc32:x==\r\n\r\n",
                Ok((b"hello world!".to_vec(), true)),
            ),
            ("0\r\n\r\n", Ok((Vec::new(), true))),
            ("5\r\nhel", Ok((b"hel".to_vec(), false))),
            ("0\r\n", Ok((Vec::new(), false))),
            ("0\r\na:b\r\n", Ok((Vec::new(), false))),
            ("5\nhello\r\n", wrong.clone()),
            ("5\r\nhelloX", wrong.clone()),
            ("g\r\n", wrong.clone()),
            ("\r\n", wrong.clone()),
            ("-1\r\n", wrong.clone()),
            ("100000000\r\n", wrong.clone()),
            ("5;a=b\r\nhello\r\n", wrong.clone()),
            ("5;chunk-signature=a b\r\nhello\r\n", wrong),
        ] {
            for piece in [1, 2, 1_000] {
                assert_eq!(decoded(body.as_bytes(), piece), expected, "{body:?} by {piece}");
            }
        }
        let long = format!("5;chunk-signature={}", "a".repeat(LINE_BYTES_MAX));
        assert_eq!(decoded(long.as_bytes(), 9), Err(InflateProblem::Malformed));
        assert_eq!(decoded(b"0\r\n\r\nx", 9), Err(InflateProblem::Trailing));
    }
}
