//! The variables of a message: what rules read.

use super::hit::Hit;
use super::texts::{TextId, Texts};
use super::values::{Values, sources};
use crate::body::Multipart;
use crate::seclang::{Selector, Target, TargetKind, Variable};

/// The variables of a message.
#[derive(Debug)]
pub struct MessageVariables {
    /// The texts of names and values.
    pub texts: Texts,
    /// The values of each variable.
    pub values: Values,
}

impl MessageVariables {
    /// Variables without values.
    pub fn new(texts: Texts) -> Self {
        Self { texts, values: Values::new() }
    }

    /// The bytes of a text.
    pub(super) fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id)
    }

    /// Sets a variable to a text.
    pub(super) fn set(&mut self, variable: Variable, bytes: &[u8]) {
        let text = self.texts.add(bytes);
        self.values.set(variable, text);
    }

    /// Sets a variable to a number.
    pub(super) fn set_number(&mut self, variable: Variable, number: u64) {
        self.set(variable, number.to_string().as_bytes());
    }

    /// Adds a value to a collection.
    pub(super) fn add(&mut self, variable: Variable, name: &[u8], value: &[u8]) {
        let (name, text) = (self.texts.add(name), self.texts.add(value));
        self.values.add(variable, name, text);
    }

    /// Sets the variables of flaws of a multipart body.
    pub(super) fn tell_flags(&mut self, multipart: &Multipart) {
        for flag in multipart.flags().iter() {
            if let Some(variable) = Variable::from_name(flag.variable()) {
                self.set(variable, b"1");
            }
        }
        if multipart.strict_error() {
            self.set(Variable::MultipartStrictError, b"1");
        }
        self.set_number(
            Variable::MultipartUnmatchedBoundary,
            multipart.unmatched_boundary().into(),
        );
    }

    /// Appends the values of a target.
    pub fn collect(&self, target: &Target, found: &mut Vec<Hit>) {
        let variable = target.variable;
        let (kept_under, names_are_values) = sources(variable);
        if kept_under.is_empty() {
            let all = self.values.of(variable).iter();
            return found.extend(all.map(|entry| Hit::alone(variable, entry.text)));
        }
        let is_counted = target.kind == TargetKind::Count;
        for source in kept_under {
            for entry in self.values.of(*source) {
                if is_counted && entry.is_nested {
                    continue;
                }
                let text = if names_are_values { entry.judged_name } else { Some(entry.text) };
                if let Some(text) = text
                    && self.takes(&target.selector, entry.name)
                {
                    found.push(Hit { variable, name: entry.name, text, is_count: false });
                }
            }
        }
    }

    /// Whether a selector selects a member with this name.
    pub fn takes(&self, selector: &Selector, name: TextId) -> bool {
        matches!(selector, Selector::All) || selector.takes(self.texts.get(name))
    }

    /// The name of a value in reports: `ARGS:id`.
    pub fn full_name(&self, hit: &Hit) -> Vec<u8> {
        let mut name = Vec::new();
        if hit.is_count {
            name.push(b'&');
        }
        name.extend_from_slice(hit.variable.name().as_bytes());
        // The name of a member may be empty.
        if hit.name != Texts::EMPTY || (hit.variable.is_collection() && !hit.is_count) {
            name.push(b':');
            name.extend_from_slice(self.texts.get(hit.name));
        }
        name
    }

    /// Whether one of these targets excludes a value.
    pub fn is_excluded(&self, targets: &[Target], hit: &Hit) -> bool {
        let mut excluded = targets.iter().filter(|target| target.kind == TargetKind::Excluded);
        excluded.any(|target| self.is_of(target, hit))
    }

    /// Whether a target selects a value.
    pub fn is_of(&self, target: &Target, hit: &Hit) -> bool {
        target.variable == hit.variable && target.selector.takes(self.texts.get(hit.name))
    }
}
