//! The values of a target.

use weir_waf::seclang::{Control, Rule, Selector, Target, TargetKind, Variable as V};

use super::machine::{Found, Machine};
use super::program::Whole;

impl Machine<'_> {
    /// The current values of a target of a rule, without excluded values.
    pub fn values(&mut self, whole: &Whole, link: &Rule, target: &Target) -> Vec<Found> {
        let mut found = self.of(target);
        found.retain(|it| !self.is_left_out(whole, link, it));
        match target.kind {
            TargetKind::Excluded => Vec::new(),
            TargetKind::Values => found,
            TargetKind::Count => {
                let value = found.len().to_string().into_bytes();
                let name = match &target.selector {
                    Selector::Name(name) => name.as_bytes().to_vec(),
                    _ => Vec::new(),
                };
                vec![Found { variable: target.variable, name, value, is_count: true }]
            }
        }
    }

    /// All values of a target.
    pub fn of(&mut self, target: &Target) -> Vec<Found> {
        let variable = target.variable;
        let mut found = self.members(variable, target.kind == TargetKind::Count);
        found.retain(|found| match &target.selector {
            Selector::All => true,
            Selector::Name(name) => name.as_bytes().eq_ignore_ascii_case(&found.name),
            Selector::Pattern(pattern) => pattern.is_match(&found.name),
        });
        // Reports use the spelling of the target for names of variables that rules write.
        if let (true, Selector::Name(name)) = (is_written(variable), &target.selector) {
            found.iter_mut().for_each(|found| found.name = name.as_bytes().to_vec());
        }
        found
    }

    /// `is_counted`: without the values within other values.
    fn members(&mut self, variable: V, is_counted: bool) -> Vec<Found> {
        let plain = |name: &[u8], value: Vec<u8>| Found {
            variable,
            name: name.to_vec(),
            value,
            is_count: false,
        };
        match variable {
            _ if is_written(variable) => {
                let kept = self.written.get(&variable).into_iter().flatten();
                kept.map(|(name, value)| plain(name, value.clone())).collect()
            }
            V::MatchedVar => {
                self.matched.last().map(|it| plain(b"", it.value.clone())).into_iter().collect()
            }
            V::MatchedVarName => {
                self.matched.last().map(|it| plain(b"", it.full_name())).into_iter().collect()
            }
            V::MatchedVars => {
                self.matched.iter().map(|it| plain(&it.full_name(), it.value.clone())).collect()
            }
            V::MatchedVarsNames => {
                self.matched.iter().map(|it| plain(&it.full_name(), it.full_name())).collect()
            }
            V::HighestSeverity => {
                vec![plain(b"", self.highest_severity.to_string().into_bytes())]
            }
            _ => {
                let members = self.message.of(variable).into_iter();
                let members = members.filter(|it| !is_counted || it.nested.is_none());
                members.map(|member| plain(&member.name, member.value)).collect()
            }
        }
    }

    /// Whether the rule itself or a previous `ctl` excludes a value.
    fn is_left_out(&self, whole: &Whole, link: &Rule, found: &Found) -> bool {
        let has = |target: &Target| {
            target.variable == found.variable
                && match &target.selector {
                    Selector::All => true,
                    Selector::Name(name) => name.as_bytes().eq_ignore_ascii_case(&found.name),
                    Selector::Pattern(pattern) => pattern.is_match(&found.name),
                }
        };
        let own = link.targets.iter().filter(|target| target.kind == TargetKind::Excluded);
        own.into_iter().any(has)
            || self.controls.iter().any(|control| match control {
                Control::RemoveTargetById(ids, target) => ids.has(whole.id) && has(target),
                Control::RemoveTargetByTag(tag, target) => {
                    whole.tags().any(|it| *it == **tag) && has(target)
                }
                Control::RemoveTargetByMessage(text, target) => {
                    whole.plain_message().is_some_and(|it| *it == **text) && has(target)
                }
                _ => false,
            })
    }

    /// Whether a previous `ctl` has removed a rule.
    pub fn is_removed(&self, whole: &Whole) -> bool {
        self.controls.iter().any(|control| match control {
            Control::RemoveById(ids) => ids.has(whole.id),
            Control::RemoveByTag(tag) => whole.tags().any(|it| *it == **tag),
            Control::RemoveByMessage(text) => whole.plain_message().is_some_and(|it| *it == **text),
            _ => false,
        })
    }
}

fn is_written(variable: V) -> bool {
    matches!(variable, V::Tx | V::Ip | V::Global | V::Session | V::User)
}
