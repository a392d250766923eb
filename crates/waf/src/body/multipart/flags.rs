//! Properties of multipart bodies that ModSecurity has variables for.

use super::super::differences::{Difference, Differences};

/// An unusual property of the body. Parsing continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MultipartFlag {
    /// The boundary is quoted in Content-Type.
    BoundaryQuoted,
    /// Blanks around the `=` of the boundary parameter or after its value.
    BoundaryWhitespace,
    /// Data before the first boundary.
    DataBefore,
    /// Data after the final boundary, other than line ends.
    DataAfter,
    /// A folded header line.
    HeaderFolding,
    /// A header line or boundary that ends with LF alone, or follows LF alone.
    LfLine,
    /// Some lines end with CR LF, others with LF alone.
    CrlfLfLines,
    /// No semicolon between the type and the boundary.
    MissingSemicolon,
    /// A parameter with single quotes or unclosed quotes.
    InvalidQuoting,
    /// A part without a name, or a part that ends before its content.
    InvalidPart,
    /// A folded line that begins with a byte other than a space or tab.
    InvalidHeaderFolding,
    /// More files than [`crate::body::Limits::files_max`].
    FileLimitExceeded,
}

impl MultipartFlag {
    /// All flags.
    pub const ALL: [Self; 12] = [
        Self::BoundaryQuoted,
        Self::BoundaryWhitespace,
        Self::DataBefore,
        Self::DataAfter,
        Self::HeaderFolding,
        Self::LfLine,
        Self::CrlfLfLines,
        Self::MissingSemicolon,
        Self::InvalidQuoting,
        Self::InvalidPart,
        Self::InvalidHeaderFolding,
        Self::FileLimitExceeded,
    ];

    /// The ModSecurity variable that is 1 if the flag is set.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::BoundaryQuoted => "MULTIPART_BOUNDARY_QUOTED",
            Self::BoundaryWhitespace => "MULTIPART_BOUNDARY_WHITESPACE",
            Self::DataBefore => "MULTIPART_DATA_BEFORE",
            Self::DataAfter => "MULTIPART_DATA_AFTER",
            Self::HeaderFolding => "MULTIPART_HEADER_FOLDING",
            Self::LfLine => "MULTIPART_LF_LINE",
            Self::CrlfLfLines => "MULTIPART_CRLF_LF_LINES",
            Self::MissingSemicolon => "MULTIPART_MISSING_SEMICOLON",
            Self::InvalidQuoting => "MULTIPART_INVALID_QUOTING",
            Self::InvalidPart => "MULTIPART_INVALID_PART",
            Self::InvalidHeaderFolding => "MULTIPART_INVALID_HEADER_FOLDING",
            Self::FileLimitExceeded => "MULTIPART_FILE_LIMIT_EXCEEDED",
        }
    }

    /// What is unusual, as a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BoundaryQuoted => "The boundary is quoted in Content-Type.",
            Self::BoundaryWhitespace => "Blanks surround the boundary in Content-Type.",
            Self::DataBefore => "There is data before the first boundary.",
            Self::DataAfter => "There is data after the final boundary.",
            Self::HeaderFolding => "A header line is folded.",
            Self::LfLine => "A line ends with LF alone.",
            Self::CrlfLfLines => "Some lines end with CR LF, others with LF alone.",
            Self::MissingSemicolon => "Content-Type has no semicolon before the boundary.",
            Self::InvalidQuoting => "A parameter has single quotes or unclosed quotes.",
            Self::InvalidPart => "A part has no name, or ends before its content.",
            Self::InvalidHeaderFolding => {
                "A folded header line begins with neither a space nor a tab."
            }
            Self::FileLimitExceeded => "There are too many files.",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MultipartFlags(u16);

impl MultipartFlags {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The flags that set MULTIPART_STRICT_ERROR. A quoted boundary is valid, and clients such as .NET's send it. A server
    /// that took the quotes for a part of the boundary would find no boundary: a line with quotes ends the parsing.
    pub const STRICT: Self = {
        let (mut flags, mut at) = (Self::NONE, 0);
        while at < MultipartFlag::ALL.len() {
            if !matches!(MultipartFlag::ALL[at], MultipartFlag::BoundaryQuoted) {
                flags = flags.with(MultipartFlag::ALL[at]);
            }
            at += 1;
        }
        flags
    };

    /// The intersection with another set.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// The set with another flag.
    #[must_use]
    pub const fn with(self, flag: MultipartFlag) -> Self {
        Self(self.0 | flag.bit())
    }

    /// Sets a flag.
    pub fn add(&mut self, flag: MultipartFlag) {
        *self = self.with(flag);
    }

    /// Whether a flag is set.
    pub const fn have(self, flag: MultipartFlag) -> bool {
        self.0 & flag.bit() != 0
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags in the set.
    pub fn iter(self) -> impl Iterator<Item = MultipartFlag> {
        MultipartFlag::ALL.into_iter().filter(move |flag| self.have(*flag))
    }
}

/// The findings so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Findings {
    pub(super) flags: MultipartFlags,
    pub(super) differences: Differences,
    has_crlf: bool,
}

impl Findings {
    pub(super) fn flag(&mut self, flag: MultipartFlag) {
        self.flags.add(flag);
    }

    pub(super) fn differ(&mut self, difference: Difference) {
        self.differences.add(difference);
    }

    /// Records the end of a line of the multipart structure: CR LF, or LF alone.
    pub(super) fn line_end(&mut self, is_crlf: bool) {
        self.has_crlf |= is_crlf;
        if !is_crlf {
            self.flags.add(MultipartFlag::LfLine);
        }
        if self.has_crlf && self.flags.have(MultipartFlag::LfLine) {
            self.flags.add(MultipartFlag::CrlfLfLines);
        }
    }
}
