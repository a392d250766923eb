//! The document of a view.

use schemars::JsonSchema;
use serde::Serialize;

use super::rows::Rows;
use super::view::{MapRow, Overview, PoolRow, PoolView, ServerRow, ServerView, Table};
use super::wanted::Wanted;
use crate::board::Sample;
use crate::observed::Observed;
use crate::status::Brief;

/// The document: the process, and the data of the view.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Dashboard")]
pub(super) struct Document {
    process: Brief,
    /// The view `overview`.
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<Overview>,
    /// The view `servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Rows<ServerRow>>,
    /// The view `server`; absent if no virtual server has this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerView>,
    /// The view `pools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<Rows<PoolRow>>,
    /// The view `pool`; absent if no pool has this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<PoolView>,
    /// The view `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<Rows<MapRow>>,
}

impl Document {
    /// Makes the current document.
    pub fn of(observed: &Observed, sample: &Sample, wanted: &Wanted) -> Self {
        let table = Table { observed, sample, snapshot: &sample.judge.table().snapshot };
        let is = |view: &str| wanted.view == view;
        Self {
            process: Brief::of(observed, &sample.judge),
            overview: is("overview").then(|| table.overview()),
            servers: is("servers").then(|| table.servers(wanted)),
            server: if is("server") { table.server(&wanted.name) } else { None },
            pools: is("pools").then(|| table.pools(wanted)),
            pool: if is("pool") { table.pool(wanted) } else { None },
            map: is("map").then(|| table.map(wanted)),
        }
    }
}
