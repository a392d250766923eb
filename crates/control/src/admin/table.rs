//! All routes, and the document that describes them.

use std::sync::LazyLock;

use serde_json::Value;

use super::answer::Answer;
use super::ask::Ask;
use super::openapi;
use super::route::{Content, HandlerResult, Route};
use super::{
    board, changes, explain, files, firewall, flows, member_change, pools, process, reload,
    reports, requests, servers, sessions, upgrade,
};

/// Generated once: it never changes.
static OPENAPI: LazyLock<Value> = LazyLock::new(|| openapi::document(&routes()));

/// All routes, in the order of the OpenAPI document.
pub(super) fn routes() -> Vec<Route> {
    let parts = [
        process::routes(),
        vec![
            Route::get("/v1/openapi.json", "openapi", "This document", document)
                .content(Content::OpenApi),
        ],
        servers::routes(),
        pools::routes(),
        member_change::routes(),
        reload::routes(),
        upgrade::routes(),
        changes::routes(),
        files::routes(),
        explain::routes(),
        requests::routes(),
        flows::routes(),
        sessions::routes(),
        firewall::routes(),
        board::routes(),
        reports::routes(),
    ];
    parts.concat()
}

fn document(_: &Ask) -> HandlerResult {
    Answer::json(&*OPENAPI)
}
