//! All checks of one request, in the order in which it comes.

use super::cookies::cookies;
use super::declared::{Interface, Values};
use super::{
    Finding, Findings, Policy, argument, compliance, graphql, lengths, of_body, parameter, target,
};
use crate::body::{self, Body, MediaType};
use crate::inspection::{Request, TargetParts, target_parts};

/// What the checks of a virtual server go by.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// Which are done, and how much there may be.
    pub policy: Policy,
    /// What requests look like, if that is declared.
    pub interface: Option<Interface>,
}

/// Names and values, in their order.
pub type Named<'a> = &'a [(&'a [u8], &'a [u8])];

impl Checks {
    /// What they find in a head; `arguments` are those of the query.
    pub fn head(&self, request: &Request<'_>, arguments: Named<'_>) -> Vec<Finding> {
        let mut findings = Findings::new(&self.policy);
        let to = &mut findings;
        let body_bytes = body_bytes(request);
        target(target_parts(request.received_target).uri, to);
        compliance(request, body_bytes != Some(0), to);
        lengths(request, body_bytes, to);
        let cookie = request.headers.iter().filter(|(name, _)| is_named(name, b"cookie"));
        let cookie: Vec<&[u8]> = cookie.map(|(_, value)| *value).collect();
        cookies(&cookie, request.changed_cookies, to);
        values(arguments, 0, to);
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
        }
        findings.into_all()
    }

    /// What they find in a body, beside what was found in its head. `arguments` are those of the body, `before` how many
    /// there were in the query.
    pub fn body(
        &self,
        (method, target): (&[u8], &[u8]),
        (content_type, body): (&[u8], &Body),
        (arguments, before): (Named<'_>, usize),
        found: Vec<Finding>,
    ) -> Vec<Finding> {
        let mut findings = Findings::beside(&self.policy, found);
        let to = &mut findings;
        of_body(body, to);
        values(arguments, before, to);
        let TargetParts { path, .. } = target_parts(target);
        if is_graphql(path) {
            documents(arguments, is_query_of_json, to);
        }
        if let Some(interface) = &self.interface
            && let Some(found) = interface.find(method, path, to)
            && let Some(media_type) = MediaType::parse(content_type)
        {
            found.body(&media_type.essence(), arguments, to);
        }
        findings.into_all()
    }
}

fn values(arguments: Named<'_>, before: usize, to: &mut Findings<'_>) {
    for (count, (name, value)) in (before + 1..).zip(arguments) {
        parameter(name, value, count, to);
        argument(name, value, to);
    }
}

/// Looks at the GraphQL documents among arguments.
fn documents(arguments: Named<'_>, is_document: impl Fn(&[u8]) -> bool, to: &mut Findings<'_>) {
    let found: Vec<&[u8]> =
        arguments.iter().filter(|(name, _)| is_document(name)).map(|(_, value)| *value).collect();
    for document in &found {
        graphql(document, found.len(), to);
    }
}

/// `json.query`, and those of a batch: `json.array_0.query`.
fn is_query_of_json(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b"json.").and_then(|rest| rest.strip_suffix(b"query"));
    inner.is_some_and(|inner| {
        let element = inner.strip_suffix(b".").unwrap_or(inner);
        let number = element.strip_prefix(b"array_");
        inner.is_empty() || number.is_some_and(|it| it.iter().all(u8::is_ascii_digit))
    })
}

fn is_graphql(path: &[u8]) -> bool {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    last.eq_ignore_ascii_case(b"graphql")
}

/// The length of the body, as the head says it; `None`: it has one of unknown length.
fn body_bytes(request: &Request<'_>) -> Option<u64> {
    let value = |wanted: &[u8]| {
        let mut fields = request.headers.iter();
        fields.find(|(name, _)| is_named(name, wanted)).map(|(_, value)| *value)
    };
    if value(b"transfer-encoding").is_some() {
        return None;
    }
    let length = value(b"content-length").and_then(|it| std::str::from_utf8(it).ok());
    Some(length.and_then(|it| it.trim().parse().ok()).unwrap_or(0))
}

fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.eq_ignore_ascii_case(wanted)
}
