//! `weir check --explain`: how this user on this host would serve each virtual server.

use std::fmt::Write as _;

use weir_config::snapshot::packet::{Fallback, PacketServer, PathSettings};
use weir_config::snapshot::{RuleName, Service, Snapshot, VirtualServer, Waf};
use weir_config::{Config, Resolutions};
use weir_control::packets::{cookies_obstacle, obstacle};
use weir_http::path::{EncodedSlashes, PathForm};
use weir_waf::crs::{self, EXCLUSIONS_FILE};

/// One paragraph per virtual server. It is a prediction: only an attempt shows which mode a network driver supports.
pub(super) fn explain(config: &Config) -> String {
    let snapshot = config.snapshot(&Resolutions::default());
    let mut text = String::new();
    for server in &snapshot.virtual_servers {
        let kind = kind(&server.service);
        let by = if server.listen.is_empty() {
            "by requests that others hand over"
        } else {
            "by sockets"
        };
        put(&mut text, format_args!("virtual server {} (type {kind}): {by}", server.name));
        put_hand_overs(&mut text, &snapshot, server);
        put_path(&mut text, server);
        if let Some(waf) = &server.waf {
            put_waf(&mut text, waf);
        }
    }
    if let Some(packets) = &snapshot.packets {
        let path = &packets.path;
        let obstacle = match (path.rungs.xdp, path.rungs.tcx) {
            (false, false) => Some("`rungs` has neither `xdp` nor `tcx`".to_owned()),
            _ => obstacle(),
        };
        for server in &packets.servers {
            put_packet_server(&mut text, server, path, obstacle.as_deref());
        }
        if let (false, Some(why)) = (path.syn_cookies.is_empty(), cookies_obstacle()) {
            put(&mut text, format_args!("packet_path.syn_cookies: {why}"));
        }
        if let (true, Some(obstacle)) = (path.guards(), &obstacle) {
            put(
                &mut text,
                format_args!("packet_path: `deny` and `syn_cookies` would not hold: {obstacle}"),
            );
        }
    }
    text
}

fn kind(service: &Service) -> &'static str {
    match service {
        Service::Http => "http",
        Service::Tcp(_) => "tcp",
        Service::Udp(_) => "udp",
    }
}

/// The virtual servers that get requests of this one, and the rules that hand them over.
fn put_hand_overs(text: &mut String, snapshot: &Snapshot, server: &VirtualServer) {
    for (RuleName { policy, rule }, to) in server.hand_overs() {
        let to = &snapshot.virtual_servers[to].name;
        put(text, format_args!("  hands requests over -> {to} (rule {policy}/{rule})"));
    }
}

/// What becomes of encoded slashes: the default depends on other settings.
fn put_path(text: &mut String, server: &VirtualServer) {
    let (Service::Http, PathForm::Canonical(spellings)) =
        (&server.service, server.http.target.path)
    else {
        return;
    };
    let what = match spellings.encoded_slashes {
        EncodedSlashes::Refuse => "is refused",
        EncodedSlashes::Decode => "becomes a slash",
        EncodedSlashes::Keep => "stays for members, and is a slash for rules",
    };
    put(text, format_args!("  path: %2F {what} (`http.path.encoded_slashes`)"));
}

fn put_waf(text: &mut String, waf: &Waf) {
    let rules = waf.common.view().rules_count();
    put(text, format_args!("  waf: mode {}, unless a policy says otherwise", waf.mode.name()));
    put(text, format_args!("  waf: at most {rules} rules, all phases together"));
    let parts = [
        ("checks", waf.checks.is_some()),
        ("cookies", waf.cookies.is_some()),
        ("responses", waf.responses.is_some()),
    ];
    let is = |on: bool| if on { "on" } else { "off" };
    let parts = parts.map(|(name, on)| format!("{name} {}", is(on))).join(", ");
    put(text, format_args!("  waf: {parts}"));
    let open = crs::open(waf.common.view().rules());
    if !open.is_empty() {
        let ids: Vec<String> = open.iter().map(|known| known.rule.to_string()).collect();
        let ids = ids.join(", ");
        put(
            text,
            format_args!(
                "  waf: CRS denies legitimate requests of most applications by {ids}; list {EXCLUSIONS_FILE} after it"
            ),
        );
    }
}

fn put_packet_server(
    text: &mut String,
    server: &PacketServer,
    path: &PathSettings,
    obstacle: Option<&str>,
) {
    let title =
        format!("virtual server {} (type fast_l4, protocol {})", server.name, server.protocol);
    let Some(obstacle) = obstacle else {
        let rungs = match (path.rungs.xdp, path.rungs.tcx) {
            (true, true) => "xdp, or tcx where the driver has no XDP",
            (true, false) => "xdp",
            _ => "tcx",
        };
        let interfaces = path
            .interfaces
            .as_ref()
            .map_or_else(|| "all interfaces that are up".to_owned(), |names| names.join(", "));
        put(text, format_args!("{title}: by packets: {rungs}, on {interfaces}"));
        return put_remarks(text, &server.remarks);
    };
    match &server.fallback {
        Fallback::Proxy { server, remarks } if path.rungs.proxy => {
            let kind = kind(&server.service);
            put(text, format_args!("{title}: by sockets, as type {kind}: {obstacle}"));
            put_remarks(text, remarks);
        }
        Fallback::Proxy { .. } => {
            put(text, format_args!("{title}: not served: {obstacle}, and `rungs` has no `proxy`"));
        }
        Fallback::None(why) => {
            put(text, format_args!("{title}: not served: {obstacle}, and {why}"))
        }
    }
}

fn put_remarks(text: &mut String, remarks: &[std::sync::Arc<str>]) {
    for remark in remarks {
        put(text, format_args!("  {remark}"));
    }
}

/// Writing to a string cannot fail.
fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}");
}
