//! All routes.

use super::route::Route;
use super::{
    board, changes, explain, files, firewall, flows, member_change, pools, process, reload,
    reports, requests, servers, sessions, upgrade,
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
        requests::routes(),
        flows::routes(),
        sessions::routes(),
        firewall::routes(),
        board::routes(),
        reports::routes(),
    ];
    parts.concat()
}
