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
    /// The set of its steps.
    pub set: Steps,
}

/// Links with the same targets and the same pipeline.
#[derive(Debug, Clone)]
pub struct Group {
    /// Indexes of the targets in the list of all groups' targets.
    pub targets: Box<[u16]>,
    /// The number of this target list: groups with the same list share it.
    pub set: u16,
    pub pipeline: PipelineId,
    pub is_multi_match: bool,
    /// Whether the index has an operator of the group.
    pub is_indexed: bool,
}

/// A target with its exclusions.
#[derive(Debug, Clone)]
pub struct GroupTarget {
    pub target: Target,
    pub excluded: Box<[Target]>,
}

/// An effect of a link that matches a value.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Sets a variable.
    Set(Variable, VariableName, CompiledTemplate),
    /// Adds to a variable, or subtracts from it.
    Add(Variable, VariableName, CompiledTemplate, Sign),
    /// Removes a variable.
    Remove(Variable, VariableName),
    /// Expiry of a stored variable.
    Expire,
    /// Opens a stored collection.
    Open(Variable),
    /// A change for this request, with the rules that it selects.
    Control(Control, Bits),
    /// Masks values of this target in logs.
    Mask(Target),
}

/// Direction of a number's change.
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
    /// A name built at run time.
    Made(CompiledTemplate),
}

/// One condition of a rule.
#[derive(Debug, Clone)]
pub struct Link {
    /// Examined and excluded targets. Empty: the link always matches.
    pub targets: Box<[Target]>,
    /// The transformations of its values.
    pub(crate) pipeline: PipelineId,
    /// Whether the operator is applied after each transformation.
    pub(crate) is_multi_match: bool,
    pub(crate) operator: CompiledOperator,
    pub(crate) is_negated: bool,
    pub(crate) captures: bool,
    pub(crate) effects: Box<[Effect]>,
    /// The group of links with the same targets and transformations; `None`: its values change while rules run.
    pub(crate) group: Option<u16>,
}

/// A rule with its chain.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    /// The id.
    pub id: u64,
    /// Where the rule is defined.
    pub place: Place,
    /// The phase of its evaluation.
    pub phase: Phase,
    /// The message.
    pub(crate) message: Option<CompiledTemplate>,
    /// The log data.
    pub(crate) log_data: Option<CompiledTemplate>,
    /// The tags.
    pub tags: Box<[Box<str>]>,
    /// The severity.
    pub severity: Option<Severity>,
    /// The version.
    pub version: Option<Box<str>>,
    /// The conditions; all of them must match.
    pub links: Box<[Link]>,
    /// The disruptive action; never [`Disruption::Block`].
    pub(crate) disruption: Disruption,
    pub(crate) redirect: Option<CompiledTemplate>,
    /// The status of a denied request.
    pub status: u16,
    /// Whether a match is logged.
    pub is_logged: bool,
    /// Whether a match is in the audit log.
    pub is_audited: bool,
    /// Where evaluation continues after a match, if not at the next rule: the first rule at or after this place in the
    /// order of all rules.
    pub(crate) skip: Option<u32>,
    /// An unsupported feature that the rule needs, and why it is unsupported.
    pub(crate) absent: Option<(String, &'static str)>,
}

impl CompiledRule {
    /// The message as written in the file, with the names of its variables.
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
