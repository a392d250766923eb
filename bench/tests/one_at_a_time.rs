//! A load that sends one request at a time: all connections are opened first, then used in turn.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_bench::load::{Checksum, Expectation, Extent, NoObserver, Plan, RequestSpec, run};

const CONNECTIONS: usize = 4;
const REQUESTS: u64 = 20;

/// Answers every request on a connection after a delay; reports its number when a request has
/// arrived, and holds `busy` until it answers.
fn serve(mut stream: TcpStream, number: usize, busy: &Mutex<()>, asked: &Sender<usize>) {
    let mut buffer = [0; 4_096];
    while let Ok(1..) = stream.read(&mut buffer) {
        let alone = busy.try_lock().expect("one request at a time");
        asked.send(number).expect("the test listens");
        std::thread::sleep(Duration::from_millis(1));
        // Before the answer: the next request may arrive before this thread continues.
        drop(alone);
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn connections_take_turns() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (asked, order) = mpsc::channel();
    let busy = Arc::new(Mutex::new(()));
    let server = std::thread::spawn(move || {
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let (stream, _) = listener.accept().expect("a connection");
                let (busy, asked) = (Arc::clone(&busy), asked.clone());
                std::thread::spawn(move || serve(stream, number, &busy, &asked))
            })
            .collect();
        connections.into_iter().for_each(|thread| thread.join().expect("its end"));
    });
    let plan = Plan {
        targets: vec![RequestSpec::get(address, "/").into_target(1)],
        connections: CONNECTIONS,
        requests_per_connection: None,
        extent: Extent::Requests(REQUESTS),
        rate: None,
        one_at_a_time: true,
        ramp_up: Duration::ZERO,
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(5),
        sources: Vec::new(),
        threads: 1,
        cores: Vec::new(),
        network_namespace: None,
        expect: Expectation {
            status: Some(200),
            body_bytes: Some(2),
            checksum: Checksum::Ignored,
            gzip: None,
        },
        tls: None,
        http2: None,
        timeline_every: None,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let outcome = run(&plan, &mut NoObserver).expect("a load");
    assert_eq!((outcome.requests, outcome.errors), (REQUESTS, 0));
    assert_eq!(outcome.connections_opened, CONNECTIONS as u64);
    server.join().expect("the server's end");
    let order: Vec<usize> = order.iter().collect();
    let (first, later) = order.split_at(CONNECTIONS);
    let mut sorted = first.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..CONNECTIONS).collect::<Vec<_>>());
    assert!(later.chunks(CONNECTIONS).all(|turn| turn == first), "{order:?}");
}
