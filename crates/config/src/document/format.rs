//! What a format of documents is.

use super::finding::Finding;
use super::lines::Lines;
use super::node::Node;
use super::span::SourceId;

/// A format of documents.
#[derive(Debug)]
pub struct Format {
    /// The ending of the names of files in this format.
    pub ending: &'static str,
    /// Endings of files that are probably meant to be in this format, but are not read from a folder.
    pub mistaken: &'static [&'static str],
    /// Reads the text with this number. It adds to the number of values in all texts so far.
    pub(super) read: fn(&Lines<'_>, SourceId, &mut usize, CommentUse) -> ParsedText,
}

/// What becomes of the comments of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommentUse {
    /// They are skipped, and take no memory.
    Skip,
    /// They are put beside the values.
    Keep,
}

/// The contents of a text. A tree may come with findings, so that the rest of the text is checked in the same run.
#[derive(Debug, Default)]
pub(super) struct ParsedText {
    pub root: Option<Node>,
    /// Comments after the last value, if comments are kept.
    pub end: Vec<String>,
    pub findings: Vec<Finding>,
}
