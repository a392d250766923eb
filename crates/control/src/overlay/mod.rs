//! The overlay: changes of the configuration at run time, in versions that survive a restart.
//!
//! [`Changes`](changes::Changes) accepts transactions and reports their results. [`history`] contains the versions; the
//! journal stores them in `state_dir`. [`judge`] checks transactions one by one; the accepted ones are put in force
//! together.

pub mod changes;
pub mod history;
pub mod journal;
pub(crate) mod judge;
pub mod reports;
mod shared_queue;
