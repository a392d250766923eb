//! Where in a multipart body the parser is.

/// What of the body is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Preamble,
    Headers,
    Data,
    Epilogue,
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The line may be a boundary.
    Start,
    /// The line is none.
    Inside,
    /// Behind a boundary: so many dashes, and perhaps CR.
    Tail { dashes: u8, has_cr: bool },
}

/// The end of the last line of data, which belongs to the boundary if one follows.
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
    /// A boundary followed it.
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
