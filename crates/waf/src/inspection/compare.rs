//! The evaluation of operators.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use super::report::Limit;
use super::state::State;
use super::texts::TextId;
use crate::injection;
use crate::plan::{Comparison, Link, View, has_bad_escape, has_other_bytes};
use crate::seclang::{Groups, Pattern};
use crate::value::{Value, number_of};

/// The result of an operator.
pub(super) enum OpResult {
    No,
    Yes,
    /// A match, with the groups of a pattern.
    Groups(Groups),
    /// A match of a part of the value, without groups.
    Part(Range<usize>),
    /// A match, with a text that represents the finding.
    Found(Vec<u8>),
}

impl OpResult {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    pub fn holds(&self) -> bool {
        !matches!(self, Self::No)
    }
}

/// Maximum number of groups that `capture` stores.
const GROUPS_MAX: usize = 10;

impl State {
    /// Compares a value. `rule`: the place of the rule, for texts that refer to it.
    pub(super) fn compare(
        &mut self,
        view: &View,
        rule: u32,
        link: &Link,
        text: TextId,
    ) -> OpResult {
        let length = self.message.variables.text(text).len();
        self.message.variables.texts.count_compared(length);
        self.counts.compared += 1;
        match &link.operator.kind {
            Comparison::Rx(pattern) => {
                self.counts.patterns += 1;
                self.tried(pattern, text, link.captures)
            }
            Comparison::RxTemplate(template) => {
                let pattern = self.expanded(view, rule, template);
                match self.pattern_of(&pattern) {
                    Some(pattern) => self.tried(&pattern, text, link.captures),
                    None => self.or_exceeded(None),
                }
            }
            Comparison::Pm(words) => match words.find(self.message.variables.text(text)) {
                None => OpResult::No,
                Some(found) => OpResult::Part(found.range()),
            },
            Comparison::Number(relation, template) => {
                let wanted = self.number(view, rule, template);
                OpResult::of(relation.holds(number_of(self.message.variables.text(text)), wanted))
            }
            Comparison::Text(how, template) => {
                let argument = match (template.as_bytes(), template.as_written()) {
                    (Some(bytes), _) => Cow::Borrowed(bytes),
                    (None, Some((collection, symbol))) => {
                        let value = self.written.get(collection, symbol, view);
                        value.map_or(Cow::Borrowed(&b""[..]), Value::bytes)
                    }
                    (None, None) => Cow::Owned(self.expanded(view, rule, template)),
                };
                OpResult::of(how.holds(self.message.variables.text(text), &argument))
            }
            Comparison::ByteRange(allowed) => {
                OpResult::of(has_other_bytes(self.message.variables.text(text), allowed))
            }
            Comparison::UrlEncoding => {
                OpResult::of(has_bad_escape(self.message.variables.text(text)))
            }
            Comparison::Utf8Encoding => {
                OpResult::of(std::str::from_utf8(self.message.variables.text(text)).is_err())
            }
            Comparison::Addresses(networks) => {
                OpResult::of(is_address_in(networks, self.message.variables.text(text)))
            }
            Comparison::Sqli => match injection::detect_sql(self.message.variables.text(text)) {
                None => OpResult::No,
                Some(fingerprint) => OpResult::Found(fingerprint.as_str().as_bytes().to_vec()),
            },
            Comparison::Xss => {
                OpResult::of(injection::detect_script(self.message.variables.text(text)))
            }
            Comparison::Xxe => {
                match injection::detect_definition(self.message.variables.text(text)) {
                    None => OpResult::No,
                    Some(definition) => OpResult::Found(definition.to_vec()),
                }
            }
            Comparison::Always => OpResult::Yes,
            Comparison::Never => OpResult::No,
        }
    }
}

impl State {
    /// A pattern that is built for this request. It is compiled once for consecutive values. The compilation is counted as
    /// work, because it takes much longer than a match.
    fn pattern_of(&mut self, text: &[u8]) -> Option<Pattern> {
        const WORK_BYTES_PER_BYTE: usize = 10_000;
        if let Some((known, pattern)) = &self.made_pattern
            && known == text
        {
            return pattern.clone();
        }
        self.message.variables.texts.count_compared(text.len().saturating_mul(WORK_BYTES_PER_BYTE));
        let pattern = Pattern::new(&String::from_utf8_lossy(text)).ok();
        self.made_pattern = Some((text.to_vec(), pattern.clone()));
        pattern
    }

    /// Evaluates a pattern. The steps of a backtracking pattern are counted as work first. If the work then exceeds its
    /// limit, the pattern is not evaluated.
    fn tried(&mut self, pattern: &Pattern, text: TextId, captures: bool) -> OpResult {
        const WORK_BYTES_PER_STEP: usize = 8;
        let steps = pattern.steps_max(self.message.variables.text(text));
        if steps > 0 {
            self.message.variables.texts.count_compared(steps.saturating_mul(WORK_BYTES_PER_STEP));
            if self.bounds.exceeds_work(self.message.variables.texts.work_bytes()) {
                return OpResult::No;
            }
        }
        let outcome = rx(pattern, self.message.variables.text(text), captures);
        self.or_exceeded(outcome)
    }

    /// The outcome. If there is none, the limit is recorded as exceeded, because "no match" would be a false result.
    fn or_exceeded(&mut self, outcome: Option<OpResult>) -> OpResult {
        outcome.unwrap_or_else(|| {
            self.bounds.exceed(Limit::Pattern);
            OpResult::No
        })
    }
}

/// The result of a pattern; `None`: too many steps.
fn rx(pattern: &Pattern, bytes: &[u8], captures: bool) -> Option<OpResult> {
    if !captures {
        return pattern.is_match(bytes).map(OpResult::of);
    }
    if !pattern.has_groups() {
        let found = pattern.find(bytes)?;
        return Some(found.map_or(OpResult::No, OpResult::Part));
    }
    // Most values do not match, and the search for groups takes longer than this test.
    if !pattern.is_match(bytes)? {
        return Some(OpResult::No);
    }
    Some(pattern.groups(bytes, GROUPS_MAX)?.map_or(OpResult::No, OpResult::Groups))
}

/// Whether a text is an address within one of these networks.
fn is_address_in(networks: &[(IpAddr, u8)], text: &[u8]) -> bool {
    let address = std::str::from_utf8(text).ok().and_then(|it| it.trim().parse().ok());
    address.is_some_and(|address| {
        networks.iter().any(|network| crate::plan::is_within(address, *network))
    })
}
