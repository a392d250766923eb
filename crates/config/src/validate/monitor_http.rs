//! Monitors of type `http` and `https`.

use std::path::Path;
use std::sync::Arc;

use super::monitor_answer::{body_match, drain_answer};
use super::monitor_secrets::credentials;
use crate::decode::{Context, Section as _};
use crate::raw::monitor::{self as raw, Expect};
use crate::shapes::FieldTexts;
use crate::snapshot::{Credentials, HttpProbe, ProbeMethod, ProbeTls, Secret};

/// Fields that determine the framing of a request or the use of its connection.
const FRAMING_FIELDS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn http(
    raw: &raw::Monitor,
    tls: Option<ProbeTls>,
    directory: &Path,
    context: &mut Context,
) -> Option<HttpProbe> {
    let expect = raw.expect.as_ref().map_or_else(Expect::absent, |expect| expect.value.clone());
    let expect_body = body_match(expect.body.as_ref(), context)?;
    let drain_on = match &raw.drain_on {
        None => None,
        Some(drain_on) => Some(drain_answer(drain_on, context)?),
    };
    let method = method(raw.method.value);
    let has_body =
        expect_body.is_some() || raw.drain_on.as_ref().is_some_and(|it| it.value.body.is_some());
    if method == ProbeMethod::Head && has_body {
        let message = "a response to HEAD has no body to search";
        context.error_help(raw.method.span, message, "use `method: GET`, or expect only a status");
        return None;
    }
    let credentials = credentials(raw, directory, context)?;
    check_user(raw, credentials.as_ref(), context)?;
    let fields = match &raw.headers {
        None => Vec::new(),
        Some(headers) => fields(&headers.value, credentials.is_some(), context)?,
    };
    Some(HttpProbe {
        method,
        path: raw.path.value.0.as_str().into(),
        host: raw.host.as_ref().map(|host| host.value.0.as_str().into()),
        fields,
        credentials,
        body: body(raw, method, context)?,
        tls,
        expect_status: expect.status.value.0,
        expect_body,
        drain_on,
    })
}

fn method(method: raw::ProbeMethod) -> ProbeMethod {
    match method {
        raw::ProbeMethod::Get => ProbeMethod::Get,
        raw::ProbeMethod::Head => ProbeMethod::Head,
        raw::ProbeMethod::Options => ProbeMethod::Options,
        raw::ProbeMethod::Post => ProbeMethod::Post,
        raw::ProbeMethod::Put => ProbeMethod::Put,
        raw::ProbeMethod::Patch => ProbeMethod::Patch,
        raw::ProbeMethod::Delete => ProbeMethod::Delete,
    }
}

/// Refuses a colon in the user name: the first colon ends the name (RFC 7617 section 2).
fn check_user(
    raw: &raw::Monitor,
    credentials: Option<&Credentials>,
    context: &mut Context,
) -> Option<()> {
    let has_colon = credentials.is_some_and(|credentials| credentials.user.contains(':'));
    if let Some(user) = raw.user.as_ref().filter(|_| has_colon) {
        context.error(user.span, "a name for Basic authentication has no colon in it");
        return None;
    }
    Some(())
}

fn body(raw: &raw::Monitor, method: ProbeMethod, context: &mut Context) -> Option<Arc<[u8]>> {
    let Some(body) = &raw.body else { return Some(Arc::default()) };
    if !method.takes_body() {
        let message = format!("a {} request of a monitor has no body", method.as_str());
        context.error_help(body.span, message, "use `method: POST`, or remove it");
        return None;
    }
    Some(body.value.bytes()?.into())
}

fn fields(
    raw: &FieldTexts,
    is_authorized: bool,
    context: &mut Context,
) -> Option<Vec<(Arc<str>, Secret)>> {
    let mut fields = Vec::with_capacity(raw.0.len());
    let mut are_sound = true;
    for (name, value) in &raw.0 {
        let lower = name.value.0.to_ascii_lowercase();
        let wrong = if lower == "host" {
            Some(("a monitor's `Host` is not set by `headers`", "use `host`"))
        } else if FRAMING_FIELDS.contains(&&*lower) {
            Some((
                "a monitor cannot set this header: it describes how the request is sent",
                "remove it",
            ))
        } else if is_authorized && lower == "authorization" {
            Some((
                "`Authorization` cannot be used with `user`, which sets it",
                "remove one of them",
            ))
        } else {
            None
        };
        if let Some((message, help)) = wrong {
            context.error_help(name.span, message, help);
            are_sound = false;
        }
        let text = value.value.0.trim();
        if text.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            context.error(value.span, "the value of a header has no control characters");
            are_sound = false;
        }
        fields.push((name.value.0.as_str().into(), Secret::new(text)));
    }
    are_sound.then_some(fields)
}
