#![no_main]
//! Replacement of text in bodies: a body that is split anywhere gives the same result as the whole body.

#[path = "../../crates/core/tests/support/body_edit.rs"]
#[allow(dead_code, reason = "each user has a part of it")]
mod body_edit;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body_edit::check(bytes));
