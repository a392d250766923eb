//! Looks for code among the bytes of images and other media.

use memchr::memchr;

use super::code::{self, CodeStart, WINDOW_BYTES};
use super::program::{BeforeProgram, Comment, Language, is_between, is_empty};

/// Number of bytes of found code that rules get.
pub(super) const EXCERPT_BYTES: usize = 256;
/// Maximum number of such excerpts of a file. Each of them is a finding, so further ones make no difference.
pub(super) const EXCERPTS_MAX: usize = 8;
/// Number of bytes behind marks that may be looked at in any file, and for each of its bytes: usual files need a hundredth.
/// A file that needs more is a finding itself.
const WORK_BYTES_MIN: u64 = 64 * 1024;
const WORK_PER_BYTE: u64 = 4;

/// A comment whose end is not found yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    language: Language,
    comment: Comment,
    /// Whether the code before it does something.
    acts: bool,
    /// The place from which on its end may be.
    from: u64,
}

impl Open {
    /// Whether the comment ends with a byte. `before` is the byte before that one.
    fn ends(&self, place: u64, before: u8, byte: u8) -> bool {
        place >= self.from
            && match self.comment {
                Comment::Line => matches!(byte, b'\n' | b'\r'),
                Comment::Block => (before, byte) == (b'*', b'/'),
                Comment::Blanks => !is_empty(self.language, byte),
                Comment::Statements => is_between(byte),
            }
    }
}

/// The state of the search in one file.
#[derive(Debug, Default)]
pub(super) struct MediaScan {
    excerpts: usize,
    /// The comments in code whose ends are not found yet.
    open: Vec<Open>,
    /// The last byte of the content before.
    before: u8,
    looked_at: u64,
    work: u64,
}

impl MediaScan {
    /// Looks at content. Returns the beginnings of the code in it, and the number of bytes that are not needed any more.
    pub fn look(&mut self, content: &[u8], is_end: bool) -> (Vec<Vec<u8>>, usize) {
        let mut found = Vec::new();
        let mut from = 0;
        let kept = loop {
            let Some(at) = self.next(content, from) else { break content.len() };
            let rest = &content[at..];
            if rest.len() <= WINDOW_BYTES && !is_end {
                break at;
            }
            self.judge(content, at, &mut found);
            from = at + 1;
        };
        if is_end {
            self.end(&mut found);
        }
        self.looked_at += kept as u64;
        if let Some(last) = kept.checked_sub(1).and_then(|last| content.get(last)) {
            self.before = *last;
        }
        (found, kept)
    }

    /// Code of PHP may end with the file, also within a comment.
    fn end(&mut self, found: &mut Vec<Vec<u8>>) {
        let is_code = |it: &Open| it.acts && it.language == Language::Php;
        if self.open.iter().any(is_code) {
            self.note(CodeStart::Code, (&marked(Language::Php, b"#"), 0), found);
        }
    }

    /// The number of bytes behind marks that were looked at.
    #[cfg(test)]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The next place where code may begin.
    fn next(&self, content: &[u8], from: usize) -> Option<usize> {
        let rest = content.get(from..)?;
        if self.excerpts == EXCERPTS_MAX {
            return None;
        }
        if self.open.is_empty() {
            return memchr(b'<', rest).map(|at| from + at);
        }
        let is_place = |at: usize| content[at] == b'<' || self.ended(content, at).next().is_some();
        (from..content.len()).find(|at| is_place(*at))
    }

    /// The open comments that end with this byte.
    fn ended(&self, content: &[u8], at: usize) -> impl Iterator<Item = Open> {
        let before = at.checked_sub(1).map_or(self.before, |before| content[before]);
        let (place, byte) = (self.looked_at + at as u64, content[at]);
        self.open.iter().copied().filter(move |it| it.ends(place, before, byte))
    }

    /// Judges a place, by the bytes of a window. Pieces in which the content arrives make no difference.
    fn judge(&mut self, content: &[u8], at: usize, found: &mut Vec<Vec<u8>>) {
        let rest = &content[at..];
        let is_cut = rest.len() > WINDOW_BYTES;
        let rest = rest.get(..WINDOW_BYTES).unwrap_or(rest);
        let place = self.looked_at + at as u64;
        let ended: Vec<Open> = self.ended(content, at).collect();
        self.open.retain(|it| !ended.contains(it));
        for Open { language, comment, acts, .. } in ended {
            let is_before = matches!(comment, Comment::Line | Comment::Block);
            let code = &rest[usize::from(is_before)..];
            let read =
                code::read((language, BeforeProgram::Part(acts)), code, is_cut, &mut self.work);
            self.note(read, (&marked(language, code), place), found);
        }
        if rest.first() == Some(&b'<') {
            let read = code::at(rest, is_cut, &mut self.work);
            self.note(read, (excerpt(rest), place), found);
        }
        let work_max = WORK_BYTES_MIN + place * WORK_PER_BYTE;
        if self.work > work_max {
            self.work = 0;
            self.note(CodeStart::Code, (&marked(Language::Php, rest), place), found);
        }
    }

    /// Notes what was read at a place.
    fn note(&mut self, read: CodeStart, (excerpt, place): (&[u8], u64), found: &mut Vec<Vec<u8>>) {
        match read {
            CodeStart::Nothing => {}
            CodeStart::Code if self.excerpts < EXCERPTS_MAX => {
                self.excerpts += 1;
                found.push(excerpt.to_vec());
            }
            CodeStart::Code => {}
            CodeStart::Comment(language, comment, acts) => {
                let from = place + WINDOW_BYTES as u64;
                let open = Open { language, comment, acts, from };
                if !self.open.iter().any(|it| Open { from, ..*it } == open) {
                    self.open.push(open);
                }
            }
        }
    }
}

/// An excerpt of code that has no mark of its own.
fn marked(language: Language, code: &[u8]) -> Vec<u8> {
    let mark: &[u8] = if language == Language::Php { b"<?\n" } else { b"<%\n" };
    [mark, excerpt(code)].concat()
}

fn excerpt(code: &[u8]) -> &[u8] {
    code.get(..EXCERPT_BYTES).unwrap_or(code)
}
