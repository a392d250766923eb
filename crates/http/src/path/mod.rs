//! Paths: the one for the member, and the one for decisions.
//!
//! Servers disagree on the meaning of a path. Most decode `%2F` and merge `//` before they remove dot-segments; some read
//! `..;x` as a dot-segment. A rule for one spelling can be bypassed with another. So two paths are computed from the
//! received path, in this order:
//!
//! 1. The **member's path** has the same meaning for all usual servers. Escapes of unreserved characters are decoded,
//!    other escapes get upper-case digits (RFC 3986 section 6.2.2). Forbidden characters that browsers send raw are
//!    encoded, and so are bytes above 0x7F. [`Spellings`] defines the treatment of repeated slashes, `%2F`, `\`,
//!    parameters and `%00`. Only then are dot-segments removed. With [`PathForm::Keep`] the member's path is the received
//!    path, except that [raw bytes](RawBytes) are encoded.
//! 2. The **decided path** is the path that those servers resolve, in one spelling: without parameters, with a slash
//!    for a kept `%2F`, slashes merged, and without unnecessary escapes. Mostly it equals the member's.
//!
//! Paths that servers would read differently are refused: see [`PathError`]. A path that is already a member's path
//! stays unchanged.

mod decision_path;
mod raw_bytes;
#[cfg(test)]
mod tests;
mod writer;

use std::borrow::Cow;
use std::fmt;

use crate::message::Span;
pub use raw_bytes::{RawBytes, TargetForm, encode_raw_bytes, has_raw_bytes};
use writer::{Dots, write_member_path};

/// The form of a request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathForm {
    /// The member gets the received path; decisions use the path that servers resolve.
    Keep,
    /// The member gets the canonical path.
    Canonical(Spellings),
}

/// The treatment of path parts that servers read differently. With the default, only the parameters of segments remain
/// ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spellings {
    /// `//`
    pub slashes: Slashes,
    /// `%2F`
    pub encoded_slashes: EncodedSlashes,
    /// `\` and `%5C`
    pub backslash: Backslash,
    /// `;`
    pub parameters: Parameters,
    /// `%00`
    pub nul: Nul,
}

/// The treatment of repeated slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slashes {
    /// Merged.
    #[default]
    Merge,
    /// They stay, except at the start of the path, where `//name` may be read as a host.
    Keep,
}

/// The treatment of an encoded slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodedSlashes {
    /// The request is refused.
    #[default]
    Refuse,
    /// Decoded to a slash.
    Decode,
    /// The member gets it unchanged; for decisions it is a slash.
    Keep,
}

/// The treatment of a backslash, raw or encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backslash {
    /// The request is refused.
    #[default]
    Refuse,
    /// Treated as a slash.
    Slash,
    /// An ordinary character, which is encoded.
    Keep,
}

/// The treatment of the parameters of segments: the text after a semicolon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parameters {
    /// The member gets them; the path for decisions does not contain them.
    #[default]
    Keep,
    /// Removed.
    Remove,
    /// The request is refused.
    Refuse,
}

/// The treatment of an encoded zero byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nul {
    /// The request is refused.
    #[default]
    Refuse,
    /// Kept encoded.
    Keep,
}

impl Spellings {
    /// The spellings with the fewest changes.
    const KEPT: Self = Self {
        slashes: Slashes::Keep,
        encoded_slashes: EncodedSlashes::Keep,
        backslash: Backslash::Keep,
        parameters: Parameters::Keep,
        nul: Nul::Keep,
    };
}

impl Default for PathForm {
    fn default() -> Self {
        Self::Canonical(Spellings::default())
    }
}

/// The reason why a path is refused. Paths of the errors after [`Character`](Self::Character) are valid, but servers
/// read them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// A `%` without two hexadecimal digits.
    Escape,
    /// A forbidden byte in a path, or no leading slash.
    Character,
    /// `%00`.
    Nul,
    /// `\` or `%5C`.
    Backslash,
    /// `%2F`; if it is kept, only one next to a dot-segment or within parameters.
    EncodedSlash,
    /// Parameters; if they are kept, parameters of a dot-segment, or of an empty segment followed by others.
    Parameters,
    /// In a kept path: `..` after an empty segment or after one with an encoded slash. In a path of a rule: any dot-segment.
    DotSegment,
}

impl PathError {
    /// The key of the settings of paths that decides about this.
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::Nul => Some("http.path.nul"),
            Self::Backslash => Some("http.path.backslashes"),
            Self::EncodedSlash => Some("http.path.encoded_slashes"),
            Self::Parameters => Some("http.path.parameters"),
            Self::DotSegment => Some("http.path"),
            Self::Escape | Self::Character => None,
        }
    }

    /// Whether another path form could accept the path; otherwise it is invalid in any form.
    pub fn is_by_form(self) -> bool {
        !matches!(self, Self::Escape | Self::Character)
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Escape => "invalid percent-encoding in the path",
            Self::Character => "character not allowed in the path",
            Self::Nul => "%00 in the path",
            Self::Backslash => "backslash in the path",
            Self::EncodedSlash => "encoded slash in the path",
            Self::Parameters => "parameters in the path",
            Self::DotSegment => "ambiguous dot-segment in the path",
        })
    }
}

impl std::error::Error for PathError {}

/// Writes the member's path for `path`, which starts with a slash and has no query, and overwrites `out`.
pub fn canonicalise(path: &[u8], form: PathForm, out: &mut Vec<u8>) -> Result<(), PathError> {
    match form {
        PathForm::Canonical(spellings) => {
            write_member_path(path, spellings, Dots::Remove, out)?;
        }
        PathForm::Keep => {
            check_kept(path, Dots::RemoveUnambiguous, out)?;
            out.clear();
            encode_raw_bytes(path, out);
        }
    }
    Ok(())
}

/// Writes the member's path for a path that a rule has computed. A dot-segment in this path could escape from the prefix
/// that the rule has added, whether it comes from the request or results from `..` and a slash of the rule. So a path with a
/// dot-segment is refused.
pub fn rewritten(path: &[u8], form: PathForm, out: &mut Vec<u8>) -> Result<(), PathError> {
    match form {
        PathForm::Canonical(spellings) => {
            write_member_path(path, spellings, Dots::Refuse, out)?;
        }
        PathForm::Keep => {
            check_kept(path, Dots::Refuse, out)?;
            out.clear();
            encode_raw_bytes(path, out);
        }
    }
    Ok(())
}

/// The path for decisions of this requested path. The result is its own path for decisions in the same form.
pub fn decided(path: &[u8], form: PathForm) -> Result<Vec<u8>, PathError> {
    let mut out = Vec::new();
    let read = read(path, form, &mut out)?;
    Ok(read.decided.or(read.member).map_or(path, |span| span.of(&out)).to_vec())
}

/// The positions of a request's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathSpans {
    /// The member's path; `None`: the received path.
    pub(crate) member: Option<Span>,
    /// The path for decisions; `None`: the member's path.
    pub(crate) decided: Option<Span>,
}

/// Writes the member's path and the path for decisions, if they differ from the received path, and overwrites `out`.
pub(crate) fn read(path: &[u8], form: PathForm, out: &mut Vec<u8>) -> Result<PathSpans, PathError> {
    let differs = match form {
        PathForm::Canonical(spellings) => write_member_path(path, spellings, Dots::Remove, out)?,
        PathForm::Keep => check_kept(path, Dots::RemoveUnambiguous, out)?,
    };
    let end = out.len();
    let start = if differs {
        decision_path::write(out);
        end
    } else {
        0
    };
    let decided = Span::new(start, out.len());
    if form == PathForm::Keep {
        return Ok(read_kept(path, decided, out));
    }
    let member_path = &out[..end];
    Ok(PathSpans {
        member: (member_path != path).then(|| Span::new(0, end)),
        decided: (decided.of(out) != member_path).then_some(decided),
    })
}

/// The member's path for a kept path: the received path, or, if raw bytes must be encoded, a copy after the path for
/// decisions.
fn read_kept(path: &[u8], decided: Span, out: &mut Vec<u8>) -> PathSpans {
    let kept = raw_bytes::encoded(path);
    let decided = (decided.of(out) != &*kept).then_some(decided);
    let member = matches!(kept, Cow::Owned(_)).then(|| {
        let start = out.len();
        out.extend_from_slice(&kept);
        Span::new(start, out.len())
    });
    PathSpans { member, decided }
}

/// As above, for a path that is kept: `out` gets its canonical form with as much kept as possible.
fn check_kept(path: &[u8], dots: Dots, out: &mut Vec<u8>) -> Result<bool, PathError> {
    // A backslash is not a path character, so a signature does not cover it.
    if path.contains(&b'\\') {
        return Err(PathError::Backslash);
    }
    write_member_path(path, Spellings::KEPT, dots, out)
}
