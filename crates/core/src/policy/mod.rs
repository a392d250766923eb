//! Policies: ordered rules, each with a condition and actions.
//!
//! [`RuleIndex`] finds the rules that may hold, [`Decision`] follows those that do and collects their results: another
//! pool, changes to the heads, a response. The caller carries these out.

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
