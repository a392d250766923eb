//! Views of virtual servers, and of the policies and certificates that they use.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_acme::board::{Board, Report};
use weir_api::certificate::ShownCertificate;
use weir_api::packet_path::PacketPath;
use weir_api::page::Page;
use weir_api::policy::{Policy, Rule};
use weir_api::virtual_server::VirtualServer;
use weir_config::snapshot::{self, Snapshot};
use weir_exchange::shared::live::LiveTable;
use weir_tls::identity::Identity;

use super::answer::Answer;
use super::ask::Ask;
use super::page::{PAGE, page};
use super::pools::clip;
use super::problem::Problem;
use super::route::{HandlerResult, Route};
use crate::status;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/virtual-servers", "listVirtualServers", "Virtual servers", list)
            .query(PAGE)
            .statuses(&[axum::http::StatusCode::NOT_FOUND])
            .answers::<Page<VirtualServer>>(),
        Route::get("/v1/virtual-servers/{name}", "getVirtualServer", "A virtual server", one)
            .answers::<VirtualServer>(),
        Route::get(
            "/v1/policies",
            "listPolicies",
            "Policies, and how often each rule matched",
            policies,
        )
        .query(PAGE)
        .statuses(&[axum::http::StatusCode::NOT_FOUND])
        .answers::<Page<Policy>>(),
        Route::get("/v1/policies/{name}", "getPolicy", "A policy", policy).answers::<Policy>(),
        Route::get(
            "/v1/certificates",
            "listCertificates",
            "Certificates that clients are shown",
            certificates,
        )
        .query(PAGE)
        .statuses(&[axum::http::StatusCode::NOT_FOUND])
        .answers::<Page<ShownCertificate>>(),
        Route::get(
            "/v1/packet-path",
            "getPacketPath",
            "Packet forwarding of virtual servers of type fast_l4",
            packet_path,
        )
        .answers::<Option<PacketPath>>(),
    ]
}

fn list(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let judge = observed.judge();
    let all = (0..).zip(&judge.table().virtual_servers);
    let page = page(
        &ask.query,
        all,
        |(_, live)| live.name.to_string(),
        |(index, _)| status::virtual_server(&judge, index, observed),
    )?;
    Answer::json(&page)
}

fn one(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let judge = observed.judge();
    let index = find_server(judge.table(), ask.name("name"))?;
    Answer::json(&status::virtual_server(&judge, index, observed))
}

/// The index of a virtual server of the configuration.
pub(super) fn find_server(table: &LiveTable, name: &str) -> Result<usize, Problem> {
    let servers = &table.virtual_servers;
    servers.iter().position(|live| *live.name == *name).ok_or_else(|| {
        let known = servers.iter().map(|live| &*live.name);
        Problem::unknown(format!("there is no virtual server `{}`", clip(name)), name, known)
    })
}

/// The names of all policies, in the order of the configuration.
fn policy_names(table: &LiveTable) -> Vec<Arc<str>> {
    let mut seen = BTreeSet::new();
    let names = table.snapshot.rules.iter().map(|rule| Arc::clone(&rule.policy));
    names.filter(|name| seen.insert(Arc::clone(name))).collect()
}

pub(super) fn policy_status(table: &LiveTable, name: &str) -> Policy {
    let uses = |server: &&snapshot::VirtualServer| {
        let connections = server.connection_policies.names();
        let requests = server.policies.iter().map(|policy| &*policy.name);
        requests.chain(connections).any(|used| used == name)
    };
    let rules = table.snapshot.rules.iter().zip(&*table.rules);
    Policy {
        name: name.to_owned(),
        virtual_servers: table
            .snapshot
            .virtual_servers
            .iter()
            .filter(uses)
            .map(|server| server.name.to_string())
            .collect(),
        rules: rules
            .filter(|(rule, _)| *rule.policy == *name)
            .map(|(rule, counts)| Rule {
                name: rule.rule.to_string(),
                matched: counts.totals().followed,
            })
            .collect(),
    }
}

fn policies(ask: &Ask) -> HandlerResult {
    let table = ask.context.observed.table();
    let names = policy_names(&table);
    let page = page(
        &ask.query,
        names.iter(),
        |name| name.to_string(),
        |name| policy_status(&table, name),
    )?;
    Answer::json(&page)
}

fn policy(ask: &Ask) -> HandlerResult {
    let table = ask.context.observed.table();
    let (name, names) = (ask.name("name"), policy_names(&table));
    if !names.iter().any(|known| **known == *name) {
        let detail = format!("there is no policy `{}` with rules", clip(name));
        return Err(Problem::unknown(detail, name, names.iter().map(|known| &**known)));
    }
    Answer::json(&policy_status(&table, name))
}

/// A certificate: its virtual server (`None`: the admin listeners), its number there, and the state of its renewal.
pub(super) type FoundCertificate<'a> = (Option<&'a str>, usize, Arc<Identity>, Option<Report>);

/// All certificates, those of admin listeners first.
pub(super) fn shown_certificates<'a>(
    snapshot: &'a Snapshot,
    board: &'a Board,
) -> impl Iterator<Item = FoundCertificate<'a>> {
    let of_admin = snapshot.admin.tls.iter().flat_map(|tls| &tls.identities).enumerate();
    let of_admin = of_admin.map(|(number, identity)| (None, number, Arc::clone(identity), None));
    let of_servers = snapshot.virtual_servers.iter().flat_map(|server| {
        let credentials = server.tls.iter().flat_map(|tls| &tls.credentials).enumerate();
        let shown = credentials.filter_map(|(number, it)| Some((number, it.current()?, it)));
        shown.map(|(number, identity, it)| {
            (Some(&*server.name), number, identity, status::report_of(it, board))
        })
    });
    of_admin.chain(of_servers)
}

fn certificates(ask: &Ask) -> HandlerResult {
    let table = ask.context.observed.table();
    let (snapshot, board) = (&table.snapshot, &ask.context.observed.obtained.acme);
    let all = shown_certificates(snapshot, board);
    let id = |(server, number, ..): &FoundCertificate<'_>| match server {
        Some(server) => format!("virtual server {server} {number}"),
        None => format!("admin {number}"),
    };
    let page = page(&ask.query, all, id, |found| ShownCertificate {
        id: id(&found),
        virtual_server: found.0.map(str::to_owned),
        certificate: status::certificate(&found.2, found.3),
    })?;
    Answer::json(&page)
}

fn packet_path(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    Answer::json(&status::packet_path(&observed.judge(), observed))
}
