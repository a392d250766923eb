//! The overlay: changes of the configuration at run time, in versions that survive a restart.
//!
//! [`Changes`](changes::Changes) takes transactions and reports their results; [`history`] has the versions; the journal keeps them in `state_dir`.
//! Transactions are judged one after the other ([`judge`]), each on its own; what was accepted together is put in force together.

pub mod changes;
pub mod history;
pub mod journal;
pub(crate) mod judge;
pub mod reports;
