//! The parser's position in a multipart body.

/// The section of the body that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Preamble,
    Headers,
    Data,
    Epilogue,
}

/// The position of the next byte in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The line may be a boundary.
    Start,
    /// The line is not a boundary.
    Inside,
    /// After a boundary, with the number of dashes so far, and whether CR follows.
    Tail { dashes: u8, has_cr: bool },
}

/// The end of the last line of data, which belongs to the next boundary if one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    Nothing,
    Cr,
    Lf,
    CrLf,
}

/// MULTIPART_UNMATCHED_BOUNDARY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmatched {
    No,
    Yes,
    /// A boundary followed the unmatched line.
    Enclosed,
}

impl Unmatched {
    /// The variable's value.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::No => 0,
            Self::Yes => 1,
            Self::Enclosed => 2,
        }
    }
}

impl LineEnd {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Nothing => b"",
            Self::Cr => b"\r",
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }
}
