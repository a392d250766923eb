//! What a start on this host by this user would report, as far as it is known without a socket.

mod host;

use std::path::Path;

use weir_config::snapshot::{Monitor, MonitorKind, Pool};
use weir_config::{Config, Diagnostic, Resolutions, Severity};
use weir_probe::icmp_obstacle;

use crate::packets::obstacle;
use crate::wording::NamesText;

/// Warnings about what this host does not have, virtual servers that nothing would serve, and monitors that could not probe.
/// Errors where nothing but a change of the configuration or of this host's files would let weir start here.
pub fn findings(config: &Config, file: &Path) -> Vec<Diagnostic> {
    let mut snapshot = config.snapshot(&Resolutions::default());
    let host::HostForecast { refused, warnings: mut messages } = host::found(&snapshot);
    if let Some(packets) = &mut snapshot.packets {
        let rungs = packets.path.rungs;
        let obstacle = match rungs.xdp || rungs.tcx {
            true => obstacle(),
            false => Some("`rungs` has neither `xdp` nor `tcx`".to_owned()),
        };
        if let Some(why) = obstacle {
            packets.fall(&why);
        }
        messages.extend(packets.fallen.iter().filter_map(|fallen| {
            let (name, why, unserved) =
                (&fallen.server.name, &fallen.why, fallen.unserved.as_ref()?);
            Some(format!(
                "virtual server `{name}` would not be served here: no packets, since {why}; no sockets, since {unserved}"
            ))
        }));
    }
    messages.extend(icmp_obstacle().and_then(|why| unprobed(&snapshot.pools, why)));
    let file = file.display().to_string();
    let refused = refused.into_iter().map(|message| (Severity::Error, message));
    let warnings = messages.into_iter().map(|message| (Severity::Warning, message));
    let all = refused.chain(warnings);
    all.map(|(severity, message)| Diagnostic::of_file(severity, message, &file)).collect()
}

/// The warning about pools whose monitors of type icmp cannot probe.
fn unprobed(pools: &[std::sync::Arc<Pool>], why: &str) -> Option<String> {
    let is_icmp = |monitor: &Monitor| matches!(monitor.kind, MonitorKind::Icmp);
    let has_some = |pool: &&std::sync::Arc<Pool>| {
        let of_members =
            pool.members.iter().flat_map(|it| it.monitors.iter().flat_map(|it| it.iter()));
        pool.monitors.iter().chain(of_members).any(is_icmp)
    };
    let names: Vec<_> =
        pools.iter().filter(has_some).map(|pool| std::sync::Arc::clone(&pool.name)).collect();
    let which = if names.len() == 1 { "pool" } else { "pools" };
    let few = NamesText(&names);
    (!names.is_empty())
        .then(|| format!("the monitors of type icmp of {which} {few} could not probe here: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_with_monitors_that_cannot_probe_are_named() {
        let monitors = |text: &str| {
            let text = format!(
                "virtual_servers: {{ shop: {{ listen: \"127.0.0.1:0\", pool: a }} }}\npools:\n  a: {{ members: [ 127.0.0.1:1 ], monitors: [ {text} ] }}\n"
            );
            let config = weir_config::parse("test.yaml", &text).config.expect("a configuration");
            unprobed(&config.snapshot(&Resolutions::default()).pools, "it is not allowed")
        };
        assert_eq!(monitors("{ type: tcp }"), None);
        let told = "the monitors of type icmp of pool a could not probe here: it is not allowed";
        assert_eq!(monitors("{ type: tcp }, { type: icmp }").as_deref(), Some(told));
    }
}
