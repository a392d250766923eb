//! One request's way through the rules.
//!
//! [`Inspection::begin`] takes the head; [`Inspection::request_headers`] evaluates the first phase, and so on. What a phase finds is a [`Verdict`].
//! Everything that belongs to the request is in the inspection, and goes with it.

mod arguments;
mod compare;
mod effects;
mod evaluate;
mod expand;
mod groups;
mod lookup;
mod report;
mod request;
mod state;
mod texts;
mod values;
mod written;

pub use arguments::Options;
pub use report::{Limit, Match, MatchedValue, Verdict};
pub(crate) use request::decoded as decoded_path;
pub use request::{Request, Response};
pub use state::{Counts, Inspection, Mode};

#[cfg(test)]
mod tests;
