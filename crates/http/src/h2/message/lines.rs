//! The lines of a head, written once, so that any connection can encode them later.

use crate::h2::hpack::BlockEncoder;
use crate::message::Scheme;

/// A sink for the lines of a head.
pub trait LineSink {
    /// Takes a line. The name is in lower case.
    fn field(&mut self, name: &[u8], value: &[u8]);
    /// Takes a line whose name may be in any case.
    fn field_of_any_case(&mut self, name: &[u8], value: &[u8], never_indexed: bool);
    /// Adds a line; `write` appends its value.
    fn field_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>));
}

impl LineSink for BlockEncoder<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        BlockEncoder::field(self, name, value);
    }

    fn field_of_any_case(&mut self, name: &[u8], value: &[u8], never_indexed: bool) {
        BlockEncoder::field_of_any_case(self, name, value, never_indexed);
    }

    fn field_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        BlockEncoder::field_with(self, name, write);
    }
}

/// Bytes before each line: whether the line is never indexed, and the lengths of its name and value.
const PREFIX_BYTES: usize = 1 + 4 + 4;

/// Writes lines to the end of a buffer, to be read by [`Lines`].
pub struct LinesWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> LinesWriter<'a> {
    /// Starts at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    fn begin(&mut self, name: &[u8], never_indexed: bool) -> usize {
        let start = self.out.len();
        self.out.push(u8::from(never_indexed));
        self.out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&[0; 4]);
        self.out.extend_from_slice(name);
        start + PREFIX_BYTES + name.len()
    }

    /// Ends the line whose value starts at `start`.
    fn end(&mut self, name: &[u8], start: usize) {
        let length = (self.out.len() - start) as u32;
        let place = start - name.len() - size_of::<u32>();
        self.out[place..place + size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    }
}

impl LineSink for LinesWriter<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.field_of_any_case(name, value, false);
    }

    fn field_of_any_case(&mut self, name: &[u8], value: &[u8], never_indexed: bool) {
        let start = self.begin(name, never_indexed);
        self.out.extend_from_slice(value);
        self.end(name, start);
    }

    fn field_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin(name, false);
        write(self.out);
        self.end(name, start);
    }
}

/// Lines that a [`LinesWriter`] has written.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a>(pub &'a [u8]);

impl<'a> Lines<'a> {
    /// Encodes the lines. The scheme is that of the connection.
    pub fn encode(self, scheme: Scheme, lines: &mut BlockEncoder<'_>) {
        for (name, value, never_indexed) in self {
            match name {
                b":scheme" => lines.field(name, scheme.name().as_bytes()),
                _ if name.starts_with(b":") => lines.field(name, value),
                _ => lines.field_of_any_case(name, value, never_indexed),
            }
        }
    }
}

/// Each item: name, value, and whether the line is never indexed.
impl<'a> Iterator for Lines<'a> {
    type Item = (&'a [u8], &'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, rest) = self.0.split_first_chunk::<PREFIX_BYTES>()?;
        let [never_indexed, n0, n1, n2, n3, v0, v1, v2, v3] = *prefix;
        let name_length = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
        let value_length = u32::from_le_bytes([v0, v1, v2, v3]) as usize;
        let (name, rest) = rest.split_at_checked(name_length)?;
        let (value, rest) = rest.split_at_checked(value_length)?;
        self.0 = rest;
        Some((name, value, never_indexed != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = b"before".to_vec();
        let mut writer = LinesWriter::new(&mut bytes);
        writer.field(b":method", b"GET");
        writer.field_of_any_case(b"Authorization", b"secret", true);
        writer.field_with(b"max-forwards", |out| out.extend_from_slice(b"7"));
        writer.field(b"x", b"");
        let lines: Vec<_> = Lines(&bytes[b"before".len()..]).collect();
        assert_eq!(
            lines,
            [
                (&b":method"[..], &b"GET"[..], false),
                (b"Authorization", b"secret", true),
                (b"max-forwards", b"7", false),
                (b"x", b"", false),
            ]
        );
    }

    #[test]
    fn what_is_cut_ends() {
        let mut bytes = Vec::new();
        LinesWriter::new(&mut bytes).field(b"name", b"value");
        for length in 0..bytes.len() {
            assert_eq!(Lines(&bytes[..length]).next(), None, "{length} bytes");
        }
    }
}
