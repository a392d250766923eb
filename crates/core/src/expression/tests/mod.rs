//! Expressions as a whole: their meaning, refused texts, and agreement of compiled ones with a
//! simple evaluator.

mod datagrams;
mod documentation;
mod errors;
mod meaning;
mod random;
mod reference;
