//! Recent requests, and the stream of new requests and events.
//!
//! Requests may contain private data, so they need the role operate; secrets are masked. The explanation of a request needs the
//! role admin, as every explanation does.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use schemars::SchemaGenerator;
use weir_api::events::{Event, Missed};
use weir_api::page::Page;
use weir_api::recorded::{RecordedRequest, RequestExplanation, RequestSummary};
use weir_config::snapshot::Role;
use weir_exchange::shared::live::LiveTable;
use weir_explain::explain_recorded;
use weir_explain::recorded_request::{recorded, summary};
use weir_http::flaws::Flaw;
use weir_telemetry::records::record::Record;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter, Query, statuses};
use super::page::{AFTER, LIMIT, page};
use super::problem::Problem;
use super::route::{HandlerResult, Route, SchemaOf};
use super::servers::find_server;
use super::streams::{Producer, producer};
use crate::explanations;
use crate::requests::{FollowerMessage, NextForFollower};
use crate::time::rfc3339;

const VIRTUAL_SERVER: Parameter = Parameter {
    name: "virtual_server",
    kind: Kind::Text,
    summary: "Only requests that this virtual server got or decided about",
};
const STATUS: Parameter = Parameter {
    name: "status",
    kind: Kind::Status,
    summary: "Only answers with this status, or of this class: `404`, `5xx`",
};
const SLOW: Parameter = Parameter {
    name: "slow",
    kind: Kind::Word(&["true"]),
    summary: "Only requests that took as long as `recent_requests.slow`, or longer",
};
const MEMBER: Parameter = Parameter {
    name: "member",
    kind: Kind::Text,
    summary: "Only requests that this member got last: `10.0.0.11:80`",
};
const WAF: Parameter = Parameter {
    name: "waf",
    kind: Kind::Word(&["found", "blocked"]),
    summary: "Only requests that the web application firewall found something in, or blocked",
};
const CLIENT: Parameter =
    Parameter { name: "client", kind: Kind::Ip, summary: "Only requests of this client" };

/// The filters, and the parameters of a page.
const OF_LIST: &[Parameter] = &[LIMIT, AFTER, VIRTUAL_SERVER, STATUS, SLOW, MEMBER, WAF, CLIENT];

/// The filters, and the kinds of messages to follow.
const OF_STREAM: &[Parameter] = &[VIRTUAL_SERVER, STATUS, SLOW, MEMBER, WAF, CLIENT];

const EVENTS: &[(&str, SchemaOf)] = &[
    ("request", SchemaGenerator::subschema_for::<RequestSummary>),
    ("event", SchemaGenerator::subschema_for::<Event>),
    ("missed", SchemaGenerator::subschema_for::<Missed>),
];

/// Maximum number of requests per second in a stream; further ones are counted as missed.
const REQUESTS_PER_SECOND_MAX: u32 = 2_000;

const SECOND: Duration = Duration::from_secs(1);

/// The reason why no requests are recorded.
const OFF: &str = "set `recent_requests: {}` in the configuration to record requests";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/requests", "listRequests", "Recent requests, newest first", list)
            .role(Role::Operate)
            .query(OF_LIST)
            .statuses(&[StatusCode::NOT_FOUND])
            .answers::<Page<RequestSummary>>(),
        Route::get("/v1/requests/{id}", "getRequest", "What was recorded of a request", one)
            .role(Role::Operate)
            .answers::<RecordedRequest>(),
        Route::get(
            "/v1/requests/{id}/explanation",
            "explainRequest",
            "Why a recorded request went where it went",
            why,
        )
        .role(Role::Admin)
        .answers::<RequestExplanation>(),
        Route::stream(
            "/v1/logs",
            "followLogs",
            "Requests that are over and events of weir, as they come",
            EVENTS,
            follow,
        )
        .role(Role::Operate)
        .statuses(&[StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE])
        .query(OF_STREAM),
    ]
}

/// The filters for requests.
#[derive(Debug, Default)]
struct Filter {
    virtual_server: Option<String>,
    /// The first and the last status.
    status: Option<(u16, u16)>,
    is_slow: bool,
    member: Option<String>,
    waf: Option<bool>,
    client: Option<IpAddr>,
}

impl Filter {
    fn of(query: &Query) -> Self {
        let text = |parameter: &Parameter| query.text(parameter.name).map(str::to_owned);
        Self {
            virtual_server: text(&VIRTUAL_SERVER),
            status: query.text(STATUS.name).and_then(statuses),
            is_slow: query.text(SLOW.name).is_some(),
            member: text(&MEMBER),
            waf: query.text(WAF.name).map(|word| word == "blocked"),
            client: query.ip(CLIENT.name),
        }
    }

    /// Refuses a virtual server that does not exist, and a status that no answer has. Records of an earlier configuration can
    /// have others.
    fn must_be_possible(&self, table: &LiveTable, records: &[Arc<Record>]) -> Result<(), Problem> {
        if let Some(name) = &self.virtual_server
            && !records.iter().any(|record| is_of_server(record, name))
        {
            find_server(table, name)?;
        }
        let Some((from, to)) = self.status else { return Ok(()) };
        let has_unknown =
            table.snapshot.pools.iter().any(|it| it.lenient.have(Flaw::UnknownStatus));
        let mut possible = vec![101..=101, 200..=599];
        possible.extend(has_unknown.then_some(600..=999));
        if possible.iter().any(|range| from <= *range.end() && *range.start() <= to)
            || records.iter().any(|record| (from..=to).contains(&record.status))
        {
            return Ok(());
        }
        let further = if has_unknown { ", and 600 to 999 of members" } else { "" };
        let detail = format_args!("no answer has a status from {from} to {to}");
        Err(Problem::not_found(detail).help(format!("possible: 101, 200 to 599{further}")))
    }

    /// Whether a filter for requests is set.
    fn is_of_requests(&self) -> bool {
        let Self { virtual_server, status, is_slow, member, waf, client } = self;
        virtual_server.is_some()
            || status.is_some()
            || *is_slow
            || member.is_some()
            || waf.is_some()
            || client.is_some()
    }

    fn takes(&self, record: &Record) -> bool {
        let firewall = || record.notes.as_ref().and_then(|notes| notes.firewall.as_ref());
        let client = || {
            let decided = record.notes.as_ref().and_then(|notes| notes.decided.first());
            decided.and_then(|decided| decided.client).or(record.client)
        };
        self.virtual_server.as_ref().is_none_or(|name| is_of_server(record, name))
            && self.status.is_none_or(|(from, to)| (from..=to).contains(&record.status))
            && (!self.is_slow || record.is_slow)
            && self.member.as_ref().is_none_or(|name| record.member.as_deref() == Some(name))
            && self.client.is_none_or(|ip| client().is_some_and(|client| client.ip() == ip))
            && self.waf.is_none_or(|must_be_blocked| {
                firewall().is_some_and(|found| match found.outcome {
                    "blocked" => true,
                    "unjudged" => !must_be_blocked || found.status != 0,
                    outcome => !must_be_blocked && outcome != "passed",
                })
            })
    }
}

/// Whether a virtual server got a request, or decided about it.
fn is_of_server(record: &Record, name: &str) -> bool {
    *record.virtual_server == *name || record.entered_at.as_deref() == Some(name)
}

fn list(ask: &Ask) -> HandlerResult {
    let filter = Filter::of(&ask.query);
    let requests = &ask.context.observed.admin.requests;
    let all = requests.all(filter.is_slow);
    if all.is_empty() && !requests.is_on() {
        return Err(Problem::not_found("requests are not recorded").help(OFF));
    }
    filter.must_be_possible(&ask.context.observed.table(), &all)?;
    let wanted = all.into_iter().filter(|record| filter.takes(record));
    let name = |record: &Arc<Record>| record.id.to_string();
    Answer::json(&page(&ask.query, wanted, name, |record| summary(&record))?)
}

/// The record with the id in the path.
fn record_of(ask: &Ask) -> Result<Arc<Record>, Problem> {
    let requests = &ask.context.observed.admin.requests;
    let id = ask.name("id");
    requests.find(id).ok_or_else(|| match requests.is_on() {
        true => Problem::not_found(format_args!("there is no record of request {id}")).help(
            "it was not chosen by `recent_requests.sample`, or newer ones have taken its place",
        ),
        false => Problem::not_found("requests are not recorded").help(OFF),
    })
}

fn one(ask: &Ask) -> HandlerResult {
    let record = record_of(ask)?;
    Answer::json(&recorded(&record, &ask.context.observed.table().snapshot))
}

fn why(ask: &Ask) -> HandlerResult {
    let record = record_of(ask)?;
    let observed = &ask.context.observed;
    let _turn = observed.admin.explain();
    Answer::json(&explain_recorded(&observed.table(), &record, explanations::now()))
}

fn follow(ask: Ask) -> Result<Producer, Problem> {
    let filter = Filter::of(&ask.query);
    filter.must_be_possible(&ask.context.observed.table(), &[])?;
    let mut follower = ask.context.observed.admin.requests.follow();
    let mut pace = Pace::begin();
    Ok(producer(async move |sink| {
        while let Some(next) = follower.next().await {
            if let Some(count) = pace.missed() {
                sink.send("missed", &Missed { count }).await?;
            }
            match next {
                NextForFollower::One(FollowerMessage::Request(record)) if filter.takes(&record) => {
                    if pace.has_room() {
                        sink.send("request", &summary(&record)).await?;
                    }
                }
                NextForFollower::One(FollowerMessage::Event(event)) if !filter.is_of_requests() => {
                    let (level, text) = (event.level.to_owned(), event.text.clone());
                    let told = Event { time: rfc3339(event.unix_ms), level, text };
                    sink.send("event", &told).await?;
                }
                NextForFollower::One(_) => {}
                NextForFollower::Missed(count) => sink.send("missed", &Missed { count }).await?,
            }
        }
        Ok(())
    }))
}

/// The number of requests that a stream has sent in this second. It is limited, because the thread of the monitors writes them.
struct Pace {
    since: Instant,
    count: u32,
    left_out: u64,
}

impl Pace {
    fn begin() -> Self {
        Self { since: Instant::now(), count: 0, left_out: 0 }
    }

    /// Whether another request may be sent. If not, it is counted.
    fn has_room(&mut self) -> bool {
        if self.since.elapsed() >= SECOND {
            (self.since, self.count) = (Instant::now(), 0);
        }
        self.count += 1;
        let has_room = self.count <= REQUESTS_PER_SECOND_MAX;
        self.left_out += u64::from(!has_room);
        has_room
    }

    /// The number of omitted requests, after the second is over.
    fn missed(&mut self) -> Option<u64> {
        let is_told = self.left_out > 0 && self.since.elapsed() >= SECOND;
        is_told.then(|| std::mem::take(&mut self.left_out))
    }
}
