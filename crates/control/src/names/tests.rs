//! Names that are resolved by a small name server of the test.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::net::UdpSocket;

use super::*;
use crate::events::testing::Captured;
use crate::testing::PATIENCE;

/// The name server's answers for a name.
#[derive(Clone)]
enum Reply {
    Addresses(Vec<IpAddr>, u32),
    /// These addresses for A queries; AAAA queries get SERVFAIL.
    OnlyV4(Vec<IpAddr>, u32),
    /// This response code: 2 for SERVFAIL, 3 for NXDOMAIN.
    Code(u8),
    Silence,
}

/// A name server that answers A and AAAA queries over UDP (RFC 1035 section 4).
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    queries: Arc<Mutex<usize>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: socket.local_addr().unwrap(),
            replies: Arc::default(),
            queries: Arc::default(),
        };
        let (replies, queries) = (Arc::clone(&server.replies), Arc::clone(&server.queries));
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query).await {
                *lock(&queries) += 1;
                let answer = answer(&query[..length], &lock(&replies));
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, client).await;
                }
            }
        });
        server
    }

    fn set(&self, name: &str, reply: Reply) {
        lock(&self.replies).insert(name.to_owned(), reply);
    }

    /// Sets the address of the name.
    pub(crate) fn resolve(&self, name: &str, address: IpAddr) {
        self.set(name, Reply::Addresses(vec![address], 60));
    }

    /// Sets the address of the name, which is asked for again soon.
    pub(crate) fn resolve_for_now(&self, name: &str, address: IpAddr) {
        self.set(name, Reply::Addresses(vec![address], 1));
    }

    /// Removes the name.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.replies).remove(name);
    }

    fn names(&self, events: &Events) -> Names {
        Names::new(NameServers::Udp(self.address), events.clone())
    }
}

fn answer(query: &[u8], replies: &HashMap<String, Reply>) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    while query[at] != 0 {
        let label = &query[at + 1..at + 1 + usize::from(query[at])];
        name.push_str(&String::from_utf8_lossy(label).to_lowercase());
        name.push('.');
        at += 1 + label.len();
    }
    let question = &query[12..at + 5];
    let wants_v4 = question[question.len() - 3] == 1;
    let (code, addresses, ttl) = match replies.get(name.trim_end_matches('.')) {
        Some(Reply::Silence) => return None,
        Some(Reply::Code(code)) => (*code, Vec::new(), 0),
        Some(Reply::Addresses(all, ttl)) => {
            (0, all.iter().filter(|ip| ip.is_ipv4() == wants_v4).copied().collect(), *ttl)
        }
        Some(Reply::OnlyV4(all, ttl)) if wants_v4 => (0, all.clone(), *ttl),
        Some(Reply::OnlyV4(..)) => (2, Vec::new(), 0),
        None => (3, Vec::new(), 0),
    };
    let mut answer = query[..2].to_vec();
    answer.extend_from_slice(&[0x85, 0x80 | code, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    answer.extend_from_slice(question);
    for address in addresses {
        // The name as a pointer to the question, the type of the question, class IN.
        answer.extend_from_slice(&[0xc0, 12, 0, if wants_v4 { 1 } else { 28 }, 0, 1]);
        answer.extend_from_slice(&ttl.to_be_bytes());
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        answer.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        answer.extend_from_slice(&bytes);
    }
    Some(answer)
}

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into()
}

async fn next_change(names: &Names) {
    tokio::time::timeout(PATIENCE, names.changed()).await.expect("a change");
}

#[tokio::test]
async fn addresses_follow_the_ttl() {
    let (events, captured) = Captured::new();
    let server = Server::start().await;
    server.set("app.example", Reply::Addresses(vec![v4(2), v4(1), v6(1)], 1));
    let mut names = server.names(&events);
    names.follow(["app.example"].into_iter()).await;
    assert_eq!(names.resolutions()["app.example"], [v4(1), v4(2), v6(1)]);
    next_change(&names).await;

    server.set("app.example", Reply::Addresses(vec![v4(3)], 3_600));
    next_change(&names).await;
    assert_eq!(names.resolutions()["app.example"], [v4(3)]);
    assert_eq!(captured.lines(&events), ["info name app.example has other addresses: 192.0.2.3"]);

    // The TTL of one hour has not passed, so no query is sent.
    let asked = *lock(&server.queries);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(*lock(&server.queries), asked);

    // A reload sends queries at once, and drops removed names.
    server.set("app.example", Reply::Addresses(vec![v4(4)], 3_600));
    server.set("new.example", Reply::Addresses(vec![v6(9)], 3_600));
    names.follow(["app.example", "new.example"].into_iter()).await;
    next_change(&names).await;
    assert_eq!(names.resolutions()["new.example"], [v6(9)]);
    names.follow(["new.example"].into_iter()).await;
    assert_eq!(names.resolutions().len(), 1);
}

#[tokio::test]
async fn failures_keep_the_last_answer() {
    for failure in [Reply::Code(2), Reply::Code(3), Reply::Addresses(Vec::new(), 60)] {
        let (events, captured) = Captured::new();
        let server = Server::start().await;
        server.set("app.example", Reply::Addresses(vec![v4(1)], 1));
        let mut names = server.names(&events);
        names.follow(["app.example"].into_iter()).await;
        next_change(&names).await;
        server.set("app.example", failure);
        while names.answers()["app.example"].failure.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(names.resolutions()["app.example"], [v4(1)]);
        server.set("app.example", Reply::Addresses(vec![v4(2)], 60));
        next_change(&names).await;
        assert_eq!(names.resolutions()["app.example"], [v4(2)]);
        let lines = captured.lines(&events);
        let start = "warning name app.example cannot be resolved, its address stays in use: ";
        assert!(lines[0].starts_with(start), "{lines:?}");
        assert!(lines.contains(&"info name app.example is resolved again".to_owned()), "{lines:?}");
    }
}

/// A family whose query fails keeps its addresses. The other family is updated as usual.
#[tokio::test]
async fn one_family_fails() {
    let (events, captured) = Captured::new();
    let server = Server::start().await;
    server.set("app.example", Reply::Addresses(vec![v4(1), v6(1)], 1));
    server.set("v4.example", Reply::OnlyV4(vec![v4(9)], 1));
    let mut names = server.names(&events);
    names.follow(["app.example", "v4.example"].into_iter()).await;
    next_change(&names).await;
    assert_eq!(names.resolutions()["v4.example"], [v4(9)]);
    server.set("app.example", Reply::OnlyV4(vec![v4(2)], 1));
    while names.resolutions()["app.example"] != [v4(2), v6(1)] {
        next_change(&names).await;
    }
    server.set("app.example", Reply::Code(2));
    let whole = |line: &String| line.contains("app.example cannot be resolved");
    while !captured.lines(&events).iter().any(whole) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names.resolutions()["app.example"], [v4(2), v6(1)]);
    server.set("app.example", Reply::Addresses(vec![v4(3)], 60));
    while names.resolutions()["app.example"] != [v4(3)] {
        next_change(&names).await;
    }
    let lines = captured.lines(&events);
    let of = |name: &str| {
        let start = format!("name {name} ");
        let lines = lines.iter().filter(move |line| line.contains(&start));
        lines.map(|line| line.split(" (").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let app = of("app.example");
    let expected = [
        "warning name app.example is resolved in part, AAAA query failed, its IPv6 address stays in use: ",
        "info name app.example has other addresses: 192.0.2.2, 2001:db8::1",
        "warning name app.example cannot be resolved, its 2 addresses stay in use: A and AAAA queries failed: ",
        "info name app.example is resolved again",
        "info name app.example has other addresses: 192.0.2.3",
    ];
    assert_eq!(app.len(), expected.len(), "{app:#?}");
    for (line, start) in app.iter().zip(expected) {
        assert!(line.starts_with(start), "{line}");
    }
    let start =
        "warning name v4.example is resolved in part, AAAA query failed, it has no IPv6 address: ";
    let v4 = of("v4.example");
    assert!(v4.len() == 1 && v4[0].starts_with(start), "{v4:#?}");
}

#[tokio::test]
async fn a_start_does_not_wait_for_ever() {
    let (events, captured) = Captured::new();
    let server = Server::start().await;
    server.set("silent.example", Reply::Silence);
    server.set("app.example", Reply::Addresses(vec![v4(1)], 60));
    let mut names = server.names(&events);
    let first = names.follow(["silent.example", "app.example"].into_iter());
    tokio::time::timeout(PATIENCE, first).await.expect("an end of the wait");
    assert_eq!(names.resolutions()["app.example"], [v4(1)]);
    assert_eq!(names.resolutions()["silent.example"], [] as [IpAddr; 0]);
    let lines = captured.lines(&events);
    assert!(lines[0].starts_with("warning name silent.example "), "{lines:?}");
}

/// Names in the hosts file are resolved without a name server.
#[tokio::test]
async fn the_hosts_file_counts() {
    let (events, _) = Captured::new();
    let mut names = Names::new(NameServers::System, events);
    names.follow(["localhost"].into_iter()).await;
    assert!(names.resolutions()["localhost"].contains(&Ipv4Addr::LOCALHOST.into()));
}

#[test]
fn the_next_asking() {
    let seconds = Duration::from_secs;
    let check = |ttl: Option<u64>, failures, expected| {
        let pause = pause(ttl.map(seconds), failures, 0);
        assert_eq!(pause, seconds(expected), "TTL {ttl:?}, {failures} failures");
    };
    check(Some(60), 0, 60);
    check(Some(0), 0, 1);
    check(Some(1_000_000), 0, 3_600);
    check(None, 3, 4);
    check(None, 99, 30);
    // With an answer to only one of the queries, the shorter of the TTL and the retry pause counts.
    check(Some(1), 99, 1);
    check(Some(60), 3, 4);
    check(Some(60), 99, 30);
}

#[test]
fn pauses_double_up_to_a_bound() {
    let seconds = |failures| retry_pause(failures, 0).as_secs();
    assert_eq!([1, 2, 3, 4, 5, 6, 7, u32::MAX].map(seconds), [1, 2, 4, 8, 16, 30, 30, 30]);
    assert!(retry_pause(6, 255) > RETRY_MAX * 3 / 4 && retry_pause(6, 255) < RETRY_MAX);
}

/// DNS permits them (RFC 2181 section 11), and containers have such names.
#[tokio::test]
async fn names_with_an_underscore_are_resolved() {
    let (events, _) = Captured::new();
    let server = Server::start().await;
    let all = ["my_app", "web.my_project_default", "_http._tcp.example", "a-.b_"];
    for (name, last) in all.into_iter().zip(1..) {
        server.resolve(name, v4(last));
    }
    let mut names = server.names(&events);
    names.follow(all.into_iter()).await;
    let found = names.resolutions();
    for (name, last) in all.into_iter().zip(1..) {
        assert_eq!(found[name], [v4(last)], "{name}");
    }
}

/// As in the C library: neither the search list nor DNS is asked for a name in the hosts file, for no address family.
#[tokio::test]
async fn the_hosts_file_comes_before_the_search_list() {
    let (events, captured) = Captured::new();
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "192.0.2.8 db dotted.name in_hosts\n").unwrap();
    for name in ["db", "dotted.name", "in_hosts", "localhost"] {
        server.set(&format!("{name}.corp.example"), Reply::Addresses(vec![v4(9), v6(9)], 60));
        server.set(name, Reply::Addresses(vec![v4(9), v6(9)], 60));
    }
    let search = vec!["corp.example".to_owned()];
    let mut names =
        Names::new(NameServers::Given(server.address, search, hosts.clone()), events.clone());
    names.follow(["db", "dotted.name", "in_hosts", "localhost"].into_iter()).await;
    let found = names.resolutions();
    for name in ["db", "dotted.name", "in_hosts"] {
        assert_eq!(found[name], [v4(8)], "{name}");
    }
    let local: Vec<String> = found["localhost"].iter().map(IpAddr::to_string).collect();
    assert_eq!(local, ["127.0.0.1", "::1"]);
    assert_eq!(*lock(&server.queries), 0);
    assert_eq!(captured.lines(&events), [""; 0]);

    // Other names are looked up with the search list; a reload reads the hosts file again.
    server.set("other.corp.example", Reply::Addresses(vec![v4(7)], 60));
    std::fs::write(&hosts, "192.0.2.6 db\n").unwrap();
    names.follow(["db", "other"].into_iter()).await;
    let found = names.resolutions();
    assert_eq!((&found["db"][..], &found["other"][..]), (&[v4(6)][..], &[v4(7)][..]));
    assert_eq!(captured.lines(&events), ["info name db has other addresses: 192.0.2.6"]);
}

/// The search list ends at the first domain where the name has an address of any family, as in the C library: a stranger in
/// a later domain must not get a part of the traffic.
#[tokio::test]
async fn the_search_ends_where_the_name_exists() {
    let (events, _) = Captured::new();
    let server = Server::start().await;
    let search = vec!["prod.example".to_owned(), "corp.example".to_owned()];
    for (reply, expected) in [
        (Reply::Addresses(vec![v4(1)], 60), vec![v4(1)]),
        (Reply::Addresses(vec![v6(1)], 60), vec![v6(1)]),
        (Reply::OnlyV4(vec![v4(1)], 60), vec![v4(1)]),
        // The domain does not have it, or its servers are broken.
        (Reply::Addresses(vec![], 60), vec![v4(9), v6(9)]),
        (Reply::Code(3), vec![v4(9), v6(9)]),
        (Reply::Code(2), vec![v4(9), v6(9)]),
        // Whoever refuses to say may have it.
        (Reply::Code(5), vec![]),
    ] {
        server.set("db.prod.example", reply);
        server.set("db.corp.example", Reply::Addresses(vec![v4(9), v6(9)], 60));
        let hosts = PathBuf::from("/dev/null");
        let servers = NameServers::Given(server.address, search.clone(), hosts);
        let mut names = Names::new(servers, events.clone());
        names.follow(["db"].into_iter()).await;
        assert_eq!(names.resolutions()["db"], expected);
    }
}
