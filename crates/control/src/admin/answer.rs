//! Successful answers.

use aws_lc_rs::digest::{SHA256, digest};
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use weir_compression::Coding;

use super::audit::AuditedResult;
use super::problem::Problem;
use super::tags::Tag;

/// The media type of JSON documents.
pub(super) const JSON: &str = "application/json";

/// A successful answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    media_type: &'static str,
    body: Vec<u8>,
    /// The entity tag; only for reads.
    pub(super) tag: Option<Tag>,
    /// The description of a change for the audit log.
    change: Option<Value>,
    /// The page's `Content-Security-Policy`.
    policy: Option<&'static str>,
    /// The answer depends on `Accept-Encoding`.
    is_by_coding: bool,
    is_gzip: bool,
}

impl Answer {
    /// A JSON document, with a line feed at its end for terminals.
    pub(super) fn json(document: &impl Serialize) -> Result<Self, Problem> {
        let mut body = serde_json::to_vec_pretty(document)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
        body.push(b'\n');
        Ok(Self { body, ..Self::text(StatusCode::OK, JSON, "") })
    }

    pub(super) fn text(
        status: StatusCode,
        media_type: &'static str,
        text: impl Into<String>,
    ) -> Self {
        let body = text.into().into_bytes();
        let (is_by_coding, is_gzip) = (false, false);
        Self {
            status,
            media_type,
            body,
            tag: None,
            change: None,
            policy: None,
            is_by_coding,
            is_gzip,
        }
    }

    /// Sets a status other than 200.
    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Sets the description of the change for the audit log. It must not contain secrets.
    pub(super) fn change(self, change: Value) -> Self {
        Self { change: Some(change), ..self }
    }

    /// Adds a content security policy.
    pub(super) fn policy(self, policy: &'static str) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Tells caches that the answer depends on `Accept-Encoding`.
    pub(super) fn by_coding(self) -> Self {
        Self { is_by_coding: true, ..self }
    }

    /// Replaces the body by one that gzip has compressed.
    pub(super) fn gzip(self, body: Vec<u8>) -> Self {
        Self { body, is_gzip: true, ..self }
    }

    /// Adds an entity tag if the answer is a document.
    pub(super) fn tagged(self, is_view: bool) -> Self {
        let has_tag = is_view && self.media_type == JSON && self.status == StatusCode::OK;
        let tag = has_tag.then(|| Tag::of(&self.body));
        Self { tag, ..self }
    }

    /// Answers 304: the client has this representation already (RFC 9110 section 13.1.2).
    pub(super) fn into_not_modified(self) -> Response {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        set_tag(&mut response, self.tag.as_ref());
        response
    }
}

impl Tag {
    /// The tag of this content.
    pub(super) fn of(contents: &[u8]) -> Self {
        let hash = digest(&SHA256, contents);
        Self::new(&data_encoding::HEXLOWER.encode(&hash.as_ref()[..16]))
    }
}

fn set_tag(response: &mut Response, tag: Option<&Tag>) {
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag.as_str()).ok()) {
        response.headers_mut().insert(ETAG, tag);
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response =
            (self.status, [(CONTENT_TYPE, self.media_type)], self.body).into_response();
        set_tag(&mut response, self.tag.as_ref());
        let headers = response.headers_mut();
        if self.is_by_coding {
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if self.is_gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.name()));
        }
        if let Some(policy) = self.policy {
            let policy = HeaderValue::from_static(policy);
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        response.extensions_mut().insert(AuditedResult { change: self.change, refused: None });
        response
    }
}
