//! Data shared by rules, during compilation.

use crate::plan::facts::{NeedsByKind, OperatorNeeds};
use crate::plan::rule::{Group, GroupTarget, Pipeline, PipelineId};
use crate::seclang::{Target, TargetKind, Variable};
use crate::transformation::{Steps, Transformation};

/// Data shared by rules, during compilation.
#[derive(Default)]
pub(super) struct SharedParts {
    pub pipelines: Vec<Pipeline>,
    pub needs: Vec<OperatorNeeds>,
    pub groups: Vec<Group>,
    pub targets: Vec<GroupTarget>,
    /// The number of different target lists of groups.
    pub sets_count: u16,
}

impl SharedParts {
    pub(super) fn pipeline(&mut self, steps: Vec<Transformation>) -> Result<PipelineId, String> {
        let known = self.pipelines.iter().position(|known| *known.steps == steps[..]);
        let index = known.unwrap_or_else(|| {
            self.pipelines.push(Pipeline { set: Steps::of(&steps), steps: steps.into() });
            self.pipelines.len() - 1
        });
        let number = u16::try_from(index)
            .map_err(|_| "there are too many different lists of transformations".to_owned())?;
        Ok(PipelineId(number))
    }

    pub(super) fn operator(&mut self, needs: NeedsByKind, is_late: bool) -> Result<u16, String> {
        self.needs.push(OperatorNeeds { by_kind: needs, is_late });
        u16::try_from(self.needs.len() - 1).map_err(|_| "there are too many operators".to_owned())
    }

    /// The place of a target with its exclusions.
    fn target(&mut self, target: &Target, all: &[Target]) -> Option<u16> {
        let is_left_out = |other: &&Target| {
            other.kind == TargetKind::Excluded && other.variable == target.variable
        };
        let excluded: Box<[Target]> = all.iter().filter(is_left_out).cloned().collect();
        let is_it = |known: &GroupTarget| known.target == *target && known.excluded == excluded;
        let known = self.targets.iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            self.targets.push(GroupTarget { target: target.clone(), excluded });
            self.targets.len() - 1
        });
        u16::try_from(place).ok()
    }

    /// The number of a target list. There are at most as many lists as groups.
    fn set(&mut self, targets: &[u16]) -> u16 {
        match self.groups.iter().find(|group| *group.targets == *targets) {
            Some(known) => known.set,
            None => {
                self.sets_count = self.sets_count.saturating_add(1);
                self.sets_count - 1
            }
        }
    }

    /// The group of links with these values; `None`: not all values come from the message.
    pub(super) fn group(
        &mut self,
        targets: &[Target],
        pipeline: PipelineId,
        is_multi_match: bool,
        is_indexed: bool,
    ) -> Option<u16> {
        let is_of_message =
            |target: &Target| target.kind != TargetKind::Count && is_of_message(target.variable);
        if targets.is_empty() || !targets.iter().all(is_of_message) {
            return None;
        }
        let taken = targets.iter().filter(|target| target.kind == TargetKind::Values);
        let targets: Option<Box<[u16]>> = taken.map(|taken| self.target(taken, targets)).collect();
        let targets = targets?;
        let known = self.groups.iter().position(|known| {
            (&known.targets, known.pipeline, known.is_multi_match)
                == (&targets, pipeline, is_multi_match)
        });
        let index = known.unwrap_or_else(|| {
            let set = self.set(&targets);
            self.groups.push(Group { targets, set, pipeline, is_multi_match, is_indexed: false });
            self.groups.len() - 1
        });
        self.groups[index].is_indexed |= is_indexed;
        u16::try_from(index).ok()
    }
}

/// Whether rules cannot change the variable.
fn is_of_message(variable: Variable) -> bool {
    !matches!(
        variable,
        Variable::Tx
            | Variable::MatchedVar
            | Variable::MatchedVarName
            | Variable::MatchedVars
            | Variable::MatchedVarsNames
            | Variable::HighestSeverity
            | Variable::ReqbodyProcessor
    ) && !variable.is_stored()
}
