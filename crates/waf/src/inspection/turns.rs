//! An inspection in turns, for callers that have others to serve.
//!
//! A turn ends between two rules, or between two parts of the end of a body, when its time or its work is used up. What is left
//! is an [`Unfinished`] inspection, which owns all of its state: the next turn may be on another thread. A single rule and a
//! single part are not interrupted. The verdict, the matches and their order do not depend on the turns.

use std::sync::Arc;

use super::bounds;
use super::handle::Inspection;
use super::report::{Limit, Verdict};
use super::state::{Place, State};
use super::{found_files, names, nested, plain};
use crate::body::Processor;
use crate::seclang::Phase;

/// Number of bytes of a body that are read at once.
const PIECE_BYTES: usize = 32 << 10;

/// The bounds of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Processor time of the rules in microseconds, measured with the clock of the time limit, if there is one.
    pub cpu_us_max: u64,
    /// Number of inspected bytes. At least one rule is evaluated, or one part of a body is ended.
    pub work_bytes_max: u64,
    /// An inspection of more bytes is not begun: a single rule might take too long.
    pub input_bytes_max: usize,
}

impl Turn {
    /// No bounds.
    pub const WHOLE: Self =
        Self { cpu_us_max: u64::MAX, work_bytes_max: u64::MAX, input_bytes_max: usize::MAX };
}

/// What is to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The request head: see [`Inspection::request_headers`].
    Head,
    /// The whole request, whose body has ended: see [`Inspection::request_body`].
    Request,
    /// The whole request; before, its body ends: see [`Inspection::end_body`], or [`Inspection::cut_body`] with a limit.
    Body(Option<Limit>),
    /// The head of the response.
    ResponseHead,
    /// The whole response.
    ResponseBody,
    /// Nothing: rules of the logging phase.
    Logging,
}

impl Question {
    fn phase(self) -> Phase {
        match self {
            Self::Head => Phase::RequestHeaders,
            Self::Request | Self::Body(_) => Phase::RequestBody,
            Self::ResponseHead => Phase::ResponseHeaders,
            Self::ResponseBody => Phase::ResponseBody,
            Self::Logging => Phase::Logging,
        }
    }
}

/// The result of a turn.
#[must_use]
#[derive(Debug)]
pub enum Step {
    /// The verdict.
    Done(Inspection, Verdict),
    /// Another turn is needed.
    More(Unfinished),
}

/// An inspection that needs another turn.
#[must_use = "the request is not judged"]
#[derive(Debug)]
pub struct Unfinished {
    inspection: Inspection,
    rest: Rest,
    /// Bytes of the body that are to be read before.
    unread: Option<Unread>,
}

/// The end of a body that was not passed to [`Inspection::body`], because [`Inspection::may_read_later`].
#[derive(Debug)]
pub struct Unread {
    /// The body.
    pub body: Arc<Vec<u8>>,
    /// The number of bytes that were passed.
    pub from: usize,
    /// The limit that ends the body: see [`Inspection::cut_body`].
    pub limit: Option<Limit>,
}

// It may go on on another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Unfinished>();
};

/// What is left to do.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// This part of the end of the body, and those behind it.
    Body(Part),
    /// A phase.
    Phase(Phase),
    /// The rules from a place on.
    Rules(Place),
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

impl Inspection {
    /// Judges a request or its response, as far as the turn suffices.
    pub fn judge(mut self, question: Question, turn: Turn) -> Step {
        let rest = self.rest(question);
        self.first_turn(rest, None, turn)
    }

    /// Reads the end of the body, and judges the request: see [`Question::Body`].
    pub fn judge_unread(mut self, unread: Unread, turn: Turn) -> Step {
        let rest = self.rest(Question::Body(None));
        self.first_turn(rest, Some(unread), turn)
    }

    fn first_turn(mut self, rest: Rest, unread: Option<Unread>, turn: Turn) -> Step {
        let unread_bytes = unread.as_ref().map_or(0, |unread| unread.body.len() - unread.from);
        if self.input_bytes() + unread_bytes > turn.input_bytes_max {
            return Step::More(Unfinished { inspection: self, rest, unread });
        }
        bounds::begin_turn(&mut self.state, turn, true);
        self.proceed(rest, unread)
    }

    /// Whether nothing is decided by further bytes of the body until its end, so that callers can pass them later. The limit of
    /// its length is theirs.
    pub fn may_read_later(&self) -> bool {
        let body = &self.state.message.body;
        let has_parser =
            matches!(body.processor, Processor::UrlEncoded | Processor::Json | Processor::Xml);
        self.reads_body() && has_parser && body.head.codings.is_empty() && body.limit.is_none()
    }

    /// Judges in one turn without an end.
    pub(super) fn judge_whole(&mut self, question: Question) -> Verdict {
        let mut rest = self.rest(question);
        bounds::begin_turn(&mut self.state, Turn::WHOLE, true);
        loop {
            match self.go_on(rest) {
                Ok(verdict) => return verdict,
                Err(more) => rest = more,
            }
        }
    }

    fn rest(&mut self, question: Question) -> Rest {
        match question {
            Question::Body(limit) => {
                if let Some(limit) = limit {
                    self.cut(limit);
                }
                Rest::Body(Part::Parser)
            }
            question => Rest::Phase(question.phase()),
        }
    }

    /// The number of bytes that rules may have to read.
    fn input_bytes(&self) -> usize {
        let message = &self.state.message;
        message.texts.own_bytes() + message.body.content.kept.len()
    }

    fn proceed(mut self, rest: Rest, unread: Option<Unread>) -> Step {
        let unread = unread.and_then(|unread| self.read(unread));
        if unread.is_some() {
            return Step::More(Unfinished { inspection: self, rest, unread });
        }
        match self.go_on(rest) {
            Ok(verdict) => Step::Done(self, verdict),
            Err(rest) => Step::More(Unfinished { inspection: self, rest, unread: None }),
        }
    }

    /// Reads the end of the body until the turn is over. Returns what is left then.
    fn read(&mut self, mut unread: Unread) -> Option<Unread> {
        loop {
            let rest = unread.body.get(unread.from..).unwrap_or_default();
            let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
            self.body(piece);
            unread.from += piece.len();
            if unread.from >= unread.body.len() {
                unread.limit.into_iter().for_each(|limit| self.cut(limit));
                return None;
            }
            if bounds::is_turn_over(&self.state) {
                return Some(unread);
            }
        }
    }

    /// Goes on until the turn is over. `Err`: what is left then.
    fn go_on(&mut self, mut rest: Rest) -> Result<Verdict, Rest> {
        loop {
            match rest {
                Rest::Body(part) => {
                    self.end_part(part);
                    rest = part.next().map_or(Rest::Phase(Phase::RequestBody), Rest::Body);
                    if bounds::is_turn_over(&self.state) {
                        return Err(rest);
                    }
                }
                Rest::Phase(phase) => {
                    if let Some(verdict) = self.begin_phase(phase) {
                        return Ok(verdict);
                    }
                    rest = Rest::Rules(Place { phase, at: 0 });
                }
                Rest::Rules(place) => {
                    let found = self.state.rules(place).map_err(Rest::Rules)?;
                    return Ok(self.concluded(place.phase, found));
                }
            }
        }
    }

    /// Begins a phase. Returns the verdict if no rule has to be evaluated for it.
    fn begin_phase(&mut self, phase: Phase) -> Option<Verdict> {
        if phase <= Phase::RequestBody {
            let State { checked, mode, would_be, .. } = &mut self.state;
            if let Some(verdict) = checked.refused(*mode, would_be) {
                return Some(verdict);
            }
        }
        let verdict = self.state.begin_phase(phase)?;
        Some(self.concluded(phase, verdict))
    }

    /// The verdict on a request, behind that of the rules of a phase.
    fn concluded(&self, phase: Phase, found: Verdict) -> Verdict {
        let has_checks = || self.state.checked.checks.is_some();
        match (phase, found, self.state.message.body.limit) {
            (Phase::RequestHeaders, Verdict::Exceeded(_), _) if has_checks() && self.needs_body() => {
                Verdict::Pass
            }
            (Phase::RequestBody, Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
            (Phase::RequestBody, Verdict::Pass, _)
                if self.body_failure().is_some() && self.reads_body() =>
            {
                Verdict::Exceeded(Limit::Body)
            }
            (Phase::RequestBody, Verdict::Pass, _)
                if self.state.message.has_too_many && self.is_judging() =>
            {
                Verdict::Exceeded(Limit::Arguments)
            }
            (_, found, _) => found,
        }
    }

    /// Ends a part of the request body.
    pub(super) fn end_part(&mut self, part: Part) {
        let State { checked, message, .. } = &mut self.state;
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
            Part::Nested => nested::body(message),
        }
    }
}

impl Unfinished {
    /// Another turn. The limits on the size of the input have no meaning any more.
    pub fn proceed(mut self, turn: Turn) -> Step {
        bounds::begin_turn(&mut self.inspection.state, turn, false);
        self.inspection.proceed(self.rest, self.unread)
    }

    /// Gives the verdict up. The findings so far are kept.
    pub fn give_up(self) -> Inspection {
        self.inspection
    }
}
