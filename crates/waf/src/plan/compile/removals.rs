//! Resolves, once for all requests, the rules that `ctl` actions remove.

use crate::plan::index::Bits;
use crate::plan::rule::{CompiledRule, Effect};
use crate::seclang::Control;

/// Stores in each `ctl` action the rules that it selects.
pub(super) fn resolve(rules: &mut [CompiledRule]) {
    let found: Vec<Bits> = controls(rules).map(|control| spoken_of(control, rules)).collect();
    let effects = rules.iter_mut().flat_map(|rule| &mut rule.links).flat_map(|it| &mut it.effects);
    let places = effects.filter_map(|effect| match effect {
        Effect::Control(_, rules) => Some(rules),
        _ => None,
    });
    places.zip(found).for_each(|(place, found)| *place = found);
}

fn controls(rules: &[CompiledRule]) -> impl Iterator<Item = &Control> {
    let effects = rules.iter().flat_map(|rule| &rule.links).flat_map(|link| &link.effects);
    effects.filter_map(|effect| match effect {
        Effect::Control(control, _) => Some(control),
        _ => None,
    })
}

fn spoken_of(control: &Control, rules: &[CompiledRule]) -> Bits {
    let is_it: &dyn Fn(&CompiledRule) -> bool = match control {
        Control::RemoveById(ids) | Control::RemoveTargetById(ids, _) => &|rule| ids.has(rule.id),
        Control::RemoveByTag(tag) | Control::RemoveTargetByTag(tag, _) => {
            &|rule| rule.tags.contains(tag)
        }
        Control::RemoveByMessage(text) | Control::RemoveTargetByMessage(text, _) => {
            &|rule| rule.message_text().as_deref() == Some(text)
        }
        _ => return Bits::default(),
    };
    let mut found = Bits::none(rules.len());
    let all = rules.iter().enumerate().filter(|(_, rule)| is_it(rule));
    all.for_each(|(place, _)| found.set(place));
    found
}
