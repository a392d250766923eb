//! Runs all checks of one request, in the order of its parts.

use super::cookies::cookies;
use super::declared::{Interface, Values};
use super::{
    Finding, Findings, Policy, argument, body_length, compliance, graphql, lengths, of_body,
    parameter, target,
};
use crate::body::{self, Body, MediaType};
use crate::inspection::{BodyLength, Request, TargetParts, target_parts};

/// The checks of a virtual server.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// Actions and limits.
    pub policy: Policy,
    /// The declared interface, if any.
    pub interface: Option<Interface>,
}

/// Names and values, in order.
pub type NamedValues<'a> = &'a [(&'a [u8], &'a [u8])];

impl Checks {
    /// Findings in a head. `arguments`: the arguments in the query.
    pub fn head(&self, request: &Request<'_>, arguments: NamedValues<'_>) -> Vec<Finding> {
        let mut findings = Findings::new(&self.policy);
        let to = &mut findings;
        let body_bytes = match request.body {
            BodyLength::None => Some(0),
            BodyLength::Known(bytes) => Some(bytes),
            BodyLength::Unknown => None,
        };
        target(target_parts(request.received_target).uri, to);
        compliance(request, request.body != BodyLength::None, to);
        lengths(request, body_bytes, to);
        let cookie = request.headers.iter().filter(|(name, _)| is_named(name, b"cookie"));
        let cookie: Vec<&[u8]> = cookie.map(|(_, value)| *value).collect();
        cookies(&cookie, request.changed_cookies, to);
        values(arguments, 0, false, to);
        let TargetParts { path, .. } = target_parts(request.target);
        if is_graphql(path) {
            documents(arguments, |name| name == b"query", to);
        }
        if let Some(interface) = &self.interface
            && let Some(found) = interface.find(request.method, path, to)
        {
            let cookies: Vec<_> = cookie.iter().flat_map(|value| body::cookies(value)).collect();
            let headers = request.headers;
            found.parameters(&Values { query: arguments, headers, cookies: &cookies }, to);
            found.body_type(
                media_type_of(headers).as_deref(),
                request.body != BodyLength::None,
                to,
            );
        }
        findings.into_all()
    }

    /// Findings in a body, in addition to those in the head. `arguments`: the arguments in the body. `before`: the number of
    /// arguments in the query.
    pub fn body(
        &self,
        (method, target): (&[u8], &[u8]),
        (content_type, body, received): (&[u8], &Body, ReceivedLengths),
        (arguments, before): (NamedValues<'_>, usize),
        found: Vec<Finding>,
    ) -> Vec<Finding> {
        let mut findings = Findings::beside(&self.policy, found);
        let to = &mut findings;
        of_body(body, to);
        // A known length was checked with the head.
        if received.length == BodyLength::Unknown {
            body_length(target, received, to);
        }
        values(arguments, before, matches!(body, Body::Json(_)), to);
        let TargetParts { path, .. } = target_parts(target);
        if is_graphql(path) {
            documents(arguments, |name| name == b"query" || is_query_of_json(name), to);
        }
        if let Some(interface) = &self.interface
            && let Some(found) = interface.find(method, path, to)
            && let Some(media_type) = MediaType::parse(content_type)
        {
            found.body(&media_type.essence(), arguments, to);
        }
        findings.into_all()
    }

    /// Checks a JSON or XML document in a body of another type, beside the findings so far.
    pub fn document(&self, document: &Body, found: Vec<Finding>) -> Vec<Finding> {
        let mut findings = Findings::beside(&self.policy, found);
        of_body(document, &mut findings);
        findings.into_all()
    }
}

/// The lengths of a request whose body was received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedLengths {
    /// The body's length by its framing.
    pub length: BodyLength,
    /// The number of bytes of the target and fields.
    pub head_bytes: u64,
    /// The number of bytes of the body, as received.
    pub body_bytes: u64,
}

fn values(arguments: NamedValues<'_>, before: usize, is_json: bool, to: &mut Findings<'_>) {
    let mut count = before;
    for (name, value) in arguments {
        count += usize::from(!(is_json && is_of_later_element(name)));
        parameter(name, value, count, to);
        argument(name, value, to);
    }
}

/// Whether a name is in a later element of an array in JSON. Only the parameters of the first element count: lists are long.
fn is_of_later_element(name: &[u8]) -> bool {
    const ELEMENT: &[u8] = b".array_";
    name.starts_with(b"json.")
        && memchr::memmem::find_iter(name, ELEMENT)
            .any(|at| name.get(at + ELEMENT.len()).is_some_and(|it| matches!(it, b'1'..=b'9')))
}

/// Checks the GraphQL documents among the arguments.
fn documents(
    arguments: NamedValues<'_>,
    is_document: impl Fn(&[u8]) -> bool,
    to: &mut Findings<'_>,
) {
    let found: Vec<&[u8]> =
        arguments.iter().filter(|(name, _)| is_document(name)).map(|(_, value)| *value).collect();
    for document in &found {
        graphql(document, found.len(), to);
    }
}

/// Whether a name is `json.query`, or a query in a batch: `json.array_0.query`.
fn is_query_of_json(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b"json.").and_then(|rest| rest.strip_suffix(b"query"));
    inner.is_some_and(|inner| {
        let element = inner.strip_suffix(b".").unwrap_or(inner);
        let number = element.strip_prefix(b"array_");
        inner.is_empty() || number.is_some_and(|it| it.iter().all(u8::is_ascii_digit))
    })
}

/// Whether a path segment is `graphql`, ignoring parameters.
fn is_graphql(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|segment| {
        let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        name.eq_ignore_ascii_case(b"graphql")
    })
}

/// The media type of a body in lower case; `None`: absent or invalid.
fn media_type_of(headers: NamedValues<'_>) -> Option<String> {
    let (_, value) = headers.iter().find(|(name, _)| is_named(name, b"content-type"))?;
    Some(MediaType::parse(value)?.essence())
}

fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.eq_ignore_ascii_case(wanted)
}
