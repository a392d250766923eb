//! TLS between weir and other programs in both roles, as one table. Each row gives several cells: TLS 1.2 and 1.3, each with
//! an RSA and an ECDSA certificate. `--nocapture` prints the table.
//!
//! For each cell, both sides report their view, and both reports must be as expected: the TLS version, the type of the
//! certificate, whether the client presented a certificate, whether the session was resumed, and the protocol over TLS.
//!
//! Other tests cover cases with more than two programs: sessions that are resumed after a reload, and at another instance
//! with the same key file (`tls.rs`: `sessions_go_on_over_reloads_and_instances`, TLS 1.2 and 1.3, tickets with and without
//! a key file, and `stateful`); rejected certificates (`tls.rs`, `tls_members.rs`); weir on both sides (`tls_members.rs`).

mod clients;
mod haproxy;
mod members;

use std::fmt::Debug;
use std::net::SocketAddr;

use weir_tests::{require, tls, tools};

use Handshake::{Full, Stored, Ticket};
use Key::{Ecdsa, Rsa};
use Protocol::{Http1, Http2};
use Shown::{No, Yes};
use Side::{Client, Member};
use Version::{V12, V13};

/// The role of the other program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Client,
    Member,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Version {
    V12,
    V13,
}

/// The key of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    Rsa,
    Ecdsa,
}

/// The protocol over TLS. Clients select it by ALPN. weir uses HTTP/1.1 to members without ALPN.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Protocol {
    Http1,
    Http2,
}

/// Whether the client presents a certificate. Every server in this test requests one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    No,
    Yes,
}

/// The handshake of a cell: the first one of a client, or the second one, with a ticket or with a session that the server
/// has stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Handshake {
    Full,
    Ticket,
    Stored,
}

type Row = (Side, &'static str, &'static [Protocol], &'static [Shown], &'static [Handshake]);

#[rustfmt::skip]
const TABLE: [Row; 11] = [
    // side    program        over it            client's certificate   handshakes
    (Client, "openssl",     &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Client, "curl",        &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Client, "gnutls-cli",  &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Client, "haproxy",     &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Client, "nghttp",      &[Http2],          &[No, Yes],            &[Full]),
    (Client, "h2load",      &[Http1, Http2],   &[No],                 &[Full]),
    (Client, "wrk",         &[Http1],          &[No],                 &[Full]),
    (Member, "openssl",     &[Http1],          &[No, Yes],            &[Full, Ticket, Stored]),
    (Member, "nginx",       &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Member, "haproxy",     &[Http1, Http2],   &[No, Yes],            &[Full, Ticket, Stored]),
    (Member, "gnutls-serv", &[Http1],          &[No, Yes],            &[Full, Ticket, Stored]),
];

/// The variants of each row.
const COLUMNS: [(Version, Key); 4] = [(V12, Rsa), (V12, Ecdsa), (V13, Rsa), (V13, Ecdsa)];

/// Handshakes that are full although the row expects a resumed session, with the reason.
const FULL_ALL_THE_SAME: [(&str, Version, Handshake, &str); 2] = [
    ("curl", V12, Ticket, "it asks for no ticket with TLS 1.2"),
    ("gnutls-serv", V13, Stored, "with TLS 1.3 it has tickets alone"),
];

#[test]
fn programs_on_either_side() {
    require!("openssl", "curl", "nghttp", "h2load", "wrk", "nginx", "haproxy");
    println!(
        "{:8}{:13}{:10}{:13}{:11}{:10}{:10}{:10}1.3 ECDSA",
        "side", "program", "over it", "client cert", "handshake", "1.2 RSA", "1.2 ECDSA", "1.3 RSA"
    );
    let clients = clients::Clients::start();
    let mut differences = Vec::new();
    for row in TABLE {
        let (side, program, ..) = row;
        if tools::find(program).is_none() {
            // GnuTLS is optional.
            println!("SKIPPED {side:?} {program}: it is not installed");
            continue;
        }
        let cells = cells(&row);
        let told: Vec<Vec<Told>> = match side {
            Client => clients.talk(program, &cells),
            Member => members::talk(program, &cells),
        };
        for (line, told) in cells.chunks(COLUMNS.len()).zip(told.chunks(COLUMNS.len())) {
            differences.extend(print_line(side, program, line, told));
        }
    }
    for (program, version, handshake, why) in FULL_ALL_THE_SAME {
        println!("full: {program}, {version:?}, {handshake:?}: {why}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The cells of a row in the order of the table.
fn cells(&(_, _, protocols, shown, handshakes): &Row) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &protocol in protocols {
        for &shown in shown {
            for &handshake in handshakes {
                let cell = |(version, key)| Cell { version, key, protocol, shown, handshake };
                cells.extend(COLUMNS.map(cell));
            }
        }
    }
    cells
}

/// Prints the cells of one line. Returns the differences.
fn print_line(side: Side, program: &str, line: &[Cell], told: &[Vec<Told>]) -> Vec<String> {
    let Cell { protocol, shown, handshake, .. } = line[0];
    let words = [format!("{side:?}"), format!("{protocol:?}"), format!("{shown:?}")];
    print!("{:8}{program:13}{:10}{:13}", words[0], words[1], words[2]);
    print!("{:11}", format!("{handshake:?}"));
    let mut differences = Vec::new();
    for (cell, told) in line.iter().zip(told) {
        let wrong = cell.differences(program, told);
        let result = match wrong.is_empty() {
            false => "WRONG",
            true if cell.is_full_all_the_same(program) => "full",
            true => "ok",
        };
        print!("{result:10}");
        let place = |what| format!("{side:?} {program} {cell:?}: {what}");
        differences.extend(wrong.into_iter().map(place));
    }
    println!();
    differences
}

/// The expected values of a connection.
#[derive(Debug, Clone, Copy)]
struct Cell {
    version: Version,
    key: Key,
    protocol: Protocol,
    shown: Shown,
    handshake: Handshake,
}

/// The report of one side about a connection; `None`: not reported.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    version: Option<Version>,
    key: Option<Key>,
    protocol: Option<Protocol>,
    shown: Option<Shown>,
    resumed: Option<bool>,
}

impl Cell {
    /// The differences from the expectation, including values that neither side reported.
    fn differences(&self, program: &str, told: &[Told]) -> Vec<String> {
        let resumed = self.handshake != Full && !self.is_full_all_the_same(program);
        let results = [
            agree(self.version, told.iter().filter_map(|it| it.version)),
            agree(self.key, told.iter().filter_map(|it| it.key)),
            agree(self.protocol, told.iter().filter_map(|it| it.protocol)),
            agree(self.shown, told.iter().filter_map(|it| it.shown)),
            agree(resumed, told.iter().filter_map(|it| it.resumed)),
        ];
        results.into_iter().flatten().collect()
    }

    fn is_full_all_the_same(&self, program: &str) -> bool {
        FULL_ALL_THE_SAME.iter().any(|&(name, version, handshake, _)| {
            (name, version, handshake) == (program, self.version, self.handshake)
        })
    }

    /// The index of the server for this cell: servers with tickets come first, then servers that store sessions.
    fn server(&self) -> usize {
        let is_own = |it: &(Version, Key)| *it == (self.version, self.key);
        let column = COLUMNS.iter().position(is_own).expect("a column");
        column + if self.handshake == Stored { COLUMNS.len() } else { 0 }
    }
}

fn agree<T: Debug + PartialEq>(expected: T, told: impl Iterator<Item = T>) -> Option<String> {
    let told: Vec<T> = told.collect();
    let is_so = !told.is_empty() && told.iter().all(|it| *it == expected);
    (!is_so).then(|| format!("{expected:?} expected, {told:?} said"))
}

/// Starts one server for each value of [`Cell::server`]. The arguments are version, key, and whether it stores sessions.
fn servers<T>(start: impl Fn(Version, Key, bool) -> T) -> Vec<T> {
    let one = |is_storing| COLUMNS.map(|(version, key)| start(version, key, is_storing));
    [false, true].map(one).into_iter().flatten().collect()
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            V12 => "1.2",
            V13 => "1.3",
        }
    }

    /// The TLS version at the start of a text.
    fn of(text: &str) -> Option<Self> {
        [V12, V13].into_iter().find(|version| text.starts_with(version.name()))
    }
}

impl Protocol {
    /// The name of the protocol in ALPN.
    fn alpn(self) -> &'static str {
        match self {
            Http1 => "http/1.1",
            Http2 => "h2",
        }
    }
}

impl Key {
    /// The base name of the files of the server's certificate.
    fn certificate(self) -> &'static str {
        match self {
            Rsa => "shop-rsa",
            Ecdsa => "shop-ec",
        }
    }

    /// The type of the signature at the start of a text, such as `RSA-PSS` or `ECDSA`.
    fn of(text: &str) -> Option<Self> {
        match text {
            _ if text.starts_with("RSA") => Some(Rsa),
            _ if text.starts_with("ECDSA") => Some(Ecdsa),
            _ => None,
        }
    }

    /// The type of the certificate in the name of a TLS 1.2 suite, such as `ECDHE-RSA-AES128-GCM-SHA256`; `None` for suites
    /// of TLS 1.3.
    fn of_suite(suite: &str) -> Option<Self> {
        let suite = suite.strip_prefix("TLS_").unwrap_or(suite);
        Self::of(suite.strip_prefix("ECDHE")?.trim_start_matches(['-', '_']))
    }

    /// The type of a server's certificate as openssl reports it. Every server in this test has only one, so this also
    /// applies to programs that do not report it.
    fn of_server(address: SocketAddr) -> Option<Self> {
        let text = tls::s_client_text(address, &[], REQUEST);
        after("Peer signature type: ", &text).and_then(Self::of)
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// The text after the first occurrence of these words.
fn after<'a>(words: &str, text: &'a str) -> Option<&'a str> {
    text.split_once(words).map(|(_, rest)| rest)
}

fn protocol(is_http2: bool) -> Option<Protocol> {
    Some(if is_http2 { Http2 } else { Http1 })
}

fn shown(is_shown: bool) -> Option<Shown> {
    Some(if is_shown { Yes } else { No })
}
