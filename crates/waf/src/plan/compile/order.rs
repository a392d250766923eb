//! The places of rules, and the places where evaluation continues after a match.

use std::collections::HashMap;

use super::Compiler;
use super::drafts::{Draft, phase_of};
use crate::seclang::{Action, Phase};

/// The places of rules, after all directives were read.
pub(super) struct Order {
    /// The place of each rule in the files; for a removed rule, the place of the next rule.
    pub places: Vec<usize>,
    pub by_id: HashMap<u64, usize>,
    pub phases: Vec<Phase>,
}

fn place_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Compiler<'_> {
    /// The place where evaluation continues after a match; `None`: the next rule. Only later rules are skipped.
    pub(super) fn skip(
        &self,
        draft: &Draft,
        own: usize,
        order: &Order,
    ) -> Result<Option<u32>, String> {
        for action in &draft.rule.actions {
            match action {
                Action::Skip(0) => {}
                Action::Skip(count) => {
                    let phase = phase_of(&draft.rule);
                    let later = order.phases.iter().enumerate().skip(own + 1);
                    let mut of_phase = later.filter(|(_, it)| **it == phase);
                    let last = of_phase.nth(*count as usize - 1).map(|(index, _)| index + 1);
                    return Ok(Some(place_of(last.unwrap_or(order.phases.len()))));
                }
                Action::SkipAfter(label) => {
                    let markers = self.markers.get(label).into_iter().flatten();
                    let marker = markers
                        .filter_map(|at| order.places.get(*at).copied())
                        .find(|place| *place > own);
                    let rule = || order.by_id.get(&label.parse().ok()?).map(|index| index + 1);
                    let place = marker.or_else(|| rule().filter(|place| *place > own + 1));
                    let message = || format!("no marker and no rule behind it is `{label}`");
                    return place.map(|place| Some(place_of(place))).ok_or_else(message);
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
