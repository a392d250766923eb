//! The workload of a test for every product, and its load plan.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::asks::FirewallLoad;
use super::bed::Bed;
use super::https::TlsLoad;
use super::products::Guard;
use crate::load::udp::UdpPlan;
use crate::load::{Checksum, Expectation, Extent, Gzip, Http2Plan, Plan, RequestSpec, Target};

/// Rate at which the load opens connections. It is low enough for every product's accept queue.
pub const CONNECTIONS_OPENED_PER_SECOND: f64 = 10_000.0;
/// Time limit for opening a connection and for a response. A later response counts as an error.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for a product that runs slowly under a counting tool.
const COUNTED_TIMEOUT: Duration = Duration::from_secs(60);

/// A query without an answer after this time counts as lost. No product queues queries for longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Width of the intervals in which a timed workload counts transactions.
const TIMELINE_STEP: Duration = Duration::from_millis(100);

/// A load with a fixed number of requests instead of a fixed duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of requests.
    pub requests: u64,
    /// Whether one request is sent at a time, by each connection in turn.
    pub one_at_a_time: bool,
}

/// One measurement of one product.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Length of the requested object.
    pub body_bytes: u64,
    /// The requested paths.
    pub paths: &'static [Path],
    /// Values of the `Cookie` field, used in turn. If empty, every request has one cookie that no product knows.
    pub cookies: Vec<String>,
    /// Concurrent connections.
    pub connections: usize,
    /// Requests on a connection before it is closed; `None`: unlimited.
    pub requests_per_connection: Option<u64>,
    /// Requests per second; `None`: a connection sends the next request when it has the response.
    pub rate: Option<f64>,
    /// Duration of the load before the measurement.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub measure: Duration,
    /// A fixed number of requests. It replaces the duration, the rate of opening connections and the warm-up.
    pub count: Option<Count>,
    /// TLS on every connection.
    pub tls: Option<TlsLoad>,
    /// HTTP/2 with this many concurrent streams on a connection.
    pub streams: Option<usize>,
    /// Asks for gzip, and checks that the decompressed responses have this content.
    pub gzip: Option<Gzip>,
    /// Sends UDP queries of this size instead of HTTP requests. Each flow has one query outstanding.
    pub query_bytes: Option<u16>,
    /// Whether transactions are also counted over time, in intervals of [`TIMELINE_STEP`].
    pub is_timed: bool,
    /// Requests to one virtual server of a firewall. They replace those for `paths`.
    pub firewall: Option<FirewallLoad>,
    /// Whether metrics are scraped and the dashboard is followed meanwhile. Only for weir.
    pub is_observed: bool,
}

/// A path with the object's length in it, and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The text before the length.
    pub before: &'static str,
    /// The text after the length.
    pub after: &'static str,
    /// The weight of the path among all paths.
    pub weight: u32,
}

/// One path for all requests.
pub const PLAIN_PATHS: &[Path] = &[Path { before: "/", after: "", weight: 1 }];
/// The `Cookie` value if the workload has no cookies.
const OWN_COOKIE: &str = "session=0123456789abcdef";

impl Workload {
    /// The load plan for a product that listens on these addresses. Setting `stop` ends the load early.
    pub fn plan(&self, listen: &[SocketAddr], bed: &Bed, stop: &Arc<AtomicBool>) -> Plan {
        let opening_s = self.connections as f64 / CONNECTIONS_OPENED_PER_SECOND;
        let timed =
            (Extent::Time(self.measure), Duration::from_secs_f64(opening_s), self.warm_up, TIMEOUT);
        let counted = |count: Count| {
            (Extent::Requests(count.requests), Duration::ZERO, Duration::ZERO, COUNTED_TIMEOUT)
        };
        let (extent, ramp_up, warm_up, timeout) = self.count.map_or(timed, counted);
        let one_at_a_time = self.count.is_some_and(|count| count.one_at_a_time);
        Plan {
            targets: self.spread(listen).flat_map(|address| self.targets(address)).collect(),
            connections: self.connections,
            requests_per_connection: self.requests_per_connection,
            extent,
            rate: self.rate,
            one_at_a_time,
            ramp_up,
            warm_up,
            timeout,
            sources: bed.sources(),
            threads: if one_at_a_time { 1 } else { bed.cores.load.len().max(1) },
            cores: bed.cores.load.clone(),
            network_namespace: bed.client_namespace(),
            expect: Expectation {
                status: Some(200),
                body_bytes: self.gzip.is_none().then_some(self.body_bytes),
                checksum: Checksum::Ignored,
                gzip: self.gzip,
            },
            tls: self.tls.map(|tls| tls.plan(self.streams.is_some())),
            http2: self.streams.map(|streams| Http2Plan { streams }),
            timeline_every: self.is_timed.then_some(TIMELINE_STEP),
            stop: Arc::clone(stop),
        }
    }

    /// The load plan of a workload of UDP queries; `None` for other workloads.
    pub fn udp_plan(
        &self,
        listen: &[SocketAddr],
        bed: &Bed,
        stop: &Arc<AtomicBool>,
    ) -> Option<UdpPlan> {
        Some(UdpPlan {
            targets: listen.to_vec(),
            flows: self.connections,
            queries_per_flow: self.requests_per_connection,
            query_bytes: self.query_bytes?,
            answer_bytes: u16::try_from(self.body_bytes).ok()?,
            extent: Extent::Time(self.measure),
            rate: self.rate,
            warm_up: self.warm_up,
            timeout: ANSWER_TIMEOUT,
            sources: bed.sources(),
            threads: bed.cores.load.len().max(1),
            cores: bed.cores.load.clone(),
            network_namespace: bed.client_namespace(),
            stop: Arc::clone(stop),
        })
    }

    /// The same workload for the virtual server without a firewall, if the test measures both.
    pub fn unguarded(&self) -> Option<Self> {
        let load = self.firewall.filter(|load| load.is_beside_unguarded)?;
        let load = FirewallLoad { guard: Guard::Off, is_beside_unguarded: false, ..load };
        Some(Self { firewall: Some(load), ..self.clone() })
    }

    /// The first path, with the object's length.
    pub fn path(&self) -> String {
        let first = self.paths.first().map_or(("/", ""), |path| (path.before, path.after));
        format!("{}{}{}", first.0, self.body_bytes, first.1)
    }

    /// The virtual servers that receive connections: all of them, or with fewer connections than servers, one per
    /// connection, evenly spaced. A firewall workload uses only its own virtual server.
    fn spread(&self, listen: &[SocketAddr]) -> impl Iterator<Item = SocketAddr> {
        // Each virtual server of a firewall test has another guard.
        let one = self.firewall.and_then(|load| listen.get(load.guard as usize));
        let listen = one.map_or(listen, std::slice::from_ref);
        let count = listen.len().min(self.connections);
        (0..count).map(move |index| listen[index * listen.len() / count])
    }

    /// Requests like those of a browser, about 200 bytes each: every path with every cookie.
    fn targets(&self, address: SocketAddr) -> Vec<Target> {
        if let Some(firewall) = self.firewall {
            return firewall.targets(address, self.body_bytes);
        }
        let own = [OWN_COOKIE.to_owned()];
        let cookies = if self.cookies.is_empty() { &own[..] } else { &self.cookies };
        let mut targets = Vec::with_capacity(cookies.len() * self.paths.len());
        for cookie in cookies {
            let mut fields = vec![
                ("Accept", "text/html,application/json;q=0.9,*/*;q=0.8"),
                ("Accept-Language", "en-GB,en;q=0.8"),
                ("Cookie", cookie),
            ];
            fields.extend(self.gzip.map(|_| ("Accept-Encoding", "gzip")));
            for Path { before, after, weight } in self.paths {
                let path = format!("{before}{}{after}", self.body_bytes);
                let mut request = RequestSpec::get(address, &path);
                let owned = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
                request.fields = fields.iter().map(owned).collect();
                targets.push(request.into_target(*weight));
            }
        }
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::bed::{Cores, Network};

    #[test]
    fn plans() {
        let workload = Workload {
            body_bytes: 8_192,
            paths: PLAIN_PATHS,
            cookies: Vec::new(),
            connections: 20_000,
            requests_per_connection: None,
            rate: Some(4e3),
            warm_up: Duration::from_millis(100),
            measure: Duration::from_secs(2),
            count: None,
            tls: None,
            streams: None,
            gzip: None,
            query_bytes: None,
            is_timed: false,
            firewall: None,
            is_observed: false,
        };
        let listen: Vec<SocketAddr> =
            ["127.0.2.1:80", "127.0.2.2:80"].map(|text| text.parse().expect("an address")).into();
        let cores = Cores { product: vec![0], load: vec![1, 2] };
        let bed = Bed::make(Network::Loopback, cores).expect("nothing to make");
        let plan = workload.plan(&listen, &bed, &Arc::default());
        assert_eq!(plan.targets.len(), 2);
        let request = String::from_utf8(plan.targets[1].request.clone()).expect("text");
        assert!(request.starts_with("GET /8192 HTTP/1.1\r\nHost: 127.0.2.2:80\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n"));
        assert_eq!(plan.ramp_up, Duration::from_secs(2));
        assert_eq!(plan.threads, 2);
        assert_eq!(plan.expect.body_bytes, Some(8_192));
        let count = Some(Count { requests: 7, one_at_a_time: true });
        let counted = Workload { connections: 1, rate: None, count, ..workload };
        let plan = counted.plan(&listen, &bed, &Arc::default());
        assert_eq!((plan.extent, plan.targets.len()), (Extent::Requests(7), 1));
        assert!(plan.one_at_a_time && plan.warm_up.is_zero() && plan.ramp_up.is_zero());
        const PATHS: &[Path] = &[
            Path { before: "/a/", after: "", weight: 2 },
            Path { before: "/", after: ".png", weight: 1 },
        ];
        let cookies = ["SRV=one", "SRV=two"].map(String::from).to_vec();
        let varied = Workload { paths: PATHS, cookies, ..counted };
        let plan = varied.plan(&listen[..1], &bed, &Arc::default());
        let told = plan.targets.iter().map(|target| {
            let text = String::from_utf8(target.request.clone()).expect("text");
            let cookie = text.split("Cookie: ").nth(1).and_then(|rest| rest.lines().next());
            let path = text.split(' ').nth(1).map(str::to_owned);
            (path.expect("a path"), cookie.expect("a cookie").to_owned(), target.weight)
        });
        let expected = [
            ("/a/8192", "SRV=one", 2),
            ("/8192.png", "SRV=one", 1),
            ("/a/8192", "SRV=two", 2),
            ("/8192.png", "SRV=two", 1),
        ];
        let expected = expected.map(|(path, cookie, weight)| (path.into(), cookie.into(), weight));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn few_connections_are_spread_over_many_virtual_servers() {
        let check = |servers: u16, connections, expected: &[u16]| {
            let listen: Vec<SocketAddr> =
                (0..servers).map(|port| ([127, 0, 0, 1], port).into()).collect();
            let workload = Workload {
                body_bytes: 1,
                paths: PLAIN_PATHS,
                cookies: Vec::new(),
                connections,
                requests_per_connection: None,
                rate: None,
                warm_up: Duration::ZERO,
                measure: Duration::ZERO,
                count: None,
                tls: None,
                streams: None,
                gzip: None,
                query_bytes: None,
                is_timed: false,
                firewall: None,
                is_observed: false,
            };
            let ports: Vec<u16> = workload.spread(&listen).map(|address| address.port()).collect();
            assert_eq!(ports, expected);
        };
        check(3, 64, &[0, 1, 2]);
        check(1_000, 4, &[0, 250, 500, 750]);
        check(0, 4, &[]);
    }
}
