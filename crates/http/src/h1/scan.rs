//! Waiting for the end of a head that drips in.

use super::HeadLimits;
use crate::chars::find_control;

/// Looks for the end of a head over inputs that grow, each byte once.
///
/// The caller parses at first; when that gives [`Parsed::Partial`](super::Parsed::Partial) it keeps
/// the bytes, and from then on parses again only when [`scan`](Self::scan) says that it is worth it.
/// Parsing after every arrival would cost the square of the length.
#[derive(Debug, Clone)]
pub struct HeadScan {
    /// Bytes seen to the last control character that could not be judged yet.
    position: usize,
    line_start: usize,
    /// The line that starts here may be empty (before a request line).
    leading_empty_line: bool,
}

impl HeadScan {
    /// For a request head, which one empty line may precede.
    pub fn request() -> Self {
        Self { position: 0, line_start: 0, leading_empty_line: true }
    }

    /// For a response head or a trailer section.
    pub fn section() -> Self {
        Self { leading_empty_line: false, ..Self::request() }
    }

    /// Whether it is time to parse `input`, of which all earlier inputs were a beginning: it holds a
    /// whole head, or one that is too large, or a line end or control character that no head may
    /// have. Parsing then never gives `Partial`.
    pub fn scan(&mut self, input: &[u8], limits: &HeadLimits) -> bool {
        while let Some(at) = find_control(input, self.position) {
            match (input[at], input.get(at + 1)) {
                (b'\r', Some(b'\n')) => {
                    let is_empty_line = at == self.line_start;
                    if is_empty_line && !self.leading_empty_line {
                        return true;
                    }
                    self.leading_empty_line = false;
                    self.position = at + 2;
                    self.line_start = self.position;
                }
                (b'\r', None) => {
                    self.position = at;
                    return input.len() >= limits.head_size_max as usize;
                }
                _ => return true,
            }
        }
        self.position = input.len();
        input.len() >= limits.head_size_max as usize
    }
}
