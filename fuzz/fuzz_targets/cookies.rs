#![no_main]
//! Cookie fields: parsing, removal of cookies, and persistence tokens.

#[path = "../../crates/http/tests/invariants/mod.rs"]
mod invariants;

use std::sync::LazyLock;

use weir_core::persistence::cookie::{
    CookieTokens, HiddenCookies, OtherTokens, PoolId, SetCookieFields, TOKEN_BYTES, TOKENS_MAX,
    TokenForm,
};
use weir_core::persistence::keys::{Key, Keys};
use weir_http::cookies::{RemainingCookies, SetCookie, cookies, write_without};

const NAME: &str = "WEIR";
const FORMER_NAME: &[u8] = b"WEIR-5_kQtrsS";
const POOL_ID_BYTES: usize = 8;

struct Pool {
    tokens: CookieTokens,
    fields: SetCookieFields,
    hidden: HiddenCookies,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| {
    let keys = Keys::single(Key::new([7; 32]));
    let tokens = CookieTokens::new(&keys, "web", ["10.0.0.1:80", "10.0.0.2:80"]);
    let cookie = SetCookie {
        name: NAME.into(),
        path: Some("/".into()),
        domain: None,
        max_age_s: None,
        secure: false,
        http_only: true,
        same_site: None,
    };
    let fields = SetCookieFields::new(&cookie, &tokens).expect("a sound cookie");
    let pools = PoolId::of(&keys, "web").collect();
    Pool { tokens, fields, hidden: HiddenCookies::new(vec![NAME.into()], Vec::new(), pools) }
});

libfuzzer_sys::fuzz_target!(|field: &[u8]| {
    invariants::cookies::check(field);
    let found = read(field);
    assert_eq!(found.0, expected(field));
    check_that_others_stay(&found.1);
    check_that_members_get_nothing(field);
});

fn read(field: &[u8]) -> (Option<(u32, TokenForm)>, OtherTokens) {
    let mut others = OtherTokens::default();
    let found = POOL.tokens.read([field], NAME, &mut others);
    (found.map(|found| (found.member, found.standing)), others)
}

/// The expected result, computed by simple means.
fn expected(field: &[u8]) -> Option<(u32, TokenForm)> {
    let token = |member: u32| POOL.tokens.token(member).as_bytes();
    let tag = |member: u32| &token(member)[POOL_ID_BYTES..];
    let named = |name: &'static [u8]| cookies(field).filter(move |cookie| cookie.0 == name);
    let tokens = || named(NAME.as_bytes()).flat_map(|(_, value)| value.split(|byte| *byte == b'.'));
    let current = tokens().find_map(|text| (0..2).find(|member| token(*member) == text));
    let former_name =
        named(FORMER_NAME).find_map(|(_, value)| (0..2).find(|member| tag(*member) == value));
    let former_token = tokens().find_map(|text| (0..2).find(|member| tag(*member) == text));
    current
        .map(|member| (member, TokenForm::Current))
        .or(former_name.map(|member| (member, TokenForm::FormerName)))
        .or(former_token.map(|member| (member, TokenForm::FormerToken)))
}

/// Checks that a written cookie is short and contains the tokens.
fn check_that_others_stay(others: &OtherTokens) {
    let mut set = Vec::new();
    POOL.fields.write(1, others, &mut set);
    let (_, value) = cookies(&set).next().expect("a cookie");
    assert!(value.len() < TOKENS_MAX * (TOKEN_BYTES + 1));
    assert!(value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)));
    let again = read(&set);
    assert_eq!(again.0, Some((1, TokenForm::Current)));
    assert_eq!(again.1.text(), others.text());
}

fn check_that_members_get_nothing(field: &[u8]) {
    let mut rest = Vec::new();
    let is_hidden = |name: &[u8], value: &[u8]| POOL.hidden.contains(name, value);
    if write_without(field, is_hidden, &mut rest) == RemainingCookies::Unchanged {
        rest = field.to_vec();
    }
    let left = read(&rest);
    assert!(left.0.is_none() && left.1.text().is_empty());
}
