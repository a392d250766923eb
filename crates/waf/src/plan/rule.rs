//! Compiled rules.

use super::index::Bits;
use super::operators::CompiledOperator;
use super::symbols::Symbol;
use super::template::{CompiledPiece, CompiledTemplate};
use crate::seclang::{Control, Disruption, Phase, Place, Severity, Target, Variable};
use crate::transformation::{Steps, Transformation};

/// The number of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PipelineId(pub u16);

/// A pipeline: a list of transformations.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub steps: Box<[Transformation]>,
    /// The transformations as a set.
    pub set: Steps,
}

/// Links with the same targets and the same pipeline.
#[derive(Debug, Clone)]
pub struct Group {
    /// The indexes of its targets in the list of all groups' targets.
    pub targets: Box<[u16]>,
    /// The number of the target list. Groups with the same list have the same number.
    pub set: u16,
    pub pipeline: PipelineId,
    pub is_multi_match: bool,
    /// Whether the index contains an operator of the group.
    pub is_indexed: bool,
}

/// A target and its exclusions.
#[derive(Debug, Clone)]
pub struct GroupTarget {
    pub target: Target,
    pub excluded: Box<[Target]>,
}

/// An effect of a link, applied when the link matches a value.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Sets a variable.
    Set(Variable, VariableName, CompiledTemplate),
    /// Adds to a variable, or subtracts from it.
    Add(Variable, VariableName, CompiledTemplate, Sign),
    /// Removes a variable.
    Remove(Variable, VariableName),
    /// The expiry of a stored variable.
    Expire,
    /// Opens a stored collection.
    Open(Variable),
    /// A change for one request, and the rules that it selects.
    Control(Control, Bits),
    /// Masks values of this target in logs.
    Mask(Target),
}

/// The direction of a change of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Addition.
    More,
    /// Subtraction.
    Less,
}

/// The name of a variable that rules write.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableName {
    /// A fixed name.
    Known(Symbol),
    /// A name that is built at run time.
    Made(CompiledTemplate),
}

/// One condition of a rule.
#[derive(Debug, Clone)]
pub struct Link {
    /// The inspected and excluded targets; empty: the link always matches.
    pub targets: Box<[Target]>,
    /// The transformations of the values.
    pub(crate) pipeline: PipelineId,
    /// Whether the operator is applied after each transformation.
    pub(crate) is_multi_match: bool,
    pub(crate) operator: CompiledOperator,
    pub(crate) is_negated: bool,
    pub(crate) captures: bool,
    pub(crate) effects: Box<[Effect]>,
    /// The group of links with the same targets and transformations; `None`: the values may change while rules are
    /// evaluated.
    pub(crate) group: Option<u16>,
}

/// A rule and its chain.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    /// The id of the rule.
    pub id: u64,
    /// The place of the rule in its file.
    pub place: Place,
    /// The phase of the rule.
    pub phase: Phase,
    /// The message.
    pub(crate) message: Option<CompiledTemplate>,
    /// The data about the match, for logs.
    pub(crate) log_data: Option<CompiledTemplate>,
    /// The tags.
    pub tags: Box<[Box<str>]>,
    /// The severity.
    pub severity: Option<Severity>,
    /// The version of the rule set.
    pub version: Option<Box<str>>,
    /// The conditions. All of them must match.
    pub links: Box<[Link]>,
    /// The disruptive action. It is never [`Disruption::Block`].
    pub(crate) disruption: Disruption,
    pub(crate) redirect: Option<CompiledTemplate>,
    /// The status of a denied request.
    pub status: u16,
    /// Whether a match is written to the error log.
    pub is_logged: bool,
    /// Whether a match is written to the audit log.
    pub is_audited: bool,
    /// The place where evaluation continues after a match: the first rule at or after this place in the order of all rules;
    /// `None`: the next rule.
    pub(crate) skip: Option<u32>,
    /// The unsupported feature that the rule needs, and the reason why it is unsupported.
    pub(crate) absent: Option<(String, &'static str)>,
}

impl CompiledRule {
    /// The message as in the file, with the names of its variables.
    pub fn message_text(&self) -> Option<String> {
        self.message.as_ref().map(|template| {
            let mut text = String::new();
            for piece in &template.0 {
                match piece {
                    CompiledPiece::Text(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
                    _ => text.push('…'),
                }
            }
            text
        })
    }
}
