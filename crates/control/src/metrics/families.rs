//! The table of all metrics. The names follow the conventions of Prometheus and OpenTelemetry: base units (seconds, bytes)
//! in the name, `_total` for counters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_acme::board::State;
use weir_config::snapshot::{DatedFile, NOBODY, RuleName};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::shared::counters::{MemberTotals, PoolTotals, VirtualServerTotals};
use weir_exchange::shared::live::{LiveMember, LiveTable};

use super::Kind::{Counter, Gauge, Histogram};
use super::{Description, Family, Kind, Samples};
use crate::health::{Condition, Judge};
use crate::member_state::{MemberState, administrative_state};
use crate::monitors::{Board, MonitorReport};
use crate::observed_state::ObservedState;
use crate::problems::serving;
use crate::token_keys::Fetches;

/// A virtual server with its counters, which are summed once per request for metrics.
pub struct ServerView {
    pub name: Arc<str>,
    health: Condition,
    totals: VirtualServerTotals,
    /// The earliest expiry of the server's certificates.
    expiry_unix_s: Option<u64>,
    /// Whether requests are inspected by a web application firewall.
    has_waf: bool,
    /// Whether rules replace text in bodies.
    rewrites_bodies: bool,
    is_relay: bool,
    is_of_datagrams: bool,
    /// The earliest expiry of the server's OCSP responses; 0: a response is missing.
    ocsp_expiry_unix_s: Option<u64>,
}

impl ServerView {
    pub fn all(judge: &Judge) -> Vec<Self> {
        let table = judge.table();
        let servers = table.virtual_servers.iter().zip(&table.snapshot.virtual_servers);
        servers
            .zip(judge.servers())
            .map(|((server, configured), (_, health))| {
                let shown: Vec<_> = configured.tls.iter().flat_map(|tls| tls.shown()).collect();
                let staples = shown.iter().filter_map(|identity| identity.staple.as_ref());
                let ocsp = staples.map(|staple| staple.until_unix_s().unwrap_or(0)).min();
                let expiry = shown.iter().map(|identity| identity.not_after_unix_s).min();
                Self {
                    name: Arc::clone(&server.name),
                    health: health.state,
                    totals: server.counters.totals(),
                    expiry_unix_s: expiry.map(|at_s| at_s.max(0) as u64),
                    has_waf: configured.waf.is_some(),
                    rewrites_bodies: configured.policies.iter().any(|it| it.edits_bodies()),
                    is_relay: configured.service.is_relay(),
                    is_of_datagrams: configured.service.sessions().is_some(),
                    ocsp_expiry_unix_s: ocsp.map(|at_s| at_s.max(0) as u64),
                }
            })
            .collect()
    }
}

/// A rule of a policy, and the number of times that it was followed.
pub struct RuleView {
    pub name: RuleName,
    followed: u64,
}

impl RuleView {
    pub fn all(table: &LiveTable) -> Vec<Self> {
        let rules = table.snapshot.rules.iter().zip(&*table.rules);
        rules
            .map(|(name, counts)| Self { name: name.clone(), followed: counts.totals().followed })
            .collect()
    }
}

/// A rule of the web application firewall with findings, and their number.
pub struct WafRuleView {
    pub number: u64,
    found: u64,
}

impl WafRuleView {
    pub fn all(table: &LiveTable) -> Vec<Self> {
        table.waf_rules.found().map(|(number, found)| Self { number, found }).collect()
    }
}

/// A check of the web application firewall with findings, and their number.
pub struct WafCheckView {
    pub name: &'static str,
    found: u64,
}

impl WafCheckView {
    pub fn all(table: &LiveTable) -> Vec<Self> {
        let found = table.waf_rules.found_by_checks();
        found.map(|(check, found)| Self { name: check.name(), found }).collect()
    }
}

/// A pool with its counters.
pub struct PoolView {
    pub name: Arc<str>,
    health: Condition,
    totals: PoolTotals,
    states: [u64; MemberState::ALL.len()],
    in_service: u64,
}

impl PoolView {
    pub fn all(judge: &Judge) -> Vec<Self> {
        let pools = judge.table().pools.iter().enumerate();
        pools
            .filter(|(_, live)| *live.pool.name != *NOBODY)
            .map(|(index, live)| {
                let mut states = [0; MemberState::ALL.len()];
                for member in &live.members {
                    let state = MemberState::of(member);
                    let index = MemberState::ALL.iter().position(|&other| other == state);
                    states[index.unwrap_or(0)] += 1;
                }
                Self {
                    name: Arc::clone(&live.pool.name),
                    health: judge.pool(index).state,
                    totals: live.pool.counters.totals(),
                    states,
                    in_service: judge.members(index).in_service as u64,
                }
            })
            .collect()
    }
}

/// A member with its counters.
pub struct MemberView {
    pub live: Arc<LiveMember>,
    totals: MemberTotals,
    state: MemberState,
    administrative: AdminState,
    weight: u16,
}

impl MemberView {
    pub fn all(table: &LiveTable) -> Vec<Self> {
        let pools = table.snapshot.pools.iter().zip(&table.pools);
        let members = pools.flat_map(|(pool, live)| pool.members.iter().zip(&live.members));
        members
            .map(|(member, live)| Self {
                live: Arc::clone(live),
                totals: live.counters.totals(),
                state: MemberState::of(live),
                administrative: administrative_state(member, live),
                weight: member.weight,
            })
            .collect()
    }
}

/// A monitor of a member.
pub struct MonitorView {
    pub pool: Arc<str>,
    pub member: Arc<str>,
    /// The index in the member's list of monitors, from 0.
    pub number: usize,
    pub report: MonitorReport,
}

impl MonitorView {
    pub fn all(table: &LiveTable, board: &Board) -> Vec<Self> {
        let members = table.pools.iter().flat_map(|pool| &pool.members);
        members
            .flat_map(|member| {
                let reports = board.of(&member.pool.name, &member.label).into_iter().enumerate();
                reports.map(|(number, report)| Self {
                    pool: Arc::clone(&member.pool.name),
                    member: Arc::clone(&member.label),
                    number,
                    report,
                })
            })
            .collect()
    }
}

pub(super) const fn family<T>(
    name: &'static str,
    kind: Kind,
    labels: &'static str,
    help: &'static str,
    samples: fn(&T, &mut Samples<'_>),
) -> Family<T> {
    Family { description: Description { name, kind, labels, help }, samples }
}

macro_rules! families {
    ($labels:literal; $($name:literal $kind:ident $(+ $extra:literal)? $help:literal $samples:expr;)*) => {
        &[$(family($name, $kind, concat!($labels $(, $extra)?), $help, $samples),)*]
    };
}

pub(super) use families;

pub(super) const VIRTUAL_SERVERS: &[Family<ServerView>] = families! { "virtual_server";
    "weir_virtual_server_health" Gauge
        "3 while the virtual server is up, 2 degraded, 1 failing (half of the requests or more fail), 0 down (no member in service)."
        |server, to| to.value(server.health.figure());
    "weir_virtual_server_connections_total" Counter
        "Client connections accepted."
        |server, to| to.value(server.totals.connections_accepted);
    "weir_virtual_server_connections_open" Gauge
        "Client connections open now."
        |server, to| to.gauge(server.totals.connections_open);
    "weir_virtual_server_connections_refused_total" Counter
        "Client connections that got 503 and were closed because limits.connections was reached."
        |server, to| to.value(server.totals.connections_refused);
    "weir_virtual_server_responses_compressed_total" Counter
        "Responses that were compressed."
        |server, to| to.value(server.totals.responses_compressed);
    "weir_virtual_server_compression_bytes_total" Counter + ",side"
        "Bytes of bodies before (side in) and after (side out) compression."
        |server, to| {
            to.labelled("side", "in", server.totals.compression_bytes_in);
            to.labelled("side", "out", server.totals.compression_bytes_out);
        };
    "weir_virtual_server_rewritten_bodies_total" Counter + ",outcome"
        "Responses to which a body rewrite applied: rewritten (outcome rewritten), unchanged because the body was encoded (encoded) or partial (part), or wholly or partly unchanged because it was too long (too_long). No sample without such rules."
        |server, to| if server.rewrites_bodies {
            to.labelled("outcome", "rewritten", server.totals.bodies_rewritten);
            to.labelled("outcome", "encoded", server.totals.bodies_encoded);
            to.labelled("outcome", "part", server.totals.bodies_part);
            to.labelled("outcome", "too_long", server.totals.bodies_too_long);
        };
    "weir_virtual_server_waf_requests_total" Counter + ",outcome"
        "Requests inspected by the web application firewall (outcome inspected). Of these: blocked (blocked), not blocked because of mode detect (detected), not completely inspected (unjudged). No sample without waf."
        |server, to| if server.has_waf {
            to.labelled("outcome", "inspected", server.totals.waf_inspected);
            to.labelled("outcome", "blocked", server.totals.waf_blocked);
            to.labelled("outcome", "detected", server.totals.waf_detected);
            to.labelled("outcome", "unjudged", server.totals.waf_unjudged);
        };
    "weir_virtual_server_tls_handshakes_total" Counter + ",result"
        "TLS handshakes of clients: full (result full), resumed (resumed), failed (failed), refused because of tls.handshakes_max (limited)."
        |server, to| {
            to.labelled("result", "full", server.totals.handshakes_full);
            to.labelled("result", "resumed", server.totals.handshakes_resumed);
            to.labelled("result", "failed", server.totals.handshakes_failed);
            to.labelled("result", "limited", server.totals.handshakes_limited);
        };
    "weir_virtual_server_certificate_expiry_timestamp_seconds" Gauge
        "The earliest expiry of its certificates, in seconds since 1970. No sample without TLS."
        |server, to| {
            if let Some(at_s) = server.expiry_unix_s {
                to.value(at_s);
            }
        };
    "weir_virtual_server_ocsp_expiry_timestamp_seconds" Gauge
        "The earliest expiry of its OCSP responses, in seconds since 1970; 0 if one is missing. No sample without ocsp."
        |server, to| {
            if let Some(at_s) = server.ocsp_expiry_unix_s {
                to.value(at_s);
            }
        };
    "weir_virtual_server_requests_total" Counter
        "Requests whose head was complete and well-formed."
        |server, to| to.value(server.totals.requests);
    "weir_virtual_server_requests_active" Gauge
        "Requests open now."
        |server, to| to.gauge(server.totals.requests_active);
    "weir_virtual_server_requests_malformed_total" Counter
        "Requests refused as malformed."
        |server, to| to.value(server.totals.requests_malformed);
    "weir_virtual_server_requests_path_refused_total" Counter
        "Requests refused by `http.path`, because common servers would interpret the path differently."
        |server, to| to.value(server.totals.requests_path_refused);
    "weir_virtual_server_timeouts_total" Counter + ",phase"
        "Clients dropped because a head (phase head) or a body (phase body) did not arrive in time."
        |server, to| {
            to.labelled("phase", "head", server.totals.header_timeouts);
            to.labelled("phase", "body", server.totals.body_timeouts);
        };
    "weir_virtual_server_client_aborts_total" Counter
        "Clients that closed the connection before their response was complete."
        |server, to| to.value(server.totals.client_aborts);
    "weir_virtual_server_tunnels_total" Counter
        "Connections that became tunnels (101)."
        |server, to| to.value(server.totals.tunnels);
    "weir_virtual_server_http2_connections_total" Counter
        "Client connections with HTTP/2."
        |server, to| to.value(server.totals.http2_connections);
    "weir_virtual_server_http2_errors_total" Counter
        "HTTP/2 client connections closed because the client violated the protocol."
        |server, to| to.value(server.totals.http2_errors);
    "weir_virtual_server_http2_floods_total" Counter + ",kind"
        "HTTP/2 client connections closed because of floods: reset, refused or closed streams (kind streams), useless frames (frames), endless header blocks (headers), memory of `data_plane.http2_memory` (memory)."
        |server, to| {
            to.labelled("kind", "streams", server.totals.http2_floods_streams);
            to.labelled("kind", "frames", server.totals.http2_floods_frames);
            to.labelled("kind", "headers", server.totals.http2_floods_headers);
            to.labelled("kind", "memory", server.totals.http2_floods_memory);
        };
    "weir_virtual_server_connections_limited_total" Counter
        "Client connections closed because of a limit on new connections: in total, per client, or of a rule."
        |server, to| to.value(server.totals.connections_limited);
    "weir_virtual_server_connections_ended_by_policy_total" Counter
        "Client connections that policies or allowed_clients closed or reset, and UDP sessions that allowed_clients refused."
        |server, to| to.value(server.totals.connections_ended_by_policy);
    "weir_virtual_server_requests_limited_total" Counter
        "Requests refused by a rate limit."
        |server, to| to.value(server.totals.requests_limited);
    "weir_virtual_server_requests_unauthenticated_total" Counter
        "Requests refused by authenticate: they had no valid credentials."
        |server, to| to.value(server.totals.requests_unauthenticated);
    "weir_virtual_server_authorisations_total" Counter + ",result"
        "Requests checked by an external service (authenticate with type external): allowed (result allowed), denied (denied), or the service failed (failed)."
        |server, to| {
            to.labelled("result", "allowed", server.totals.authorisations_allowed);
            to.labelled("result", "denied", server.totals.authorisations_denied);
            to.labelled("result", "failed", server.totals.authorisations_failed);
        };
    "weir_virtual_server_mirrored_requests_total" Counter + ",result"
        "Copies of requests (action mirror): answered by a member (result answered), failed (failed), or not sent because too many copies were open or weir had not kept the body (dropped)."
        |server, to| {
            to.labelled("result", "answered", server.totals.mirrors_answered);
            to.labelled("result", "failed", server.totals.mirrors_failed);
            to.labelled("result", "dropped", server.totals.mirrors_dropped);
        };
    "weir_virtual_server_password_checks_refused_total" Counter
        "Requests that got 503 because too many password checks were waiting, in total or for this client."
        |server, to| to.value(server.totals.password_checks_refused);
    "weir_virtual_server_requests_delayed_total" Counter
        "Requests delayed by a rate limit."
        |server, to| to.value(server.totals.requests_delayed);
    "weir_virtual_server_requests_ended_by_policy_total" Counter
        "Requests that policies answered, closed or reset."
        |server, to| to.value(server.totals.requests_ended_by_policy);
    "weir_virtual_server_requests_handed_over_total" Counter
        "Requests that rules handed to another virtual server, which counts them as its own."
        |server, to| to.value(server.totals.requests_handed_over);
    "weir_virtual_server_responses_replaced_total" Counter
        "Responses replaced by rules: of members, and weir's own."
        |server, to| to.value(server.totals.responses_replaced);
    "weir_virtual_server_rewrites_failed_total" Counter
        "Requests that a policy rewrote into an invalid request."
        |server, to| to.value(server.totals.rewrites_failed);
    "weir_virtual_server_persistence_kept_total" Counter
        "Responses from the client's persistent member."
        |server, to| to.value(server.totals.persistence_kept);
    "weir_virtual_server_persistence_moved_total" Counter
        "Responses from another member, because the client's persistent member was not available."
        |server, to| to.value(server.totals.persistence_moved);
    "weir_virtual_server_responses_total" Counter + ",class"
        "Responses sent, by class of the status, including weir's own."
        |server, to| {
            let totals = &server.totals;
            to.classes([
                totals.responses_1xx,
                totals.responses_2xx,
                totals.responses_3xx,
                totals.responses_4xx,
                totals.responses_5xx,
            ]);
        };
    "weir_virtual_server_relayed_connections_total" Counter + ",termination"
        "Connections (type tcp) or sessions (type udp), by the termination reason of the access log. No sample for other types."
        |server, to| if server.is_relay {
            let totals = &server.totals;
            for (termination, count) in [
                ("complete", totals.relays_complete),
                ("client_abort", totals.relays_client_abort),
                ("member_abort", totals.relays_member_abort),
                ("idle_timeout", totals.relays_idle_timeout),
                ("no_member", totals.relays_no_member),
                ("member_connect", totals.relays_member_connect),
                ("queue_timeout", totals.relays_queue_timeout),
                ("hello_timeout", totals.relays_hello_timeout),
                ("client_malformed", totals.relays_client_malformed),
                ("unknown_server_name", totals.relays_unknown_server_name),
                ("member_down", totals.relays_member_down),
                ("operator", totals.relays_operator),
                ("stopped", totals.relays_stopped),
            ] {
                to.labelled("termination", termination, count);
            }
        };
    "weir_virtual_server_relayed_connections_unserved_total" Counter
        "Connections (type tcp) that the member ended within 10 seconds without sending a byte, by a reset or in place of an answer. They also count by their termination."
        |server, to| if server.is_relay && !server.is_of_datagrams {
            to.value(server.totals.relays_unserved);
        };
    "weir_virtual_server_datagrams_total" Counter + ",what"
        "Datagrams of a virtual server of type udp: from clients (what received), to clients (sent), refused because of a limit, of no available member or of a broadcast or multicast address (refused), answers dropped because of amplification_max (answers_dropped)."
        |server, to| if server.is_of_datagrams {
            let totals = &server.totals;
            to.labelled("what", "received", totals.datagrams_received);
            to.labelled("what", "sent", totals.datagrams_sent);
            to.labelled("what", "refused", totals.datagrams_refused);
            to.labelled("what", "answers_dropped", totals.answers_dropped);
        };
    "weir_virtual_server_received_bytes_total" Counter
        "Bytes read from clients."
        |server, to| to.value(server.totals.bytes_received);
    "weir_virtual_server_sent_bytes_total" Counter
        "Bytes for clients: accepted by their sockets, or waiting for slow clients."
        |server, to| to.value(server.totals.bytes_sent);
    "weir_request_duration_seconds" Histogram
        "From the complete request head to the last byte of the response handed to the socket."
        |server, to| to.histogram(&server.totals.request_duration);
    "weir_authorisation_duration_seconds" Histogram
        "Time from the request to an external service (authenticate with type external) until its response or the timeout. Absent before the first such request."
        |server, to| {
            if server.totals.authorisation_duration.count() > 0 {
                to.histogram(&server.totals.authorisation_duration);
            }
        };
};

pub(super) const RULES: &[Family<RuleView>] = families! { "policy,rule";
    "weir_policy_rule_followed_total" Counter
        "Requests and responses for which the rule was followed."
        |rule, to| to.value(rule.followed);
};

pub(super) const WAF_RULES: &[Family<WafRuleView>] = families! { "rule";
    "weir_waf_rule_matches_total" Counter
        "Matches of logged rules of the web application firewall, by rule number, over all virtual servers. No sample for rules that never matched."
        |rule, to| to.value(rule.found);
};

pub(super) const WAF_CHECKS: &[Family<WafCheckView>] = families! { "check";
    "weir_waf_check_findings_total" Counter
        "Findings of checks of the web application firewall, by name, over all virtual servers. No sample for checks without findings."
        |check, to| to.value(check.found);
};

pub(super) const FILES: &[Family<DatedFile>] = families! { "file,kind";
    "weir_file_expiry_timestamp_seconds" Gauge
        "The earliest expiry in a file of the configuration, in seconds since 1970; kind: authority, certificate (for members and other servers), ocsp_response, revocation_list, token_keys. No sample for certificates for clients."
        |file, to| to.value(file.until_unix_s.max(0) as u64);
};

pub(super) const TOKEN_KEYS: &[Family<(Arc<str>, Fetches)>] = families! { "authentication";
    "weir_token_keys_fetched_timestamp_seconds" Gauge
        "The last time that the token keys of this authentication could be fetched, in seconds since 1970; 0: never."
        |(_, fetches), to| to.value(fetches.succeeded_unix_ms.unwrap_or(0) / 1_000);
};

pub(super) const POOLS: &[Family<PoolView>] = families! { "pool";
    "weir_pool_health" Gauge
        "3 while the pool is up, 2 degraded (members are missing, or 5% of requests fail), 1 failing (half of the requests or more fail), 0 down (no member in service)."
        |pool, to| to.value(pool.health.figure());
    "weir_pool_members" Gauge + ",state"
        "Members by health, independent of the administrative state: up, pending (waits for a first probe), down (failed its monitors), draining (by `drain_on` of a monitor), ejected (failed its requests)."
        |pool, to| for (state, &count) in MemberState::ALL.iter().zip(&pool.states) {
            to.labelled("state", state.as_str(), count);
        };
    "weir_pool_members_in_service" Gauge
        "Members that take new requests: up, enabled, and with a weight above 0."
        |pool, to| to.value(pool.in_service);
    "weir_pool_retries_total" Counter
        "Requests that were tried on a further member."
        |pool, to| to.value(pool.totals.retries);
    "weir_pool_no_member_total" Counter
        "Requests answered 503 because no member could take them."
        |pool, to| to.value(pool.totals.no_member);
    "weir_pool_unconnected_total" Counter
        "Attempts without a connection for a reason that is not the member's: no socket on this host, an address of `source` that it lacks, a full queue of connections."
        |pool, to| to.value(pool.totals.unconnected);
    "weir_pool_queue_requests" Gauge
        "Requests waiting in the pool's queue now."
        |pool, to| to.gauge(pool.totals.queue_length);
    "weir_pool_queued_total" Counter
        "Requests that have waited in the pool's queue."
        |pool, to| to.value(pool.totals.queued);
    "weir_pool_queue_timeouts_total" Counter
        "Requests that waited in the pool's queue until their timeout."
        |pool, to| to.value(pool.totals.queue_timeouts);
    "weir_pool_response_duration_seconds" Histogram
        "From the request handed to a member's socket to the response head, over all members."
        |pool, to| to.histogram(&pool.totals.response_duration);
};

pub(super) const MEMBERS: &[Family<MemberView>] = families! { "pool,member";
    "weir_member_up" Gauge
        "1 while the member is up by monitors and traffic, else 0. It gets traffic if it is enabled as well."
        |member, to| to.value(u64::from(member.state == MemberState::Up));
    "weir_member_state" Gauge + ",state"
        "1 for the member's current state: up, pending, down, draining or ejected."
        |member, to| for state in MemberState::ALL {
            to.labelled("state", state.as_str(), u64::from(state == member.state));
        };
    "weir_member_administrative_state" Gauge + ",state"
        "1 for the member's administrative state: enabled, drain or disabled."
        |member, to| for state in [AdminState::Enabled, AdminState::Drain, AdminState::Disabled] {
            to.labelled("state", state.as_str(), u64::from(state == member.administrative));
        };
    "weir_member_administrative_override" Gauge
        "1 while the administrative state was set at run time and overrides the file, else 0."
        |member, to| to.value(u64::from(member.live.state_override().is_some()));
    "weir_member_weight" Gauge
        "Share of the pool's traffic, relative to the other members."
        |member, to| to.value(u64::from(member.weight));
    "weir_member_requests_total" Counter
        "Requests for which the member was selected, including retries and failed connection attempts."
        |member, to| to.value(member.totals.requests);
    "weir_member_requests_active" Gauge
        "Requests open at the member now."
        |member, to| to.gauge(member.totals.requests_active);
    "weir_member_connections_total" Counter
        "Connections opened to the member."
        |member, to| to.value(member.totals.connections_opened);
    "weir_member_connections_open" Gauge
        "Connections open to the member now, idle ones included."
        |member, to| to.gauge(member.totals.connections_open);
    "weir_member_connections_idle" Gauge
        "Idle connections kept for reuse now."
        |member, to| to.gauge(member.totals.connections_idle);
    "weir_member_failures_total" Counter + ",kind"
        "Connections that could not be opened (kind connect) and responses that were malformed, cut short or late, or relayed connections that the member ended at once without a byte (kind response)."
        |member, to| {
            to.labelled("kind", "connect", member.totals.connect_failures);
            to.labelled("kind", "response", member.totals.response_failures);
        };
    "weir_member_flawed_responses_total" Counter + ",kind"
        "Responses accepted from the member in spite of a flaw (see lenient): kind repeated_content_length, both_framings, chunk_size_spaces, bare_line_feeds, control_characters, unknown_status or repeated_chunked."
        |member, to| {
            let totals = &member.totals;
            for (kind, count) in [
                ("repeated_content_length", totals.flawed_repeated_content_length),
                ("both_framings", totals.flawed_both_framings),
                ("chunk_size_spaces", totals.flawed_chunk_size_spaces),
                ("bare_line_feeds", totals.flawed_bare_line_feeds),
                ("control_characters", totals.flawed_control_characters),
                ("unknown_status", totals.flawed_unknown_status),
                ("repeated_chunked", totals.flawed_repeated_chunked),
            ] {
                to.labelled("kind", kind, count);
            }
        };
    "weir_member_ejections_total" Counter
        "Ejections of the member by passive marking."
        |member, to| to.value(member.totals.ejections);
    "weir_member_responses_total" Counter + ",class"
        "Responses of the member, by class of the status."
        |member, to| {
            let totals = &member.totals;
            to.classes([
                totals.responses_1xx,
                totals.responses_2xx,
                totals.responses_3xx,
                totals.responses_4xx,
                totals.responses_5xx,
            ]);
        };
    "weir_member_received_bytes_total" Counter
        "Bytes read from the member."
        |member, to| to.value(member.totals.bytes_received);
    "weir_member_sent_bytes_total" Counter
        "Bytes accepted by the member's sockets."
        |member, to| to.value(member.totals.bytes_sent);
    "weir_member_response_duration_seconds" Histogram
        "From the request handed to the socket to the response head. Only with metrics.latency_histograms: member."
        |member, to| if let Some(times) = member.live.response_histogram() {
            to.histogram(&times);
        };
};

pub(super) const MONITORS: &[Family<MonitorView>] = families! { "pool,member,monitor,type";
    "weir_monitor_up" Gauge
        "1 while the member is up by this monitor, else 0."
        |monitor, to| to.value(u64::from(monitor.report.health == Health::Up));
    "weir_monitor_probes_total" Counter + ",result"
        "Probes by result, pass or fail."
        |monitor, to| {
            to.labelled("result", "pass", monitor.report.passes);
            to.labelled("result", "fail", monitor.report.failures);
        };
};

pub(super) const PROCESS: &[Family<ObservedState>] = families! { "";
    "weir_log_lines_total" Counter
        "Access log lines written."
        |observed, to| to.value(observed.logs.access.lines_written.load(Relaxed));
    "weir_clients_forgotten_total" Counter + "table"
        "Clients that a full table of limits or persistence has forgotten early or not stored: raise entries_max."
        |observed, to| {
            let table = observed.table();
            to.labelled("table", "limits", table.limit_losses());
            to.labelled("table", "persistence", table.stickies.losses());
        };
    "weir_policy_lines_dropped_total" Counter
        "Lines of the policy action `log` that were lost because the event log was too slow."
        |observed, to| to.value(observed.workers.totals().policy_lines_dropped);
    "weir_log_lines_dropped_total" Counter + "reason"
        "Access log lines lost because the log was too slow (reason full) or could not be written (reason write)."
        |observed, to| {
            to.labelled("reason", "full", observed.workers.totals().log_lines_dropped);
            to.labelled("reason", "write", observed.logs.access.lines_lost.load(Relaxed));
        };
    "weir_waf_log_lines_total" Counter
        "WAF log lines written."
        |observed, to| to.value(observed.logs.waf.lines_written.load(Relaxed));
    "weir_waf_log_lines_dropped_total" Counter + "reason"
        "WAF log lines lost because the log was too slow (reason full) or could not be written (reason write)."
        |observed, to| {
            to.labelled("reason", "full", observed.workers.totals().waf_log_lines_dropped);
            to.labelled("reason", "write", observed.logs.waf.lines_lost.load(Relaxed));
        };
    "weir_audit_log_lines_total" Counter
        "Audit log lines written."
        |observed, to| to.value(observed.logs.audit.lines_written.load(Relaxed));
    "weir_audit_log_lines_dropped_total" Counter + "reason"
        "Audit log lines lost because the log was too slow (reason full) or could not be written (reason write)."
        |observed, to| {
            to.labelled("reason", "full", observed.admin.audit.dropped());
            to.labelled("reason", "write", observed.logs.audit.lines_lost.load(Relaxed));
        };
    "weir_trace_spans_exported_total" Counter
        "Spans that the collector of traces has taken."
        |observed, to| to.value(observed.logs.spans.exported.load(Relaxed));
    "weir_trace_spans_dropped_total" Counter + "reason"
        "Spans lost because the exporter was too slow (reason full), the collector could not be reached (reason failed) or did not accept them (reason refused)."
        |observed, to| {
            to.labelled("reason", "full", observed.workers.totals().spans_dropped);
            to.labelled("reason", "failed", observed.logs.spans.failed.load(Relaxed));
            to.labelled("reason", "refused", observed.logs.spans.refused.load(Relaxed));
        };
    "weir_socket_failures_total" Counter
        "Connections that this host could not accept or open, because descriptors, ports or memory were exhausted."
        |observed, to| to.value(observed.workers.totals().socket_failures);
    "weir_admin_connections_turned_away_total" Counter
        "Admin connections closed at once because there were too many."
        |observed, to| to.value(observed.admin.turned_away.load(Relaxed));
    "weir_admin_connections_displaced_total" Counter
        "Admin connections that were closed while they waited for a request, to make room for another one."
        |observed, to| to.value(observed.admin.displaced.load(Relaxed));
    "weir_admin_requests_limited_total" Counter
        "Admin requests answered 429 because their source sent too many, or had too many failed logins."
        |observed, to| to.value(observed.admin.requests_limited.load(Relaxed));
    "weir_admin_logins_failed_total" Counter
        "Admin requests with an unknown token or client certificate."
        |observed, to| to.value(observed.admin.logins_failed.load(Relaxed));
    "weir_compression_reduced_total" Counter + "how"
        "Responses compressed at a lower level than configured (how level) or not at all (how skipped), because a worker was overloaded."
        |observed, to| {
            let totals = observed.workers.totals();
            to.labelled("how", "level", totals.compression_reduced);
            to.labelled("how", "skipped", totals.compression_skipped);
        };
    "weir_compression_memory_bytes" Gauge
        "Upper bound of the memory that currently compressed responses use: encoders and buffered bodies."
        |observed, to| to.value(observed.workers.totals().compression_memory_bytes);
    "weir_worker_connections_total" Counter + "worker"
        "Client connections by the worker that accepted them; the kernel distributes them."
        |observed, to| {
            for worker in 0..observed.workers.workers() {
                let connections = observed.workers.of(worker).connections.get();
                to.labelled("worker", &worker.to_string(), connections);
            }
        };
    "weir_connections_leaving" Gauge
        "Client connections that are being closed: the client still receives its last response, or still sends."
        |observed, to| to.gauge(observed.workers.totals().connections_leaving);
    "weir_member_connections_leaving" Gauge
        "HTTP/2 member connections that are being closed: the member still receives the last data."
        |observed, to| to.gauge(observed.workers.totals().member_connections_leaving);
    "weir_http2_memory_bytes" Gauge
        "Memory that counts toward data_plane.http2_memory: what HTTP/2 clients make the workers hold beyond 64 KiB for each connection."
        |observed, to| to.gauge(observed.workers.totals().http2_memory_bytes);
    "weir_waf_held_bytes" Gauge
        "Bytes of bodies that are held until the web application firewall has judged them and the member has them, with the memory for decoding them."
        |observed, to| to.gauge(observed.workers.totals().waf_held_bytes);
    "weir_waf_long_inspections_total" Counter + "result"
        "Inspections that took more than a turn of their worker. They went to a thread for inspections at once (moved), or their worker kept them at first, because the queue for these threads was full or there were none (kept)."
        |observed, to| {
            let totals = observed.workers.totals();
            to.labelled("result", "moved", totals.waf_inspections_moved);
            to.labelled("result", "kept", totals.waf_inspections_kept);
        };
    "weir_waf_lost_inspections_total" Counter
        "Inspections that took more than a turn of their worker, and ended without a verdict after a panic."
        |observed, to| to.value(observed.workers.totals().waf_inspections_lost);
    "weir_waf_long_inspections_pending" Gauge
        "Inspections that took more than a turn of their worker, and have not ended."
        |observed, to| to.gauge(observed.workers.totals().waf_inspections_away);
    "weir_spliced_bytes_total" Counter
        "Bytes of relayed connections and tunnels that the kernel moved from socket to socket, in both directions."
        |observed, to| to.value(observed.workers.totals().bytes_spliced);
    "weir_datagrams_lost_total" Counter
        "Datagrams that the kernel refused (a full socket, no memory, a firewall), or that were too long for the route."
        |observed, to| to.value(observed.workers.totals().datagrams_lost);
    "weir_udp_sockets" Gauge
        "Descriptors that UDP sessions use now."
        |observed, to| to.value(observed.workers.totals().udp_sockets);
    "weir_udp_sockets_max" Gauge
        "Descriptors that UDP sessions may use, in all workers together (data_plane.udp_descriptors_max). 0: no virtual server has type udp."
        |observed, to| to.value(observed.workers.totals().udp_sockets_max);
    "weir_udp_sessions_without_descriptor_total" Counter
        "UDP sessions refused because sessions used all descriptors that they may use."
        |observed, to| to.value(observed.workers.totals().udp_share_exceeded);
    "weir_worker_loop_turns_total" Counter
        "Iterations of the workers' event loops."
        |observed, to| to.value(observed.workers.totals().loop_turns);
    "weir_worker_panics_total" Counter
        "Panics of workers; each one closed the connections of one worker."
        |observed, to| to.value(observed.workers.totals().panics);
    "weir_workers_ended_total" Counter
        "Workers that ended for good, because they could not recover from a panic. The other workers serve in their place."
        |observed, to| to.value(observed.workers_ended.load(Relaxed));
    "weir_workers" Gauge
        "Worker threads."
        |observed, to| to.value(observed.table().workers() as u64);
    "weir_ocsp_fetches_total" Counter + "result"
        "Requests to OCSP responders: a valid response (result success), or none (failure)."
        |observed, to| {
            to.labelled("result", "success", observed.obtained.ocsp.succeeded.load(Relaxed));
            to.labelled("result", "failure", observed.obtained.ocsp.failed.load(Relaxed));
        };
    "weir_acme_orders_total" Counter + "result"
        "Orders for ACME certificates, by result: success or failure."
        |observed, to| {
            to.labelled("result", "success", observed.obtained.acme.counters.succeeded.load(Relaxed));
            to.labelled("result", "failure", observed.obtained.acme.counters.failed.load(Relaxed));
        };
    "weir_acme_certificates" Gauge + "state"
        "Certificates by ACME by state: ready, ordering, failing (the last order failed), or waiting (for another order)."
        |observed, to| {
            for state in State::ALL {
                to.labelled("state", state.as_str(), observed.obtained.acme.count(state) as u64);
            }
        };
    "weir_acme_renewal_timestamp_seconds" Gauge
        "The earliest planned renewal of a certificate by ACME, in seconds since 1970. In the past: it is under way, or has failed. No sample without such a certificate."
        |observed, to| {
            let at_s = observed.obtained.acme.earliest_renewal_unix_s();
            if let Some(at_s) = at_s.and_then(|at_s| u64::try_from(at_s).ok()) {
                to.value(at_s);
            }
        };
    "weir_token_key_fetches_total" Counter + "result"
        "Fetches of token keys: success or failure."
        |observed, to| {
            to.labelled("result", "success", observed.obtained.token_keys.succeeded.load(Relaxed));
            to.labelled("result", "failure", observed.obtained.token_keys.failed.load(Relaxed));
        };
    "weir_config_reloads_total" Counter + "result"
        "Reloads that took effect (result success) or were refused (result failure)."
        |observed, to| {
            to.labelled("result", "success", observed.reloads.succeeded.load(Relaxed));
            to.labelled("result", "failure", observed.reloads.failed.load(Relaxed));
        };
    "weir_config_last_reload_successful" Gauge
        "1 if the last reload took effect or there was none, else 0."
        |observed, to| to.value(u64::from(observed.reloads.last_succeeded.load(Relaxed)));
    "weir_config_last_reload_success_timestamp_seconds" Gauge
        "When the current configuration was read, in seconds since 1970."
        |observed, to| to.seconds(observed.reloads.last_success_unix_ms.load(Relaxed));
    "weir_config_version" Gauge
        "The active version of the overlay (run-time changes of the configuration); 0: none."
        |observed, to| to.value(observed.changes.in_force());
    "weir_config_unconfirmed" Gauge
        "1 while a version of the overlay waits for its confirmation, else 0."
        |observed, to| {
            to.value(u64::from(observed.changes.history().unconfirmed().is_some()));
        };
    "weir_config_waiting" Gauge
        "1 while a new configuration waits for the first probes of its members, else 0."
        |observed, to| to.value(u64::from(observed.waiting().is_some()));
    "weir_health" Gauge
        "3 while weir serves without a problem, 2 degraded, 1 starting or draining, 0 down (no virtual server serves)."
        |observed, to| to.value(serving(observed, &observed.judge()).figure());
    "weir_draining" Gauge
        "1 while the process is stopping, else 0."
        |observed, to| to.value(u64::from(observed.draining.load(Relaxed)));
    "weir_build_info" Gauge + "version"
        "Always 1; the version is in the label."
        |_, to| to.labelled("version", env!("CARGO_PKG_VERSION"), 1);
    "process_start_time_seconds" Gauge
        "When the process started, in seconds since 1970."
        |observed, to| to.seconds(observed.started_unix_ms);
};
