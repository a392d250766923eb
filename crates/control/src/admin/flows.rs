//! `/l4/flows`: the flows of the packet path.
//!
//! | request | answer |
//! |---|---|
//! | `GET /l4/flows?virtual_server=NAME&member=ADDRESS&client=IP&max=NUMBER` | `{"flows": […], "more": false}` |
//! | `POST /l4/flows/end` | 200 with [`EndedStatus`] |
//!
//! The body of a POST selects the flows: `{"client": "192.0.2.7"}`, with the same keys as the query; `{"all": true}` for
//! all of them. A missing key matches any value. Like all changes it is accepted over a unix socket only.

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use weir_packet::{End, Flow, FlowFilter, FlowState};

use super::pools::{may_change, read_body};
use super::problem::Problem;
use super::{Context, Peer, json};
use crate::packets::{Flows, LISTED_FLOWS_MAX, member_label};

/// Flows in a list without `max`.
const LISTED_FLOWS_DEFAULT: usize = 1_000;

pub(super) fn routes() -> Router<Context> {
    Router::new().route("/l4/flows", get(list)).route("/l4/flows/end", post(end))
}

/// Which flows are meant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    virtual_server: Option<String>,
    member: Option<String>,
    client: Option<IpAddr>,
    max: Option<usize>,
    #[serde(default)]
    all: bool,
}

impl Wanted {
    fn of_query(query: &str) -> Result<Self, Problem> {
        let mut wanted = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |_| Problem::bad_query(format_args!("`{key}` has an invalid value"));
            match &*key {
                "virtual_server" => wanted.virtual_server = Some(value.into_owned()),
                "member" => wanted.member = Some(value.into_owned()),
                "client" => wanted.client = Some(value.parse().map_err(|_| wrong(()))?),
                "max" => wanted.max = Some(value.parse().map_err(|_| wrong(()))?),
                other => return Err(Problem::bad_query(format_args!("there is no `{other}`"))),
            }
        }
        Ok(wanted)
    }

    fn filter(&self) -> Result<FlowFilter, Problem> {
        let mut filter = FlowFilter {
            virtual_server: self.virtual_server.clone(),
            client: self.client,
            flows_max: self.max.unwrap_or(LISTED_FLOWS_DEFAULT).clamp(1, LISTED_FLOWS_MAX),
            ..FlowFilter::default()
        };
        if let Some(member) = &self.member {
            match (member.parse::<SocketAddr>(), member.parse::<IpAddr>()) {
                (Ok(socket), _) => {
                    filter.member_address = Some(socket.ip());
                    filter.member_port = Some(socket.port());
                }
                (_, Ok(address)) => filter.member_address = Some(address),
                _ => {
                    return Err(Problem::bad_query(
                        "a member is an address, with or without its port",
                    ));
                }
            }
        }
        Ok(filter)
    }

    fn is_any(&self) -> bool {
        self.virtual_server.is_none() && self.member.is_none() && self.client.is_none()
    }
}

/// The matching flows.
#[derive(Debug, Serialize)]
struct Listed {
    flows: Vec<FlowStatus>,
    /// The list is as long as `max`: there may be more.
    more: bool,
}

#[derive(Debug, Serialize)]
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

/// The answer to a POST.
#[derive(Debug, Serialize)]
struct EndedStatus {
    flows: u64,
    resets: u64,
}

async fn list(State(context): State<Context>, RawQuery(query): RawQuery) -> Response {
    let listed = async {
        let wanted = Wanted::of_query(query.as_deref().unwrap_or_default())?;
        let filter = wanted.filter()?;
        let flows_max = filter.flows_max;
        let flows = flows(&context)?.list(filter).await.map_err(unavailable)?;
        Ok::<Listed, Problem>(Listed {
            more: flows.len() >= flows_max,
            flows: flows.into_iter().map(FlowStatus::of).collect(),
        })
    };
    match listed.await {
        Ok(listed) => json(StatusCode::OK, &listed),
        Err(problem) => problem.into_response(),
    }
}

async fn end(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let ended = async {
        may_change(peer, &headers)?;
        let wanted: Wanted = serde_json::from_slice(&read_body(body).await?)
            .map_err(|error| Problem::bad_query(format_args!("{error}")))?;
        if wanted.is_any() != wanted.all {
            return Err(Problem::bad_query("say which flows end, or `{\"all\": true}`"));
        }
        let ended = flows(&context)?.end(wanted.filter()?).await.map_err(unavailable)?;
        let what = format_args!("ended {} flows, by {peer}", ended.flows);
        context.events.info("packet path", what);
        Ok::<EndedStatus, Problem>(EndedStatus { flows: ended.flows, resets: ended.resets })
    };
    match ended.await {
        Ok(ended) => json(StatusCode::OK, &ended),
        Err(problem) => problem.into_response(),
    }
}

fn flows(context: &Context) -> Result<Flows, Problem> {
    context.observed.flows().ok_or_else(|| Problem {
        status: StatusCode::NOT_FOUND,
        error: "no virtual server is served by packets".into(),
        help: Some("`/status` says under `packet_path` why".into()),
    })
}

fn unavailable(error: String) -> Problem {
    Problem { status: StatusCode::SERVICE_UNAVAILABLE, error, help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let filter = |query: &str| match Wanted::of_query(query).and_then(|it| it.filter()) {
            Ok(filter) => Ok((
                filter.virtual_server,
                filter.member_address.map(|it| it.to_string()),
                filter.member_port,
                filter.client.map(|it| it.to_string()),
                filter.flows_max,
            )),
            Err(problem) => Err(problem.error),
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(filter(""), Ok((None, None, None, None, LISTED_FLOWS_DEFAULT)));
        assert_eq!(
            filter("virtual_server=team%2Fweb&member=%5B%3A%3A1%5D%3A80&client=192.0.2.7&max=9"),
            Ok((text("team/web"), text("::1"), Some(80), text("192.0.2.7"), 9))
        );
        assert_eq!(filter("member=10.0.0.1"), Ok((None, text("10.0.0.1"), None, None, 1_000)));
        assert_eq!(filter("max=999999999"), Ok((None, None, None, None, LISTED_FLOWS_MAX)));
        for bad in ["client=a", "max=x", "member=a:1", "other=1"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
