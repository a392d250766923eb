//! All routes.

use super::route::Route;
use super::{
    changes, explain, flows, member_change, pools, process, reload, requests, servers, upgrade,
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
        explain::routes(),
        requests::routes(),
        flows::routes(),
    ];
    parts.concat()
}
