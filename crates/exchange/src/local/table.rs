//! A worker's view of the live table, used by each request.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{
    AccessFormat, AcmeChallenge, GivenFormat, HAND_OVERS_MAX, HttpSettings, ListenPoint, Page,
    RecentRequests, Service, Snapshot, VirtualServer, Waf,
};
use weir_core::expression::Fields;
use weir_http::h1::HeadLimits;
use weir_http::h2 as http2;
use weir_http::message::RequestHead;
use weir_tls::challenges::Challenges;

use crate::local::client_tls::ClientTls;
use crate::local::cookies::CookieKeeper;
use crate::local::gate::Gate;
use crate::local::member::LocalMember;
use crate::local::own_mark::OwnMark;
use crate::local::pool::LocalPool;
use crate::local::pools::{PoolInForce, Pools};
use crate::local::traffic::Traffic;
use crate::local::withheld_names::{Claims, WithheldNames};
use crate::shared::counters::{Own, VirtualServerCounters};
use crate::shared::live::{LivePool, LiveTable, LiveVirtualServer};
use crate::shared::server_tls::LiveTls;

/// A worker's view of one snapshot.
pub struct LocalTable {
    /// The number of the table.
    pub generation: u64,
    /// The snapshot itself.
    pub snapshot: Arc<Snapshot>,
    /// Whether a virtual server compresses responses.
    pub has_compression: bool,
    servers: HashMap<Arc<str>, Rc<LocalServer>, foldhash::fast::RandomState>,
    listeners: HashMap<ListenPoint, Rc<LocalServer>, foldhash::fast::RandomState>,
    pools: Pools,
    /// The fingerprint of the configuration with its present members.
    content: Rc<Cell<u64>>,
}

/// A worker's view of one virtual server in one snapshot.
pub struct LocalServer {
    /// State shared with other workers.
    pub live: Arc<LiveVirtualServer>,
    /// Counters of this worker.
    pub counters: Own<VirtualServerCounters>,
    /// Whether it changes responses independently of the request.
    pub edits_responses: bool,
    /// Whether it forwards requests unchanged: no setting reads or changes requests or responses.
    pub is_plain: bool,
    /// As [`Self::is_plain`], apart from [`Self::challenges`].
    pub is_plain_else: bool,
    /// The pending ACME challenges that it answers; `None`: it never answers any.
    pub challenges: Option<Arc<Challenges>>,
    /// Whether it relays whole connections.
    pub is_tcp: bool,
    /// Limits and timeouts.
    pub http: HttpSettings,
    /// The limits on heads, for the HTTP/1 codec.
    pub limits: HeadLimits,
    /// The limits for the HTTP/2 codec.
    pub http2_limits: http2::Limits,
    /// The pool for requests without another decision by a policy.
    pub pool: Rc<PoolInForce>,
    /// TLS of clients; `None`: clients use no TLS.
    pub tls: Option<Arc<LiveTls>>,
    /// Connection policies; `None`: all connections are allowed.
    pub gate: Option<Box<Gate>>,
    /// Processing of requests; `None`: they are forwarded unchanged.
    pub traffic: Option<Box<Traffic>>,
    /// Settings of the web application firewall; `None`: requests are not inspected.
    pub waf: Option<Arc<Waf>>,
    /// Protection of the application's cookies; `None`: none is needed.
    pub cookies: Option<Box<CookieKeeper>>,
    /// What members take from weir alone.
    pub claims: Claims,
    /// The virtual servers to which its rules hand requests over, by their indexes in the snapshot. They never form a
    /// cycle, which `Rc` could not free.
    pub hands_over_to: Box<[(usize, Rc<Self>)]>,
    /// The index in the snapshot.
    pub index: usize,
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
}

impl fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalServer").field("name", &self.live.name).finish_non_exhaustive()
    }
}

impl LocalServer {
    /// The maximum time of a tunnel without a byte in either direction.
    pub fn tunnel_timeout_ms(&self) -> u64 {
        let relay = self.settings().service.relay();
        relay.map_or(self.http.tunnel_timeout_ms, |relay| relay.idle_timeout_ms)
    }

    /// Its page for a status.
    pub fn error_page(&self, status: u16) -> Option<Page> {
        self.settings().error_pages.of(status).cloned()
    }

    /// A virtual server to which a rule hands requests over, by its index in the snapshot.
    pub fn other(&self, index: usize) -> Option<&Rc<Self>> {
        self.hands_over_to.iter().find(|(place, _)| *place == index).map(|(_, other)| other)
    }

    /// Whether a request is for a host whose TLS settings differ from those of the client's handshake.
    pub fn is_misdirected(&self, passed: &ClientTls, head: &RequestHead, input: &[u8]) -> bool {
        let Some(tls) = &self.tls else { return false };
        // A reload may have changed the accepted client certificates.
        if passed.is_of_others(&tls.lets_in) {
            return true;
        }
        if !tls.acceptor.has_names() {
            return false;
        }
        let host = String::from_utf8_lossy(head.host(input));
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        !tls.acceptor.is_same(passed.facts().sni, &host)
    }

    /// The settings of the virtual server.
    #[inline]
    pub fn settings(&self) -> &weir_config::snapshot::VirtualServer {
        &self.snapshot.virtual_servers[self.index]
    }
}

/// The overhead that each line of a header list counts (RFC 9113 section 10.5.1).
const HEADER_LINE_SIZE: u32 = 32;

/// Limits of HTTP/2 clients: the same head size as in HTTP/1; the overhead of lines is added.
fn http2_limits(settings: &HttpSettings) -> http2::Limits {
    let headers_max = u32::from(settings.headers_max);
    let list = settings.head_size_max.saturating_add(headers_max.saturating_mul(HEADER_LINE_SIZE));
    let default = http2::Limits::DEFAULT;
    http2::Limits {
        streams_max: settings.http2_streams_max,
        header_list_size_max: list,
        headers_max: settings.headers_max,
        header_list_hard_size_max: list.max(default.header_list_hard_size_max),
        header_block_size_max: list.max(default.header_block_size_max),
        resets: settings.http2_budgets.resets,
        stream_errors: settings.http2_budgets.client_errors,
        refused_streams: settings.http2_budgets.refused_streams,
        closed_streams: settings.http2_budgets.closed_streams,
        settings: settings.http2_budgets.settings,
        pings: settings.http2_budgets.pings,
        priorities: settings.http2_budgets.priorities,
        window_updates: settings.http2_budgets.window_updates,
        empty_data: settings.http2_budgets.empty_data,
        tiny_data: settings.http2_budgets.tiny_data,
        ..default
    }
}

/// The input for the virtual servers of a table.
struct Servers<'a> {
    table: &'a LiveTable,
    withheld: WithheldNames<'a>,
    own_mark: OwnMark,
    pools: &'a Pools,
    fields: Rc<RefCell<Fields>>,
    worker: usize,
}

impl Servers<'_> {
    /// All virtual servers, each after those to which it hands requests over.
    fn all(&self) -> Vec<Rc<LocalServer>> {
        let servers = &self.table.snapshot.virtual_servers;
        let ways: Vec<Vec<usize>> = servers.iter().map(|server| server.hands_over_to()).collect();
        let mut is_target = vec![false; servers.len()];
        ways.iter().flatten().for_each(|to| is_target[*to] = true);
        let mut made: Vec<Option<Rc<LocalServer>>> = vec![None; servers.len()];
        // Chains of hand-overs have at most this many steps and no cycle; the configuration was checked.
        for _ in 0..=HAND_OVERS_MAX {
            for (index, ways) in ways.iter().enumerate() {
                let other = |to: &usize| Some((*to, made[*to].clone()?));
                let others = || ways.iter().map(other).collect::<Option<_>>();
                if let (None, Some(others)) = (&made[index], others()) {
                    made[index] = Some(Rc::new(self.one(index, is_target[index], others)));
                }
            }
            if made.iter().all(Option::is_some) {
                break;
            }
        }
        debug_assert!(made.iter().all(Option::is_some), "a circle was refused");
        made.into_iter().flatten().collect()
    }

    fn one(
        &self,
        index: usize,
        is_target: bool,
        hands_over_to: Box<[(usize, Rc<LocalServer>)]>,
    ) -> LocalServer {
        let Self { table, pools, fields, worker, .. } = self;
        let snapshot = &table.snapshot;
        let server = &snapshot.virtual_servers[index];
        let limits = HeadLimits {
            head_size_max: server.http.head_size_max,
            headers_max: server.http.headers_max,
        };
        let cookies = CookieKeeper::of(server, table);
        let edits_responses =
            server.server_timing || server.compression.is_some() || cookies.is_some();
        let traffic = Traffic::of(table, (index, is_target), pools, fields).map(Box::new);
        let names = self.withheld.at(server, snapshot);
        let claims = Claims { names, own_mark: self.own_mark.clone() };
        let is_plain = !edits_responses
            && traffic.is_none()
            && server.waf.is_none()
            && claims.names.is_empty();
        let challenges = challenges(snapshot, server);
        LocalServer {
            live: Arc::clone(&table.virtual_servers[index]),
            counters: table.virtual_servers[index].counters.own(*worker),
            edits_responses,
            is_plain: is_plain && challenges.is_none(),
            is_plain_else: is_plain,
            challenges,
            is_tcp: server.service.is_tcp(),
            http: server.http,
            limits,
            http2_limits: http2_limits(&server.http),
            pool: Rc::clone(&pools[server.pool]),
            tls: table.tls[index].clone(),
            gate: Gate::of(table, index, pools, fields).map(Box::new),
            traffic,
            waf: server.waf.clone(),
            cookies,
            claims,
            hands_over_to,
            index,
            snapshot: Arc::clone(snapshot),
        }
    }
}

/// The challenges that a virtual server answers: only without TLS, because authorities connect in plain HTTP.
fn challenges(snapshot: &Snapshot, server: &VirtualServer) -> Option<Arc<Challenges>> {
    let acme = snapshot.acme.as_ref()?;
    let is_asked = acme.authority.challenge == AcmeChallenge::Http01
        && server.tls.is_none()
        && matches!(server.service, Service::Http);
    acme.challenges.as_ref().filter(|_| is_asked).map(Arc::clone)
}

impl LocalTable {
    /// The worker's view of `table`. Members in `previous` keep their idle connections.
    pub fn new(table: &LiveTable, previous: Option<&Self>, worker: usize) -> Self {
        let snapshot = &table.snapshot;
        let old_pools: HashMap<*const LivePool, Rc<LocalPool>> = previous
            .iter()
            .flat_map(|old| old.pools.iter())
            .map(|pool| (Arc::as_ptr(pool.live()), pool.now()))
            .collect();
        let content = Rc::new(Cell::new(snapshot.resolved.content));
        let pools: Pools = (0..)
            .zip(&table.pools)
            .map(|(index, live)| {
                let old = old_pools.get(&Arc::as_ptr(&live.pool)).map(|old| &**old);
                let seed = (table.generation << 32) ^ ((worker as u64) << 16) ^ index as u64;
                let view = LocalPool::new(snapshot, index, live, old, worker, seed);
                PoolInForce::new(view, &content)
            })
            .collect();
        let servers = Servers {
            table,
            withheld: WithheldNames::of(snapshot),
            own_mark: OwnMark::of(&table.stickies.own_keys),
            pools: &pools,
            fields: Rc::new(RefCell::new(Fields::new(Arc::clone(&snapshot.slots)))),
            worker,
        };
        let servers: HashMap<Arc<str>, Rc<LocalServer>, _> = servers
            .all()
            .into_iter()
            .map(|server| (Arc::clone(&server.live.name), server))
            .collect();
        let mut listeners = HashMap::default();
        for server in servers.values() {
            for point in &server.settings().listen {
                listeners.insert(point.clone(), Rc::clone(server));
            }
        }
        let has_compression = snapshot.virtual_servers.iter().any(|it| it.compression.is_some());
        let snapshot = Arc::clone(snapshot);
        let generation = table.generation;
        Self { generation, snapshot, has_compression, servers, listeners, pools, content }
    }

    /// The virtual server with this listener.
    pub fn server_at(&self, point: &ListenPoint) -> Option<&Rc<LocalServer>> {
        self.listeners.get(point)
    }

    /// The virtual server of this name, if the snapshot has it.
    pub fn server(&self, name: &str) -> Option<&Rc<LocalServer>> {
        self.servers.get(name)
    }

    /// The format of access log lines.
    pub fn access_format(&self) -> AccessFormat {
        self.snapshot.log.access_format
    }

    /// The settings of request records.
    pub fn recent_requests(&self) -> Option<RecentRequests> {
        self.snapshot.log.recent_requests
    }

    /// The custom format of the configuration.
    pub fn given_format(&self) -> &GivenFormat {
        &self.snapshot.log.given_format
    }

    /// All pools in the order of the snapshot.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// The members of some pools have changed, by their indexes, and nothing else: takes these pools from `table`. Returns
    /// the members that are gone: connections to them are not kept any more.
    pub fn take_members(
        &mut self,
        table: &LiveTable,
        changed: &[usize],
        worker: usize,
    ) -> Vec<Rc<LocalMember>> {
        let mut gone = Vec::new();
        for &index in changed {
            let pool = &self.pools[index];
            let before = pool.put(pool.now().with_members(&table.pools[index], worker));
            gone.extend(before.members.gone(&pool.now().members));
        }
        gone.iter().for_each(|member| member.retired.set(true));
        for traffic in self.servers.values().filter_map(|server| server.traffic.as_ref()) {
            traffic.take_members(table, changed);
        }
        self.snapshot = Arc::clone(&table.snapshot);
        self.content.set(table.snapshot.resolved.content);
        gone
    }

    /// The members of this table that `next` does not contain: connections to them are not kept any more.
    pub fn retire_members(&self, next: &Self) -> Vec<Rc<LocalMember>> {
        let kept: HashSet<*const LocalMember> =
            next.members().map(|member| Rc::as_ptr(&member)).collect();
        let is_gone = |member: &Rc<LocalMember>| !kept.contains(&Rc::as_ptr(member));
        let gone: Vec<Rc<LocalMember>> = self.members().filter(is_gone).collect();
        gone.iter().for_each(|member| member.retired.set(true));
        gone
    }

    /// The members of all pools.
    pub fn members(&self) -> impl Iterator<Item = Rc<LocalMember>> {
        self.pools.iter().flat_map(|pool| pool.now().members.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use weir_config::{Resolutions, parse};
    use weir_core::clock::Clock;

    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::arena::ConnectionKey;
    use crate::environment::Environment;
    use crate::local::pool::Preference;

    fn snapshot(text: &str) -> Arc<Snapshot> {
        let parsed = parse("test.yaml", text);
        let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        Arc::new(config.snapshot(&Resolutions::default()))
    }

    const HANDED_OVER: &str = "virtual_servers:\n  c: { pool: p }\n  b: { policies: [ to-c ] }\n  \
         a: { listen: 127.0.0.1:80, policies: [ to-b, to-c ] }\n  d: { listen: 127.0.0.1:81, pool: p }\n\
         policies:\n  to-b: { rules: [ { when: 'request.path == \"/b\"', then: [ { virtual_server: b } ] } ] }\n  \
         to-c: { rules: [ { then: [ { virtual_server: c } ] } ] }\n\
         pools: { p: { members: [ 127.0.0.1:9001 ] } }\n";

    #[test]
    fn each_finds_those_that_it_hands_requests_to() {
        let live = LiveTable::build(snapshot(HANDED_OVER), None, 1, &Environment::known());
        let table = LocalTable::new(&live, None, 0);
        let server = |name: &str| Rc::clone(table.server(name).expect("it is there"));
        let (a, b, c, d) = (server("a"), server("b"), server("c"), server("d"));
        assert!(Rc::ptr_eq(a.other(b.index).expect("b"), &b));
        assert!(Rc::ptr_eq(a.other(c.index).expect("c"), &c));
        assert!(Rc::ptr_eq(b.other(c.index).expect("c"), &c));
        assert!(a.other(d.index).is_none() && c.other(a.index).is_none());
        // Only virtual servers with settings that concern requests get `Traffic`.
        assert!(c.traffic.is_some() && d.traffic.is_none());
    }

    /// The members of pool `p` change while requests are open.
    #[test]
    fn what_is_under_way_keeps_the_members_it_began_with() {
        let of = |members: &str| {
            snapshot(&format!(
                "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p }}, b: {{ listen: 127.0.0.1:81, pool: q }} }}\n\
                 pools: {{ p: {{ members: [ {members} ] }}, q: {{ members: [ 127.0.0.1:9009 ] }} }}\n"
            ))
        };
        let now = Clock::at_us(0);
        let occupancy = |live: &LiveTable| -> Vec<u32> {
            live.pools[0].members.iter().map(|member| member.occupancy.load(Relaxed)).collect()
        };
        let first =
            LiveTable::build(of("127.0.0.1:1, 127.0.0.1:2"), None, 1, &Environment::known());
        let mut table = LocalTable::new(&first, None, 0);
        let server = Rc::clone(table.server("a").expect("it is there"));
        let other = table.server("b").expect("it is there").pool.now();
        let before = server.pool.now();
        assert_eq!(before.occupy(&[0], now, Preference::Any), Ok(1));
        assert!(before.newer().is_none());
        before.members[1].idle.borrow_mut().push(ConnectionKey::NOTHING);
        // The first member leaves, and another one takes its place in the list.
        let next = of("127.0.0.1:2, 127.0.0.1:3");
        let next = first.with_members(next, &[0], &Environment::known());
        let gone = table.take_members(&next, &[0], 0);
        assert_eq!(gone.iter().map(|it| &*it.live.label).collect::<Vec<_>>(), ["127.0.0.1:1"]);
        let after = server.pool.now();
        assert!(before.newer().is_some_and(|newer| Rc::ptr_eq(&newer, &after)));
        assert!(after.newer().is_none() && !Rc::ptr_eq(&before, &after));
        assert!(Rc::ptr_eq(&after.members[0], &before.members[1]), "with its idle connections");
        assert_eq!(after.members[0].idle.borrow().len(), 1);
        assert_eq!((after.member("127.0.0.1:1"), after.member("127.0.0.1:3")), (None, Some(1)));
        let of_other = table.server("b").expect("it is there").pool.now();
        assert!(Rc::ptr_eq(&other, &of_other), "another pool is not touched");
        // The index of the place is that of another member now; it is given back where it was taken.
        assert_eq!(occupancy(&next), [1, 0]);
        assert_eq!(after.occupy(&[0], now, Preference::Any), Ok(1));
        assert_eq!(occupancy(&next), [1, 1]);
        before.release(1);
        assert_eq!(occupancy(&next), [0, 1]);
        // The former view still serves who has it, by its own indexes.
        assert_eq!(before.occupy(&[0], now, Preference::Any), Ok(1));
        assert_eq!(occupancy(&next), [1, 1]);
        assert_eq!(server.pool.content(), next.snapshot.resolved.content);
    }

    #[test]
    fn only_a_server_without_tls_answers_challenges_and_only_of_http_01() {
        let answers = |challenge: &str, servers: &str, is_provided: bool| {
            let text = format!(
                "acme: {{ agree_to_terms: true, challenge: {challenge} }}\n\
                 virtual_servers:\n  {servers}\n  t: {{ listen: 127.0.0.1:443, pool: p, \
                 tls: {{ certificates: [ {{ acme: [ shop.example ] }} ] }} }}\n\
                 pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
            );
            let mut snapshot = Arc::unwrap_or_clone(snapshot(&text));
            if let Some(acme) = snapshot.acme.as_mut().filter(|_| is_provided) {
                acme.challenges = Some(Arc::default());
            }
            let live = LiveTable::build(Arc::new(snapshot), None, 1, &Environment::known());
            let table = LocalTable::new(&live, None, 0);
            let of = |name: &str| {
                let server = table.server(name).expect("it is there");
                assert_eq!(server.is_plain, server.is_plain_else && server.challenges.is_none());
                server.challenges.is_some()
            };
            (of("a"), of("t"))
        };
        let http = "a: { listen: 127.0.0.1:80, pool: p }";
        let tcp = "a: { listen: 127.0.0.1:80, type: tcp, pool: p }";
        assert_eq!(answers("http-01", http, true), (true, false));
        assert_eq!(answers("http-01", http, false), (false, false));
        assert_eq!(answers("tls-alpn-01", http, true), (false, false));
        assert_eq!(answers("http-01", tcp, true), (false, false));
    }

    #[test]
    fn only_a_server_that_changes_and_decides_nothing_is_plain() {
        let is_plain = |settings: &str| {
            let text = format!(
                "tracing: {{ otlp: \"http://127.0.0.1\" }}\n\
                 virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p, {settings} }} }}\n\
                 policies: {{ r: {{ rules: [ {{ then: [ {{ set_header: {{ X-A: b }} }} ] }} ] }} }}\n\
                 pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
            );
            let live = LiveTable::build(snapshot(&text), None, 1, &Environment::known());
            let table = LocalTable::new(&live, None, 0);
            table.server("a").expect("it is there").is_plain
        };
        assert!(is_plain("") && is_plain("http: { idle_timeout: 5s, body_size_max: 1KiB }"));
        for settings in [
            "policies: [ r ]",
            "waf: { mode: detect }",
            "compression: { brotli: off }",
            "server_timing: true",
            "request_id: {}",
            "tracing: {}",
            "persistence: { type: source_address }",
            "limits: { requests_per_second: 20 }",
            "http: { rewrite_location: true }",
            "client_address: { x_forwarded_proto: true }",
        ] {
            assert!(!is_plain(settings), "{settings}");
        }
    }

    #[test]
    fn a_snapshot_that_was_replaced_is_dropped_with_the_last_request() {
        let first = snapshot(HANDED_OVER);
        let gone = Arc::downgrade(&first);
        let live = LiveTable::build(first, None, 1, &Environment::known());
        let table = LocalTable::new(&live, None, 0);
        let under_way = Rc::clone(table.server("a").expect("it is there"));
        let next = LiveTable::build(snapshot(HANDED_OVER), Some(&live), 1, &Environment::known());
        let _in_force = LocalTable::new(&next, Some(&table), 0);
        drop((table, live));
        let other = under_way.other(1).expect("its own one is there as long as it is");
        assert_eq!(&*other.live.name, "b");
        assert!(gone.upgrade().is_some());
        drop(under_way);
        assert!(gone.upgrade().is_none(), "nothing holds it");
    }
}
