//! The state of an inspection.

use std::sync::Arc;

use super::bounds::{Bounds, EvaluationCounts};
use super::check_state::CheckState;
use super::groups::Groups;
use super::hit::Hit;
use super::message::Message;
use super::options::{Mode, Options};
use super::removals::Removals;
use super::report::{Match, Verdict};
use super::texts::Texts;
use super::written_variables::WrittenVariables;
use crate::plan::View;
use crate::seclang::{Pattern, Phase};

/// The severity before any match.
const NO_SEVERITY: u8 = 255;

/// The rules to skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkippedRules {
    Nothing,
    /// All rules of the request phases.
    Request,
    /// All rules except those of the logging phase.
    Everything,
}

impl SkippedRules {
    /// Whether rules of this phase are skipped.
    pub fn passes_over(self, phase: Phase) -> bool {
        match self {
            Self::Nothing => false,
            Self::Request => phase <= Phase::RequestBody,
            Self::Everything => phase < Phase::Logging,
        }
    }
}

/// A place in the rules of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub phase: Phase,
    /// The next rule, in the order of the phase.
    pub at: usize,
}

/// The settings of the engine that rules change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    pub is_on: bool,
    /// Whether a rule has switched to detection only.
    pub only_detects: bool,
    pub is_audited: bool,
}

/// The state of the inspection of one request.
#[derive(Debug)]
pub(super) struct State {
    pub view: Arc<View>,
    pub mode: Mode,
    pub message: Message,
    pub written: WrittenVariables,
    /// The values that the current rule has matched so far.
    pub hits: Vec<Hit>,
    pub removals: Removals,
    pub groups: Groups,
    /// A buffer for collected values.
    pub found: Vec<Hit>,
    pub matches: Vec<Match>,
    pub highest_severity: u8,
    pub passing: SkippedRules,
    pub engine: Engine,
    pub bounds: Bounds,
    pub counts: EvaluationCounts,
    /// The last pattern that was built for this request, and its text.
    pub made_pattern: Option<(Vec<u8>, Option<Pattern>)>,
    pub checked: CheckState,
    /// In detection mode, the verdict of blocking mode.
    pub would_be: Option<Verdict>,
}

impl State {
    /// The state before the first rule.
    pub fn new(view: Arc<View>, known: Texts, options: &Options) -> Self {
        let rules = &view.rules;
        Self {
            mode: options.mode,
            message: Message::new(known, options, rules.settings.argument_separator),
            written: WrittenVariables::new(&view),
            hits: Vec::new(),
            removals: Removals::none(rules.rules.len()),
            groups: Groups::none_of(rules),
            found: Vec::new(),
            matches: Vec::new(),
            highest_severity: NO_SEVERITY,
            passing: SkippedRules::Nothing,
            engine: Engine { is_on: true, only_detects: false, is_audited: true },
            bounds: Bounds::new(options),
            counts: EvaluationCounts::default(),
            made_pattern: None,
            checked: CheckState::new(options.checks.clone()),
            would_be: None,
            view,
        }
    }
}
