//! The flows of the packet path.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_config::snapshot::Role;
use weir_explain::asked::ip_or_null;
use weir_packet::{End, Flow, FlowFilter, FlowState};

use super::Context;
use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::problem::Problem;
use super::route::{Handled, Route};
use crate::packets::{Flows, LISTED_FLOWS_MAX, member_label};

/// Number of flows in a list without `limit`.
const LISTED_FLOWS_DEFAULT: u64 = 1_000;

const LIMIT: Parameter = Parameter {
    name: "limit",
    kind: Kind::Number { max: LISTED_FLOWS_MAX as u64, default: LISTED_FLOWS_DEFAULT },
    summary: "Most flows in the list",
};

const PARAMETERS: &[Parameter] = &[
    LIMIT,
    Parameter { name: "virtual_server", kind: Kind::Text, summary: "Only flows of this one" },
    Parameter {
        name: "member",
        kind: Kind::Text,
        summary: "Only flows to this member: an address, with or without its port",
    },
    Parameter { name: "client", kind: Kind::Ip, summary: "Only flows of this client" },
];

pub(super) fn routes() -> Vec<Route> {
    const STATUSES: &[StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE];
    vec![
        Route::get_later(
            "/v1/l4/flows",
            "listFlows",
            "Flows of virtual servers of type fast_l4",
            list,
        )
        .query(PARAMETERS)
        .statuses(STATUSES)
        .answers::<Listed>(),
        Route::get_later("/v1/l4/flows/end", "endFlows", "Ends flows", end)
            .post()
            .role(Role::Operate)
            .takes::<Wanted>()
            .statuses(STATUSES)
            .answers::<EndedStatus>(),
    ]
}

/// Selects flows. A missing key matches any value.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FlowsToEnd")]
struct Wanted {
    virtual_server: Option<String>,
    /// The address of a member, with or without its port.
    member: Option<String>,
    #[schemars(schema_with = "ip_or_null")]
    client: Option<IpAddr>,
    /// Selects all flows; only without other keys.
    #[serde(default)]
    all: bool,
}

impl Wanted {
    fn of_query(ask: &Ask) -> Self {
        Self {
            virtual_server: ask.query.text("virtual_server").map(str::to_owned),
            member: ask.query.text("member").map(str::to_owned),
            client: ask.query.ip("client"),
            all: false,
        }
    }

    fn filter(&self, flows_max: usize) -> Result<FlowFilter, Problem> {
        let mut filter = FlowFilter {
            virtual_server: self.virtual_server.clone(),
            client: self.client,
            flows_max,
            ..FlowFilter::default()
        };
        let Some(member) = &self.member else { return Ok(filter) };
        match (member.parse::<SocketAddr>(), member.parse::<IpAddr>()) {
            (Ok(socket), _) => {
                filter.member_address = Some(socket.ip());
                filter.member_port = Some(socket.port());
            }
            (_, Ok(address)) => filter.member_address = Some(address),
            _ => {
                let detail = "a member is an address, with or without its port";
                return Err(Problem::bad_request(detail));
            }
        }
        Ok(filter)
    }

    fn is_any(&self) -> bool {
        self.virtual_server.is_none() && self.member.is_none() && self.client.is_none()
    }
}

/// The selected flows.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Flows")]
struct Listed {
    items: Vec<FlowStatus>,
    /// Whether the list was cut at `limit`, so more flows may exist.
    more: bool,
}

/// A flow: the packets of one connection.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Flow")]
struct FlowStatus {
    protocol: u8,
    virtual_server: Option<String>,
    client: String,
    destination: String,
    /// The source address that the member sees.
    source: String,
    target: String,
    member: Option<String>,
    state: &'static str,
    age_seconds: u64,
    idle_seconds: u64,
    packets_in: u64,
    bytes_in: u64,
    packets_out: u64,
    bytes_out: u64,
}

impl FlowStatus {
    fn of(flow: Flow) -> Self {
        let end = |end: End| member_label(end.address, Some(end.port).filter(|port| *port != 0));
        Self {
            protocol: flow.protocol,
            virtual_server: flow.virtual_server,
            client: end(flow.client),
            destination: end(flow.destination),
            source: end(flow.source),
            target: end(flow.target),
            member: flow.member.map(|member| member_label(member.address, member.port)),
            state: match flow.state {
                FlowState::Opening => "opening",
                FlowState::Open => "open",
                FlowState::Closing => "closing",
            },
            age_seconds: flow.age.as_secs(),
            idle_seconds: flow.idle.as_secs(),
            packets_in: flow.packets_in,
            bytes_in: flow.bytes_in,
            packets_out: flow.packets_out,
            bytes_out: flow.bytes_out,
        }
    }
}

/// The number of flows that were ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndedFlows")]
struct EndedStatus {
    flows: u64,
    resets: u64,
}

fn list(ask: Ask) -> Pin<Box<dyn Future<Output = Handled> + Send>> {
    Box::pin(async move {
        let flows_max = ask.query.number(&LIMIT);
        let filter = Wanted::of_query(&ask).filter(flows_max)?;
        let flows = flows(&ask.context)?.list(filter).await.map_err(unavailable)?;
        Answer::json(&Listed {
            more: flows.len() >= flows_max,
            items: flows.into_iter().map(FlowStatus::of).collect(),
        })
    })
}

fn end(ask: Ask) -> Pin<Box<dyn Future<Output = Handled> + Send>> {
    Box::pin(async move {
        let wanted: Wanted = ask.document()?;
        if wanted.is_any() != wanted.all {
            let problem = Problem::bad_request("say which flows end, or `{\"all\": true}`");
            return Err(problem.help("select flows by `virtual_server`, `member` and `client`"));
        }
        let filter = wanted.filter(LISTED_FLOWS_DEFAULT as usize)?;
        let ended = flows(&ask.context)?.end(filter).await.map_err(unavailable)?;
        let what = format_args!("ended {} flows, by {}", ended.flows, ask.caller);
        ask.context.events.info("packet path", what);
        let record = json!({
            "virtual_server": wanted.virtual_server,
            "member": wanted.member,
            "client": wanted.client,
            "all": wanted.all,
            "flows_ended": ended.flows,
        });
        let status = EndedStatus { flows: ended.flows, resets: ended.resets };
        Ok(Answer::json(&status)?.change(record))
    })
}

fn flows(context: &Context) -> Result<Flows, Problem> {
    context.observed.flows().ok_or_else(|| {
        Problem::not_found("no virtual server is served by packets")
            .help("`/v1/packet-path` says why")
    })
}

fn unavailable(error: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_addresses() {
        let filter = |member: &str| {
            let wanted = Wanted { member: Some(member.to_owned()), ..Wanted::default() };
            let filter = wanted.filter(9).map_err(|problem| problem.detail);
            filter.map(|it| (it.member_address.map(|it| it.to_string()), it.member_port))
        };
        assert_eq!(filter("[::1]:80"), Ok((Some("::1".to_owned()), Some(80))));
        assert_eq!(filter("10.0.0.1"), Ok((Some("10.0.0.1".to_owned()), None)));
        assert!(filter("a:1").is_err() && filter("").is_err());
    }
}
