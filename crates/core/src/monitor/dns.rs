//! A question of DNS and its answer (RFC 1035 section 4), as far as a probe needs them.

use std::net::IpAddr;

/// Longest name as it travels.
const NAME_BYTES_MAX: usize = 255;
/// Longest part of a name.
const LABEL_BYTES_MAX: usize = 63;
const HEADER_BYTES: usize = 12;
/// Records of an answer that are looked at.
const RECORDS_MAX: usize = 256;
const CLASS_IN: u16 = 1;
const RECURSION_DESIRED: u8 = 1;
const RESPONSE: u8 = 0x80;
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name as it travels.
    name: Vec<u8>,
    record: u16,
}

/// Why an answer is not the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// It answers something else, perhaps an earlier question.
    Foreign,
    /// It cannot be read.
    Malformed,
    /// It has this response code.
    Code(u8),
    /// It has no such record.
    Record,
}

impl Question {
    /// A question for records of this type at a name in ASCII. `None`: there can be no such name.
    pub fn new(name: &str, record: u16) -> Option<Self> {
        let mut out = Vec::new();
        let name = name.strip_suffix('.').unwrap_or(name);
        for label in name.split('.').filter(|_| !name.is_empty()) {
            if label.is_empty() || label.len() > LABEL_BYTES_MAX || !label.is_ascii() {
                return None;
            }
            out.push(label.len() as u8);
            out.extend(label.bytes());
        }
        out.push(0);
        (out.len() <= NAME_BYTES_MAX).then_some(Self { name: out, record })
    }

    /// The question as a datagram.
    pub fn datagram(&self, id: u16) -> Vec<u8> {
        let mut out = id.to_be_bytes().to_vec();
        // Its flags, and how many questions and records there are.
        out.extend([RECURSION_DESIRED, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend(&self.name);
        out.extend(self.record.to_be_bytes());
        out.extend(CLASS_IN.to_be_bytes());
        out
    }

    /// Whether a datagram is the answer with this response code, and has the address, if one is wanted.
    pub fn judge(
        &self,
        answer: &[u8],
        id: u16,
        code: u8,
        address: Option<IpAddr>,
    ) -> Result<(), Mismatch> {
        if answer.get(..2) != Some(&id.to_be_bytes()) {
            return Err(Mismatch::Foreign);
        }
        let header = answer.get(..HEADER_BYTES).ok_or(Mismatch::Malformed)?;
        if header[2] & RESPONSE == 0 {
            return Err(Mismatch::Malformed);
        }
        let found = header[3] & 15;
        if found != code {
            return Err(Mismatch::Code(found));
        }
        let Some(address) = address else { return Ok(()) };
        let count = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let mut at = HEADER_BYTES;
        for _ in 0..count(4).min(RECORDS_MAX) {
            at = behind_name(answer, at).ok_or(Mismatch::Malformed)? + 4;
        }
        for _ in 0..count(6).min(RECORDS_MAX) {
            let (found, behind) = record(answer, at).ok_or(Mismatch::Malformed)?;
            if found == Some(address) {
                return Ok(());
            }
            at = behind;
        }
        Err(Mismatch::Record)
    }
}

/// The address that the record here has, if it is one of addresses, and what is behind it.
fn record(answer: &[u8], at: usize) -> Option<(Option<IpAddr>, usize)> {
    let at = behind_name(answer, at)?;
    let number = |at: usize| Some(u16::from_be_bytes([*answer.get(at)?, *answer.get(at + 1)?]));
    let (kind, length) = (number(at)?, usize::from(number(at + 8)?));
    let data = answer.get(at + 10..at + 10 + length)?;
    let address = match kind {
        TYPE_A => <[u8; 4]>::try_from(data).ok().map(IpAddr::from),
        TYPE_AAAA => <[u8; 16]>::try_from(data).ok().map(IpAddr::from),
        _ => None,
    };
    Some((address, at + 10 + length))
}

/// What is behind the name here. One that goes on elsewhere ends with two bytes that say where.
fn behind_name(answer: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = *answer.get(at)?;
        match length >> 6 {
            0 if length == 0 => return Some(at + 1),
            0 => at += 1 + usize::from(length),
            3 => return Some(at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: &Question, code: u8, records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = question.datagram(7);
        out[2] |= RESPONSE;
        out[3] = code;
        out[7] = records.len() as u8;
        for (kind, data) in records {
            // The name is that of the question.
            out.extend([0xC0, 12]);
            out.extend(kind.to_be_bytes());
            out.extend([0, 1, 0, 0, 0, 60]);
            out.extend((data.len() as u16).to_be_bytes());
            out.extend(*data);
        }
        out
    }

    #[test]
    fn questions_as_they_travel() {
        let question = Question::new("a.example.", 1).expect("a name");
        let expected =
            b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01";
        assert_eq!(question.datagram(7), expected);
        assert_eq!(Question::new(".", 2).expect("the root").datagram(0).len(), HEADER_BYTES + 5);
        let long = "a".repeat(64);
        for name in ["a..b", ".a", "ä", long.as_str(), &"abc.".repeat(64)] {
            assert_eq!(Question::new(name, 1), None, "{name}");
        }
    }

    #[test]
    fn answers_are_judged() {
        let question = Question::new("a.example", 1).expect("a name");
        let address = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
        let with = answer(&question, 0, &[(5, b"\x01b\xC0\x0E"), (1, &[192, 0, 2, 1])]);
        assert_eq!(question.judge(&with, 7, 0, None), Ok(()));
        assert_eq!(question.judge(&with, 7, 0, address("192.0.2.1")), Ok(()));
        assert_eq!(question.judge(&with, 7, 0, address("192.0.2.2")), Err(Mismatch::Record));
        assert_eq!(question.judge(&with, 8, 0, None), Err(Mismatch::Foreign));
        assert_eq!(question.judge(&with, 7, 3, None), Err(Mismatch::Code(0)));
        assert_eq!(question.judge(&question.datagram(7), 7, 0, None), Err(Mismatch::Malformed));
        for length in 2..with.len() {
            let cut = question.judge(&with[..length], 7, 0, address("192.0.2.1"));
            assert_eq!(cut, Err(Mismatch::Malformed), "{length}");
        }
    }
}
