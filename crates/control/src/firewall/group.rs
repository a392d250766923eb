//! Requests in which a rule matched one variable, and their clients.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of distinct clients that are counted per path.
pub const CLIENTS_MAX: usize = 64;

/// Distinct clients, up to a limit.
#[derive(Debug, Default, Clone)]
pub struct Clients(BTreeSet<u64>);

impl Clients {
    /// Adds a client.
    pub fn add(&mut self, client: &str) {
        if self.0.len() < CLIENTS_MAX {
            self.0.insert(number_of(client));
        }
    }

    fn add_all(&mut self, other: &Self) {
        let room = CLIENTS_MAX.saturating_sub(self.0.len());
        let new: Vec<u64> = other.0.difference(&self.0).copied().take(room).collect();
        self.0.extend(new);
    }

    /// The number of distinct clients.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number as text, with a mark above the limit.
    pub fn told(&self) -> String {
        match self.0.len() {
            1 => "1 client".into(),
            CLIENTS_MAX => format!("{CLIENTS_MAX} clients or more"),
            count => format!("{count} clients"),
        }
    }
}

/// A hash of a client; for IPv6 of its /64 network, in which it can choose addresses.
fn number_of(client: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    match client.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => address.hash(&mut hasher),
        Ok(IpAddr::V6(address)) => address.segments()[..4].hash(&mut hasher),
        Err(_) => client.hash(&mut hasher),
    }
    hasher.finish()
}

/// Requests in which a rule matched a variable.
#[derive(Debug, Default, Clone)]
pub struct Group {
    /// The number of requests.
    pub requests: u64,
    /// The clients that sent them.
    pub clients: Clients,
    /// The number of these that contain another attack elsewhere.
    pub suspicious: u64,
    /// The score of one match.
    pub score: i64,
    /// The message of the rule.
    pub message: String,
    /// An example value, unless it is a secret.
    pub example: Option<String>,
}

impl Group {
    /// Adds the counts of another group.
    pub fn add_all(&mut self, other: &Self) {
        self.requests += other.requests;
        self.suspicious += other.suspicious;
        self.clients.add_all(&other.clients);
        self.score = self.score.max(other.score);
        if self.message.is_empty() {
            self.message.clone_from(&other.message);
        }
        self.example = self.example.take().or_else(|| other.example.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_apart() {
        let mut clients = Clients::default();
        for client in ["192.0.2.1:1", "192.0.2.1:2", "[2001:db8::1]:1", "[2001:db8::2]:1", "unix"] {
            clients.add(client);
        }
        assert_eq!(clients.count(), 3);
        for number in 0..1_000 {
            clients.add(&format!("name{number}"));
        }
        assert_eq!(clients.told(), "64 clients or more");
    }
}
