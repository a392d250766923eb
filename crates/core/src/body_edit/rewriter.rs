//! The replacement of text in one body.

use std::sync::Arc;

use super::edit::BodyEdit;
use super::next_match::NextMatch;
use super::searchers::Searchers;

/// Replaces text in one body, piece by piece.
#[derive(Debug)]
pub struct Rewriter {
    edit: Arc<BodyEdit>,
    /// The possible beginning of a match.
    held: Vec<u8>,
    taken_bytes: u64,
    written_bytes: u64,
    /// Whether the rest of the body passes unchanged.
    is_passing: bool,
    is_cut: bool,
}

impl Rewriter {
    /// A rewriter for one body.
    pub fn new(edit: Arc<BodyEdit>) -> Self {
        Self {
            edit,
            held: Vec::new(),
            taken_bytes: 0,
            written_bytes: 0,
            is_passing: false,
            is_cut: false,
        }
    }

    /// Takes a piece of the body, and appends the finished output to `out`. `joined` is a work buffer.
    pub fn rewrite(
        &mut self,
        piece: &[u8],
        searchers: &mut Searchers,
        joined: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let left = if self.is_passing { 0 } else { self.edit.size_bytes_max - self.taken_bytes };
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        let (piece, beyond) = piece.split_at(left);
        self.taken_bytes += left as u64;
        if beyond.is_empty() {
            return self.advance((piece, false), searchers, joined, out);
        }
        if !self.is_passing {
            self.is_cut = true;
            self.advance((piece, true), searchers, joined, out);
            self.is_passing = true;
        }
        out.extend_from_slice(beyond);
    }

    /// The body is complete: outputs the held bytes.
    pub fn finish(&mut self, searchers: &mut Searchers, joined: &mut Vec<u8>, out: &mut Vec<u8>) {
        if !self.is_passing {
            self.advance((b"", true), searchers, joined, out);
            self.is_passing = true;
        }
    }

    /// The number of held bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Whether a part passed unchanged because the body exceeds the maximum size.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn advance(
        &mut self,
        (piece, is_end): (&[u8], bool),
        searchers: &mut Searchers,
        joined: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        // Each search begins at the start of the text, so its state is borrowed for this piece and not stored with the
        // body.
        let mut searcher = searchers.lend(&self.edit);
        let text = if self.held.is_empty() {
            piece
        } else {
            joined.clear();
            joined.append(&mut self.held);
            joined.extend_from_slice(piece);
            joined
        };
        let what = &self.edit.what;
        let (mut from, mut tail) = (0, None);
        loop {
            let (start, end, string) =
                match what.find((searcher.as_deref_mut(), &mut tail), (text, from), is_end) {
                    NextMatch::Match { start, end, string } => (start, end, string),
                    NextMatch::Clear(upto) => {
                        out.extend_from_slice(&text[from..upto]);
                        self.written_bytes += (upto - from) as u64;
                        from = upto;
                        break;
                    }
                };
            out.extend_from_slice(&text[from..start]);
            let before = out.len();
            what.write(searcher.as_deref(), text, (start, end, string), out);
            self.written_bytes += (start - from + out.len() - before) as u64;
            from = end;
            if self.written_bytes > self.edit.size_bytes_max {
                out.truncate(before);
                out.extend_from_slice(&text[start..]);
                from = text.len();
                (self.is_passing, self.is_cut) = (true, true);
                break;
            }
        }
        self.held.extend_from_slice(&text[from..]);
    }
}
