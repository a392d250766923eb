//! The expansion of variables in texts.

use weir_waf::seclang::{Piece, RuleProperty, Selector, Target, TargetKind, Template};

use super::machine::Machine;
use super::program::Whole;

impl Machine<'_> {
    pub fn expand(&mut self, whole: &Whole, template: &Template) -> Vec<u8> {
        self.expand_within(whole, template, 0)
    }

    /// Expands a text. `depth` is limited, because texts of a rule may refer to each other.
    fn expand_within(&mut self, whole: &Whole, template: &Template, depth: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &template.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(variable, name) => {
                    let selector =
                        name.as_ref().map_or(Selector::All, |name| Selector::Name(name.clone()));
                    let target = Target { kind: TargetKind::Values, variable: *variable, selector };
                    if let Some(first) = self.of(&target).into_iter().next() {
                        out.extend_from_slice(&first.value);
                    }
                }
                Piece::Rule(RuleProperty::Id) => {
                    out.extend_from_slice(whole.id.to_string().as_bytes());
                }
                Piece::Rule(RuleProperty::Severity) => {
                    let severity = whole.severity().map(|it| (it as u8).to_string());
                    out.extend_from_slice(severity.unwrap_or_default().as_bytes());
                }
                Piece::Rule(property) => {
                    let text = match property {
                        RuleProperty::Message => whole.message().cloned(),
                        _ => whole.log_data().cloned(),
                    };
                    if let Some(text) = text.filter(|_| depth < 2) {
                        out.extend(self.expand_within(whole, &text, depth + 1));
                    }
                }
            }
        }
        out
    }
}
