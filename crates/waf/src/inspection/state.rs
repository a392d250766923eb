//! What an inspection knows.

use std::sync::Arc;

use super::checked::Checked;
use super::groups::Groups;
use super::hit::Hit;
use super::message::Message;
use super::options::{Mode, Options};
use super::removals::Removals;
use super::report::{Limit, Match, Verdict};
use super::texts::Texts;
use super::timer::Timer;
use super::written::Written;
use crate::plan::View;
use crate::seclang::{Pattern, Phase, Variable};

/// Severity of a request in which nothing was found.
const NO_SEVERITY: u8 = 255;

/// Which rules are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    Nothing,
    /// Those of the request.
    Request,
    /// All but those of the logging phase.
    Everything,
}

impl Passing {
    /// Whether rules of this phase are passed over.
    pub fn passes_over(self, phase: Phase) -> bool {
        match self {
            Self::Nothing => false,
            Self::Request => phase <= Phase::RequestBody,
            Self::Everything => phase < Phase::Logging,
        }
    }
}

/// What rules have said of the engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    pub is_on: bool,
    /// Whether a rule says so, in whatever mode.
    pub only_detects: bool,
    pub is_audited: bool,
}

/// How often operators were tried on a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tried {
    pub compared: u32,
    /// Of these, patterns.
    pub patterns: u32,
}

/// What is known of one request under inspection.
#[derive(Debug)]
pub(super) struct State {
    pub view: Arc<View>,
    pub mode: Mode,
    pub message: Message,
    pub written: Written,
    /// What the rule at hand has matched so far.
    pub hits: Vec<Hit>,
    pub removals: Removals,
    pub groups: Groups,
    /// Room for values that are collected.
    pub found: Vec<Hit>,
    pub matches: Vec<Match>,
    pub highest_severity: u8,
    pub passing: Passing,
    pub engine: Engine,
    pub work_bytes_max: u64,
    /// More work than this is looked at: it may be too much, or have taken too long.
    pub work_bytes_looked_at: u64,
    pub timer: Timer,
    pub exceeded: Option<Limit>,
    pub counts: Tried,
    /// The pattern that was made last for this request, and of what.
    pub made_pattern: Option<(Vec<u8>, Option<Pattern>)>,
    pub checked: Checked,
    /// What a rule would have done, if nothing is blocked.
    pub would_be: Option<Verdict>,
}

impl State {
    /// Before the first rule.
    pub fn new(view: Arc<View>, known: Texts, options: &Options) -> Self {
        let rules = &view.rules;
        let mut written = Written::new(&rules.symbols);
        for (symbol, value) in &view.initial {
            written.set(Variable::Tx, *symbol, Some(value.clone()), &rules.symbols);
        }
        for (name, value) in &view.unnamed {
            written.set_named(Variable::Tx, name, Some(value.clone()), &rules.symbols);
        }
        Self {
            mode: options.mode,
            message: Message::new(known, options, rules.settings.argument_separator),
            written,
            hits: Vec::new(),
            removals: Removals::none(rules.rules.len()),
            groups: Groups::none_of(rules),
            found: Vec::new(),
            matches: Vec::new(),
            highest_severity: NO_SEVERITY,
            passing: Passing::Nothing,
            engine: Engine { is_on: true, only_detects: false, is_audited: true },
            work_bytes_max: options.work_bytes_max,
            work_bytes_looked_at: options.work_bytes_max,
            timer: Timer::new(options.time),
            exceeded: None,
            counts: Tried::default(),
            made_pattern: None,
            checked: Checked::new(options.checks.clone()),
            would_be: None,
            view,
        }
    }
}
