//! What tests of several files need.

use crate::wire::Buffers;

/// Stores no buffers.
pub(crate) struct NoSpares;

impl Buffers for NoSpares {
    fn take(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn give(&mut self, _: Vec<u8>) {}
}
