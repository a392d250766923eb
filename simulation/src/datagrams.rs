//! Runs with UDP sessions: clients send queries, members answer, and clients check that each answer is their own.
//!
//! These runs are separate from those with exchanges. A worker has two virtual servers, one with sessions and one with
//! independent queries. The network loses, duplicates, delays and reorders datagrams.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};

use weir_config::snapshot::Snapshot;
use weir_dataplane::simulation::SimulatedWorker;
use weir_event_loop::memory::{self as kernel, DatagramWeather, Network, PANIC_AS_TOLD};
use weir_testing::Random;

use crate::scene::weather;

const CLIENTS: usize = 6;
const MEMBERS: u8 = 3;
const DESCRIPTORS_MAX: usize = 200;
/// Number of datagrams that clients send in a run.
const QUERIES: usize = 400;
/// Duration of the end of a run. It exceeds the lifetime of every session and the delay of every answer.
const QUIET_US: u64 = 20_000_000;
const IDLE_MS: u64 = 2_000;
/// Simulated time of a step.
const STEP_US: u64 = 50;
const DRAIN_MS: u64 = 3_000;

fn address(net: u8, host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, net, host)), port)
}

fn servers() -> [SocketAddr; 2] {
    [address(1, 1, 5_001), address(1, 1, 5_002)]
}

fn member(number: u8) -> SocketAddr {
    address(2, 1 + number, 5_000)
}

/// The configuration after this number of changes. Some configurations lack a member, some lack the virtual server for
/// queries. A socket for queries serves up to `per_socket_max` sessions.
fn snapshot(change: usize, per_socket_max: u32) -> Snapshot {
    let [sessions, queries] = servers();
    let left_out = change % (usize::from(MEMBERS) + 1);
    let members = (0..MEMBERS).filter(|number| usize::from(*number) + 1 != left_out);
    let members: Vec<String> = members.map(|number| member(number).to_string()).collect();
    let of_queries = format!(
        "  queries: {{ listen: \"{queries}\", type: udp, pool: all, udp: {{ datagrams: 1, idle_timeout: {IDLE_MS}ms, sessions_per_socket_max: {per_socket_max} }} }}\n"
    );
    let of_queries = if change % 5 == 4 { "" } else { &*of_queries };
    let text = format!(
        "virtual_servers:\n  sessions: {{ listen: \"{sessions}\", type: udp, pool: all, udp: {{ idle_timeout: {IDLE_MS}ms }} }}\n\
         {of_queries}\
         pools: {{ all: {{ members: [ {} ], passive: {{ failures: 3, eject: 1s }} }} }}\n",
        members.join(", ")
    );
    let loaded = weir_config::parse("datagrams.yaml", &text);
    let Some(config) = loaded.config else { panic!("{:#?}", loaded.diagnostics) };
    config.snapshot(&Default::default())
}

/// A client with its queries.
struct Client {
    address: SocketAddr,
    asked: BTreeSet<String>,
    answers: usize,
}

struct Run {
    network: Network,
    worker: SimulatedWorker,
    random: Random,
    clients: Vec<Client>,
    /// Answers that members have not sent yet.
    owed: Vec<(SocketAddr, SocketAddr, Vec<u8>, u64)>,
    /// Members that do not receive datagrams.
    closed: BTreeSet<u8>,
    answers: usize,
    changes: usize,
    per_socket_max: u32,
    is_draining: bool,
    findings: Vec<String>,
}

/// Runs a seed. Returns the findings, and the number of answers that clients received.
pub fn run(seed: u64) -> (Vec<String>, usize) {
    kernel::begin(seed);
    let mut random = Random::new(seed.rotate_left(8) ^ 0x0DA7_A64A);
    let network = Network::new(random.next(), weather(&mut random), DESCRIPTORS_MAX);
    let per_socket_max = [1, 3, 100][random.below(3)];
    // If a socket serves several sessions, a duplicate that arrives much later may be taken for an answer to another
    // session.
    let doubled_percent = if per_socket_max == 1 { [0, 5][random.below(2)] } else { 0 };
    network.set_datagram_weather(DatagramWeather {
        lost_percent: [0, 2, 20][random.below(3)],
        doubled_percent,
        delayed_percent: [0, 30, 80][random.below(3)],
        strange_percent: [0, 20][random.below(2)],
    });
    (0..MEMBERS).for_each(|number| network.open_mailbox(member(number)));
    let client = |number: usize| Client {
        address: address(3, 1, 2_000 + number as u16),
        asked: BTreeSet::new(),
        answers: 0,
    };
    let clients: Vec<Client> = (0..CLIENTS).map(client).collect();
    clients.iter().for_each(|client| network.open_mailbox(client.address));
    let worker = SimulatedWorker::new(&network, snapshot(0, per_socket_max));
    let run = Run {
        network,
        worker,
        random,
        clients,
        owed: Vec::new(),
        closed: BTreeSet::new(),
        answers: 0,
        changes: 0,
        per_socket_max,
        is_draining: false,
        findings: Vec::new(),
    };
    run.finish()
}

impl Run {
    fn finish(mut self) -> (Vec<String>, usize) {
        for query in 0..QUERIES {
            self.ask(query);
            self.happen();
            for _ in 0..self.random.below(20) {
                self.step();
            }
        }
        if self.random.percent(30) {
            self.worker.drain(DRAIN_MS);
            self.is_draining = true;
        }
        let until_us = kernel::now_us() + QUIET_US;
        while kernel::now_us() < until_us && self.findings.is_empty() {
            self.step();
            kernel::pass(5_000);
        }
        self.look_for_remains();
        (self.findings, self.answers)
    }

    /// Sends a datagram from a random client to a random virtual server.
    fn ask(&mut self, query: usize) {
        let number = self.random.below(CLIENTS);
        let server = servers()[self.random.below(2)];
        let client = &mut self.clients[number];
        let text = format!("{number}/{query}");
        client.asked.insert(text.clone());
        self.network.post(client.address, server, text.as_bytes());
    }

    /// Triggers random events that do not depend on the clients and members.
    fn happen(&mut self) {
        match self.random.below(200) {
            0..4 => {
                self.changes += 1;
                // An injected panic must occur in a turn, because only turns catch it.
                self.network.panic_after(None);
                self.worker.apply(snapshot(self.changes, self.per_socket_max));
            }
            4..10 => {
                let number = self.random.below(usize::from(MEMBERS)) as u8;
                if self.closed.remove(&number) {
                    self.network.open_mailbox(member(number));
                } else {
                    self.closed.insert(number);
                    self.network.close_mailbox(member(number));
                }
            }
            10..12 => self.network.panic_after(Some(self.random.below(4))),
            12..16 => kernel::pass(1_000 * IDLE_MS),
            // Unused sockets become available again.
            16..32 => kernel::pass(30_000),
            _ => {}
        }
    }

    /// Advances the simulation by one step.
    fn step(&mut self) {
        self.network.travel();
        self.serve();
        self.receive();
        let is_due = self.worker.due_us().is_some_and(|due_us| due_us <= kernel::now_us());
        if !self.worker.has_ended() && (is_due || self.network.has_events()) {
            self.turn();
        }
        kernel::pass(STEP_US);
    }

    fn turn(&mut self) {
        let worker = &mut self.worker;
        let turned = catch_unwind(AssertUnwindSafe(|| worker.turn()));
        self.network.panic_after(None);
        match turned {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.findings.push(format!("datagrams: the loop ends with {error}")),
            Err(panic) if panic.downcast_ref::<&str>() == Some(&PANIC_AS_TOLD) => {
                self.worker.recover();
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("no message", String::as_str);
                self.findings.push(format!("datagrams: a panic: {text}"));
            }
        }
    }

    /// Lets members answer at once, late, or not at all.
    fn serve(&mut self) {
        for number in 0..MEMBERS {
            let own = member(number);
            while let Some((from, query)) = self.network.collect(own) {
                let answer = [b"answer to ", &query[..]].concat();
                let wait_ms = match self.random.below(10) {
                    0 => continue,
                    1 => IDLE_MS + self.random.below(3_000) as u64,
                    2 => self.random.below(50) as u64,
                    _ => 0,
                };
                self.owed.push((own, from, answer, kernel::now_us() + 1_000 * wait_ms));
            }
        }
        let now_us = kernel::now_us();
        let network = &self.network;
        self.owed.retain(|(own, to, answer, at_us)| {
            let is_due = *at_us <= now_us;
            if is_due {
                network.post(*own, *to, answer);
            }
            !is_due
        });
    }

    /// Checks that each received datagram answers a query of the client.
    fn receive(&mut self) {
        for client in &mut self.clients {
            while let Some((from, answer)) = self.network.collect(client.address) {
                let text = String::from_utf8_lossy(&answer).into_owned();
                let query = text.strip_prefix("answer to ").unwrap_or_default();
                if !client.asked.contains(query) {
                    let finding = format!("datagrams: {} got from {from}: {text}", client.address);
                    self.findings.push(finding);
                }
                client.answers += 1;
                self.answers += 1;
            }
        }
    }

    fn look_for_remains(&mut self) {
        if !self.findings.is_empty() {
            return;
        }
        if self.is_draining != self.worker.has_ended() {
            self.findings.push("datagrams: the worker was told to end, and does not".to_owned());
        }
        if self.is_draining {
            return;
        }
        let remains = self.worker.remains();
        if !remains.is_empty() {
            self.findings.push(format!("datagrams: left of it: {}", remains.join(", ")));
        }
    }
}
