//! Values within values.

use super::*;

fn read(value: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    NestedValues::new(Limits::DEFAULT)
        .read(value.as_bytes(), &mut |name, value| found.push((text(name), text(value))));
    found
}

#[test]
fn nested_values_are_decoded() {
    for (value, expected) in [
        (r#"{"id":"1\u0027 \u0055NION"}"#, &[("json.id", "1' UNION")][..]),
        (" \n\u{feff}[1,{\"a\":\"b\"}]", &[("json.array_0", "1"), ("json.array_1.a", "b")]),
        (r#"j:{"a":"\u003c"}"#, &[("json.a", "<")]),
        (r#""a\u0027b""#, &[("json", "a'b")]),
        // JSON in a string of JSON.
        (r#"{"b":"{\"id\":\"\\u0027\"}"}"#, &[("json.b", r#"{"id":"\u0027"}"#), ("json.id", "'")]),
        // Escapes in a string of a language that is not JSON.
        (r#"{user(id:"1\u0027"){x}}"#, &[("", r#"{user(id:"1'"){x}}"#)]),
        (r#"{user(id:"1\u{27}"){x}}"#, &[("", r#"{user(id:"1'"){x}}"#)]),
        (r"/**/{id:'\x3c'}", &[("", "/**/{id:'<'}")]),
        // Truncated JSON: the leaves so far, and the text.
        (
            r#"{"a":"\u0027","b":"\u003c"#,
            &[("json.a", "'"), ("json.b", "<"), ("", "{\"a\":\"'\",\"b\":\"<")],
        ),
        (r"\ud83d\ude00 \ud83d \U0001F600", &[("", "\u{1f600} \u{fffd} \u{1f600}")]),
        (r"a\\u0027", &[("", r"a\u0027"), ("", "a'")]),
    ] {
        assert!(may_be_nested(value.as_bytes()), "{value}");
        let found = read(value);
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn other_values_are_not_touched() {
    for value in
        ["", " ", "text", "12", "a{b}", r"C:\users\udo", r"\d+\w", r"\u{}", r"\u12", "é", "j:x"]
    {
        assert!(!may_be_nested(value.as_bytes()), "{value}");
    }
}

#[test]
fn a_document_with_more_values_than_allowed_is_still_inspected() {
    let many: Vec<_> =
        (0..Limits::DEFAULT.arguments_max).map(|it| format!("\"k{it}\":1")).collect();
    let found = read(&format!(r#"{{{},"id":"1\u0027 or"}}"#, many.join(",")));
    assert!(found.iter().any(|(_, value)| value.contains("\"1' or\"")));
    // Two documents share the number of values.
    let mut nested = NestedValues::new(Limits { arguments_max: 3, ..Limits::DEFAULT });
    let mut count = 0;
    for _ in 0..3 {
        nested.read(b"[1,2]", &mut |_, _| count += 1);
    }
    assert_eq!(count, 3);
}

#[test]
fn depth_is_bounded() {
    let mut value = "x".to_owned();
    for _ in 0..NESTED_DEPTH_MAX + 3 {
        value = format!("[{value:?}]");
    }
    assert_eq!(read(&value).len(), NESTED_DEPTH_MAX);
    let deep = "[".repeat(100_000);
    assert!(read(&deep).len() <= 1);
}

#[test]
fn quoted_cookies_are_decoded() {
    for (text, expected) in [
        (r#"a\073b"; c"#, Some(("a;b", "; c"))),
        (r#"UN\ION \"x\"""#, Some((r#"UNION "x""#, ""))),
        (r#"a;b""#, Some(("a;b", ""))),
        (r#"\400\0""#, Some(("4000", ""))),
        (r#"a\"#, None),
        ("", None),
    ] {
        let found = cookie_text(text.as_bytes());
        let expected = expected.map(|(text, rest)| (text.as_bytes().to_vec(), rest.as_bytes()));
        assert_eq!(found, expected, "{text}");
    }
}
