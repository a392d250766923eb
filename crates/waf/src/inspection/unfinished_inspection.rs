//! Inspections in turns, for callers that have others to serve: what is left after a turn is an [`UnfinishedInspection`] inspection. It owns
//! all of its state, so the next turn may be on another thread.
//!
//! A body may be left to a later turn, too, if nothing is decided before its end.

use std::sync::Arc;

use super::content::Kind;
use super::handle::Inspection;
use super::message::BodySettings;
use super::options::Turn;
use super::report::{Limit, Verdict};
use super::state::State;
use super::turns::{self, Question, RemainingWork};
use crate::body::{Body, Processor};
use crate::coding;

/// Number of bytes of a body that are read at once in a later turn.
const PIECE_BYTES: usize = 4 << 10;
/// The same while the body arrives.
const FIRST_PIECE_BYTES: usize = 512;
/// Number of bytes of an encoded body that are read at once: it decides how much they may become by decoding.
const ENCODED_PIECE_BYTES: usize = 1 << 10;
/// The length of a path in JSON from which on fewer bytes are read at once, because each value has its path.
const PATH_BYTES: usize = 64;
/// The smallest piece that is read at once.
const PIECE_BYTES_MIN: usize = 16;

/// The result of a turn.
#[must_use]
#[derive(Debug)]
pub enum Step {
    /// The verdict.
    Done(Inspection, Verdict),
    /// Another turn is needed.
    More(UnfinishedInspection),
}

/// An inspection that needs another turn.
#[must_use = "the request is not judged"]
#[derive(Debug)]
pub struct UnfinishedInspection {
    inspection: Inspection,
    rest: RemainingWork,
    /// Bytes of the body that are to be read before.
    unread: Option<UnreadBody>,
}

/// Bytes of a body that rules have not got.
#[derive(Debug)]
pub enum UnreadBody {
    /// The end of a request body that was not passed to [`Inspection::body`], because [`may_read_later`].
    Request {
        /// The body.
        body: Arc<Vec<u8>>,
        /// The number of bytes that were passed.
        from: usize,
        /// The limit that ends the body: see [`Inspection::cut_body`].
        limit: Option<Limit>,
    },
    /// The inspected part of a response body.
    Response {
        /// The body.
        body: Arc<Vec<u8>>,
        /// The number of its first bytes that are inspected. It may be shorter.
        bytes_max: usize,
    },
}

impl UnreadBody {
    /// What is judged when the bytes were read.
    fn question(&self) -> Question {
        match self {
            Self::Request { .. } => Question::Body(None),
            Self::Response { .. } => Question::ResponseBody,
        }
    }

    /// Reads the rest of the body until the turn is over. Returns what is left then.
    fn read(self, inspection: &mut Inspection) -> Option<Self> {
        let (body, mut from, limit) = match self {
            Self::Request { body, from, limit } => (body, from, limit),
            Self::Response { body, bytes_max } => {
                inspection.response_content(body.get(..bytes_max).unwrap_or(&body));
                return None;
            }
        };
        loop {
            let rest = body.get(from..).unwrap_or_default();
            let piece = piece_of(&inspection.state, rest, PIECE_BYTES);
            inspection.body(piece);
            from += piece.len();
            if from >= body.len() {
                limit.into_iter().for_each(|limit| cut(inspection, limit));
                return None;
            }
            inspection.state.bounds.look_between();
            if turns::is_turn_over(&inspection.state) {
                return Some(Self::Request { body, from, limit });
            }
        }
    }

    /// The number of bytes that rules may have to read of it.
    fn input_bytes(&self, inspection: &Inspection) -> usize {
        match self {
            Self::Request { body, from, .. } => {
                let bytes = body.len().saturating_sub(*from);
                match inspection.state.message.body.head.codings.is_empty() {
                    true => bytes,
                    false => usize::try_from(coding::inflated_bytes_max(bytes as u64))
                        .unwrap_or(usize::MAX),
                }
            }
            Self::Response { body, bytes_max } => body.len().min(*bytes_max),
        }
    }
}

// It may go on on another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<UnfinishedInspection>();
};

/// Judges a request or its response, as far as the turn suffices.
pub fn judge(mut inspection: Inspection, question: Question, turn: Turn) -> Step {
    if let Question::Body(Some(limit)) = question {
        cut(&mut inspection, limit);
    }
    let unfinished =
        UnfinishedInspection { inspection, rest: RemainingWork::of(question), unread: None };
    unfinished.begin(turn)
}

/// Reads the rest of the body, and judges the request or the response: see [`Question::Body`], [`Question::ResponseBody`].
pub fn judge_unread(inspection: Inspection, unread: UnreadBody, turn: Turn) -> Step {
    let rest = RemainingWork::of(unread.question());
    UnfinishedInspection { inspection, rest, unread: Some(unread) }.begin(turn)
}

/// Whether nothing is decided by further bytes of the body until its end, so that callers can pass them later. The limit of its
/// length is theirs.
pub fn may_read_later(inspection: &Inspection) -> bool {
    let body = &inspection.state.message.body;
    let is_decided = match body.processor {
        Processor::UrlEncoded | Processor::Json | Processor::Xml | Processor::Text => true,
        Processor::Content => body.content.kind == Kind::Text,
        // Files have a limit of their own.
        Processor::Multipart | Processor::None => false,
    };
    is_decided && body.limit.is_none() && inspection.reads_body()
}

/// The upper bound of the memory for decoding a body of this length later; 0 if it is not encoded.
pub fn decoding_bytes_max(inspection: &Inspection, body_bytes: u64) -> u64 {
    let BodySettings { head, inflated_bytes_max, .. } = &inspection.state.message.body;
    coding::memory_bytes_max(&head.codings, body_bytes, *inflated_bytes_max)
}

/// Adds bytes of the body until the others had better be read later: rules would have more than `input_bytes_max` to read, or
/// the bytes are encoded. Returns the number of bytes that were added: all if the body may not be read later.
pub fn read_first(inspection: &mut Inspection, bytes: &[u8], input_bytes_max: usize) -> usize {
    let mut rest = bytes;
    while !rest.is_empty() {
        let is_encoded = !inspection.state.message.body.head.codings.is_empty();
        let may_wait = may_read_later(inspection);
        if may_wait && (is_encoded || turns::input_bytes(&inspection.state) > input_bytes_max) {
            break;
        }
        let is_read_in_pieces = may_wait || inspection.body_progress().is_open;
        let piece = match is_read_in_pieces {
            true => piece_of(&inspection.state, rest, FIRST_PIECE_BYTES),
            false => rest,
        };
        inspection.body(piece);
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
    bytes.len() - rest.len()
}

/// The next bytes of a body to read at once. `bytes_max`: their number in an ordinary body.
fn piece_of<'a>(state: &State, rest: &'a [u8], bytes_max: usize) -> &'a [u8] {
    let body = &state.message.body;
    let path_bytes = body.reading.parser.as_ref().map_or(0, Body::path_bytes);
    let bytes_max = match body.head.codings.is_empty() {
        true => (bytes_max * PATH_BYTES / path_bytes.max(PATH_BYTES)).max(PIECE_BYTES_MIN),
        false => ENCODED_PIECE_BYTES,
    };
    rest.get(..bytes_max).unwrap_or(rest)
}

/// Inspects no further bytes of the body because of this limit.
fn cut(inspection: &mut Inspection, limit: Limit) {
    inspection.leave_body_out();
    inspection.state.message.body.cut(limit);
}

impl UnfinishedInspection {
    /// The first turn.
    fn begin(mut self, turn: Turn) -> Step {
        if self.input_bytes() > turn.input_bytes_max {
            return Step::More(self);
        }
        self.begin_turn(turn, true);
        self.run_turn(turn.input_bytes_max)
    }

    /// Another turn. The limit on the size of the input has no meaning any more.
    pub fn proceed(mut self, turn: Turn) -> Step {
        self.begin_turn(turn, false);
        self.run_turn(usize::MAX)
    }

    fn begin_turn(&mut self, turn: Turn, is_first: bool) {
        let State { bounds, message, .. } = &mut self.inspection.state;
        bounds.begin_turn(message.variables.texts.work_bytes(), turn, is_first);
    }

    fn run_turn(mut self, input_bytes_max: usize) -> Step {
        if let Some(unread) = self.unread.take() {
            self.unread = unread.read(&mut self.inspection);
        }
        if self.unread.is_some() {
            return Step::More(self);
        }
        match turns::run_turn(&mut self.inspection.state, self.rest, input_bytes_max) {
            Ok(verdict) => Step::Done(self.inspection, verdict),
            Err(rest) => Step::More(Self { rest, ..self }),
        }
    }

    /// The number of bytes that rules may have to read.
    fn input_bytes(&self) -> usize {
        let state = &self.inspection.state;
        if matches!(self.rest, RemainingWork::Phase(phase) if !state.view.has_rules_of(phase)) {
            return 0;
        }
        let unread = self.unread.as_ref().map_or(0, |it| it.input_bytes(&self.inspection));
        let read = match self.rest.is_of_response() && !state.view.responses_need_requests {
            true => {
                let texts = &state.message.variables.texts;
                texts.own_bytes().saturating_sub(state.message.request_bytes)
            }
            false => turns::input_bytes(state),
        };
        read.saturating_add(unread)
    }

    /// Gives the verdict up. The findings so far are kept. A body that was not read is left out of the record.
    pub fn give_up(mut self) -> Inspection {
        if matches!(self.unread, Some(UnreadBody::Request { .. })) {
            self.inspection.leave_body_out();
        }
        self.inspection
    }
}
