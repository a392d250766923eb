#![no_main]
//! Cookie fields: reading, removal, and the look-up of persistence tokens in them.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

use std::sync::LazyLock;

use weir_core::persistence::cookie::{CookieNames, CookieTokens};
use weir_core::persistence::keys::{Key, Keys};
use weir_http::cookies::cookies;

static TOKENS: LazyLock<CookieTokens> = LazyLock::new(|| {
    CookieTokens::new(&Keys::single(Key::new([7; 32])), "web", ["10.0.0.1:80", "10.0.0.2:80"])
});

libfuzzer_sys::fuzz_target!(|field: &[u8]| {
    invariants::cookies::check(field);
    let member_of = |value: &[u8]| (0..2).find(|member| TOKENS.token(*member).as_bytes() == value);
    assert_eq!(TOKENS.find(field).map(|found| found.member), member_of(field));
    let expected =
        cookies(field).find_map(|(name, value)| (name == b"WEIR").then(|| member_of(value))?);
    let found = TOKENS.find_in([field], &CookieNames::plain("WEIR"));
    assert_eq!(found.map(|found| found.member), expected);
});
