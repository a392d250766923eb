//! The state of the process for the service manager.

use weir_core::monitor::Health;
use weir_exchange::shared::live::LiveTable;

/// The status as text: `2 virtual servers, 5 of 6 members up`.
pub(super) fn status_line(table: &LiveTable) -> String {
    let servers = table.snapshot.virtual_servers.len();
    let members = || table.pools.iter().flat_map(|pool| &pool.members);
    let up = members().filter(|member| member.health() == Health::Up).count();
    let of = |count: usize, noun: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural}")
    };
    format!("{}, {up} of {} up", of(servers, "virtual server"), of(members().count(), "member"))
}
