//! The flows of the packet path.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use axum::http::StatusCode;
use serde_json::json;
use weir_api::flows::{EndedFlows, Flow, Flows, FlowsToEnd};
use weir_config::snapshot::Role;
use weir_packet::{End, FlowFilter, FlowState};

use super::Context;
use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::problem::Problem;
use super::route::{HandlerResult, Route};
use crate::packets::{self, LISTED_FLOWS_MAX, member_label};

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
        .answers::<Flows>(),
        Route::get_later("/v1/l4/flows/end", "endFlows", "Ends flows", end)
            .post()
            .role(Role::Operate)
            .takes::<FlowsToEnd>()
            .statuses(STATUSES)
            .answers::<EndedFlows>(),
    ]
}

/// The flows that a query selects.
fn of_query(ask: &Ask) -> FlowsToEnd {
    FlowsToEnd {
        virtual_server: ask.query.text("virtual_server").map(str::to_owned),
        member: ask.query.text("member").map(str::to_owned),
        client: ask.query.ip("client"),
        all: false,
    }
}

fn filter(wanted: &FlowsToEnd, flows_max: usize) -> Result<FlowFilter, Problem> {
    let mut filter = FlowFilter {
        virtual_server: wanted.virtual_server.clone(),
        client: wanted.client,
        flows_max,
        ..FlowFilter::default()
    };
    let Some(member) = &wanted.member else { return Ok(filter) };
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

fn is_any(wanted: &FlowsToEnd) -> bool {
    let FlowsToEnd { virtual_server, member, client, all: _ } = wanted;
    virtual_server.is_none() && member.is_none() && client.is_none()
}

fn shown(flow: weir_packet::Flow) -> Flow {
    let end = |end: End| member_label(end.address, Some(end.port).filter(|port| *port != 0));
    let state = match flow.state {
        FlowState::Opening => "opening",
        FlowState::Open => "open",
        FlowState::Closing => "closing",
    };
    Flow {
        protocol: flow.protocol,
        virtual_server: flow.virtual_server,
        client: end(flow.client),
        destination: end(flow.destination),
        source: end(flow.source),
        target: end(flow.target),
        member: flow.member.map(|member| member_label(member.address, member.port)),
        state: state.to_owned(),
        age_seconds: flow.age.as_secs(),
        idle_seconds: flow.idle.as_secs(),
        packets_in: flow.packets_in,
        bytes_in: flow.bytes_in,
        packets_out: flow.packets_out,
        bytes_out: flow.bytes_out,
    }
}

fn list(ask: Ask) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>> {
    Box::pin(async move {
        let flows_max = ask.query.number(&LIMIT);
        let filter = filter(&of_query(&ask), flows_max)?;
        let flows = flows(&ask.context)?.list(filter).await.map_err(unavailable)?;
        Answer::json(&Flows {
            more: flows.len() >= flows_max,
            items: flows.into_iter().map(shown).collect(),
        })
    })
}

fn end(ask: Ask) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>> {
    Box::pin(async move {
        let wanted: FlowsToEnd = ask.document()?;
        if is_any(&wanted) != wanted.all {
            let problem = Problem::bad_request("say which flows end, or `{\"all\": true}`");
            return Err(problem.help("select flows by `virtual_server`, `member` and `client`"));
        }
        let filter = filter(&wanted, LISTED_FLOWS_DEFAULT as usize)?;
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
        let status = EndedFlows { flows: ended.flows, resets: ended.resets };
        Ok(Answer::json(&status)?.change(record))
    })
}

fn flows(context: &Context) -> Result<packets::Flows, Problem> {
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
            let wanted = FlowsToEnd { member: Some(member.to_owned()), ..FlowsToEnd::default() };
            let filter = filter(&wanted, 9).map_err(|problem| problem.detail);
            filter.map(|it| (it.member_address.map(|it| it.to_string()), it.member_port))
        };
        assert_eq!(filter("[::1]:80"), Ok((Some("::1".to_owned()), Some(80))));
        assert_eq!(filter("10.0.0.1"), Ok((Some("10.0.0.1".to_owned()), None)));
        assert!(filter("a:1").is_err() && filter("").is_err());
    }
}
