//! Expressions as a whole: what they mean, what is refused, and that compiled ones agree with a plain
//! reading of what was written.

mod datagrams;
mod documentation;
mod errors;
mod meaning;
mod random;
mod reference;
