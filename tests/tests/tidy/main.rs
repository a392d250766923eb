//! Structure of the code: which crate uses which, where `unsafe` may be, size limits.
//!
//! Statements of documents are tested in `tests/tests/documents/`.

mod contract;
mod crates;
mod defects;
mod folders;
mod sizes;
mod unsafe_code;
