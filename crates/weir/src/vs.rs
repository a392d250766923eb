//! `weir vs`: the virtual servers of a running weir.

use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use weir_api::packet_path::PacketServer;
use weir_api::status::Status;
use weir_api::virtual_server::VirtualServer;

use crate::admin::client::{Client, segment};
use crate::admin::error::Error;
use crate::admin::text::{Alignment, Paint, Table, Tone, grouped, latency, tone_of};
use crate::admin::{self, Connection};
use crate::status::{
    is_full, listens_on, pools_of, render_disabled, render_packet_server, render_server,
};

const COMMAND: &str = "weir vs";

/// Show the virtual servers of a running weir, or one of them in detail
///
/// With NAME, shows its listeners, pools, certificates, connections, requests and rates. `!` marks a problem. With
/// --json, virtual servers that are served by packets (type fast_l4) are in `/v1/packet-path` of the API instead.
///
/// Exit status: 0 shown; 1 unknown virtual server; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir vs\n  \
                        weir vs shop\n  \
                        weir vs --json | jq '.items[] | {name, requests, rates}'")]
pub struct Arguments {
    /// The virtual server to show in detail
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,

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
    if arguments.json {
        return match &arguments.name {
            None => Ok(String::from_utf8_lossy(&client.list("/v1/virtual-servers")?).into_owned()),
            Some(name) => {
                one(&client, name).or_else(|error| without_resource(&client, name, error))
            }
        };
    }
    // One document, so that pools and virtual servers are consistent.
    let status: Status = client.read(&client.get("/v1/status")?)?;
    let Some(name) = &arguments.name else { return Ok(overview(&status, paint)) };
    match detail(&status, name, paint) {
        text if !text.is_empty() => Ok(text),
        // weir answers that it does not exist, and suggests a name.
        _ => one(&client, name),
    }
}

/// The document of one virtual server.
fn one(client: &Client, name: &str) -> Result<String, Error> {
    let document = client.get(&format!("/v1/virtual-servers/{}", segment(name)))?;
    Ok(String::from_utf8_lossy(&document).into_owned())
}

/// The document of a virtual server that has no resource of its own: a disabled one, or one of the packet path alone.
/// Returns `error` if there is none.
fn without_resource(client: &Client, name: &str, error: Error) -> Result<String, Error> {
    if !matches!(error, Error::Refused { status: 404, .. }) {
        return Err(error);
    }
    let status: serde_json::Value = client.read(&client.get("/v1/status")?)?;
    document_of(&status, name).ok_or(error)
}

fn document_of(status: &serde_json::Value, name: &str) -> Option<String> {
    let lists = ["/disabled_virtual_servers", "/packet_path/virtual_servers"];
    let lists = lists.iter().filter_map(|list| status.pointer(list)?.as_array());
    let found = lists.flatten().find(|server| server["name"] == name)?;
    Some(format!("{found}\n"))
}

/// One row per virtual server.
fn overview(status: &Status, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("virtual server", Alignment::Left),
        ("health", Alignment::Left),
        ("listen", Alignment::Left),
        ("pools", Alignment::Left),
        ("open", Alignment::Right),
        ("requests", Alignment::Right),
        ("active", Alignment::Right),
        ("5xx", Alignment::Right),
        ("p50", Alignment::Right),
        ("p99", Alignment::Right),
    ]);
    for server in &status.virtual_servers {
        let (tone, cells) = row(server, status);
        table.row(tone, cells);
    }
    let packets = status.packet_path.iter().flat_map(|path| &path.virtual_servers);
    let by_sockets = |packet: &&PacketServer| {
        status.virtual_servers.iter().any(|server| server.name == packet.name)
    };
    for server in packets.filter(|packet| !by_sockets(packet)) {
        let pool = server.pool.clone().unwrap_or_default();
        let cells = [
            server.name.clone(),
            server.health.state.as_str().to_owned(),
            server.listen.join(", "),
            pool,
            "packets".to_owned(),
        ];
        table.row(tone_of(&server.health), cells);
    }
    for server in &status.disabled_virtual_servers {
        let name = server.name.clone();
        table.row(Tone::Unusual, [name, "disabled".to_owned(), server.listen.join(", ")]);
    }
    if table.is_empty() {
        return "The configuration has no virtual server.\n".to_owned();
    }
    table.render(paint, "  ")
}

fn row(server: &VirtualServer, status: &Status) -> (Tone, Vec<String>) {
    let counts = &server.counts;
    let (tone, pools) = pools_of(server, &status.pools);
    let tone = match tone_of(&server.health) {
        _ if is_full(server) => Tone::Wrong,
        Tone::Plain => tone,
        worse => worse,
    };
    let mut cells = vec![
        server.name.clone(),
        server.health.state.as_str().to_owned(),
        listens_on(server, status),
        pools,
        grouped(counts.connections_open),
    ];
    if server.relayed.is_none() {
        cells.extend([
            grouped(counts.requests),
            grouped(counts.requests_active),
            grouped(server.responses.server_error),
            latency(server.request_duration.p50_ms),
            latency(server.request_duration.p99_ms),
        ]);
    }
    (tone, cells)
}

/// All details of a virtual server; empty if it does not exist.
fn detail(status: &Status, name: &str, paint: Paint) -> String {
    let servers = status.virtual_servers.iter().filter(|server| server.name == name);
    let by_sockets = servers.map(|server| render_server(server, status, paint));
    let packets = status.packet_path.iter().flat_map(|path| &path.virtual_servers);
    let by_packets = packets.filter(|server| server.name == name);
    let by_packets = by_packets.map(|server| render_packet_server(server, paint));
    let disabled = status.disabled_virtual_servers.iter().filter(|server| server.name == name);
    let disabled = disabled.map(|server| render_disabled(server, paint));
    by_sockets.chain(by_packets).chain(disabled).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::status;

    #[test]
    fn disabled_virtual_servers_and_those_of_the_packet_path_have_a_document() {
        let status = serde_json::json!({
            "disabled_virtual_servers": [{ "name": "old", "listen": ["0.0.0.0:81"] }],
            "packet_path": { "virtual_servers": [{ "name": "fast" }] },
        });
        let of = |name| document_of(&status, name);
        assert_eq!(of("old").unwrap(), "{\"name\":\"old\",\"listen\":[\"0.0.0.0:81\"]}\n");
        assert_eq!(of("fast").unwrap(), "{\"name\":\"fast\"}\n");
        assert_eq!(of("other"), None);
        assert_eq!(document_of(&serde_json::json!({ "packet_path": null }), "old"), None);
    }

    #[test]
    fn a_row_per_virtual_server() {
        let status = status(|status| {
            status["disabled_virtual_servers"] =
                serde_json::json!([{ "name": "old", "listen": ["0.0.0.0:81"] }]);
            let mut relay = status["virtual_servers"][0].clone();
            relay["name"] = "mail".into();
            relay["listen"] = serde_json::json!([]);
            relay["relayed"] = serde_json::json!({});
            relay["connections_max"] = 12.into();
            status["virtual_servers"].as_array_mut().unwrap().push(relay);
        });
        assert_eq!(
            overview(&status, Paint::Plain),
            concat!(
                "  virtual server  health    listen                   pools           open  requests  active  5xx     p50     p99\n",
                "  shop            degraded  0.0.0.0:8080, [::]:8080  web (degraded)    12    24,112       3   12  1.2 ms  8.0 ms\n",
                "! mail            degraded  nowhere                  web (degraded)    12\n",
                "  old             disabled  0.0.0.0:81\n",
            )
        );
    }

    #[test]
    fn one_in_detail() {
        let status = status(|status| {
            status["disabled_virtual_servers"] =
                serde_json::json!([{ "name": "old", "listen": [] }]);
        });
        let check = |name, expected: &str| {
            let text = detail(&status, name, Paint::Plain);
            assert!(text.starts_with(expected), "{name}: {text}");
        };
        check(
            "shop",
            "virtual server shop is degraded: pool web: 1 of 3 members in service\n  listen       0.0.0.0:8080, [::]:8080\n",
        );
        check("old", "virtual server old: disabled\n  listen       nowhere\n");
        assert_eq!(detail(&status, "none", Paint::Plain), "");
    }
}
