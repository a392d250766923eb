//! The complete record of a request, without its secrets.
//!
//! `weir waf diff` inspects recorded requests again, so as much as possible stays unchanged. A body is omitted if it may
//! contain a secret that cannot be masked.

use std::borrow::Cow;

use weir_http::secret_names::{decoded, is_secret_name, mentions_secret};

use super::{MASK, Secrets, target};

/// Characters that do not occur in the parameter names of forms.
const FOREIGN: &[u8] = b"\"'<>{}\\\n";

/// A request target with masked secrets.
pub fn recorded_target(text: &[u8], secrets: &Secrets<'_>) -> Vec<u8> {
    secrets.without(&target(text)).into_owned()
}

/// A field's value with masked secrets.
pub fn recorded_field(name: &[u8], value: &[u8], secrets: &Secrets<'_>) -> Vec<u8> {
    if name.eq_ignore_ascii_case(b"cookie") {
        return cookies(value);
    }
    if secrets.is_field(name) {
        return MASK.to_vec();
    }
    secrets.shown_text(value).into_owned()
}

/// A Cookie value with masked cookie values. Names of cookies are not secret.
fn cookies(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for (index, cookie) in value.split(|byte| *byte == b';').enumerate() {
        if index > 0 {
            out.push(b';');
        }
        if let Some(equals) = cookie.iter().position(|byte| *byte == b'=') {
            out.extend_from_slice(&cookie[..=equals]);
        }
        out.extend_from_slice(MASK);
    }
    out
}

/// Properties of a body that follow from the request head.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodyKind<'a> {
    /// The value of Content-Type.
    pub media_type: &'a [u8],
    /// Whether the body has a content coding, such as gzip.
    pub is_encoded: bool,
}

/// A body with masked secrets; `None`: secrets cannot be masked.
pub fn recorded_body<'a>(
    body: &'a [u8],
    kind: BodyKind<'_>,
    secrets: &Secrets<'_>,
) -> Option<Cow<'a, [u8]>> {
    if body.is_empty() {
        return Some(Cow::Borrowed(body));
    }
    let media_type = kind.media_type.to_ascii_lowercase();
    let is_of = |part: &[u8]| media_type.windows(part.len()).any(|window| window == part);
    let is_usual = !is_of(b"charset") || is_of(b"utf-8") || is_of(b"ascii") || is_of(b"8859");
    if kind.is_encoded || !is_usual {
        return None;
    }
    let masked = if is_of(b"x-www-form-urlencoded") {
        Cow::Owned(form(body, secrets)?)
    } else if is_of(b"json") {
        Cow::Owned(json(body, secrets)?)
    } else {
        let text: Vec<u8> = body.iter().copied().filter(|byte| *byte != 0).collect();
        if mentions_secret(body) || mentions_secret(&text) {
            return None;
        }
        secrets.within(body).map_or(Cow::Borrowed(body), Cow::Owned)
    };
    without_all(masked, secrets)
}

/// The text, in which secrets from other parts of the request are masked; `None`: the search took too long.
fn without_all<'a>(text: Cow<'a, [u8]>, secrets: &Secrets<'_>) -> Option<Cow<'a, [u8]>> {
    let shown = match secrets.without(&text) {
        Cow::Borrowed(shown) if shown.len() == text.len() => None,
        shown => Some(shown.into_owned()),
    };
    match shown {
        None => Some(text),
        // The search for secrets took too long.
        Some(shown) if shown == MASK => None,
        Some(shown) => Some(Cow::Owned(shown)),
    }
}

fn form(body: &[u8], secrets: &Secrets<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    for (index, argument) in body.split(|byte| *byte == b'&').enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        let Some(equals) = argument.iter().position(|byte| *byte == b'=') else {
            if mentions_secret(argument) {
                return None;
            }
            out.extend_from_slice(argument);
            continue;
        };
        let (name, value) = (&argument[..equals], &argument[equals + 1..]);
        if name.iter().any(|byte| FOREIGN.contains(byte)) && mentions_secret(argument) {
            return None;
        }
        out.extend_from_slice(&argument[..=equals]);
        let is_masked = is_secret_name(name) || has_secret(value, secrets);
        out.extend_from_slice(if is_masked { MASK } else { value });
    }
    Some(out)
}

/// Whether a parameter's value contains a secret.
fn has_secret(value: &[u8], secrets: &Secrets<'_>) -> bool {
    let text = decoded(value).map_or(Cow::Borrowed(value), Cow::Owned);
    let is_document = matches!(text.first(), Some(b'{' | b'[' | b'<'));
    (is_document && mentions_secret(&text))
        || secrets.within(value).is_some()
        || matches!(secrets.without(&text), Cow::Owned(_))
}

/// JSON in which secret strings, numbers and literals are masked; `None`: secrets cannot be masked.
fn json(body: &[u8], secrets: &Secrets<'_>) -> Option<Vec<u8>> {
    let (mut out, mut outside) = (Vec::with_capacity(body.len()), Vec::new());
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        if byte != b'"' {
            out.push(byte);
            outside.push(byte);
            at += 1;
            continue;
        }
        let end = string_end(body, at)?;
        let text = &body[at + 1..end - 1];
        let behind = blanks_end(body, end);
        if body.get(behind) != Some(&b':') {
            put_value(&mut out, text, secrets);
            at = end;
            continue;
        }
        // An escape may hide a secret name.
        if text.contains(&b'\\') {
            return None;
        }
        let value = blanks_end(body, behind + 1);
        out.extend_from_slice(&body[at..value]);
        at = value;
        if is_secret_name(text) {
            at = secret_end(body, value)?;
            out.extend_from_slice(b"\"***\"");
        }
    }
    (!mentions_secret(&outside)).then_some(out)
}

/// Writes a string value whose name is not secret.
fn put_value(out: &mut Vec<u8>, text: &[u8], secrets: &Secrets<'_>) {
    let is_document = text.contains(&b'\\') && mentions_secret(text);
    let is_masked = is_document || secrets.within(text).is_some();
    out.push(b'"');
    out.extend_from_slice(if is_masked { MASK } else { text });
    out.push(b'"');
}

/// The index after the closing quote of the string that starts at this quote.
fn string_end(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match body.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn blanks_end(body: &[u8], start: usize) -> usize {
    let is_other = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    body[start..].iter().position(is_other).map_or(body.len(), |at| start + at)
}

/// The end of a secret value; `None`: the value is an object or an array, or it is truncated.
fn secret_end(body: &[u8], start: usize) -> Option<usize> {
    match body.get(start)? {
        b'"' => string_end(body, start),
        b'{' | b'[' => None,
        _ => {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\r' | b'\n');
            Some(body[start..].iter().position(is_end).map_or(body.len(), |at| start + at))
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_http::secret_names::CredentialFields;

    use super::*;

    fn check(kind: &str, body: &str, expected: Option<&str>) {
        let secrets =
            Secrets::from_values([&b"hunter2"[..]].into_iter(), &CredentialFields::default());
        let kind = BodyKind { media_type: kind.as_bytes(), is_encoded: false };
        let made = recorded_body(body.as_bytes(), kind, &secrets);
        let made = made.map(|made| String::from_utf8_lossy(&made).into_owned());
        assert_eq!(made.as_deref(), expected, "{body}");
    }

    #[test]
    fn forms_have_no_secrets() {
        for (body, expected) in [
            ("", Some("")),
            ("a=b&c=it%27s", Some("a=b&c=it%27s")),
            ("user=a&password=x&b=c", Some("user=a&password=***&b=c")),
            ("pass%77ord=x", Some("pass%77ord=***")),
            ("user[password]=x", Some("user[password]=***")),
            ("q=hunter2", Some("q=***")),
            ("q=hunter%32", Some("q=***")),
            ("q=/x?token%3Dabc", Some("q=***")),
            ("data={%22password%22:%22x%22}", Some("data=***")),
            ("{\"password\":\"x\"}", None),
            ("{\"password\":\"x=y\"}", None),
            ("a;token=1", Some("a;token=***")),
            ("password", None),
        ] {
            check("application/x-www-form-urlencoded", body, expected);
        }
    }

    #[test]
    fn json_has_no_secrets() {
        for (body, expected) in [
            (r#"{"a":"b","c":[1,"d"]}"#, Some(r#"{"a":"b","c":[1,"d"]}"#)),
            (r#"{"password" : "x\"y", "a":1}"#, Some(r#"{"password" : "***", "a":1}"#)),
            (r#"{"pin":1234}"#, Some(r#"{"pin":"***"}"#)),
            (r#"{"token":{"a":"b"}}"#, None),
            (r#"{"pass\u0077ord":"x"}"#, None),
            (r#"{password:'x'}"#, None),
            (r#"{"a":"x"#, None),
            (r#"{"a":"says hunter2"}"#, Some(r#"{"a":"says ***"}"#)),
            (r#"{"a":"/x?token=b"}"#, Some(r#"{"a":"***"}"#)),
            (r#"{"a":"{\"password\":\"x\"}"}"#, Some(r#"{"a":"***"}"#)),
        ] {
            check("application/json; charset=utf-8", body, expected);
        }
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        check("text/plain", "it's fine", Some("it's fine"));
        check("text/plain", "the password is x", None);
        check("text/plain", "p\0a\0s\0s\0w\0o\0r\0d\0", None);
        check("text/plain", "says Hunter2 again", Some("says *** again"));
        check("text/plain; charset=utf-16", "abc", None);
        check("application/xml", "<token>x</token>", None);
        let kind = BodyKind { is_encoded: true, ..BodyKind::default() };
        let none = Secrets::from_values(std::iter::empty(), &CredentialFields::default());
        assert_eq!(recorded_body(b"abc", kind, &none), None);
    }

    #[test]
    fn heads_have_no_secrets() {
        let fields = CredentialFields::new(["x-who"].into_iter());
        let secrets = Secrets::from_values([&b"hunter2"[..]].into_iter(), &fields);
        for (name, value, expected) in [
            ("Cookie", "a=b; c=d", "a=***; c=***"),
            ("cookie", "abc", "***"),
            ("Authorization", "Basic abc", "***"),
            ("X-Api-Key", "abc", "***"),
            ("X-Who", "abc", "***"),
            ("Referer", "https://h/?a=b&token=c", "https://h/?a=b&token=***"),
            ("X-Other", "hunter2 it is", "*** it is"),
            ("Accept", "*/*", "*/*"),
        ] {
            let made = recorded_field(name.as_bytes(), value.as_bytes(), &secrets);
            assert_eq!(String::from_utf8_lossy(&made), expected, "{name}");
        }
        assert_eq!(recorded_target(b"/a/hunter2?pin=1&b=c", &secrets), b"/a/***?pin=***&b=c");
    }
}
