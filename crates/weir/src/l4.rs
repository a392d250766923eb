//! `weir l4`: the packet forwarding of virtual servers of type fast_l4.

use std::net::IpAddr;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use weir_api::flows::{EndedFlows, Flow, Flows, FlowsToEnd};
use weir_cli::output;
use weir_control::packets::{DetachedPaths, detach_leftovers};

use crate::admin::client::parameters;
use crate::admin::error::Error;
use crate::admin::text::{Alignment, Paint, Table, Tone, counted, grouped, span};
use crate::admin::{self, Connection, EXIT_REFUSED};

/// List and end flows of virtual servers of type fast_l4, and clean up the kernel after a crash
///
/// Exit status: 0 done; 1 refused; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir l4 flows --virtual-server shop\n  \
                        weir l4 flows --client 192.0.2.7 --json\n  \
                        weir l4 end --member 10.0.0.11:80\n  \
                        weir l4 detach   # after `on_exit: keep`, or a crash")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Flows(ListArguments),
    End(EndArguments),
    Detach(DetachArguments),
}

/// Selects flows; a missing option matches any value.
#[derive(Debug, Args)]
struct Filter {
    /// Flows of this virtual server
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    virtual_server: Option<String>,

    /// Flows to this member: its address, with or without port
    #[arg(long, value_name = "ADDRESS", value_parser = NonEmptyStringValueParser::new())]
    member: Option<String>,

    /// Flows of this client
    #[arg(long, value_name = "IP")]
    client: Option<IpAddr>,
}

/// List flows with client, member, age and bytes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir l4 flows\n  \
                        weir l4 flows --virtual-server shop --member 10.0.0.11\n  \
                        weir l4 flows --max 100000 --json | jq '.items | length'")]
struct ListArguments {
    #[command(flatten)]
    filter: Filter,

    /// Most flows to list
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max: u32,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// End flows; both ends of TCP flows get a reset
///
/// Needs the unix socket of the admin listener, or a token with the role operate. One call ends at most 65,536 flows:
/// repeat it until it prints 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir l4 end --client 192.0.2.7\n  \
                        weir l4 end --virtual-server shop --member 10.0.0.11:80\n  \
                        weir l4 end --all")]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["virtual_server", "member", "client", "all"])))]
struct EndArguments {
    #[command(flatten)]
    filter: Filter,

    /// All flows
    #[arg(long, conflicts_with_all = ["virtual_server", "member", "client"])]
    all: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Remove the programs and tables that a stopped weir left in the kernel
///
/// They remain after a crash, or with `on_exit: keep`. Their flows end. Programs and tables of a running weir stay.
/// Needs root, or the capabilities of the packet path.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir l4 detach\n  \
                        weir l4 detach edge   # only those of `packet_path: { name: edge }`")]
struct DetachArguments {
    /// The `packet_path.name` of its configuration [default: all]
    name: Option<String>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.action {
        Action::Flows(arguments) => match list(arguments, admin::paint_of_stdout()) {
            Ok(text) => admin::print("weir l4 flows", &text),
            Err(error) => admin::refuse("weir l4 flows", &error),
        },
        Action::End(arguments) => match end(arguments) {
            Ok(text) => admin::print("weir l4 end", &text),
            Err(error) => admin::refuse("weir l4 end", &error),
        },
        Action::Detach(arguments) => detach(arguments.name.as_deref()),
    }
}

impl Filter {
    fn wanted(&self) -> FlowsToEnd {
        FlowsToEnd {
            virtual_server: self.virtual_server.clone(),
            member: self.member.clone(),
            client: self.client,
            all: false,
        }
    }
}

fn list(arguments: &ListArguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let filter = parameters(&arguments.filter.wanted());
    let document = client.get(&format!("/v1/l4/flows?limit={}{filter}", arguments.max))?;
    let flows: Flows = client.read(&document)?;
    if arguments.json {
        return Ok(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(render(&flows, paint))
}

fn render(flows: &Flows, paint: Paint) -> String {
    let mut table = Table::new(&[
        ("protocol", Alignment::Left),
        ("virtual server", Alignment::Left),
        ("client", Alignment::Left),
        ("destination", Alignment::Left),
        ("member", Alignment::Left),
        ("state", Alignment::Left),
        ("age", Alignment::Right),
        ("idle", Alignment::Right),
        ("bytes in", Alignment::Right),
        ("bytes out", Alignment::Right),
    ]);
    for flow in &flows.items {
        table.row(Tone::Plain, cells(flow));
    }
    let mut text = table.render(paint, "");
    let more = if flows.more { ", and perhaps more: see --max" } else { "" };
    text += &format!("{}{more}\n", counted(flows.items.len() as u64, "flow"));
    text
}

fn cells(flow: &Flow) -> [String; 10] {
    let none = || "-".to_owned();
    let time = |seconds| span(std::time::Duration::from_secs(seconds));
    [
        match flow.protocol {
            6 => "tcp".into(),
            17 => "udp".into(),
            1 | 58 => "icmp".into(),
            other => other.to_string(),
        },
        flow.virtual_server.clone().unwrap_or_else(none),
        flow.client.clone(),
        flow.destination.clone(),
        flow.member.clone().unwrap_or_else(none),
        flow.state.clone(),
        time(flow.age_seconds),
        time(flow.idle_seconds),
        grouped(flow.bytes_in),
        grouped(flow.bytes_out),
    ]
}

fn end(arguments: &EndArguments) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let wanted = FlowsToEnd { all: arguments.all, ..arguments.filter.wanted() };
    let document = client.post("/v1/l4/flows/end", &wanted)?;
    let ended: EndedFlows = client.read(&document)?;
    Ok(format!("{} ended, {} sent\n", counted(ended.flows, "flow"), counted(ended.resets, "reset")))
}

fn detach(name: Option<&str>) -> ExitCode {
    match detach_leftovers(name) {
        Ok(detached) => admin::print("weir l4 detach", &told(&detached)),
        Err(error) => {
            output::tell(format_args!("weir l4 detach: {error}\n"));
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// Describes the removed programs and the remaining ones.
fn told(detached: &DetachedPaths) -> String {
    let DetachedPaths { removed, in_use } = detached;
    let mut text: String =
        removed.iter().map(|name| format!("removed the packet path {name}\n")).collect();
    if removed.is_empty() {
        text = "nothing is left in the kernel\n".into();
    }
    for name in in_use {
        text += &format!("the packet path {name} is in use by a running weir, and stays\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_in_use_is_told() {
        let mut detached = DetachedPaths::default();
        assert_eq!(told(&detached), "nothing is left in the kernel\n");
        detached.removed.push("old".into());
        detached.in_use.push("edge".into());
        let text = "removed the packet path old\n\
                    the packet path edge is in use by a running weir, and stays\n";
        assert_eq!(told(&detached), text);
    }

    #[test]
    fn flows_are_a_table() {
        let flows: Flows = serde_json::from_value(json!({
            "more": true,
            "items": [{
                "protocol": 6, "virtual_server": "shop", "client": "192.0.2.7:40000",
                "destination": "203.0.113.1:80", "member": "10.0.0.11:8080", "state": "open",
                "age_seconds": 61, "idle_seconds": 0, "bytes_in": 1_204, "bytes_out": 9,
            }],
        }))
        .unwrap();
        let expected = "\
protocol  virtual server  client           destination     member          state    age  idle  bytes in  bytes out
tcp       shop            192.0.2.7:40000  203.0.113.1:80  10.0.0.11:8080  open   1 min   0 s     1,204          9
1 flow, and perhaps more: see --max
";
        let text: Vec<String> =
            render(&flows, Paint::Plain).lines().map(|line| line.trim_start().to_owned()).collect();
        assert_eq!(text, expected.lines().collect::<Vec<_>>());
    }
}
