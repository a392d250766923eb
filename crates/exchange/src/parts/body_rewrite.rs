//! Replacement of text in response bodies.

use std::sync::Arc;

use weir_core::body_edit::{BodyEdit, Rewriter, Searchers};

use crate::parts::scratch::{Message, Scratch};

/// The replacements in one body. Each works on the output of the one before.
pub struct BodyRewrite {
    stages: Vec<Rewriter>,
    /// It was reported that a part of the body stays unchanged.
    is_cut_told: bool,
}

impl BodyRewrite {
    /// The replacements for a new body.
    pub fn of(edits: &[Arc<BodyEdit>]) -> Self {
        let stages = edits.iter().map(|edit| Rewriter::new(Arc::clone(edit))).collect();
        Self { stages, is_cut_told: false }
    }

    /// Processes a piece of the body, and writes the output. Returns true when it is first known that a part stays
    /// unchanged.
    pub fn rewrite<'a>(
        &mut self,
        data: impl Iterator<Item = &'a [u8]>,
        is_end: bool,
        (scratch, searchers): (&mut Scratch, &mut Searchers),
        out: &mut Message,
    ) -> bool {
        let Some((first, others)) = self.stages.split_first_mut() else {
            data.for_each(|piece| out.extend_from_slice(piece));
            return false;
        };
        let mut joined = scratch.take();
        for piece in data {
            first.rewrite(piece, searchers, &mut joined, out);
        }
        if is_end {
            first.finish(searchers, &mut joined, out);
        }
        for stage in others {
            let mut made = scratch.take();
            std::mem::swap(&mut made, out);
            stage.rewrite(&made, searchers, &mut joined, out);
            if is_end {
                stage.finish(searchers, &mut joined, out);
            }
            scratch.give(made);
        }
        scratch.give(joined);
        let is_cut = !self.is_cut_told && self.stages.iter().any(Rewriter::is_cut);
        self.is_cut_told |= is_cut;
        is_cut
    }
}
