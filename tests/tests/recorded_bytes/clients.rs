//! Clients of several kinds, whose requests have tags.

use std::net::SocketAddr;

use serde_json::Value;
use weir_testing::Random;
use weir_tests::client::Client;
use weir_tests::http2::{Frame, Peer, code};

use crate::told::tag;

/// The record that a request must have.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The possible statuses.
    statuses: [u64; 2],
    /// Whether its request line is recorded.
    pub has_line: bool,
    /// Whether weir gets to see it: a reset can overtake it.
    pub is_sure: bool,
}

impl Expected {
    fn status(status: u64) -> Self {
        Self { statuses: [status; 2], has_line: true, is_sure: true }
    }

    fn refused(status: u64, has_line: bool) -> Self {
        Self { has_line, ..Self::status(status) }
    }

    /// Whether a record is as expected.
    pub fn fits(&self, record: &Value) -> bool {
        let status = record["status"].as_u64();
        self.has_line
            && record["method"].is_string()
            && status.is_some_and(|status| self.statuses.contains(&status))
    }
}

/// The requests that a client has sent, by their tags.
type Sent = Vec<(String, Expected)>;

/// A kind of client: its server, its number, and the number of its requests.
type Kind = fn(SocketAddr, usize, usize) -> Sent;

/// All kinds of clients.
pub const KINDS: [Kind; 6] =
    [one_by_one, pipelined, on_streams, refused, refused_on_streams, leaving];

/// The path of an ordinary request, and the status of its response.
fn path(random: &mut Random) -> (&'static str, u64) {
    let paths = [("plain", 200), ("answered", 410), ("rewritten", 200), ("fails", 200)];
    paths[random.below(paths.len())]
}

/// A head with the tag in each part. Its length differs, so that heads end at other places of buffers. Values of cookies are
/// masked wherever they stand, so they are longer than the tag.
fn head(method: &str, path: &str, tag: &str, random: &mut Random) -> String {
    let pad = tag.repeat(random.below(20));
    format!(
        "{method} /{path}/{tag}?q={tag} HTTP/1.1\r\nHost: {tag}.example\r\nX-Tag: {tag}\r\n\
         Cookie: c=c{tag}; STAY=s{tag}\r\nX-Pad: {pad}\r\nUser-Agent: {tag}\r\n"
    )
}

fn one_by_one(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    let mut connection = Client::connect(address);
    for number in 0..count {
        let tag = tag(client, number);
        let (path, status) = path(&mut random);
        let body = tag.repeat(random.below(100));
        // A member that fails is replaced only for requests without a body.
        let (method, body) = if path == "fails" { ("GET", "") } else { ("POST", &*body) };
        let head = head(method, path, &tag, &mut random);
        connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        let response = connection.response();
        response.assert_status(status as u16);
        assert_eq!(response.text(), tag);
        sent.push((tag, Expected::status(status)));
        // weir has answered without the body.
        if response.head.has_token("connection", "close") {
            connection = Client::connect(address);
        }
    }
    sent
}

fn pipelined(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    let mut connection = Client::connect(address);
    for first in (0..count).step_by(6) {
        let mut text = String::new();
        let batch: Vec<usize> = (first..count.min(first + 6)).collect();
        for number in &batch {
            let tag = tag(client, *number);
            let (path, status) = path(&mut random);
            text += &(head("GET", path, &tag, &mut random) + "\r\n");
            sent.push((tag, Expected::status(status)));
        }
        connection.send(text);
        for number in batch {
            assert_eq!(connection.response().text(), tag(client, number));
        }
    }
    sent
}

/// The lines of a head of HTTP/2 with the tag in each of them.
fn lines<'a>(path: &'a str, tag: &'a str, pad: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", tag),
        ("x-tag", tag),
        ("cookie", "a=b"),
        ("cookie", pad),
        ("user-agent", tag),
        ("x-pad", &pad[1..]),
    ]
}

/// Streams at a time, of which some are reset by the client.
fn on_streams(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    let mut peer = Peer::connect(address);
    for first in (0..count).step_by(10) {
        let mut open = Vec::new();
        for number in first..count.min(first + 10) {
            let tag = tag(client, number);
            let (kind, status) = path(&mut random);
            let (path, pad) =
                (format!("/{kind}/{tag}?q={tag}"), "p".to_owned() + &tag.repeat(random.below(20)));
            let is_reset = random.percent(20);
            let stream = peer.open(&lines(&path, &tag, &pad), !is_reset);
            if is_reset {
                peer.send(&Frame::reset(stream, code::CANCEL));
                // A rule may have answered before.
                let expected = Expected { statuses: [0, status], has_line: true, is_sure: false };
                sent.push((tag, expected));
            } else {
                open.push((stream, tag.clone(), status));
                sent.push((tag, Expected::status(status)));
            }
        }
        for (stream, tag, status) in open {
            let response = peer.response(stream);
            assert_eq!((response.status(), response.text()), (status as u16, tag));
        }
    }
    sent
}

/// Heads that are refused. An ordinary request goes before each on its connection.
fn refused(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    for number in (0..count).step_by(2) {
        let mut connection = Client::connect(address);
        let (before, tag) = (tag(client, number), tag(client, number + 1));
        connection.send(head("GET", "plain", &before, &mut random) + "\r\n");
        assert_eq!(connection.response().text(), before);
        sent.push((before, Expected::status(200)));
        let long = tag.repeat(2_000);
        let (text, status, has_line) = match random.below(6) {
            0 => (format!("GET /x/{tag} HTTP/1.1\r\nBad {tag}: {tag}\r\n\r\n"), 400, true),
            1 => (format!("GET /{long} HTTP/1.1\r\n\r\n"), 414, false),
            2 => (format!("GET /x/{tag} HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n"), 431, true),
            3 => (head("GET", "a%2fb", &tag, &mut random) + "\r\n", 400, true),
            4 => (format!("G=T /{tag} HTTP/1.1\r\nHost: {tag}\r\n\r\n"), 400, false),
            _ => {
                let framing = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
                (head("POST", "x", &tag, &mut random) + framing, 400, true)
            }
        };
        // weir may answer and close before all is sent.
        let _ = connection.try_send(text);
        if let Ok(response) = connection.try_response(false) {
            assert_eq!(u64::from(response.status), status, "{tag}");
        }
        sent.push((tag, Expected::refused(status, has_line)));
    }
    sent
}

/// Streams that are refused beside others.
fn refused_on_streams(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    let mut peer = Peer::connect(address);
    for number in (0..count).step_by(2) {
        let (good, bad) = (tag(client, number), tag(client, number + 1));
        let pad = "p".to_owned() + &good.repeat(random.below(20));
        let path = format!("/plain/{good}");
        let stream = peer.open(&lines(&path, &good, &pad), true);
        let bad_pad = "p".to_owned() + &bad.repeat(random.below(20));
        let bad_path = format!("/a%2fb/{bad}");
        let (status, has_line) = if random.percent(50) {
            peer.open(&lines(&bad_path, &bad, &bad_pad), true);
            (400, true)
        } else {
            // An upper-case name is malformed: the stream is reset.
            let mut lines = lines(&bad_path, &bad, &bad_pad);
            lines.push(("X-Upper", &bad));
            peer.open(&lines, true);
            (0, false)
        };
        assert_eq!(peer.response(stream).text(), good);
        sent.push((good, Expected::status(200)));
        sent.push((bad, Expected::refused(status, has_line)));
    }
    sent
}

/// Clients that leave in the middle of their request's body.
fn leaving(address: SocketAddr, client: usize, count: usize) -> Sent {
    let (mut random, mut sent) = (Random::new(client as u64), Sent::new());
    for number in 0..count {
        let tag = tag(client, number);
        let mut connection = Client::connect(address);
        let head = head("POST", "plain", &tag, &mut random);
        connection.send(format!("{head}Content-Length: 5000\r\n\r\n{tag}"));
        let is_sure = random.percent(50);
        if !is_sure {
            connection.reset();
        }
        // An end in the middle of a body is answered.
        sent.push((tag, Expected { statuses: [0, 400], has_line: true, is_sure }));
    }
    sent
}
