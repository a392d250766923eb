//! All routes.

use super::route::Route;
use super::{
    changes, explain, files, flows, member_change, pools, process, reload, servers, upgrade,
};

/// All routes, in the order of the OpenAPI document.
pub(super) fn routes() -> Vec<Route> {
    let parts = [
        process::routes(),
        servers::routes(),
        pools::routes(),
        member_change::routes(),
        reload::routes(),
        upgrade::routes(),
        changes::routes(),
        files::routes(),
        explain::routes(),
        flows::routes(),
    ];
    parts.concat()
}
