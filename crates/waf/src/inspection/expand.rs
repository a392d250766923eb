//! The expansion of variables in texts.

use super::state::State;
use crate::plan::{CompiledPiece, CompiledTemplate, View};
use crate::seclang::{Selector, Target, TargetKind, Variable};
use crate::value::{Value, number_of};

/// Maximum size of an expanded text, in bytes.
const EXPANDED_BYTES_MAX: usize = 64 << 10;
/// Capacity for an expanded text. Most texts are shorter.
const EXPANDED_BYTES_USUAL: usize = 64;
/// Maximum depth of references to the rule's own texts.
const DEPTH_MAX: usize = 2;

impl State {
    /// Expands a text of a rule with the current values of its variables.
    pub(super) fn expanded(
        &mut self,
        view: &View,
        rule: u32,
        template: &CompiledTemplate,
    ) -> Vec<u8> {
        let mut text = Vec::with_capacity(EXPANDED_BYTES_USUAL);
        self.expand((view, rule), template, &mut text, 0);
        text.truncate(EXPANDED_BYTES_MAX);
        text
    }

    /// The number that a text of a rule begins with.
    pub(super) fn number(&mut self, view: &View, rule: u32, template: &CompiledTemplate) -> i64 {
        match (template.as_bytes(), template.as_written()) {
            (Some(bytes), _) => number_of(bytes),
            (None, Some((collection, symbol))) => {
                self.written.get(collection, symbol, view).map_or(0, Value::number)
            }
            (None, None) => number_of(&self.expanded(view, rule, template)),
        }
    }

    fn expand(
        &mut self,
        (view, rule): (&View, u32),
        template: &CompiledTemplate,
        to: &mut Vec<u8>,
        depth: usize,
    ) {
        for piece in &template.0 {
            if to.len() > EXPANDED_BYTES_MAX {
                return;
            }
            match piece {
                CompiledPiece::Text(bytes) => to.extend_from_slice(bytes),
                CompiledPiece::Written(variable, symbol) => {
                    if let Some(value) = self.written.get(*variable, *symbol, view) {
                        to.extend_from_slice(&value.bytes());
                    }
                }
                CompiledPiece::Variable(variable, name) => {
                    self.first(*variable, name.as_deref(), to)
                }
                CompiledPiece::OwnMessage | CompiledPiece::OwnLogData => {
                    let own = &view.rules.rules[rule as usize];
                    let is_message = matches!(piece, CompiledPiece::OwnMessage);
                    let text = if is_message { &own.message } else { &own.log_data };
                    if let Some(text) = text.as_ref().filter(|_| depth < DEPTH_MAX) {
                        self.expand((view, rule), text, to, depth + 1);
                    }
                }
            }
        }
    }

    /// Appends the first value of a variable.
    fn first(&mut self, variable: Variable, name: Option<&[u8]>, to: &mut Vec<u8>) {
        match variable {
            Variable::MatchedVar => {
                if let Some(hit) = self.hits.last() {
                    to.extend_from_slice(self.message.variables.texts.get(hit.text));
                }
            }
            Variable::MatchedVarName => {
                if let Some(hit) = self.hits.last() {
                    to.extend_from_slice(&self.message.variables.full_name(hit));
                }
            }
            _ => {
                let selector = name.map_or(Selector::All, |name| {
                    Selector::Name(String::from_utf8_lossy(name).into())
                });
                let target = Target { kind: TargetKind::Values, variable, selector };
                let mut found = Vec::new();
                self.collect_unfiltered(&target, &mut found);
                if let Some(hit) = found.first() {
                    to.extend_from_slice(self.message.variables.texts.get(hit.text));
                }
            }
        }
    }
}
