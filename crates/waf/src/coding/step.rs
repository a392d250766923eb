//! A step of a decoder.

/// What a step has done.
pub(super) struct Step {
    pub taken: usize,
    pub written: usize,
    pub is_end: bool,
}
