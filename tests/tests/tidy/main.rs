//! The structure of the code: dependencies between crates, files with `unsafe`, size limits.
//!
//! The tests of statements in documents are in `tests/tests/documents/`.

mod circles;
mod contract;
mod crates;
mod defects;
mod dependencies;
mod folders;
mod names;
mod sizes;
mod unsafe_code;
