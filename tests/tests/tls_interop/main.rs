//! TLS between weir and other programs, in both roles, as one table: each row, with TLS 1.2 and 1.3
//! and with an RSA and an ECDSA certificate, gives cells. `--nocapture` prints it.
//!
//! In a cell both sides report their view, and neither may contradict: the version, the kind of the
//! certificate, whether the client presented one of its own, whether the session was resumed, and
//! the protocol over TLS.
//!
//! Cases that involve more than two programs are elsewhere: sessions resumed over a reload, and at
//! another instance with the same key file (`tls.rs`: `sessions_go_on_over_reloads_and_instances`,
//! TLS 1.2 and 1.3, tickets with and without a key file, and `stateful`); certificates that are
//! refused (`tls.rs`, `tls_members.rs`); weir on both sides (`tls_members.rs`).

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

/// A program's role towards weir.
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

/// The protocol over TLS. Clients choose it by ALPN; HTTP/1.1 from weir to a member uses no ALPN.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Protocol {
    Http1,
    Http2,
}

/// Whether the client presents a certificate. Every server here requests one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    No,
    Yes,
}

/// The first handshake of a client, or that of a returning client: to a server with tickets, or to
/// one that stores sessions.
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

/// Each row runs with each of these.
const COLUMNS: [(Version, Key); 4] = [(V12, Rsa), (V12, Ecdsa), (V13, Rsa), (V13, Ecdsa)];

/// Handshakes that are full in spite of the row, and the reason.
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
            // gnutls is optional.
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

/// The cells of a row, in the table's order.
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

/// Prints the cells of a line; returns the wrong ones.
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

/// The expected result.
#[derive(Debug, Clone, Copy)]
struct Cell {
    version: Version,
    key: Key,
    protocol: Protocol,
    shown: Shown,
    handshake: Handshake,
}

/// A side's report of a connection, `None` for a missing value.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    version: Option<Version>,
    key: Option<Key>,
    protocol: Option<Protocol>,
    shown: Option<Shown>,
    resumed: Option<bool>,
}

impl Cell {
    /// Values that differ from the expectation, or that neither side reported.
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

    /// The servers to use: first those with tickets, then those that store.
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

/// A server for each of [`Cell::server`]: its version, its key, and whether it stores sessions.
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

    /// The TLS version at the beginning of a text.
    fn of(text: &str) -> Option<Self> {
        [V12, V13].into_iter().find(|version| text.starts_with(version.name()))
    }
}

impl Protocol {
    /// Its name in ALPN.
    fn alpn(self) -> &'static str {
        match self {
            Http1 => "http/1.1",
            Http2 => "h2",
        }
    }
}

impl Key {
    /// The name of the files of the server's certificate.
    fn certificate(self) -> &'static str {
        match self {
            Rsa => "shop-rsa",
            Ecdsa => "shop-ec",
        }
    }

    /// The kind of signature at the beginning of a text: `RSA-PSS`, `ECDSA`.
    fn of(text: &str) -> Option<Self> {
        match text {
            _ if text.starts_with("RSA") => Some(Rsa),
            _ if text.starts_with("ECDSA") => Some(Ecdsa),
            _ => None,
        }
    }

    /// The certificate kind of a TLS 1.2 suite, `ECDHE-RSA-AES128-GCM-SHA256`; TLS 1.3 suites have
    /// none.
    fn of_suite(suite: &str) -> Option<Self> {
        let suite = suite.strip_prefix("TLS_").unwrap_or(suite);
        Self::of(suite.strip_prefix("ECDHE")?.trim_start_matches(['-', '_']))
    }

    /// The kind of certificate that a server presents, as openssl sees it. No server here has more
    /// than one, so this also covers programs that do not report it.
    fn of_server(address: SocketAddr) -> Option<Self> {
        let text = tls::s_client_text(address, &[], REQUEST);
        after("Peer signature type: ", &text).and_then(Self::of)
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// The text after the first of these words.
fn after<'a>(words: &str, text: &'a str) -> Option<&'a str> {
    text.split_once(words).map(|(_, rest)| rest)
}

fn protocol(is_http2: bool) -> Option<Protocol> {
    Some(if is_http2 { Http2 } else { Http1 })
}

fn shown(is_shown: bool) -> Option<Shown> {
    Some(if is_shown { Yes } else { No })
}
