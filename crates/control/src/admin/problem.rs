//! Why a request to the admin listener is not done.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::json;

/// Known names that a message about an unknown one lists.
pub(super) const NAMES_TOLD_MAX: usize = 20;

/// Why a request is not done; as JSON `{"error": "…", "help": "…"}`.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    #[serde(skip)]
    pub(super) status: StatusCode,
    pub(super) error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) help: Option<String>,
}

impl Problem {
    pub(super) fn bad_request(what: impl fmt::Display) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: format!("not a change: {what}"),
            help: Some(r#"a change looks like this: {"state": "drain"}"#.into()),
        }
    }

    /// It is not clear which flows are meant.
    pub(super) fn bad_query(what: impl fmt::Display) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: what.to_string(),
            help: Some("select flows by `virtual_server`, `member` and `client`".into()),
        }
    }

    /// The requested `name` is not among the `known`.
    pub(super) fn unknown<'a>(
        what: String,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let help = match weir_config::nearest(name, known.clone()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => listed(known).map(|names| format!("available: {names}")),
        };
        Self { status: StatusCode::NOT_FOUND, error: what, help }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        json(self.status, &self)
    }
}

/// `` `a`, `b` and 3 more``; `None` for an empty list.
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
