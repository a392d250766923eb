#![no_main]
//! Text that is replaced in bodies: however a body is cut, it becomes what it becomes as a whole.

#[path = "../../crates/core/tests/support/body_edit.rs"]
#[allow(dead_code, reason = "each user has a part of it")]
mod body_edit;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body_edit::check(bytes));
