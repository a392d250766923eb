use weir_http::cookies::{SetCookie, SetCookieError, cookies};

use super::*;

const LABELS: [&str; 3] = ["10.0.0.1:80", "10.0.0.2:80", "[::1]:80"];

fn keys(bytes: &[u8]) -> Keys {
    let line = |byte: &u8| format!("{byte:02x}").repeat(32) + "\n";
    Keys::parse(&bytes.iter().map(line).collect::<String>()).unwrap()
}

fn tokens(keys: &Keys) -> CookieTokens {
    CookieTokens::new(keys, "web", LABELS)
}

/// The tokens that a pool reads from cookies, and the tokens of other pools.
fn read(tokens: &CookieTokens, fields: &[&str]) -> (Option<(u32, TokenForm)>, String) {
    let mut others = OtherTokens::default();
    let found = tokens.read(fields.iter().map(|field| field.as_bytes()), "W", &mut others);
    let others = String::from_utf8(others.text().to_vec()).unwrap();
    (found.map(|found| (found.member, found.standing)), others)
}

/// The member of a cookie's value.
fn find(tokens: &CookieTokens, value: &[u8]) -> Option<TokenMember> {
    let field = [b"W=", value].concat();
    tokens.read([&*field], "W", &mut OtherTokens::default())
}

/// A token without the id of its pool.
fn former(token: &str) -> &str {
    &token[POOL_ID_BYTES..]
}

/// The pool's id in a token.
fn id(token: &str) -> &str {
    &token[..POOL_ID_BYTES]
}

#[test]
fn a_token_is_the_same_everywhere_and_another_for_everyone() {
    let found = tokens(&keys(&[7]));
    assert_eq!(found.members(), 3);
    assert_eq!(found.token(0), "5_kQtrsSeiwvBCh6L54GqPLplvtM1g");
    // The members have changed and are in another order: the token stays the same.
    let reordered = CookieTokens::new(&keys(&[7]), "web", ["new:1", LABELS[0]]);
    assert_eq!(reordered.token(1), found.token(0));
    let mut tags: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for (key_byte, pool) in [(7, "web"), (7, "api"), (8, "web")] {
        let found = CookieTokens::new(&keys(&[key_byte]), pool, LABELS);
        tags.extend((0..3).map(|member| former(found.token(member)).to_owned()));
        ids.extend((0..3).map(|member| id(found.token(member)).to_owned()));
    }
    tags.sort();
    tags.dedup();
    ids.sort();
    ids.dedup();
    assert_eq!((tags.len(), ids.len()), (9, 3));
}

#[test]
fn only_tokens_are_found() {
    let found = tokens(&keys(&[7]));
    for member in 0..3 {
        let token = found.token(member).to_owned();
        let current = Some(TokenMember { member, standing: TokenForm::Current });
        assert_eq!(find(&found, token.as_bytes()), current);
        for at in 0..TOKEN_BYTES {
            for other in *b"A_-z9\0=\xff." {
                let mut wrong = token.clone().into_bytes();
                if wrong[at] != other {
                    wrong[at] = other;
                    // A tag alone is an old token.
                    let expected = (other == b'.' && at + 1 == POOL_ID_BYTES)
                        .then_some(TokenMember { member, standing: TokenForm::FormerToken });
                    assert_eq!(find(&found, &wrong), expected, "{}", wrong.escape_ascii());
                }
            }
        }
        for wrong in [&token[1..], &format!("{token}="), &format!("\"{token}\""), ""] {
            assert_eq!(find(&found, wrong.as_bytes()), None, "{wrong}");
        }
    }
    let other_pool = CookieTokens::new(&keys(&[7]), "api", LABELS);
    assert_eq!(find(&found, other_pool.token(0).as_bytes()), None);
    let mixed = format!("{}{}", id(found.token(0)), former(other_pool.token(0)));
    assert_eq!(find(&found, mixed.as_bytes()), None);
    assert_eq!(find(&CookieTokens::new(&keys(&[7]), "web", []), &[b'A'; 22]), None);
}

#[test]
fn a_token_has_one_spelling() {
    // 22 characters have four bits more than 16 bytes.
    let found = tokens(&keys(&[7]));
    let mut token = found.token(0).to_owned().into_bytes();
    assert_eq!(token.pop(), Some(b'g'));
    for last in *b"hijklmnopqrstuv" {
        assert_eq!(find(&found, &[&token[..], &[last]].concat()), None);
    }
}

#[test]
fn an_older_key_is_honoured() {
    let before = tokens(&keys(&[1]));
    let during = tokens(&keys(&[2, 1]));
    let after = tokens(&keys(&[2]));
    let (old, new) = (before.token(1).as_bytes(), after.token(1).as_bytes());
    assert_eq!(during.token(1).as_bytes(), new);
    let found = |standing| Some(TokenMember { member: 1, standing });
    assert_eq!(find(&during, old), found(TokenForm::OlderKey));
    assert_eq!(find(&during, new), found(TokenForm::Current));
    assert_eq!(find(&after, old), None);
    // weir never writes the id of one key with the tag of another. Such a token is renewed.
    let (old, new) = (before.token(1), after.token(1));
    for mixed in [format!("{}{}", id(old), former(new)), format!("{}{}", id(new), former(old))] {
        assert_eq!(find(&during, mixed.as_bytes()), found(TokenForm::OlderKey));
    }
}

#[test]
fn former_cookies_are_honoured() {
    let found = tokens(&keys(&[2, 1]));
    let older = tokens(&keys(&[1]));
    let api = CookieTokens::new(&keys(&[2, 1]), "api", LABELS);
    let (new, old, foreign) = (found.token(0), older.token(1), api.token(2));
    let check = |fields: &[&str], expected: Option<(u32, TokenForm)>, others: &str| {
        assert_eq!(read(&found, fields), (expected, others.to_owned()), "{fields:?}");
    };
    let bare = |token: &str| format!("W={}", former(token));
    check(&[&bare(new)], Some((0, TokenForm::FormerToken)), "");
    check(&[&bare(old)], Some((1, TokenForm::FormerToken)), "");
    let named = |token: &str| format!("W-{}={}", id(token), former(token));
    assert_eq!(named(tokens(&keys(&[7])).token(0)), "W-5_kQtrsS=eiwvBCh6L54GqPLplvtM1g");
    check(&[&named(new)], Some((0, TokenForm::FormerName)), "");
    check(&[&named(old)], Some((1, TokenForm::FormerName)), "");
    // Of two former cookies, the one with the pool's id in its name was in use; a current cookie precedes both.
    check(&[&bare(new), &named(old)], Some((1, TokenForm::FormerName)), "");
    let now = format!("W={}", found.token(2));
    check(&[&bare(new), &named(old), &now], Some((2, TokenForm::Current)), "");
    let now = format!("W={}", older.token(2));
    check(&[&bare(new), &named(old), &now], Some((2, TokenForm::OlderKey)), "");
    // Tokens of another pool belong to that pool: their name says so, or they are returned unchanged.
    check(&[&named(foreign)], None, "");
    check(&[&format!("W-{}={}", id(foreign), former(new))], None, "");
    check(&[&format!("W-{}={new}", id(new))], None, "");
    check(&[&bare(foreign)], None, &format!(".{}", former(foreign)));
}

#[test]
fn a_clients_cookies() {
    let found = tokens(&keys(&[2, 1]));
    let old = tokens(&keys(&[1])).token(0).to_owned();
    let new = found.token(2);
    let check = |fields: &[String], expected: Option<(u32, TokenForm)>| {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(read(&found, &fields), (expected, String::new()), "{fields:?}");
    };
    check(&[], None);
    check(&["a=b".into()], None);
    check(&[format!("w={new}")], None);
    check(&[format!("W-={new}; W-abcdefgh={new}; WW={new}")], None);
    check(&[format!("a=b; W={new}")], Some((2, TokenForm::Current)));
    check(&[format!("W={old}")], Some((0, TokenForm::OlderKey)));
    check(&[format!("W={old}; W={new}")], Some((2, TokenForm::Current)));
    check(&["W=forged".into(), format!("a=b; W={old}; W=x")], Some((0, TokenForm::OlderKey)));
    // Of two tokens with the same standing, the first one is used.
    check(&[format!("W={new}; W={}", found.token(1))], Some((2, TokenForm::Current)));
    check(&[format!("W={}.{new}", found.token(1))], Some((1, TokenForm::Current)));
}

#[test]
fn tokens_of_other_pools_stay_with_the_client() {
    let found = tokens(&keys(&[7]));
    let [api, images] = ["api", "images"].map(|pool| CookieTokens::new(&keys(&[7]), pool, LABELS));
    let [web, api, images] = [found.token(0), api.token(1), images.token(2)];
    let check = |fields: &[&str], member: Option<u32>, others: &[&str]| {
        let others: String = others.iter().map(|other| format!(".{other}")).collect();
        let member = member.map(|member| (member, TokenForm::Current));
        assert_eq!(read(&found, fields), (member, others), "{fields:?}");
    };
    check(&[&format!("W={api}")], None, &[api]);
    check(&[&format!("W={api}.{web}")], Some(0), &[api]);
    check(&[&format!("W={images}.{web}.{api}")], Some(0), &[images, api]);
    check(&[&format!("W={images}.{api}"), &format!("x=y; W={web}")], Some(0), &[images, api]);
    // The first token of each pool is returned; a pool's own old tokens are replaced by the new one.
    let second = CookieTokens::new(&keys(&[7]), "api", LABELS).token(0).to_owned();
    check(&[&format!("W={api}.{second}.{api}; W={second}")], None, &[api]);
    let gone = format!("{}{}", id(web), former(api));
    check(&[&format!("W={gone}.{api}")], None, &[api]);
    // Cookies with other names or another form contain no tokens.
    check(&[&format!("V={api}; W-{}={}", id(api), former(api))], None, &[]);
    let foreign = "A".repeat(TOKEN_BYTES);
    for (value, others) in [
        (format!("x.{foreign}.{}..", &foreign[1..]), &[&*foreign][..]),
        (format!("{}, {foreign}", &foreign[2..]), &[]),
        (format!("{}\"", &foreign[1..]), &[]),
        (format!("{} ", &foreign[1..]), &[]),
        (format!("{}\u{e9}", &foreign[2..]), &[]),
        (format!("\"{foreign}\""), &[]),
    ] {
        check(&[&format!("W={value}")], None, others);
    }
}

#[test]
fn tokens_of_others_are_bounded_and_those_set_last_stay() {
    let found = tokens(&keys(&[7]));
    let many: Vec<String> = (0..10_000).map(|number| format!("{number:030}")).collect();
    // The tokens differ only in the pool's id.
    let many: Vec<String> =
        many.iter().map(|token| format!("{}{}", &token[22..], &token[..22])).collect();
    let expected: String = many[..TOKENS_MAX - 1].iter().map(|token| format!(".{token}")).collect();
    let (member, others) = read(&found, &[&format!("W={}.{}", many.join("."), found.token(1))]);
    assert_eq!((member, others), (Some((1, TokenForm::Current)), expected.clone()));
    // The tokens may be divided between fields in any way.
    let fields: Vec<String> = many.iter().map(|token| format!("W={token}")).collect();
    let (_, others) = read(&found, &fields.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(others, expected);
    // Repeated tokens take no space, but time, which is limited.
    let mut repeated = vec![&*many[0]; 1_000];
    repeated.push(&many[1]);
    let (_, others) = read(&found, &[&format!("W={}", repeated.join("."))]);
    assert_eq!(others, format!(".{}", many[0]));
}

/// The cookie settings of the configuration.
fn cookie() -> SetCookie {
    SetCookie {
        name: "W".into(),
        path: Some("/".into()),
        domain: None,
        max_age_s: None,
        secure: false,
        http_only: true,
        same_site: None,
    }
}

#[test]
fn set_cookie_fields_are_ready() {
    let found = tokens(&keys(&[7]));
    let fields = SetCookieFields::new(&cookie(), &found).unwrap();
    let foreign = "A".repeat(TOKEN_BYTES);
    for member in 0..3 {
        let write = |others: &OtherTokens| {
            let mut out = b"before:".to_vec();
            fields.write(member, others, &mut out);
            String::from_utf8(out).unwrap()
        };
        let token = found.token(member);
        let mut others = OtherTokens::default();
        assert_eq!(write(&others), format!("before:W={token}; Path=/; HttpOnly"));
        let field = format!("W={foreign}.{token}");
        found.read([field.as_bytes()], "W", &mut others);
        assert_eq!(write(&others), format!("before:W={token}.{foreign}; Path=/; HttpOnly"));
        others.clear();
        assert_eq!(write(&others), format!("before:W={token}; Path=/; HttpOnly"));
    }
    let wrong = SetCookie { name: "a b".into(), ..cookie() };
    let empty = CookieTokens::new(&keys(&[7]), "web", []);
    assert_eq!(SetCookieFields::new(&wrong, &empty).err(), Some(SetCookieError::Name));
}

/// A client that moves between pools keeps its last member in each of them, if it returns before it has used too many other
/// pools.
#[test]
fn a_jar_holds_what_pools_put_into_it() {
    const POOLS: usize = TOKENS_MAX + 8;
    let names: Vec<String> = (0..POOLS).map(|number| format!("pool-{number}")).collect();
    let pools: Vec<(CookieTokens, SetCookieFields)> = names
        .iter()
        .map(|name| {
            let tokens = CookieTokens::new(&keys(&[7]), name, LABELS);
            let fields = SetCookieFields::new(&cookie(), &tokens).unwrap();
            (tokens, fields)
        })
        .collect();
    for seed in 0..50 {
        let mut random = weir_testing::Random::new(seed);
        let mut jar = String::new();
        // Pairs of pool and member, the latest first.
        let mut known: Vec<(usize, u32)> = Vec::new();
        for _ in 0..400 {
            let pool = random.below(POOLS);
            let (tokens, fields) = &pools[pool];
            let mut others = OtherTokens::default();
            let found = tokens.read([jar.as_bytes()], "W", &mut others);
            let at = known.iter().position(|(known, _)| *known == pool);
            assert_eq!(found.map(|found| found.member), at.map(|at| known[at].1), "seed {seed}");
            if found.is_some() && !random.percent(20) {
                continue;
            }
            let member = random.below(LABELS.len()) as u32;
            let mut field = Vec::new();
            fields.write(member, &others, &mut field);
            jar = String::from_utf8(field).unwrap().split(';').next().unwrap().to_owned();
            let (_, value) = cookies(jar.as_bytes()).next().unwrap();
            assert!(value.len() < TOKENS_MAX * (TOKEN_BYTES + 1), "seed {seed}");
            known.retain(|(known, _)| *known != pool);
            known.insert(0, (pool, member));
            known.truncate(TOKENS_MAX);
        }
    }
}

#[test]
fn what_members_do_not_get() {
    let [web, api] = ["web", "api"]
        .map(|pool| CookieTokens::new(&keys(&[2, 1]), pool, LABELS).token(0).to_owned());
    let older = CookieTokens::new(&keys(&[1]), "web", LABELS).token(0).to_owned();
    let foreign = CookieTokens::new(&keys(&[9]), "web", LABELS).token(0).to_owned();
    let both = keys(&[2, 1]);
    let mut pools: Vec<PoolId> =
        ["web", "api"].iter().flat_map(|pool| PoolId::of(&both, pool)).collect();
    pools.sort();
    let hidden = HiddenCookies::new(vec!["W".into(), "V".into()], vec!["S".into()], pools.into());
    let check = |name: &str, value: &str, expected: bool| {
        assert_eq!(hidden.contains(name.as_bytes(), value.as_bytes()), expected, "{name}={value}");
    };
    // The configured name, with any value.
    for name in ["W", "V"] {
        for value in ["", "x", &web, &foreign, &format!("{web}.{api}"), former(&web)] {
            check(name, value, true);
        }
    }
    // A former name of the cookie, or its name elsewhere.
    for value in [&*web, &api, &older, &format!("{web}.{api}"), &format!("{foreign}.{api}")] {
        check("OLD", value, true);
        check("S", value, false);
    }
    // The former names of a pool's cookie.
    for token in [&web, &api, &older] {
        check(&format!("W-{}", id(token)), former(token), true);
        check(&format!("V-{}", id(token)), "x", true);
        check(&format!("S-{}", id(token)), former(token), false);
    }
    // Cookies of the application.
    for (name, value) in [
        ("W-frontend", former(&web)),
        ("w", former(&web)),
        ("W-", "x"),
        ("", ""),
        ("session", former(&foreign)),
        ("session", &*foreign),
        ("session", &*format!("{foreign}.{foreign}")),
        ("session", &*format!("x.{web}")),
        ("session", &*format!("{web}=")),
    ] {
        check(name, value, false);
    }
}
