//! The stream for an open dashboard: first the whole data of its view, then the changes.
//!
//! All streams share one sampler ([`crate::board`]). A list contains only the visible rows; weir performs the search.

use std::sync::Arc;

use axum::http::StatusCode;
use schemars::SchemaGenerator;
use serde_json::Value;
use weir_api::dashboard::{Change, Point, Whole};

use super::ask::{Ask, Kind, Parameter};
use super::pools::find_pool;
use super::problem::Problem;
use super::route::{Route, SchemaOf};
use super::servers::find_server;
use super::streams::{ClientDisconnected, Producer, Sink, producer};
use crate::board::Sample;
use crate::observed_state::ObservedState;
use document::document;
use query::BoardQuery;

mod document;
mod patch;
mod query;
mod rows;
mod view;

/// Number of rows per page without `rows`.
const ROWS_DEFAULT: u64 = 50;

/// Maximum number of rows per page.
const ROWS_MAX: u64 = 200;

/// Maximum number of a page.
const PAGES_MAX: u64 = 1_000_000;

const VIEW: Parameter = Parameter {
    name: "view",
    kind: Kind::Word(&["process", "overview", "servers", "server", "pools", "pool", "map"]),
    summary: "What is shown; `process`, which all have, without it",
};

const NAME: Parameter = Parameter {
    name: "name",
    kind: Kind::Text,
    summary: "The virtual server or pool of the views `server` and `pool`",
};

const SEARCH: Parameter = Parameter {
    name: "search",
    kind: Kind::Text,
    summary: "Only rows that have all these words: names, addresses, states",
};

const PAGE: Parameter = Parameter {
    name: "page",
    kind: Kind::Number { max: PAGES_MAX, default: 1 },
    summary: "The page of a list",
};

const ROWS: Parameter = Parameter {
    name: "rows",
    kind: Kind::Number { max: ROWS_MAX, default: ROWS_DEFAULT },
    summary: "Rows of a page",
};

pub(super) fn routes() -> Vec<Route> {
    const EVENTS: &[(&str, SchemaOf)] = &[
        ("whole", SchemaGenerator::subschema_for::<Whole>),
        ("change", SchemaGenerator::subschema_for::<Change>),
    ];
    vec![
        Route::stream(
            "/v1/dashboard",
            "watchDashboard",
            "What a view of the dashboard shows, and what changes in it",
            EVENTS,
            begin,
        )
        .statuses(&[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE])
        .query(&[VIEW, NAME, SEARCH, PAGE, ROWS]),
    ]
}

fn begin(ask: Ask) -> Result<Producer, Problem> {
    let query = &ask.query;
    let table = ask.context.observed.table();
    let name = query.text(NAME.name).unwrap_or_default();
    match query.text(VIEW.name) {
        Some("server") => _ = find_server(&table, name)?,
        Some("pool") => _ = find_pool(&table, name)?,
        _ => {}
    }
    let wanted = BoardQuery {
        view: query.text(VIEW.name).unwrap_or("process").to_owned(),
        name: name.to_owned(),
        words: rows::words(query.text(SEARCH.name).unwrap_or_default()),
        page: query.number(&PAGE),
        rows: query.number(&ROWS),
    };
    let observed = Arc::clone(&ask.context.observed);
    Ok(producer(async move |sink| watch(observed, wanted, sink).await))
}

async fn watch(
    observed: Arc<ObservedState>,
    wanted: BoardQuery,
    sink: Sink,
) -> Result<(), ClientDisconnected> {
    let shared = Arc::clone(&observed);
    let mut samples = observed.admin.sampler.subscribe(move || shared.judge());
    let wanted = Arc::new(wanted);
    let mut before: Option<Value> = None;
    loop {
        let sample = samples.borrow_and_update().clone();
        if let Some(sample) = sample {
            let work = (Arc::clone(&observed), Arc::clone(&wanted), sample);
            // A panic here is a defect, and ends the stream.
            let made = tokio::task::spawn_blocking(move || make(work, before)).await;
            let (event, document) =
                made.map_err(|_| ClientDisconnected)?.ok_or(ClientDisconnected)?;
            match &event {
                Event::Whole(whole) => sink.send("whole", whole).await?,
                Event::Change(change) => sink.send("change", change).await?,
            }
            before = Some(document);
        }
        // The sender exists as long as the process.
        samples.changed().await.map_err(|_| ClientDisconnected)?;
    }
}

enum Event {
    Whole(Box<Whole>),
    Change(Change),
}

/// The next event, and the resulting document of the page; `None`: it cannot be written as JSON.
fn make(
    (observed, wanted, sample): (Arc<ObservedState>, Arc<BoardQuery>, Arc<Sample>),
    before: Option<Value>,
) -> Option<(Event, Value)> {
    let document = document(&observed, &sample, &wanted);
    let value = serde_json::to_value(&document).ok()?;
    let event = match before {
        Some(before) => {
            let patch = patch::between(&before, &value)
                .unwrap_or_else(|| Value::Object(Default::default()));
            Event::Change(Change { point: point(&sample, &wanted), patch })
        }
        None => {
            let history = observed.admin.sampler.history();
            let points = match wanted.view.as_str() {
                "server" => history.of(&wanted.name),
                _ => history.total(),
            };
            let names = document.servers.iter().flat_map(|servers| &servers.order);
            let rates = |name: &String| history.of(name).iter().map(|it| it.requests).collect();
            let rows = names.map(|name| (name.clone(), rates(name))).collect();
            Event::Whole(Box::new(Whole { document, points, rows }))
        }
    };
    Some((event, value))
}

fn point(sample: &Sample, wanted: &BoardQuery) -> Option<Point> {
    if wanted.view != "server" {
        return sample.total;
    }
    sample.servers.iter().find(|server| *server.name == *wanted.name)?.point
}

#[cfg(test)]
mod tests;
