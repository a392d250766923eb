//! What compiled rules are.

use super::index::Bits;
use super::operators::CompiledOperator;
use super::symbols::Symbol;
use super::template::{CompiledPiece, CompiledTemplate};
use crate::seclang::{Control, Disruption, Phase, Place, Severity, Target, Variable};
use crate::transformation::{Steps, Transformation};

/// The number of a list of transformations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PipelineId(pub u16);

/// A list of transformations.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub steps: Box<[Transformation]>,
    /// All of its steps.
    pub set: Steps,
}

/// What links have in common that look at the same values.
#[derive(Debug, Clone)]
pub struct Group {
    /// The places of its targets among those of all groups.
    pub targets: Box<[u16]>,
    /// The number of this list of targets: groups with the same share it.
    pub set: u16,
    pub pipeline: PipelineId,
    pub is_multi_match: bool,
    /// Whether an operator of theirs is chosen beforehand.
    pub is_indexed: bool,
}

/// A target, without what is left out of it.
#[derive(Debug, Clone)]
pub struct GroupTarget {
    pub target: Target,
    pub excluded: Box<[Target]>,
}

/// What a link does when it holds for a value.
#[derive(Debug, Clone)]
pub enum Effect {
    /// A variable gets a value.
    Set(Variable, VariableName, CompiledTemplate),
    /// A variable gets so much more, or less.
    Add(Variable, VariableName, CompiledTemplate, Sign),
    /// A variable is removed.
    Remove(Variable, VariableName),
    /// A stored variable is forgotten after so many seconds.
    Expire,
    /// A stored collection is opened.
    Open(Variable),
    /// A change for this request, and the rules that it speaks of.
    Control(Control, Bits),
    /// Values of this target are masked in logs.
    Mask(Target),
}

/// Which way a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It grows.
    More,
    /// It shrinks.
    Less,
}

/// The name of a variable that rules write.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableName {
    /// Known beforehand.
    Known(Symbol),
    /// Made when it is written.
    Made(CompiledTemplate),
}

/// One condition of a rule.
#[derive(Debug, Clone)]
pub struct Link {
    /// What it looks at, and leaves out. Nothing: it always holds.
    pub targets: Box<[Target]>,
    /// Through which transformations.
    pub(crate) pipeline: PipelineId,
    /// Behind each of them.
    pub(crate) is_multi_match: bool,
    pub(crate) operator: CompiledOperator,
    pub(crate) is_negated: bool,
    pub(crate) captures: bool,
    pub(crate) effects: Box<[Effect]>,
    /// The group of those with the same targets and transformations; `None`: what it looks at changes while rules run.
    pub(crate) group: Option<u16>,
}

/// A rule with its chain.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    /// Its number.
    pub id: u64,
    /// Where it stands.
    pub place: Place,
    /// When it is evaluated.
    pub phase: Phase,
    /// Its message.
    pub(crate) message: Option<CompiledTemplate>,
    /// What is logged of what it found.
    pub(crate) log_data: Option<CompiledTemplate>,
    /// Its tags.
    pub tags: Box<[Box<str>]>,
    /// Its severity.
    pub severity: Option<Severity>,
    /// Its version.
    pub version: Option<Box<str>>,
    /// The conditions, all of which have to hold.
    pub links: Box<[Link]>,
    /// What becomes of the request; never [`Disruption::Block`].
    pub(crate) disruption: Disruption,
    pub(crate) redirect: Option<CompiledTemplate>,
    /// With which status, if it is denied.
    pub status: u16,
    /// Whether it is logged.
    pub is_logged: bool,
    /// Whether it is in the audit log.
    pub is_audited: bool,
    /// Where evaluation goes on if it holds, if not with the next rule: at this place in the order of all rules, or behind it.
    pub(crate) skip: Option<u32>,
    /// What it asks for that is not here, and why.
    pub(crate) absent: Option<(String, &'static str)>,
}

impl CompiledRule {
    /// Its message as it stands in the file, with variables by their names.
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
