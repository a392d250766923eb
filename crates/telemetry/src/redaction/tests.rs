use weir_waf::inspection::MatchedValue;

use super::*;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn targets() {
    for (whole, shown) in [
        ("/", "/"),
        ("/login?user=a&id=1", "/login?user=a&id=1"),
        ("/login?user=a&password=hunter2&id=1", "/login?user=a&password=***&id=1"),
        ("/?pass%77ord=hunter2", "/?pass%77ord=***"),
        ("/?a=1;token=x;y&b=2", "/?a=1;token=***&b=2"),
        ("/?a=/?secret=x&b=2", "/?a=/?secret=***&b=2"),
        ("/?a?secret=x&b=2", "/?a?secret=***&b=2"),
        ("/?password=a?b=c&d=e", "/?password=***&d=e"),
        ("/a;jsessionid=0123/b?c=d", "/a;jsessionid=***/b?c=d"),
        ("/password/reset?id=1", "/password/reset?id=1"),
        ("/?password", "/?password"),
        ("/?password=", "/?password=***"),
        ("/?pin=1&&=", "/?pin=***&&="),
        ("/?a=%3Fpassword", "/?a=%3Fpassword"),
    ] {
        assert_eq!(text(&target(whole.as_bytes())), shown, "{whole}");
    }
}

fn secrets(values: &[&'static str]) -> Secrets<'static> {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    Secrets::from_values(values.into_iter(), &CredentialFields::default())
}

#[test]
fn secrets_anywhere_in_a_text() {
    let secrets = secrets(&["hunter2", "hunter2-and-more", "abc", "0123456789"]);
    for (whole, shown) in [
        ("", ""),
        ("nothing", "nothing"),
        ("hunter2", "***"),
        ("xHUNTER2y", "x***y"),
        ("hunter2-and-more hunter2", "*** ***"),
        ("abc is too short", "abc is too short"),
        ("cut 01234", "cut ***"),
        ("cut 012", "cut 012"),
        ("0123 56789", "0123 56789"),
    ] {
        assert_eq!(text(&secrets.without(whole.as_bytes())), shown, "{whole}");
    }
}

#[test]
fn where_looking_takes_too_long_nothing_is_shown() {
    let (secret, found) = ("a".repeat(4_096) + "b", "a".repeat(4_096));
    let secrets =
        Secrets::from_values([secret.as_bytes()].into_iter(), &CredentialFields::default());
    for _ in 0..WORK_BYTES_MAX / 4_096 / 2 {
        // The text is the prefix of a secret.
        assert_eq!(text(&secrets.without(found.as_bytes())), "***");
    }
    let many = format!("{} ", found).repeat(2);
    let slow = secrets.without(many.as_bytes());
    assert!(!text(&slow).contains("aa"));
    assert_eq!(text(&secrets.without(b"x")), "***");
}

/// The shown data and values of a match.
fn shown(
    secrets: &Secrets<'_>,
    data: &'static str,
    values: &[(&'static str, &'static str)],
) -> (String, Vec<String>) {
    let values: Vec<MatchedValue> = values
        .iter()
        .map(|(variable, value)| MatchedValue {
            variable: variable.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
        })
        .collect();
    let shown = secrets.shown(data.as_bytes(), &values);
    (text(&shown.data), shown.values.iter().map(|value| text(value)).collect())
}

#[test]
fn matches() {
    let secrets = secrets(&["hunter2"]);
    let check = |data, value, expected: (&str, &str)| {
        let (data, values) = shown(&secrets, data, &[value]);
        assert_eq!((data.as_str(), values[0].as_str()), expected, "{value:?}");
    };
    check("found x", ("ARGS:id", "x"), ("found x", "x"));
    check("found hunter2", ("ARGS:id", "a Hunter2"), ("found ***", "a ***"));
    for variable in [
        "ARGS:password",
        "ARGS_GET:user[passwd]",
        "ARGS_POST:json.token",
        "ARGS:pass%77ord",
        "REQUEST_COOKIES:lang",
        "REQUEST_HEADERS:Authorization",
        "REQUEST_HEADERS:cookie",
        "REQUEST_HEADERS:Proxy-Authorization",
        "REQUEST_HEADERS:X-Api-Key",
        "RESPONSE_HEADERS:Set-Cookie",
        "MATCHED_VARS:ARGS:pin",
    ] {
        check("found oops", (variable, "oops"), ("***", "***"));
    }
    for variable in ["ARGS_NAMES:password", "&ARGS:password", "REQUEST_COOKIES_NAMES:sid"] {
        check("found x", (variable, "x"), ("found x", "x"));
    }
    check("", ("ARGS:password", "oops"), ("", "***"));
    let referrer = ("REQUEST_HEADERS:Referer", "https://a/?b=c&password=x&d=e");
    check("found x", referrer, ("***", "https://a/?b=c&password=***"));
    check("found x", ("REQUEST_BODY", "{\"password\": \"x\"}"), ("***", "***"));
    check("found x", ("REQUEST_BODY", "{\"name\": \"x\"}"), ("found x", "{\"name\": \"x\"}"));
    let query = "1 union select password from users where id=1";
    check(query, ("ARGS:id", query), (query, query));
    check("x found within ARGS:password: x", ("TX:0", "x"), ("***", "***"));
}

#[test]
fn what_was_captured_in_a_secret_is_none_the_less_one() {
    let secrets = secrets(&[]);
    let (data, values) =
        shown(&secrets, "x", &[("ARGS:password", "xyz"), ("TX:1", "y"), ("ARGS:a", "b")]);
    assert_eq!((data.as_str(), values), ("***", vec!["***".into(), "***".into(), "b".into()]));
}

#[test]
fn findings_of_checks_show_no_secret() {
    let secrets =
        Secrets::from_values([&b"hunter22"[..]].into_iter(), &CredentialFields::default());
    for (place, detail, expected) in [
        ("path", "/a/..;/b", "/a/..;/b"),
        ("path", "/reset;token=abc/b", "/reset;token=***/b"),
        ("query", "q=%u0061&token=%u0062&b=1", "q=%u0061&token=***&b=1"),
        ("query", "q=hunter22", "q=***"),
        ("parameter id", "\\x00", "\\x00"),
        ("parameter password", "\\x00", "***"),
        ("cookie lang", "de de", "***"),
        ("header Host", "a b", "a b"),
        ("header Authorization", "Basic x", "***"),
        ("body", "depth_limit at byte 5", "depth_limit at byte 5"),
    ] {
        let shown = secrets.of_finding(place, detail.as_bytes());
        assert_eq!(String::from_utf8_lossy(&shown), expected, "{place}");
    }
}

/// JSON sent as a form is parsed as one long parameter name.
#[test]
fn names_that_are_documents_are_not_shown() {
    for (name, expected) in [
        ("ARGS:id", "ARGS:id"),
        ("ARGS:password", "ARGS:password"),
        ("ARGS:{\"password\":\"hunter2\"}", "ARGS:***"),
        ("ARGS:{\"id\":5}", "ARGS:{\"id\":5}"),
        ("ARGS:<login><password>hunter2", "ARGS:***"),
        ("REQUEST_URI", "REQUEST_URI"),
    ] {
        assert_eq!(String::from_utf8_lossy(&variable(name.as_bytes())), expected);
    }
    assert_eq!(&*place("parameter {\"token\":1}"), b"parameter ***");
    assert_eq!(&*place("path"), b"path");
    let secrets = Secrets::from_values([].into_iter(), &CredentialFields::default());
    let value = |variable: &str, value: &str| MatchedValue {
        variable: variable.into(),
        value: value.into(),
    };
    let document = "{\"password\":\"hunter2\"}";
    let values = [value("ARGS_NAMES", document), value(&format!("ARGS:{document}"), "")];
    let data = format!("found within ARGS:{document}");
    let shown = secrets.shown(data.as_bytes(), &values);
    assert_eq!((&*shown.data, &*shown.values[0]), (MASK, MASK));
}

#[test]
fn variables_that_are_secrets() {
    for (variable, expected) in [
        ("ARGS:password", true),
        ("ARGS:id", false),
        ("REQUEST_COOKIES:lang", true),
        ("REQUEST_HEADERS:Authorization", true),
        ("REQUEST_HEADERS:Accept", false),
        ("MATCHED_VARS:ARGS:pin", true),
        // The names of these elements are unknown.
        ("XML:/*", true),
        ("XML", false),
    ] {
        assert_eq!(
            is_secret_variable(variable.as_bytes(), &CredentialFields::default()),
            expected,
            "{variable}"
        );
    }
}
