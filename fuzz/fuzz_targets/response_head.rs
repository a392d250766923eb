#![no_main]
//! Response heads, in answer to GET and to HEAD.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

use weir_http::message::Method;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    for method in [Method::Get, Method::Head] {
        invariants::response::check(input, method);
    }
});
