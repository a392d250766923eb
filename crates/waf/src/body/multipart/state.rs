//! The position in a multipart body.

/// The current section of the body.
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
    /// After a boundary, with the number of dashes so far, and whether a CR follows them.
    Tail { dashes: u8, has_cr: bool },
}

/// The end of the last line of data. If a boundary follows, it belongs to the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    Nothing,
    Cr,
    Lf,
    CrLf,
}

/// MULTIPART_UNMATCHED_BOUNDARY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnmatchedBoundary {
    No,
    Yes,
    /// A boundary followed the unmatched line.
    Enclosed,
}

impl UnmatchedBoundary {
    /// The value of the variable.
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
