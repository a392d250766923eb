//! The pools, as they should be after all changes, and what answers for their members.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};
use weir_testing::Random;
use weir_tests::proxy::Proxy;

/// The address of a member, without its port, and what it has.
type Members = BTreeMap<Ipv4Addr, Settings>;

/// The settings of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settings {
    weight: u64,
    is_drained: bool,
}

const PLAIN: Settings = Settings { weight: 1, is_drained: false };

/// The pools and their members.
#[derive(Debug)]
pub struct Pools {
    pools: Vec<Members>,
    port: u16,
    /// The number of the next new address.
    next: u32,
    random: Random,
}

impl Pools {
    /// So many members, in so many pools.
    pub fn new(members: usize, pools: usize, port: u16) -> Self {
        let mut new =
            Self { pools: vec![Members::new(); pools], port, next: 0, random: Random::new(1) };
        for number in 0..members {
            let address = new.next_address();
            new.pools[number % pools].insert(address, PLAIN);
        }
        new
    }

    /// A loopback address that no member has had.
    fn next_address(&mut self) -> Ipv4Addr {
        self.next += 1;
        Ipv4Addr::from(0x7f01_0000 + self.next)
    }

    /// The names of all pools.
    pub fn names(&self) -> impl Iterator<Item = String> {
        (0..self.pools.len()).map(name)
    }

    /// The pools as lines of the configuration.
    pub fn in_configuration(&self) -> impl Iterator<Item = String> {
        self.pools.iter().enumerate().map(|(index, members)| {
            let members: Vec<String> =
                members.keys().map(|address| format!("\"{address}:{}\"", self.port)).collect();
            // Idle connections to so many members would only fill tables.
            let (name, members) = (name(index), members.join(", "));
            format!("{name}: {{ reuse: {{ idle_timeout: 1s }}, members: [ {members} ] }}")
        })
    }

    /// A further change, as operations of the API.
    pub fn change(&mut self) -> Vec<Value> {
        let pool = self.random.below(self.pools.len());
        let place = self.random.below(self.pools[pool].len());
        let (&address, &settings) = self.pools[pool].iter().nth(place).expect("a member");
        let path = |address: Ipv4Addr, port: u16, key: &str| {
            format!("/pools/{}/members/{address}:{port}{key}", name(pool))
        };
        let mut settings = settings;
        let set = |key: &str, value: Value| json!({ "op": "set", "path": path(address, self.port, key), "value": value });
        let operations = match self.random.below(3) {
            0 => {
                settings.weight = settings.weight % 7 + 1;
                vec![set("/weight", settings.weight.into())]
            }
            // At most a third of the members are drained.
            1 => {
                let drained = self.pools[pool].values().filter(|it| it.is_drained).count();
                settings.is_drained = !settings.is_drained && 3 * drained < self.pools[pool].len();
                vec![set("/state", if settings.is_drained { "drain" } else { "enabled" }.into())]
            }
            _ => {
                let new = self.next_address();
                self.pools[pool].remove(&address);
                self.pools[pool].insert(new, PLAIN);
                return vec![
                    json!({ "op": "set", "path": path(new, self.port, ""), "value": {} }),
                    json!({ "op": "remove", "path": path(address, self.port, "") }),
                ];
            }
        };
        self.pools[pool].insert(address, settings);
        operations
    }

    /// Compares the pools with those that weir shows.
    pub fn compare(&self, proxy: &Proxy) -> Result<(), String> {
        for (index, expected) in self.pools.iter().enumerate() {
            let shown = proxy.admin_get(&format!("/v1/pools/{}", name(index)));
            let shown: Value = serde_json::from_str(&shown).map_err(|error| error.to_string())?;
            let members = shown["members"].as_array().into_iter().flatten();
            let shown: Option<Members> = members.map(shown_member).collect();
            if shown.as_ref() != Some(expected) {
                return Err(format!("pool {}: {expected:?} is not {shown:?}", name(index)));
            }
        }
        Ok(())
    }
}

fn name(index: usize) -> String {
    format!("p{index}")
}

/// A member as the API shows it.
fn shown_member(shown: &Value) -> Option<(Ipv4Addr, Settings)> {
    let address = shown["address"].as_str()?.split(':').next()?.parse().ok()?;
    let is_drained = shown["administrative"].as_str()? == "drain";
    Some((address, Settings { weight: shown["weight"].as_u64()?, is_drained }))
}

/// Answers on one port of all loopback addresses. Ends with the process.
#[derive(Debug)]
pub struct StandIn;

impl StandIn {
    pub fn start(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).expect("a leased port");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream));
            }
        });
        Self
    }
}

/// Answers each request of a connection. weir sends a request without a body at once.
fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}
