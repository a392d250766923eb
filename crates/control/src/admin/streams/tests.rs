//! Streams from a client's view, over a connection in memory.

use aws_lc_rs::digest::{SHA256, digest};
use axum::Router;
use axum::middleware::from_fn_with_state;
use schemars::SchemaGenerator;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use weir_config::snapshot::{AdminUser, Snapshot};
use weir_dataplane::outside;
use weir_exchange::shared::live::LiveTable;

use super::super::connections::Connections;
use super::super::open_streams::{
    STREAMS_MAX, STREAMS_OF_OPERATORS_MAX, STREAMS_OF_READERS_MAX, STREAMS_PER_SOURCE_MAX, Streams,
};
use super::super::peer::{Credentials, NetworkPeer, Peer};
use super::super::route::{Route, SchemaOf};
use super::super::token::Token;
use super::super::{CONNECTION_TIME_MAX, Context, gate, serve_http};
use super::*;
use crate::events::testing::Captured;
use crate::testing::{PATIENCE, observed_of, pool, snapshot};

/// Capacity of a connection in bytes.
const CONNECTION_BYTES: usize = 64;

/// Numbers as events.
const NUMBERS: &[(&str, SchemaOf)] = &[("number", SchemaGenerator::subschema_for::<u64>)];

fn count(_: Ask) -> Result<Producer, Problem> {
    Ok(producer(async |sink| {
        for number in 0..3_u64 {
            sink.send("number", &number).await?;
        }
        Ok(())
    }))
}

fn count_for_ever(_: Ask) -> Result<Producer, Problem> {
    Ok(producer(async |sink| {
        for number in 0_u64.. {
            sink.send("number", &number).await?;
        }
        Ok(())
    }))
}

fn be_silent(_: Ask) -> Result<Producer, Problem> {
    Ok(producer(async |_sink| std::future::pending().await))
}

/// A listener without a socket.
struct Served {
    context: Context,
    begin: fn(Ask) -> Result<Producer, Problem>,
}

impl Served {
    fn new(begin: fn(Ask) -> Result<Producer, Problem>) -> Self {
        Self::with(snapshot(vec![pool("web", &[], &[])]), begin)
    }

    fn with(snapshot: Arc<Snapshot>, begin: fn(Ask) -> Result<Producer, Problem>) -> Self {
        let observed = Arc::new(observed_of(snapshot, 1));
        Self { context: Context { observed, events: Captured::new().0 }, begin }
    }

    /// A client that has requested the stream.
    async fn ask(&self, peer: Peer, fields: &str) -> DuplexStream {
        let (mut client, server) = duplex(CONNECTION_BYTES);
        let route = Route::stream("/numbers", "numbers", "Numbers", NUMBERS, self.begin);
        let context = self.context.clone();
        let router = Router::new()
            .route("/numbers", route.routing())
            .layer(from_fn_with_state(context.clone(), gate::pass))
            .with_state(context);
        let place = Arc::new(Connections::default().place(Source::of(&peer)).expect("a place"));
        tokio::spawn(async move { serve_http(server, peer, router, &place).await });
        let request = format!("GET /numbers HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    async fn ask_locally(&self) -> DuplexStream {
        self.ask(Peer::Local(None), "Connection: close\r\n").await
    }

    fn streams(&self) -> &Streams {
        &self.context.observed.admin.streams
    }
}

async fn read_all(mut client: DuplexStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Reads until this text has arrived.
async fn read_until(client: &mut DuplexStream, text: &str) -> String {
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(text) {
        let read = client.read_buf(&mut answer).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn events_and_the_end_come_in_order() {
    let answer = read_all(Served::new(count).ask_locally().await).await;
    assert!(answer.contains("\r\ncontent-type: text/event-stream\r\n"), "{answer}");
    assert!(answer.contains("\r\ncache-control: no-store\r\n"), "{answer}");
    let lines: Vec<_> = answer.lines().filter(|line| line.starts_with("data: ")).collect();
    assert_eq!(lines, ["data: 0", "data: 1", "data: 2", "data: {\"reason\":\"complete\"}"]);
    assert!(answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn the_end_of_the_process_is_told() {
    let served = Served::new(be_silent);
    let mut client = served.ask_locally().await;
    read_until(&mut client, ":\n\n").await;
    served.streams().end(StreamEndReason::HandedOver);
    assert!(read_all(client).await.contains("event: end\ndata: {\"reason\":\"handed_over\"}\n\n"));
    served.streams().ended().await;
    let late = read_all(served.ask_locally().await).await;
    assert!(late.contains("handed_over"), "{late}");
}

/// A stream does not lose the events before its end.
#[tokio::test]
async fn what_waits_is_told_before_the_end() {
    let served = Served::new(count);
    served.streams().end(StreamEndReason::Stopped);
    for _ in 0..20 {
        let answer = read_all(served.ask_locally().await).await;
        assert!(answer.contains("data: 0\n") && answer.contains("data: 2\n"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    let mut client = Served::new(be_silent).ask_locally().await;
    let begin = tokio::time::Instant::now();
    let comments = usize::try_from(3 * CONNECTION_TIME_MAX.as_secs() / KEEP_ALIVE.as_secs());
    for _ in 0..comments.unwrap() {
        read_until(&mut client, ":\n\n").await;
    }
    assert!(begin.elapsed() > 2 * CONNECTION_TIME_MAX);
}

/// The producer waits for the client, and the connection does not.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_closed() {
    let served = Served::new(count_for_ever);
    let mut client = served.ask_locally().await;
    read_until(&mut client, "data: 1\n").await;
    tokio::time::sleep(CONNECTION_TIME_MAX + Duration::from_secs(1)).await;
    assert_eq!(served.streams().free(), STREAMS_MAX);
    // The connection has the data before, and no end of the body.
    let rest = read_all(client).await;
    assert!(rest.len() <= CONNECTION_BYTES && !rest.contains("\r\n0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn streams_are_few_and_given_back() {
    let served = Served::new(be_silent);
    let mut clients = Vec::new();
    for number in 0..STREAMS_MAX {
        let process = i32::try_from(number / STREAMS_PER_SOURCE_MAX).ok();
        let peer = Peer::Local(Some(Credentials::of_user(0, process)));
        let mut client = served.ask(peer, "Connection: close\r\n").await;
        read_until(&mut client, ":\n\n").await;
        clients.push(client);
    }
    let refused = read_all(served.ask_locally().await).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("streams are open"));
    drop(clients);
    let gone = async {
        while served.streams().free() < STREAMS_MAX {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("all are given back");
    read_until(&mut served.ask_locally().await, ":\n\n").await;
}

#[tokio::test]
async fn one_source_leaves_streams_for_others() {
    let served = Served::with(snapshot(vec![pool("web", &[], &[])]), be_silent);
    let peer = |last: u8| {
        let address = std::net::SocketAddr::from(([127, 0, 0, last], 5));
        Peer::Network(NetworkPeer { address, is_loopback: true, certificate: None })
    };
    let mut clients = Vec::new();
    for _ in 0..STREAMS_PER_SOURCE_MAX {
        let mut client = served.ask(peer(1), "Connection: close\r\n").await;
        read_until(&mut client, ":\n\n").await;
        clients.push(client);
    }
    let refused = read_all(served.ask(peer(1), "Connection: close\r\n").await).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("of your address"),
        "{refused}"
    );
    read_until(&mut served.ask(peer(2), "Connection: close\r\n").await, ":\n\n").await;
    // Those of readers do not keep an admin of their address out.
    let source = || Source::of(&peer(1));
    assert!(served.streams().begin(source(), None).is_err());
    assert!(served.streams().begin(source(), Some(Role::Admin)).is_ok());
    clients.pop();
    let gone = async {
        loop {
            let mut client = served.ask(peer(1), "Connection: close\r\n").await;
            let mut status = [0; 12];
            client.read_exact(&mut status).await.expect("an answer");
            if status.ends_with(b"200") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("one is given back");
}

#[tokio::test]
async fn strangers_leave_streams_to_the_roles_above_them() {
    let served = Served::with(snapshot(vec![pool("web", &[], &[])]), be_silent);
    let stranger = |last: usize| {
        let last = u8::try_from(last).expect("a small number");
        let address = std::net::SocketAddr::from(([127, 0, 0, last], 5));
        Peer::Network(NetworkPeer { address, is_loopback: true, certificate: None })
    };
    let mut clients = Vec::new();
    for number in 0..STREAMS_OF_READERS_MAX {
        let mut client = served.ask(stranger(number + 1), "Connection: close\r\n").await;
        read_until(&mut client, ":\n\n").await;
        clients.push(client);
    }
    let refused = read_all(served.ask(stranger(99), "Connection: close\r\n").await).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("with your rights"),
        "{refused}"
    );
    let operators = STREAMS_OF_OPERATORS_MAX - STREAMS_OF_READERS_MAX;
    let begin = |role| served.streams().begin(Source::Process(Some(1), None), Some(role));
    let mut places = Vec::new();
    for _ in 0..operators {
        places.push(begin(Role::Operate).expect("a place"));
    }
    assert!(begin(Role::Operate).is_err() && begin(Role::Read).is_err());
    read_until(&mut served.ask_locally().await, ":\n\n").await;
    let of_admin = |process| {
        served.streams().begin(Source::Process(Some(0), Some(process)), Some(Role::Admin))
    };
    for process in 0..i32::try_from(STREAMS_MAX - STREAMS_OF_OPERATORS_MAX - 1).expect("few") {
        places.push(of_admin(process).expect("a place"));
    }
    // An operator's place is given back to operators.
    places.remove(0);
    assert!(begin(Role::Read).is_err());
    begin(Role::Operate).expect("the place that is free again");
}

/// A configuration in which a user has this role and this token.
fn with_user(token: &Token, role: Role) -> Arc<Snapshot> {
    let mut snapshot = Snapshot::clone(&snapshot(vec![pool("web", &[], &[])]));
    let hash = digest(&SHA256, token.expose().as_bytes());
    let user = AdminUser {
        name: "ann".into(),
        role,
        token_hashes: vec![hash.as_ref().try_into().unwrap()],
        certificates: Vec::new(),
    };
    snapshot.admin.users = vec![user];
    Arc::new(snapshot)
}

#[tokio::test(start_paused = true)]
async fn credentials_are_checked_again() {
    let token = Token::generate().unwrap();
    let served = Served::with(with_user(&token, Role::Operate), be_silent);
    let address = "192.0.2.1:5".parse().unwrap();
    let peer = Peer::Network(NetworkPeer { address, is_loopback: false, certificate: None });
    let fields = format!("Connection: close\r\nAuthorization: Bearer {}\r\n", token.expose());
    let replace = |snapshot| {
        let live =
            LiveTable::build(snapshot, Some(&served.context.observed.table()), 1, &outside());
        served.context.observed.set_table(Arc::new(live));
    };
    for (after, is_revoked) in [
        (with_user(&token, Role::Admin), false),
        (with_user(&token, Role::Read), false),
        (with_user(&Token::generate().unwrap(), Role::Admin), true),
        (snapshot(vec![pool("web", &[], &[])]), true),
    ] {
        replace(with_user(&token, Role::Operate));
        let mut client = served.ask(peer.clone(), &fields).await;
        read_until(&mut client, ":\n\n").await;
        replace(after);
        tokio::time::sleep(2 * CHECK_INTERVAL).await;
        if !is_revoked {
            read_until(&mut client, ":\n\n").await;
            continue;
        }
        let rest = read_all(client).await;
        assert!(rest.contains("data: {\"reason\":\"revoked\"}"), "{rest}");
    }
}
