//! The inspection of one request.
//!
//! [`Inspection::begin`] receives the request head, [`Inspection::request_headers`] evaluates the first phase, and so on.
//! Each phase results in a [`Verdict`]. An [`Inspection`] owns all state of its request.
//!
//! [`judge`] does the same in turns: a caller that has others to serve goes on later, or on another thread.

mod body_head;
mod body_reader;
mod body_recording;
mod bounds;
mod check_state;
mod common;
mod compare;
mod content;
mod effects;
mod encoded_body;
mod evaluate;
mod expand;
mod file_names;
mod files;
mod found_files;
mod groups;
mod handle;
mod hit;
mod lookup;
mod markup;
mod message;
mod message_variables;
mod names;
mod nested_values;
mod options;
mod plain;
mod removals;
mod report;
mod request;
mod shell;
mod state;
mod text;
mod texts;
mod timer;
mod turns;
mod undecided_body;
mod unfinished_inspection;
mod values;
mod written_variables;

pub use body_recording::RecordedBody;
pub use common::CommonTexts;
pub use handle::{Inspection, stopped};
pub use options::{Mode, Options, TimeLimit, Turn};
pub use report::{BodyProgress, Counts, Limit, Match, MatchedValue, StoppedAt, Verdict};
pub use request::{BodyLength, Request, Response};
pub(crate) use request::{TargetParts, decoded as decoded_path, parts as target_parts};
pub use shell::shell_text;
pub use turns::Question;
pub use unfinished_inspection::{
    Step, UnfinishedInspection, UnreadBody, decoding_bytes_max, judge, judge_unread,
    may_read_later, read_first,
};

#[cfg(test)]
mod body_tests;
#[cfg(test)]
mod tests;
