//! The document of a view.

use weir_api::dashboard::Dashboard;

use super::query::BoardQuery;
use super::view::Table;
use crate::board::Sample;
use crate::observed_state::ObservedState;
use crate::status::brief;

/// Makes the current document.
pub(super) fn document(
    observed: &ObservedState,
    sample: &Sample,
    wanted: &BoardQuery,
) -> Dashboard {
    let table = Table { observed, sample, snapshot: &sample.judge.table().snapshot };
    let is = |view: &str| wanted.view == view;
    Dashboard {
        process: brief(observed, &sample.judge),
        overview: is("overview").then(|| table.overview()),
        servers: is("servers").then(|| table.servers(wanted)),
        server: if is("server") { table.server(&wanted.name) } else { None },
        pools: is("pools").then(|| table.pools(wanted)),
        pool: if is("pool") { table.pool(wanted) } else { None },
        map: is("map").then(|| table.map(wanted)),
    }
}
