//! Policies: ordered rules, each with a condition and actions.
//!
//! [`RuleIndex`] finds the rules that may match. [`Decision`] follows the matching ones and collects their results: another
//! pool, changes to the heads, a response. The caller applies the results.

mod action;
mod authenticate;
mod authenticator;
mod decision;
mod index;
mod later_effects;
mod lines;
mod rules;
mod split;
pub mod subrequest;

pub use action::{
    Action, Answer, Body, CookieTemplate, FieldAction, FieldChange, NamedCookies, PoolChoice,
    Rewrite, Secure, WafMode,
};
pub use authenticator::{Authenticator, CredentialsKind, Login};
pub use decision::{AnswerBody, Authentication, Decision, End, HandOver, RewriteError};
pub use index::RuleIndex;
pub use later_effects::LaterEffects;
pub use lines::Lines;
pub use rules::{Policy, Rule, Rules, Strategy};
pub use split::{Split, place_of};
pub use subrequest::Subrequest;
