//! Errors of the admin listener: problem details (RFC 9457).

use std::fmt;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use weir_api::finding::Finding;
use weir_api::problem as api;

use super::audit::AuditedResult;
use crate::last_members;

/// Maximum number of known names in a message about an unknown one.
pub(super) const NAMES_TOLD_MAX: usize = 20;

/// The media type of problem details.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// The challenge that requests a token (RFC 6750 section 3).
const CHALLENGE: &str = "Bearer realm=\"weir\"";

/// The challenge after an invalid token.
const CHALLENGE_INVALID: &str = "Bearer realm=\"weir\", error=\"invalid_token\"";

/// The reason why a request was refused or failed.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    pub(super) help: Option<Box<str>>,
    retry_after: Option<Duration>,
    challenge: Option<&'static str>,
    /// The text for the audit log, if `detail` quotes the request.
    audited: Option<&'static str>,
    findings: Vec<Finding>,
    /// Whether `"last": true` in the document would permit it.
    needs_last: bool,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl fmt::Display) -> Self {
        let detail = detail.to_string();
        Self {
            status,
            detail,
            help: None,
            retry_after: None,
            challenge: None,
            audited: None,
            findings: Vec::new(),
            needs_last: false,
        }
    }

    /// A change takes the last member for new requests, and the request does not say that this is meant (409).
    pub(super) fn takes_last(detail: impl fmt::Display) -> Self {
        let problem = Self::new(StatusCode::CONFLICT, detail).help(last_members::HELP);
        Self { needs_last: true, ..problem }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into().into_boxed_str());
        self
    }

    /// Adds findings in a configuration.
    pub(super) fn findings(self, findings: Vec<Finding>) -> Self {
        Self { findings, ..self }
    }

    pub(super) fn bad_request(detail: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The document in the body is invalid. The error may quote a secret, so the audit log omits it.
    pub(super) fn wrong_document(error: impl fmt::Display) -> Self {
        let problem = Self::bad_request(format_args!("the document is wrong: {error}"));
        Self { audited: Some("the document is wrong"), ..problem }
    }

    pub(super) fn not_found(detail: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Credentials are missing (401).
    pub(super) fn unauthenticated(detail: impl fmt::Display) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, detail);
        Self { challenge: Some(CHALLENGE), ..problem }
    }

    /// Credentials are wrong (401).
    pub(super) fn wrong_credentials(detail: impl fmt::Display) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, detail);
        Self { challenge: Some(CHALLENGE_INVALID), ..problem }
    }

    /// The source has sent too many requests (429).
    pub(super) fn too_many(detail: impl fmt::Display, wait: Duration) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, detail);
        Self { retry_after: Some(wait), ..problem }
    }

    /// The requested `name` is not one of `known` (404).
    pub(super) fn unknown<'a>(
        detail: String,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let problem = Self::not_found(detail);
        match weir_config::nearest(name, known.clone()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => match listed(known) {
                Some(names) => problem.help(format!("available: {names}")),
                None => problem,
            },
        }
    }
}

impl Problem {
    /// The problem details as JSON.
    pub(super) fn document(&self) -> Vec<u8> {
        let details = api::Problem {
            r#type: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            help: self.help.as_deref().map(str::to_owned),
            diagnostics: self.findings.clone(),
            needs: self.needs_last.then(|| "last".to_owned()),
        };
        // Serialising texts and a number cannot fail.
        let mut text = serde_json::to_vec_pretty(&details).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = self.document();
        let mut response = (self.status, [(CONTENT_TYPE, MEDIA_TYPE)], text).into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge {
            let value = HeaderValue::from_static(challenge);
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        let refused = self.audited.map_or(self.detail, str::to_owned);
        response.extensions_mut().insert(AuditedResult { change: None, refused: Some(refused) });
        response
    }
}

/// A list such as `` `a`, `b` and 3 more``; `None` for an empty list.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let mut told: Vec<String> =
        names.clone().take(NAMES_TOLD_MAX).map(|name| format!("`{name}`")).collect();
    let more = names.skip(NAMES_TOLD_MAX).count();
    if more > 0 {
        return Some(format!("{} and {more} more", told.join(", ")));
    }
    match told.pop() {
        Some(last) if told.is_empty() => Some(last),
        Some(last) => Some(format!("{} and {last}", told.join(", "))),
        None => None,
    }
}
