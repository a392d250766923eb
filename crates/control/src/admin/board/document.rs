//! The document of a view.

use schemars::JsonSchema;
use serde::Serialize;

use super::rows::Rows;
use super::view::{MapRow, Overview, PoolRow, PoolView, ServerRow, ServerView, Table};
use crate::board::Sample;
use crate::observed::Observed;
use crate::status::Brief;

/// The parameters of a page.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub view: String,
    /// Of the one object that is shown.
    pub name: String,
    /// Of the search.
    pub words: Vec<String>,
    /// From 1.
    pub page: usize,
    /// Of a page.
    pub rows: usize,
}

/// The document: the process, and what the view shows.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Dashboard")]
pub(super) struct Document {
    process: Brief,
    /// Of the view `overview`.
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<Overview>,
    /// Of the view `servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Rows<ServerRow>>,
    /// Of the view `server`; absent also if there is none of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerView>,
    /// Of the view `pools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<Rows<PoolRow>>,
    /// Of the view `pool`; absent also if there is none of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<PoolView>,
    /// Of the view `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<Rows<MapRow>>,
}

impl Document {
    /// The document of this moment.
    pub fn of(observed: &Observed, sample: &Sample, wanted: &Wanted) -> Self {
        let table = Table { observed, sample, snapshot: &sample.table.snapshot };
        let is = |view: &str| wanted.view == view;
        Self {
            process: Brief::of(observed),
            overview: is("overview").then(|| table.overview()),
            servers: is("servers").then(|| table.servers(wanted)),
            server: if is("server") { table.server(&wanted.name) } else { None },
            pools: is("pools").then(|| table.pools(wanted)),
            pool: if is("pool") { table.pool(wanted) } else { None },
            map: is("map").then(|| table.map(wanted)),
        }
    }
}
