//! What an inspection does, in turns. A turn ends between two rules, or between two parts of the end of a body, when its time or its
//! work is used up. A single rule and a single part are not interrupted. A first turn also ends between two parts when the input of
//! rules has grown beyond its limit. The verdict, the matches and their order do not depend on the turns.

use super::message::Message;
use super::options::Turn;
use super::report::{Limit, Verdict};
use super::state::{Place, SkippedRules, State};
use super::{evaluate, found_files, names, nested_values, plain};
use crate::seclang::Phase;

/// What is to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The request head: see [`super::Inspection::request_headers`].
    Head,
    /// The whole request, whose body has ended: see [`super::Inspection::request_body`].
    Request,
    /// The whole request; before, its body ends: see [`super::Inspection::end_body`], or [`super::Inspection::cut_body`] with a
    /// limit.
    Body(Option<Limit>),
    /// The head of the response.
    ResponseHead,
    /// The whole response.
    ResponseBody,
    /// Nothing: rules of the logging phase.
    Logging,
}

/// What is left to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum RemainingWork {
    /// This part of the end of the body, and those behind it.
    Body(Part),
    /// A phase.
    Phase(Phase),
    /// The rules from a place on.
    Rules(Place),
}

impl RemainingWork {
    /// All that a question needs. A limit has ended the body before.
    pub fn of(question: Question) -> Self {
        match question {
            Question::Head => Self::Phase(Phase::RequestHeaders),
            Question::Request => Self::Phase(Phase::RequestBody),
            Question::Body(_) => Self::Body(Part::Parser),
            Question::ResponseHead => Self::Phase(Phase::ResponseHeaders),
            Question::ResponseBody => Self::Phase(Phase::ResponseBody),
            Question::Logging => Self::Phase(Phase::Logging),
        }
    }

    /// Whether the rest belongs to a response.
    pub fn is_of_response(self) -> bool {
        match self {
            Self::Body(_) => false,
            Self::Phase(phase) | Self::Rules(Place { phase, .. }) => phase > Phase::RequestBody,
        }
    }
}

/// A part of the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The parser.
    Parser,
    /// A text that may be read in several ways.
    Text,
    /// Names and files.
    Names,
    /// Values within values.
    Nested,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Self; 4] = [Self::Parser, Self::Text, Self::Names, Self::Nested];

    fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }
}

/// Judges in one turn without an end.
pub(super) fn whole(state: &mut State, question: Question) -> Verdict {
    let mut rest = RemainingWork::of(question);
    state.bounds.begin_turn(state.message.variables.texts.work_bytes(), Turn::WHOLE, true);
    loop {
        match run_turn(state, rest, usize::MAX) {
            Ok(verdict) => return verdict,
            Err(more) => rest = more,
        }
    }
}

/// Goes on until the turn is over, or the input has grown beyond `input_bytes_max`. `Err`: what is left then.
pub(super) fn run_turn(
    state: &mut State,
    mut rest: RemainingWork,
    input_bytes_max: usize,
) -> Result<Verdict, RemainingWork> {
    loop {
        match rest {
            RemainingWork::Body(part) => {
                end_part(state, part);
                rest = part
                    .next()
                    .map_or(RemainingWork::Phase(Phase::RequestBody), RemainingWork::Body);
                state.bounds.look_between();
                if is_turn_over(state) || input_bytes(state) > input_bytes_max {
                    return Err(rest);
                }
            }
            RemainingWork::Phase(phase) => {
                if let Some(verdict) = begin(state, phase) {
                    return Ok(verdict);
                }
                rest = RemainingWork::Rules(Place { phase, at: 0 });
            }
            RemainingWork::Rules(place) => {
                let found = state.rules(place).map_err(RemainingWork::Rules)?;
                return Ok(concluded(state, place.phase, found));
            }
        }
    }
}

/// Begins a phase. Returns the verdict if no rule has to be evaluated for it.
fn begin(state: &mut State, phase: Phase) -> Option<Verdict> {
    if phase <= Phase::RequestBody {
        let State { checked, mode, would_be, .. } = state;
        if let Some(verdict) = checked.refused(*mode, would_be) {
            return Some(verdict);
        }
    }
    let verdict = evaluate::begin_phase(state, phase)?;
    Some(concluded(state, phase, verdict))
}

/// The verdict on a request, behind that of the rules of a phase.
fn concluded(state: &State, phase: Phase, found: Verdict) -> Verdict {
    let has_checks = || state.checked.checks.is_some();
    match (phase, found, state.message.body.limit) {
        (Phase::RequestHeaders, Verdict::Exceeded(_), _) if has_checks() && needs_body(state) => {
            Verdict::Pass
        }
        (Phase::RequestBody, Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
        (Phase::RequestBody, Verdict::Pass, _)
            if state.message.body.failure.is_some() && reads_body(state) =>
        {
            Verdict::Exceeded(Limit::Body)
        }
        (Phase::RequestBody, Verdict::Pass, _)
            if state.message.has_too_many && is_judging(state) =>
        {
            Verdict::Exceeded(Limit::Arguments)
        }
        (_, found, _) => found,
    }
}

/// Ends a part of the request body.
pub(super) fn end_part(state: &mut State, part: Part) {
    let State { checked, message, .. } = state;
    match part {
        Part::Parser => {
            if let Some(body) = message.end_body() {
                checked.body(&body, message);
            }
            message.add_found_as_sent();
        }
        Part::Text => {
            let documents = plain::judge(message);
            documents.iter().for_each(|document| checked.document(document));
        }
        Part::Names => {
            names::limit(message);
            found_files::judge(message);
        }
        Part::Nested => nested_values::body(message),
    }
}

/// Whether the turn is over.
pub(super) fn is_turn_over(state: &State) -> bool {
    state.bounds.is_turn_over(state.message.variables.texts.work_bytes())
}

/// The number of bytes that rules may have to read, as far as they are known.
pub(super) fn input_bytes(state: &State) -> usize {
    let Message { variables, body, .. } = &state.message;
    let as_sent = body.found_as_sent.iter().map(|(name, value)| name.len() + value.len());
    let not_read_yet = body.content.kept.len() + body.joined.len() + body.text.bytes.len();
    variables.texts.own_bytes() + not_read_yet + as_sent.sum::<usize>()
}

/// Whether the body is inspected after the first phase.
pub(super) fn reads_body(state: &State) -> bool {
    state.message.body.is_read && is_judging(state)
}

/// Whether rules for requests are still evaluated.
fn is_judging(state: &State) -> bool {
    state.engine.is_on && state.passing == SkippedRules::Nothing
}

/// Whether bytes of the body are inspected.
pub(super) fn needs_body(state: &State) -> bool {
    reads_body(state) && state.message.body.is_needed()
}
