//! `weir status`: the state of a running weir, and its problems.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use weir_api::certificate::{Acme, Certificate};
use weir_api::health::Health;
use weir_api::packet_path::PacketServer;
use weir_api::pool::Pool;
use weir_api::process::{Process, ProcessHealth};
use weir_api::rate::Rate;
use weir_api::relayed::Relayed;
use weir_api::status::Status;
use weir_api::virtual_server::{Datagrams, Disabled, VirtualServer};

use crate::admin::error::Error;
use crate::admin::text::{
    Paint, Tone, amount, bytes_amount, counted, grouped, latency, printable, span, tone_of,
};
use crate::admin::{self, Connection};
use crate::pool::table_of;

const COMMAND: &str = "weir status";

/// Show the state and the problems of a running weir
///
/// The first line says whether weir serves, then come its problems, virtual servers with their clients, and pools with
/// their members. `!` marks what is down, failing, or another problem. Counters begin at the start of weir.
///
/// Exit status: 0 shown, also with problems; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir status\n  \
                        weir status --admin 127.0.0.1:9900\n  \
                        weir status --json | jq '.pools[].members[] | select(.state != \"up\")'\n  \
                        watch -n 1 weir status")]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match answer(arguments, admin::paint_of_stdout()) {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn answer(arguments: &Arguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let document = client.get("/v1/status")?;
    // An unreadable status is an error for both output formats.
    let status: Status = client.read(&document)?;
    if arguments.json {
        return Ok(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(render(&status, paint))
}

fn render(status: &Status, paint: Paint) -> String {
    let process = &status.process;
    let mut text = heading(process, paint);
    // What has expired is among the problems already.
    let is_told = |told: &str| process.problems.iter().any(|problem| problem.starts_with(told));
    for file in status.files.iter().filter(|file| file.is_due && !is_told(&file.told)) {
        text += &paint.line(Tone::Unusual, "  ", &printable(&file.told));
    }
    for server in &status.virtual_servers {
        text.push('\n');
        text += &render_server(server, status, paint);
    }
    for server in status.packet_path.iter().flat_map(|path| &path.virtual_servers) {
        text.push('\n');
        text += &render_packet_server(server, paint);
    }
    for server in &status.disabled_virtual_servers {
        text.push('\n');
        text += &render_disabled(server, paint);
    }
    if let Some(path) = &status.packet_path {
        let (flows, max) = (grouped(path.flows), grouped(path.flows_max.into()));
        text +=
            &paint.line(Tone::Plain, "", &format!("packet path: {flows} of at most {max} flows"));
    }
    for pool in &status.pools {
        text.push('\n');
        text += &table_of(pool, paint);
    }
    text
}

/// The state of the process, and its problems.
fn heading(process: &Process, paint: Paint) -> String {
    let (tone, health) = health_of(process.health);
    let mut text = paint.heading_of(
        tone,
        &format!(
            "weir {}: {health}runs for {} with {}; configuration of {}{}",
            process.version,
            span(Duration::from_secs(process.uptime_seconds)),
            counted(process.workers as u64, "worker"),
            process.configuration.in_force_since,
            match process.configuration.version_in_force {
                0 => String::new(),
                version => format!(", version {version}"),
            },
        ),
    );
    if let Some(version) = process.configuration.unconfirmed_version {
        let what = format!("version {version} is taken back unless: weir confirm {version}");
        text += &paint.line(Tone::Unusual, "  ", &what);
    }
    if let Some(pid) = process.draining_process {
        let what = format!("process {pid}, which this one has replaced, drains");
        text += &paint.line(Tone::Unusual, "  ", &what);
    }
    for problem in &process.problems {
        text += &paint.line(Tone::Wrong, "  ", &printable(problem));
    }
    text
}

/// The state of the process, to be followed by more; empty: it is not known.
fn health_of(health: ProcessHealth) -> (Tone, String) {
    let tone = match health {
        ProcessHealth::Unknown => return (Tone::Plain, String::new()),
        ProcessHealth::Serving => Tone::Plain,
        ProcessHealth::Down => Tone::Wrong,
        _ => Tone::Unusual,
    };
    (tone, format!("{}; ", health.as_str()))
}

/// The heading of something with this health. A reason is in it: `virtual server shop is down: …`.
pub fn heading_of(name: &str, health: &Health, paint: Paint) -> String {
    let told = |why| format!(" is {}: {why}", health.state.as_str());
    let state = health.why.as_deref().map(told).unwrap_or_default();
    paint.heading_of(tone_of(health), &format!("{name}{state}"))
}

/// A disabled virtual server.
pub fn render_disabled(server: &Disabled, paint: Paint) -> String {
    let listen = match server.listen.is_empty() {
        true => "nowhere".to_owned(),
        false => server.listen.join(", "),
    };
    paint.heading(&format!("virtual server {}: disabled", server.name))
        + &paint.line(Tone::Plain, "  ", &format!("listen       {listen}"))
}

/// A virtual server: a heading and lines.
pub fn render_server(server: &VirtualServer, status: &Status, paint: Paint) -> String {
    let name = format!("virtual server {}", server.name);
    let mut text = heading_of(&name, &server.health, paint);
    let mut line = |tone, name: &str, value: String| {
        text += &paint.line(tone, "  ", &format!("{name:<11}  {value}"));
    };
    line(Tone::Plain, "listen", listens_on(server, status));
    let (tone, names) = pools_of(server, &status.pools);
    line(tone, if server.pools.len() > 1 { "pools" } else { "pool" }, names);
    if !server.hands_over_to.is_empty() {
        line(Tone::Plain, "hands over", format!("-> {}", server.hands_over_to.join(", ")));
    }
    for certificate in &server.certificates {
        let (tone, text) = shown_certificate(certificate);
        line(tone, "certificate", text);
    }
    let counts = &server.counts;
    let limit = counts.connections_max.map(u64::from);
    let of = limit.map_or_else(String::new, |limit| format!(" of at most {}", grouped(limit)));
    let refused = match counts.connections_refused {
        0 => String::new(),
        count => format!(", {} refused", grouped(count)),
    };
    line(
        if is_full(server) { Tone::Wrong } else { Tone::Plain },
        if server.datagrams.is_some() { "sessions" } else { "connections" },
        format!(
            "{} open{of}; {} accepted{refused}",
            grouped(counts.connections_open),
            grouped(counts.connections),
        ),
    );
    if let Some(relayed) = &server.relayed {
        let (received, sent) = (grouped(server.bytes_received), grouped(server.bytes_sent));
        line(Tone::Plain, "bytes", format!("{received} from clients; {sent} to clients"));
        if let Some(datagrams) = &server.datagrams {
            line(Tone::Plain, "datagrams", shown(datagrams));
        }
        line(Tone::Plain, "ended", ended(relayed));
        if let Some(rates) = &server.rates {
            let kind = if server.datagrams.is_some() { Kind::Datagrams } else { Kind::Relayed };
            line(Tone::Plain, "now", per_second(rates, kind));
        }
        return text;
    }
    line(
        Tone::Plain,
        "requests",
        format!(
            "{}; {} under way; {} answered 5xx; p50 {}, p99 {}",
            grouped(counts.requests),
            grouped(counts.requests_active),
            grouped(server.responses.server_error),
            latency(server.request_duration.p50_ms),
            latency(server.request_duration.p99_ms),
        ),
    );
    if let Some(rates) = &server.rates {
        line(Tone::Plain, "now", per_second(rates, Kind::Http));
    }
    text
}

/// Whether its limit of connections is reached.
pub fn is_full(server: &VirtualServer) -> bool {
    let counts = &server.counts;
    counts.connections_max.is_some_and(|limit| counts.connections_open >= u64::from(limit))
}

/// The listening addresses of a virtual server, or the virtual servers that hand requests to it.
pub fn listens_on(server: &VirtualServer, status: &Status) -> String {
    if !server.listen.is_empty() {
        return server.listen.join(", ");
    }
    let others = status.virtual_servers.iter();
    let from = others.filter(|other| other.hands_over_to.contains(&server.name));
    let names: Vec<&str> = from.map(|other| other.name.as_str()).collect();
    match names.is_empty() {
        true => "nowhere".to_owned(),
        false => format!("nowhere: gets requests from {}", names.join(", ")),
    }
}

/// The unit that a virtual server counts, in addition to connections and bytes.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Http,
    Relayed,
    Datagrams,
    Packets,
}

/// The rates per second.
fn per_second(rates: &Rate, kind: Kind) -> String {
    let connections = amount(rates.connections_per_second);
    let begun = match kind {
        Kind::Http => {
            format!("{} requests/s, {connections} connections/s", amount(rates.requests_per_second))
        }
        Kind::Relayed => format!("{connections} connections/s"),
        Kind::Datagrams => {
            format!("{connections} sessions/s, {} datagrams/s", amount(rates.packets_per_second))
        }
        Kind::Packets => {
            format!("{connections} flows/s, {} packets/s", amount(rates.packets_per_second))
        }
    };
    let received = bytes_amount(rates.bytes_received_per_second);
    let sent = bytes_amount(rates.bytes_sent_per_second);
    let seconds = rates.seconds;
    format!("{begun}; {received}/s from clients, {sent}/s to clients (over {seconds:.0} s)")
}

/// Maximum number of names shown of a certificate.
const NAMES_SHOWN_MAX: usize = 3;

/// A certificate with fewer remaining days is marked: its renewal is overdue.
const DAYS_MIN: i64 = 30;

/// The names of a certificate and its remaining days.
fn shown_certificate(certificate: &Certificate) -> (Tone, String) {
    let Certificate { names, subject, not_after, days_left, acme } = certificate;
    let mut text = names.iter().take(NAMES_SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_SHOWN_MAX {
        text += &format!(" and {} more", names.len() - NAMES_SHOWN_MAX);
    }
    if names.is_empty() {
        text.clone_from(subject);
    }
    let day = day_of(not_after);
    text += &match days_left {
        ..0 => format!(": expired on {day}"),
        0 => format!(": less than a day left, until {day}"),
        1 => format!(": 1 day left, until {day}"),
        days => format!(": {days} days left, until {day}"),
    };
    let Some(acme) = acme else {
        return (if *days_left < DAYS_MIN { Tone::Wrong } else { Tone::Plain }, text);
    };
    text += &shown_renewal(acme);
    // The authority determines the lifetime of a certificate: only a certificate that cannot be renewed is a problem.
    let is_wrong = acme.failures > 0 || acme.renews_at.is_none() || *days_left < 0;
    (if is_wrong { Tone::Wrong } else { Tone::Plain }, text)
}

/// The renewal of a certificate by ACME.
fn shown_renewal(acme: &Acme) -> String {
    let Acme { authority, state, renews_at, failures, reason, next_try, .. } = acme;
    let mut text = match renews_at {
        Some(at) => format!("; from {authority}, renewed on {}", day_of(at)),
        None => format!("; stands in until {authority} has issued one ({state})"),
    };
    if let (Some(reason), 1..) = (reason, failures) {
        let times = if *failures == 1 { "once".into() } else { format!("{failures} times") };
        text += &format!("; the order failed {times}: {reason}");
        if let Some(at) = next_try {
            text += &format!("; next try at {at}");
        }
    }
    text
}

/// The day of a time.
fn day_of(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

/// The pools of a virtual server. One that is not up is marked; the tone is the worst of all.
pub fn pools_of(server: &VirtualServer, known: &[Pool]) -> (Tone, String) {
    let names = match server.pools.as_slice() {
        [] if server.pool.is_empty() => return (Tone::Plain, "none: rules answer".to_owned()),
        [] => std::slice::from_ref(&server.pool),
        names => names,
    };
    let mut worst = Tone::Plain;
    let mut shown = Vec::with_capacity(names.len());
    for name in names {
        let health = known.iter().find(|pool| pool.name == *name).map(|pool| &pool.health);
        let tone = health.map_or(Tone::Plain, tone_of);
        shown.push(match (tone, health) {
            (Tone::Wrong | Tone::Unusual, Some(health)) => {
                format!("{name} ({})", health.state.as_str())
            }
            _ => name.clone(),
        });
        worst = if tone == Tone::Wrong || worst == Tone::Plain { tone } else { worst };
    }
    (worst, shown.join(", "))
}

/// A virtual server of type fast_l4. If it is served by sockets, its counters are those of the virtual server with the
/// same name above.
pub fn render_packet_server(server: &PacketServer, paint: Paint) -> String {
    let name = format!("virtual server {} (fast_l4)", server.name);
    let mut text = heading_of(&name, &server.health, paint);
    let mut line = |tone, name: &str, value: String| {
        text += &paint.line(tone, "  ", &format!("{name:<11}  {value}"));
    };
    line(
        Tone::Plain,
        "listen",
        format!("{} (protocol {})", server.listen.join(", "), server.protocol),
    );
    line(
        Tone::Plain,
        "pool",
        server.pool.clone().unwrap_or_else(|| "none: by the routing table".into()),
    );
    let why = server.why.as_deref().unwrap_or_default();
    let (tone, by) = match (&server.rungs, &server.unserved) {
        (Some(rungs), _) => (Tone::Plain, format!("packets: {rungs}")),
        (None, None) => (Tone::Unusual, format!("sockets, not packets: {why}")),
        (None, Some(unserved)) => (Tone::Wrong, format!("nothing: {why}; {unserved}")),
    };
    line(tone, "served by", by);
    for remark in &server.remarks {
        line(Tone::Plain, "", remark.clone());
    }
    if !server.is_by_packets() {
        return text;
    }
    let counters = &server.counters;
    line(
        Tone::Plain,
        "packets",
        format!(
            "{} from clients ({} bytes); {} to clients ({} bytes)",
            grouped(counters.packets_in),
            grouped(counters.bytes_in),
            grouped(counters.packets_out),
            grouped(counters.bytes_out),
        ),
    );
    let of_members =
        server.members.iter().map(|it| format!("{}: {}", it.address, grouped(it.flows)));
    let of_members: Vec<String> = of_members.collect();
    line(
        Tone::Plain,
        "flows",
        format!("{} began; now {}", grouped(counters.flows), of_members.join(", ")),
    );
    if let Some(rates) = &server.rates {
        line(Tone::Plain, "now", per_second(rates, Kind::Packets));
    }
    text
}

/// The numbers of datagrams, delivered and dropped.
fn shown(datagrams: &Datagrams) -> String {
    let (received, sent) = (grouped(datagrams.received), grouped(datagrams.sent));
    let mut text = format!("{received} from clients; {sent} to clients");
    for (what, count) in
        [("refused", datagrams.refused), ("answers dropped", datagrams.answers_dropped)]
    {
        if count > 0 {
            text.push_str(&format!("; {} {what}", grouped(count)));
        }
    }
    text
}

/// The ends of relayed connections: normal ends first, then others by frequency.
fn ended(relayed: &Relayed) -> String {
    let Relayed {
        complete,
        client_abort,
        client_malformed,
        hello_timeout,
        idle_timeout,
        member_abort,
        member_connect,
        member_down,
        no_member,
        operator,
        queue_timeout,
        stopped,
        unknown_server_name,
        unserved,
    } = *relayed;
    let mut others = [
        ("client_abort", client_abort),
        ("client_malformed", client_malformed),
        ("hello_timeout", hello_timeout),
        ("idle_timeout", idle_timeout),
        ("member_abort", member_abort),
        ("member_connect", member_connect),
        ("member_down", member_down),
        ("no_member", no_member),
        ("operator", operator),
        ("queue_timeout", queue_timeout),
        ("stopped", stopped),
        ("unknown_server_name", unknown_server_name),
    ];
    others.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others = others.iter().filter(|(_, count)| *count > 0);
    let others = others.map(|(word, count)| format!("; {} {word}", grouped(*count)));
    let unserved = match unserved {
        0 => String::new(),
        count => format!("; {} of them without a byte of the member", grouped(count)),
    };
    format!("{} complete{}{unserved}", grouped(complete), others.collect::<String>())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::pool::tests::POOL;

    /// The status of a process with one virtual server and one pool.
    pub fn status(change: impl FnOnce(&mut serde_json::Value)) -> Status {
        let mut document = serde_json::json!({
            "version": "0.1.0", "started": "2026-11-21T06:00:00.000Z", "uptime_seconds": 11_520,
            "health": "degraded", "problems": [], "workers": 4, "socket_failures": 0,
            "configuration": { "generation": 1, "in_force_since": "2026-11-21T06:00:00.000Z" },
            "virtual_servers": [{
                "name": "shop", "listen": ["0.0.0.0:8080", "[::]:8080"], "pool": "web",
                "health": { "state": "degraded", "why": "pool web: 1 of 3 members in service" },
                "connections": 1_204, "connections_open": 12, "connections_max": null,
                "connections_refused": 0, "bytes_received": 1, "bytes_sent": 2, "requests": 24_112, "requests_active": 3,
                "responses": { "2xx": 24_100, "5xx": 12 },
                "request_duration": { "count": 24_112, "p50_ms": 1.2, "p99_ms": 8.0 },
            }],
            "pools": [],
        });
        document["pools"] =
            serde_json::json!([serde_json::from_str::<serde_json::Value>(POOL).unwrap()]);
        change(&mut document);
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_status_is_a_page() {
        let text = render(&status(|_| {}), Paint::Plain);
        let expected = "\
weir 0.1.0: degraded; runs for 3 h 12 min with 4 workers; configuration of 2026-11-21T06:00:00.000Z

virtual server shop is degraded: pool web: 1 of 3 members in service
  listen       0.0.0.0:8080, [::]:8080
  pool         web (degraded)
  connections  12 open; 1,204 accepted
  requests     24,112; 3 under way; 12 answered 5xx; p50 1.2 ms, p99 8.0 ms

pool web: round_robin, 1 of 3 members in service
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn versions_and_the_process_before_are_told() {
        let text = render(
            &status(|status| {
                status["configuration"]["version_in_force"] = 7.into();
                status["configuration"]["unconfirmed_version"] = 7.into();
                status["draining_process"] = 4_711.into();
            }),
            Paint::Plain,
        );
        let expected = "\
weir 0.1.0: degraded; runs for 3 h 12 min with 4 workers; configuration of 2026-11-21T06:00:00.000Z, version 7
  version 7 is taken back unless: weir confirm 7
  process 4711, which this one has replaced, drains

virtual server shop is degraded";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_relay_has_connections() {
        let text = render(
            &status(|status| {
                let server = &mut status["virtual_servers"][0];
                server["pools"] = serde_json::json!(["rest", "mail", "shop"]);
                server["bytes_received"] = 12_345.into();
                server["bytes_sent"] = 67.into();
                server["relayed"] = serde_json::json!({
                    "client_abort": 2, "complete": 1_190, "idle_timeout": 0, "no_member": 3,
                    "member_abort": 1, "unserved": 5,
                });
            }),
            Paint::Plain,
        );
        let expected = ": 1 of 3 members in service
  listen       0.0.0.0:8080, [::]:8080
  pools        rest, mail, shop
  connections  12 open; 1,204 accepted
  bytes        12,345 from clients; 67 to clients
  ended        1,190 complete; 3 no_member; 2 client_abort; 1 member_abort; 5 of them without a byte of the member

";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn rates_are_shown_once_they_are_known() {
        let check = |change: &dyn Fn(&mut serde_json::Value), expected: &str| {
            let text = render(
                &status(|status| {
                    let server = &mut status["virtual_servers"][0];
                    server["rates"] = serde_json::json!({
                        "seconds": 10.4, "connections_per_second": 1.5, "requests_per_second": 2_411.2,
                        "packets_per_second": 12.0, "bytes_received_per_second": 1_234_567.8,
                        "bytes_sent_per_second": 900.0,
                    });
                    change(server);
                }),
                Paint::Plain,
            );
            assert!(text.contains(&format!("\n  now          {expected}; ")), "{text}");
            let bytes = "; 1.2 MB/s from clients, 900 B/s to clients (over 10 s)\n";
            assert!(text.contains(bytes), "{text}");
        };
        check(&|_| {}, "2,411 requests/s, 1.5 connections/s");
        check(&|server| server["relayed"] = serde_json::json!({}), "1.5 connections/s");
        check(
            &|server| {
                server["relayed"] = serde_json::json!({});
                server["datagrams"] = serde_json::json!({
                    "received": 2, "sent": 1, "refused": 0, "answers_dropped": 0,
                });
            },
            "1.5 sessions/s, 12 datagrams/s",
        );
    }

    #[test]
    fn datagrams_have_sessions() {
        let text = render(
            &status(|status| {
                let server = &mut status["virtual_servers"][0];
                server["bytes_received"] = 12_345.into();
                server["bytes_sent"] = 67.into();
                server["datagrams"] = serde_json::json!({
                    "received": 2_000, "sent": 1_999, "refused": 3, "answers_dropped": 0,
                });
                server["relayed"] = serde_json::json!({ "complete": 1_190 });
            }),
            Paint::Plain,
        );
        let expected = "
  sessions     12 open; 1,204 accepted
  bytes        12,345 from clients; 67 to clients
  datagrams    2,000 from clients; 1,999 to clients; 3 refused
  ended        1,190 complete

";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_wrong_is_marked() {
        let fine = render(
            &status(|status| {
                status["pools"] = serde_json::json!([]);
                status["health"] = "serving".into();
                status["virtual_servers"][0]["health"] =
                    serde_json::json!({ "state": "up", "why": null });
            }),
            Paint::Plain,
        );
        assert!(!fine.contains('!'), "{fine}");
        let text = render(
            &status(|status| {
                status["problems"] = serde_json::json!(["drains", "1 panic \u{1b}[2J"]);
                let server = &mut status["virtual_servers"][0];
                server["connections_max"] = 12.into();
                server["connections_refused"] = 7.into();
                server["pools"] = serde_json::json!(["web", "spare"]);
                server["certificates"] = serde_json::json!([
                    { "names": ["shop.example", "a.example", "b.example", "c.example"], "subject": "CN=shop",
                      "not_after": "2026-12-01T00:00:00.000Z", "days_left": 4 },
                    { "names": ["acme.example"], "subject": "", "not_after": "2027-02-01T00:00:00.000Z", "days_left": 66,
                      "acme": { "authority": "ca.example", "state": "failing", "renews_at": "2027-01-01T00:00:00.000Z",
                                "failures": 2, "reason": "no such name (dns)", "next_try": "2026-11-27T04:00:00.000Z" } },
                    { "names": ["fine.example"], "subject": "", "not_after": "2026-12-02T00:00:00.000Z", "days_left": 5,
                      "acme": { "authority": "ca.example", "state": "ready", "renews_at": "2026-11-30T00:00:00.000Z",
                                "failures": 0, "reason": null, "next_try": null } },
                    { "names": [], "subject": "CN=old", "not_after": "2020-01-01T00:00:00.000Z", "days_left": -2000 },
                ]);
                let none = "none of its 3 members is in service";
                let down = |why: String| serde_json::json!({ "state": "down", "why": why });
                status["health"] = "down".into();
                status["pools"][0]["members_in_service"] = 0.into();
                status["pools"][0]["health"] = down(none.to_owned());
                status["virtual_servers"][0]["health"] = down(format!("pool web: {none}"));
            }),
            Paint::Plain,
        );
        for expected in [
            "! drains\n",
            "! 1 panic \u{fffd}[2J\n",
            "! connections  12 open of at most 12; 1,204 accepted, 7 refused\n",
            "! certificate  shop.example, a.example, b.example and 1 more: 4 days left, until 2026-12-01\n",
            "! certificate  CN=old: expired on 2020-01-01\n",
            "! certificate  acme.example: 66 days left, until 2027-02-01; from ca.example, renewed on 2027-01-01; \
             the order failed 2 times: no such name (dns); next try at 2026-11-27T04:00:00.000Z\n",
            "  certificate  fine.example: 5 days left, until 2026-12-02; from ca.example, renewed on 2026-11-30\n",
            "! pools        web (down), spare\n",
            "! weir 0.1.0: down; runs for ",
            "! virtual server shop is down: pool web: none of its 3 members is in service\n",
            "! pool web: round_robin, 0 of 3 members in service\n",
            "! down: none of its 3 members is in service\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
    }
}
