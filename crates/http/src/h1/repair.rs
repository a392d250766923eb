//! Repairs malformed sections of a member: bare line feeds and control characters.
//!
//! The strict parser remains the only parser. A section that it refuses for one of these flaws is rewritten without the
//! flaw, and then parsed by it. Sections that it accepts are not changed.

use super::{HeadLimits, within_limit};
use crate::chars::find_control;
use crate::fields::classify;
use crate::flaws::{Flaw, Flaws};
use crate::message::FieldId;

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// The section takes this many bytes of the input; its repaired form is in the buffer.
    Done(usize),
    /// The end of the section has not arrived.
    Partial,
    /// The section exceeds the limit.
    TooLarge,
    /// The section has a flaw that is not tolerated.
    Refused,
}

/// Writes the lines at the start of `input` to `out`, up to and including the empty one: each with CR LF at its end,
/// and with spaces for control characters. `taken` selects which of the two is repaired; found flaws are added to
/// `flaws`.
#[cold]
pub(super) fn repair(
    input: &[u8],
    limits: &HeadLimits,
    taken: Flaws,
    flaws: &mut Flaws,
    out: &mut Vec<u8>,
) -> Repair {
    out.clear();
    let (outcome, found) = walk(input, limits, taken, out);
    match outcome {
        Repair::Done(_) => flaws.add_all(found),
        _ => out.clear(),
    }
    outcome
}

fn walk(input: &[u8], limits: &HeadLimits, taken: Flaws, out: &mut Vec<u8>) -> (Repair, Flaws) {
    let (input, may_grow) = within_limit(input, *limits);
    let mut found = Flaws::NONE;
    let (mut copied, mut line_start) = (0, 0);
    while let Some(at) = find_control(input, copied) {
        out.extend_from_slice(&input[copied..at]);
        let end = match line_end(input, at) {
            LineEnd::Crlf => at + 2,
            LineEnd::BareLf if taken.have(Flaw::BareLineFeed) => {
                found.add(Flaw::BareLineFeed);
                at + 1
            }
            LineEnd::Undecided => break,
            LineEnd::None
                if taken.have(Flaw::ControlCharacter) && !is_framing(&input[line_start..at]) =>
            {
                found.add(Flaw::ControlCharacter);
                out.push(b' ');
                copied = at + 1;
                continue;
            }
            LineEnd::BareLf | LineEnd::None => return (Repair::Refused, found),
        };
        out.extend_from_slice(b"\r\n");
        if at == line_start {
            return (Repair::Done(end), found);
        }
        (copied, line_start) = (end, end);
    }
    (if may_grow { Repair::Partial } else { Repair::TooLarge }, found)
}

/// Whether a line with this beginning is a field that matters to an intermediary: there a control character makes its
/// meaning ambiguous.
fn is_framing(line: &[u8]) -> bool {
    match memchr::memchr(b':', line) {
        None | Some(0) => false,
        Some(colon) => classify(&line[..colon]).id != FieldId::Other,
    }
}

/// The meaning of a control character for its line.
pub(super) enum LineEnd {
    /// The CR of CR LF.
    Crlf,
    /// LF without CR.
    BareLf,
    /// A CR that is the last byte so far.
    Undecided,
    /// Not the end.
    None,
}

/// The meaning of the control character at `at`.
pub(super) fn line_end(input: &[u8], at: usize) -> LineEnd {
    match (input[at], input.get(at + 1)) {
        (b'\r', Some(b'\n')) => LineEnd::Crlf,
        (b'\r', None) => LineEnd::Undecided,
        (b'\n', _) => LineEnd::BareLf,
        _ => LineEnd::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { head_size_max: 40, headers_max: 10 };

    #[test]
    fn sections_are_written_as_they_should_be() {
        let lines = Flaws::NONE.with(Flaw::BareLineFeed);
        let controls = Flaws::NONE.with(Flaw::ControlCharacter);
        let both = Flaws::ALL;
        for (input, taken, expected, text) in [
            ("A: b\n\nc", lines, Repair::Done(6), "A: b\r\n\r\n"),
            ("A: b\r\n\nc", lines, Repair::Done(7), "A: b\r\n\r\n"),
            ("A: b\n\r\nc", lines, Repair::Done(7), "A: b\r\n\r\n"),
            ("A: b\n\r", lines, Repair::Partial, ""),
            ("A: b\n", lines, Repair::Partial, ""),
            ("A: \0\n\n", lines, Repair::Refused, ""),
            ("A: \r\n\n", controls, Repair::Refused, ""),
            ("A: a\rb\0\x7f\r\n\r\n", controls, Repair::Done(12), "A: a b  \r\n\r\n"),
            ("A: \t\x01\n\n", both, Repair::Done(7), "A: \t \r\n\r\n"),
            // All parsers see the empty line, or no parser does.
            ("A: b\r\n\r\r\n\r\n", controls, Repair::Done(11), "A: b\r\n \r\n\r\n"),
            ("Connection: a\0\n\n", both, Repair::Refused, ""),
            ("transfer-encoding:\x01chunked\n\n", both, Repair::Refused, ""),
            (":\0\n\n", both, Repair::Done(4), ": \r\n\r\n"),
            ("\n", lines, Repair::Done(1), "\r\n"),
            ("", both, Repair::Partial, ""),
            (&"x".repeat(40), both, Repair::TooLarge, ""),
            (&format!("{}\n\n", "x".repeat(38)), both, Repair::Done(40), ""),
            (&format!("{}\n\n", "x".repeat(39)), both, Repair::TooLarge, ""),
        ] {
            let (mut flaws, mut out) = (Flaws::NONE, b"left from before".to_vec());
            let outcome = repair(input.as_bytes(), &LIMITS, taken, &mut flaws, &mut out);
            assert_eq!(outcome, expected, "{input:?}");
            if !text.is_empty() {
                assert_eq!(String::from_utf8(out).unwrap(), text, "{input:?}");
                assert_eq!(flaws.without(taken), Flaws::NONE, "{input:?}");
                assert!(!flaws.is_empty(), "{input:?}");
            }
        }
    }
}
