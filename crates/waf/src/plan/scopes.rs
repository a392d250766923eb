//! Scopes: sets of operators that can be applied to a value.
//!
//! Only a few rules inspect a body as a whole, so a body is analysed only for the operators of these rules. The same applies
//! to the results of some transformations. If the same bytes are also a value for other operators, they are analysed again
//! for all operators.

use super::facts::{bits_of_row, row_words, set_bit};
use super::rule::{CompiledRule, Group, GroupTarget, Pipeline};
use crate::seclang::Variable;
use crate::transformation::Transformation;

/// A scope contains at most one in this many operators. An index for a larger scope does not save enough time.
const NARROW_PART: usize = 4;
/// Transformations that change most texts, and whose results few rules inspect.
const NARROWING: [Transformation; 1] = [Transformation::RemoveWhitespace];
/// Maximum number of scopes, because the indexes of each scope need memory.
const SCOPES_MAX: usize = 8;
/// Variables with long values whose parts are also values of other variables.
const WHOLES: [Variable; 1] = [Variable::RequestBody];

/// The number of a scope, a set of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeId(u8);

impl ScopeId {
    /// All operators.
    pub const ALL: Self = Self(0);

    /// Whether the analysis for this scope includes the other scope.
    pub fn covers(self, other: Self) -> bool {
        self == Self::ALL || self == other
    }

    /// The position among all scopes.
    pub fn place(self) -> usize {
        self.0.into()
    }
}

/// The scopes of targets and transformations.
#[derive(Debug, Default)]
pub struct Scopes {
    /// The scopes after [`ScopeId::ALL`], with one bit for each operator.
    narrow: Vec<Box<[u64]>>,
    /// The scope of each target: the operators that rules apply to its values, after any transformations.
    of_targets: Box<[ScopeId]>,
    /// The scope of each transformation's result, by the number of the transformation.
    of_steps: Box<[ScopeId]>,
}

impl Scopes {
    /// Derives the scopes of these rules. `operators`: the number of operators.
    pub fn new(
        rules: &[CompiledRule],
        groups: &[Group],
        targets: &[GroupTarget],
        pipelines: &[Pipeline],
        operators: usize,
    ) -> Self {
        let none = vec![0u64; row_words(operators)];
        let mut of_targets = vec![none.clone(); targets.len()];
        let mut of_steps = vec![none; Transformation::COUNT];
        for link in rules.iter().flat_map(|rule| &rule.links) {
            let group = link.group.and_then(|group| groups.get(usize::from(group)));
            let (Some(number), Some(group)) = (link.operator.number, group) else { continue };
            for target in &group.targets {
                set_bit(&mut of_targets[usize::from(*target)], number);
            }
            let pipeline = pipelines.get(usize::from(group.pipeline.0));
            for step in pipeline.iter().flat_map(|pipeline| &pipeline.steps) {
                set_bit(&mut of_steps[*step as usize], number);
            }
        }
        let mut scopes = Self::default();
        let scope = |(target, row): (&GroupTarget, Vec<u64>)| {
            let is_whole = WHOLES.contains(&target.target.variable);
            if is_whole { scopes.scope(row, operators) } else { ScopeId::ALL }
        };
        scopes.of_targets = targets.iter().zip(of_targets).map(scope).collect();
        scopes.of_steps = vec![ScopeId::ALL; Transformation::COUNT].into();
        for step in NARROWING.map(|step| step as usize) {
            let row = std::mem::take(&mut of_steps[step]);
            scopes.of_steps[step] = scopes.scope(row, operators);
        }
        scopes
    }

    /// The scope of these operators. If they are none or too many, [`ScopeId::ALL`].
    fn scope(&mut self, row: Vec<u64>, operators: usize) -> ScopeId {
        let count = bits_of_row(&row).count();
        if count == 0 || count * NARROW_PART > operators || self.narrow.len() >= SCOPES_MAX {
            return ScopeId::ALL;
        }
        let known = self.narrow.iter().position(|known| **known == row[..]);
        let place = known.unwrap_or_else(|| {
            self.narrow.push(row.into());
            self.narrow.len() - 1
        });
        ScopeId(place as u8 + 1)
    }

    /// The operators of each scope except [`ScopeId::ALL`], with one bit for each operator.
    pub fn narrow(&self) -> impl Iterator<Item = &[u64]> {
        self.narrow.iter().map(|row| &**row)
    }

    /// The scope of a target's values after all of these transformations.
    pub fn of_steps(&self, target: ScopeId, steps: &[Transformation]) -> ScopeId {
        let of_step = |step: &Transformation| self.of_steps.get(*step as usize).copied();
        steps.iter().filter_map(of_step).find(|scope| *scope != ScopeId::ALL).unwrap_or(target)
    }

    /// The scope of a target's values.
    pub fn of_target(&self, target: u16) -> ScopeId {
        self.of_targets.get(usize::from(target)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Files, RuleSet};

    struct OneFile(&'static str);

    impl Files for OneFile {
        fn find(&mut self, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.as_bytes().to_vec())
        }
    }

    #[test]
    fn few_operators_are_a_scope() {
        let mut text =
            String::from("SecRule REQUEST_BODY|ARGS \"@rx abc\" \"id:1,phase:2,pass,t:cmdLine\"\n");
        for id in 2..=9 {
            text += &format!("SecRule ARGS \"@rx a{id}\" \"id:{id},phase:2,pass\"\n");
        }
        let rules = RuleSet::compile(&["rules".into()], &mut OneFile(text.leak())).expect("rules");
        assert_eq!(rules.scopes.narrow().collect::<Vec<_>>(), [[0b1, 0, 0, 0]]);
        let of = |wanted: Variable| {
            let place = rules.targets.iter().position(|it| it.target.variable == wanted);
            rules.scopes.of_target(place.expect("a target") as u16)
        };
        let (body, arguments) = (of(Variable::RequestBody), of(Variable::Args));
        assert_eq!((body, arguments), (ScopeId(1), ScopeId::ALL));
        assert!(ScopeId::ALL.covers(body) && body.covers(body) && !body.covers(arguments));
    }
}
