//! Commands that change the configuration of a running weir. Each sends one request, and waits until it takes effect.

pub mod apply;
pub mod confirm;
pub mod revert;
pub mod rollback;
pub mod set;
mod transaction;
pub mod unset;
