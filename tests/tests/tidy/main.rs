//! Holds the house in order: which crate uses which, where `unsafe` may be, how large things may become.
//!
//! What documents say is tested in `tests/tests/documents/`.

mod contract;
mod crates;
mod defects;
mod folders;
mod sizes;
mod unsafe_code;
