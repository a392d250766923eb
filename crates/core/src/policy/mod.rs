//! Policies: ordered rules, each a condition and what is done when it holds.
//!
//! [`RuleIndex`] finds the rules that may hold, [`Decision`] follows those that do and keeps what they
//! want: another pool, changes to the heads, an answer. What that means on a connection is for the
//! caller to see to.

mod action;
mod authenticate;
mod decision;
pub mod external;
mod index;
mod rules;
mod split;

pub use action::{
    Action, Answer, Body, CookieTemplate, FieldAction, FieldChange, Mirror, NamedCookies,
    PoolChoice, Rewrite, Secure, WafMode,
};
pub use authenticate::{Authenticator, How, Login};
pub use decision::{AnswerBody, Authentication, Decision, End, HandOver, Lines, RewriteError};
pub use index::RuleIndex;
pub use rules::{Policy, Rule, Rules, Strategy};
pub use split::{Split, place_of};
