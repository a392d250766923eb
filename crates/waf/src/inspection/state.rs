//! The state of an inspection.

use std::sync::Arc;

use super::checked::Checked;
use super::groups::Groups;
use super::hit::Hit;
use super::message::Message;
use super::options::{Mode, Options};
use super::removals::Removals;
use super::report::{Limit, Match, Stopped, Verdict};
use super::texts::Texts;
use super::timer::Timer;
use super::written::Written;
use crate::plan::View;
use crate::seclang::{Pattern, Phase};

/// The severity before any match.
const NO_SEVERITY: u8 = 255;

/// The rules to skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    Nothing,
    /// All rules of the request phases.
    Request,
    /// All rules except those of the logging phase.
    Everything,
}

impl Passing {
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

/// The limit that ended the evaluation, and the place where it did so first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exceeded {
    pub limit: Option<Limit>,
    pub at: Option<Stopped>,
}

/// The marks of the work of rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    /// The limit.
    pub bytes_max: u64,
    /// The amount of work at which work and time are next compared with their limits.
    pub looked_at_bytes: u64,
}

/// Whether a rule is left between two of its values, because the turn is over. Nothing of it has acted by then, so it is
/// evaluated anew in another turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Leaving {
    /// Whether the next rule may be left. In each turn but the first, one rule is evaluated to its end.
    pub may_leave: bool,
    /// Whether the current rule may be left, as long as it has no match.
    pub can_be_left: bool,
    pub is_left: bool,
    /// The counters before the current rule, and its comparisons.
    before: (Tried, u64),
}

impl Leaving {
    /// A rule begins. `compared_bytes`: see [`Texts::compared_bytes`].
    pub fn begin_rule(&mut self, counts: Tried, compared_bytes: u64) {
        self.can_be_left = self.may_leave;
        self.before = (counts, compared_bytes);
    }

    /// The counters before the current rule, if it was left.
    pub fn take_left(&mut self) -> Option<(Tried, u64)> {
        std::mem::take(&mut self.is_left).then_some(self.before)
    }
}

/// The number of operator evaluations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tried {
    pub compared: u32,
    /// The number of these evaluations that used patterns.
    pub patterns: u32,
}

/// The state of the inspection of one request.
#[derive(Debug)]
pub(super) struct State {
    pub view: Arc<View>,
    pub mode: Mode,
    pub message: Message,
    pub written: Written,
    /// The values that the current rule has matched so far.
    pub hits: Vec<Hit>,
    pub removals: Removals,
    pub groups: Groups,
    /// A buffer for collected values.
    pub found: Vec<Hit>,
    pub matches: Vec<Match>,
    pub highest_severity: u8,
    pub passing: Passing,
    pub engine: Engine,
    pub marks: Marks,
    pub timer: Timer,
    pub leaving: Leaving,
    pub exceeded: Exceeded,
    pub counts: Tried,
    /// The last pattern that was built for this request, and its text.
    pub made_pattern: Option<(Vec<u8>, Option<Pattern>)>,
    pub checked: Checked,
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
            written: Written::new(&view),
            hits: Vec::new(),
            removals: Removals::none(rules.rules.len()),
            groups: Groups::none_of(rules),
            found: Vec::new(),
            matches: Vec::new(),
            highest_severity: NO_SEVERITY,
            passing: Passing::Nothing,
            engine: Engine { is_on: true, only_detects: false, is_audited: true },
            marks: Marks {
                bytes_max: options.work_bytes_max,
                looked_at_bytes: options.work_bytes_max,
            },
            timer: Timer::new(options.time),
            leaving: Leaving::default(),
            exceeded: Exceeded::default(),
            counts: Tried::default(),
            made_pattern: None,
            checked: Checked::new(options.checks.clone()),
            would_be: None,
            view,
        }
    }
}
