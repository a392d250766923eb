//! Makes changes at a steady rate.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::client::Client;
use weir_tests::proxy::Proxy;

use crate::pools::Pools;

/// Connections that make changes in turn, so that one that waits does not hold up the next.
const CONNECTIONS: usize = 8;

/// How many changes are made.
#[derive(Debug, Clone, Copy)]
pub struct Changer {
    /// Changes per second.
    pub rate: usize,
    /// Changes in a transaction.
    pub together: usize,
}

/// From the request for each change until its answer, which comes when it is in force.
#[derive(Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Changer {
    /// Makes changes for this time. Returns when all are in force, with the time that it took.
    pub fn run(
        self,
        proxy: &Proxy,
        pools: &mut Pools,
        length: Duration,
    ) -> Result<(Latencies, Duration), String> {
        let begin = Instant::now();
        let (answers, answered) = channel();
        let senders: Vec<Sender<_>> = (0..CONNECTIONS)
            .map(|_| {
                let (sender, asked) = channel::<(Instant, Vec<Value>)>();
                let (mut client, answers) = (proxy.admin_client(), answers.clone());
                thread::spawn(move || {
                    while let Ok((due, changes)) = asked.recv() {
                        let result = change(&mut client, &changes);
                        if answers.send((due, result)).is_err() {
                            return;
                        }
                    }
                });
                sender
            })
            .collect();
        drop(answers);
        let interval = Duration::from_secs(1) * self.together as u32 / self.rate as u32;
        for (number, sender) in (0..).zip(senders.iter().cycle()) {
            let due = begin + interval * number;
            if due >= begin + length {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let changes = (0..self.together).flat_map(|_| pools.change()).collect();
            sender.send((Instant::now(), changes)).map_err(|_| "a connection has ended")?;
        }
        drop(senders);
        let mut latencies = Latencies::default();
        for (due, result) in answered {
            let answered = result?;
            let latency = answered - due;
            latencies.0.extend((0..self.together).map(|_| latency));
        }
        latencies.0.sort_unstable();
        Ok((latencies, begin.elapsed()))
    }
}

/// Makes changes. Returns when they are in force.
fn change(client: &mut Client, changes: &[Value]) -> Result<Instant, String> {
    let body = json!({ "changes": changes }).to_string();
    let length = body.len();
    client.send(format!(
        "POST /v1/changes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    let response = client.response();
    let answered = Instant::now();
    let answer: Value = serde_json::from_slice(&response.body).map_err(|it| it.to_string())?;
    match answer["state"].as_str() {
        Some("in_force" | "unchanged") => Ok(answered),
        _ => Err(format!("{changes:?}: {answer}")),
    }
}

impl Latencies {
    /// The number of changes.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn at(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share) as usize).copied().unwrap_or_default()
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, last] = [0.5, 0.99, 1.0].map(|share| self.at(share));
        write!(formatter, "{half:.1?} (half of them), {most:.1?} (99%), {last:.1?} (all)")
    }
}
