//! The configuration: file -> spanned tree -> raw types -> validated [`snapshot::Snapshot`].
#![forbid(unsafe_code)]

pub mod snapshot;
