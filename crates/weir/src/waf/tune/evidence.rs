//! What logs say of rules: in which variables of which paths, in how many requests of how many clients.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};

use super::places::Place;
use super::proposal::Exclusions;
use crate::waf::log::{Found, Line, Value};

/// Clients of one place that are told apart.
pub const CLIENTS_MAX: usize = 64;
/// Places, variables and rules that are kept; what is beyond is counted.
const GROUPS_MAX: usize = 50_000;
/// Bytes of an example.
const EXAMPLE_BYTES_MAX: usize = 80;
/// What the log shows in place of secrets.
const MASK: &str = "***";
/// The family of rules of CRS that know scanners.
const SCANNERS: u64 = 913;

/// A rule, and the variable that it was found in.
pub type Subject = (u64, String);

/// Clients, as far as they are told apart.
#[derive(Debug, Default, Clone)]
pub struct Clients(BTreeSet<u64>);

impl Clients {
    fn add(&mut self, client: &str) {
        if self.0.len() < CLIENTS_MAX {
            self.0.insert(number_of(client));
        }
    }

    fn add_all(&mut self, other: &Self) {
        let room = CLIENTS_MAX.saturating_sub(self.0.len());
        let new: Vec<u64> = other.0.difference(&self.0).copied().take(room).collect();
        self.0.extend(new);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many, where no more are told apart.
    pub fn told(&self) -> String {
        match self.0.len() {
            1 => "1 client".into(),
            CLIENTS_MAX => format!("{CLIENTS_MAX} clients or more"),
            count => format!("{count} clients"),
        }
    }
}

/// A number for a client; of IPv6 for its network, in which it can choose its address.
fn number_of(client: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    match client.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => address.hash(&mut hasher),
        Ok(IpAddr::V6(address)) => address.segments()[..4].hash(&mut hasher),
        Err(_) => client.hash(&mut hasher),
    }
    hasher.finish()
}

/// Requests in which a rule was found in a variable.
#[derive(Debug, Default, Clone)]
pub struct Group {
    pub requests: u64,
    pub clients: Clients,
    /// Those of them that have another attack in another place.
    pub suspicious: u64,
    /// What one of them scored for it.
    pub score: i64,
    pub message: String,
    pub example: Option<String>,
}

impl Group {
    /// Takes others in.
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

/// What logs say.
#[derive(Debug, Default)]
pub struct Evidence {
    pub groups: HashMap<Subject, HashMap<Place, Group>>,
    groups_count: usize,
    /// Findings for which there was no room.
    pub left_out: u64,
    /// Findings in what no exclusion can name.
    pub unnamed: u64,
}

impl Evidence {
    /// Takes a line; what exclusions take away is no attack.
    pub fn add(&mut self, line: &Line, exclusions: &Exclusions) {
        let place = Place::of_target(&line.target);
        let attacks: Vec<&Found> =
            line.rules.iter().filter(|it| is_attack(it, line, exclusions, &place)).collect();
        for found in line.rules.iter().filter(|found| is_excludable(found, line)) {
            let variables = variables(found);
            if variables.is_empty() {
                self.unnamed += 1;
            }
            for variable in variables {
                let is_suspicious = is_suspicious(&attacks, found, variable);
                self.note(line, found, (variable, &place), is_suspicious);
            }
        }
    }

    fn note(
        &mut self,
        line: &Line,
        found: &Found,
        (variable, place): (&str, &Place),
        is_suspicious: bool,
    ) {
        let places = self.groups.get(&(found.id, variable.to_owned()));
        let is_known = places.is_some_and(|places| places.contains_key(place));
        if !is_known && self.groups_count >= GROUPS_MAX {
            self.left_out += 1;
            return;
        }
        self.groups_count += usize::from(!is_known);
        let places = self.groups.entry((found.id, variable.to_owned())).or_default();
        let group = places.entry(place.clone()).or_default();
        group.requests += 1;
        group.clients.add(&line.client);
        group.suspicious += u64::from(is_suspicious);
        group.score = score(&found.severity);
        if group.message.is_empty() && !found.message.contains(MASK) {
            group.message = clipped(&found.message);
        }
        if group.example.is_none() {
            let values = found.values.iter().filter(|value| value.variable == variable);
            let shown = values.map(|it| &it.value).find(|value| !value.contains(MASK));
            group.example = shown.map(|value| clipped(value));
        }
    }
}

/// Whether a rule judges by itself: it scores, or it has decided.
fn is_excludable(found: &Found, line: &Line) -> bool {
    let sums_up = found.values.first().is_some_and(|value| value.variable.starts_with("TX:"));
    !sums_up && (!found.severity.is_empty() || found.id == line.rule)
}

/// What a rule scores, as CRS counts.
pub fn score(severity: &str) -> i64 {
    match severity {
        "EMERGENCY" | "ALERT" | "CRITICAL" => 5,
        "ERROR" => 4,
        "WARNING" => 3,
        "NOTICE" => 2,
        _ => 0,
    }
}

/// The variables that a rule was found in, as far as exclusions can name them: of its first link alone, since what is taken
/// from the others would take the whole rule away.
pub fn variables(found: &Found) -> Vec<&str> {
    let Some(first) = found.values.first().map(|value| collection(&value.variable)) else {
        return Vec::new();
    };
    let is_first = |value: &&Value| collection(&value.variable) == first;
    let mut values: Vec<&Value> = found.values.iter().filter(is_first).collect();
    // A chain may begin with all there is (all names of headers) and choose in a later link: its message names what it chose.
    let is_chain = values.len() < found.values.len();
    if is_chain && values.iter().any(|value| is_told(found, value)) {
        values.retain(|value| is_told(found, value));
    }
    let mut variables: Vec<&str> = Vec::new();
    for value in values {
        let variable = value.variable.as_str();
        if !is_name(variable) {
            return Vec::new();
        }
        if !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    variables
}

fn collection(variable: &str) -> &str {
    variable.split(':').next().unwrap_or_default()
}

/// Whether the rule's message or data has the value, as a word.
fn is_told(found: &Found, value: &Value) -> bool {
    let is_inside = |char: char| char.is_alphanumeric() || "-_".contains(char);
    let has_word = |text: &str| {
        text.match_indices(&value.value).any(|(at, word)| {
            !word.is_empty()
                && !text[..at].ends_with(is_inside)
                && !text[at + word.len()..].starts_with(is_inside)
        })
    };
    has_word(&found.message) || has_word(&found.data)
}

/// Whether rules can name a variable without quotes.
fn is_name(variable: &str) -> bool {
    let is_derived = variable.starts_with("TX") || variable.starts_with("MATCHED_VAR");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:[]@".contains(&byte);
    !is_derived && !variable.ends_with(':') && variable.bytes().all(is_plain)
}

/// Whether a rule tells of an attack; scanners are always some.
fn is_attack(found: &Found, line: &Line, exclusions: &Exclusions, place: &Place) -> bool {
    found.severity == "CRITICAL"
        && !found.tags.iter().any(|tag| tag == "attack-protocol")
        && is_excludable(found, line)
        && (family(found) == SCANNERS || !exclusions.take_away(found, place))
}

/// Whether a request has an attack of another kind in another place, or comes from a scanner.
fn is_suspicious(attacks: &[&Found], found: &Found, variable: &str) -> bool {
    attacks.iter().filter(|other| family(other) != family(found)).any(|other| {
        let is_elsewhere = other.values.iter().all(|value| value.variable != variable);
        is_elsewhere || family(other) == SCANNERS
    })
}

fn family(found: &Found) -> u64 {
    found.id / 1000
}

/// What the log shows of a text, in one line.
fn clipped(text: &str) -> String {
    let text: String = text.chars().take(EXAMPLE_BYTES_MAX).collect();
    crate::waf::log::bytes(&text).escape_ascii().to_string()
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

    #[test]
    fn variables_that_can_be_named() {
        for (values, expected) in [
            (&["ARGS:a", "ARGS:b", "ARGS:a"][..], &["ARGS:a", "ARGS:b"][..]),
            (&["ARGS:a[]", "REQUEST_METHOD"], &["ARGS:a[]"]),
            (&["REQUEST_BODY"], &["REQUEST_BODY"]),
            (&["TX:score"], &[]),
            (&["&REQUEST_HEADERS:Host"], &[]),
            (&["ARGS:a,b"], &[]),
            (&["ARGS:"], &[]),
            (&["ARGS:a\""], &[]),
            (&[], &[]),
        ] {
            let value = |it: &&str| Value { variable: (*it).into(), value: String::new() };
            let found = Found { values: values.iter().map(value).collect(), ..Found::default() };
            assert_eq!(variables(&found), expected, "{values:?}");
        }
    }

    #[test]
    fn chains_are_found_in_what_they_tell_of() {
        let value = |(variable, value): (&str, &str)| Value {
            variable: variable.into(),
            value: value.into(),
        };
        let names = [
            ("REQUEST_HEADERS_NAMES:Host", "host"),
            ("REQUEST_HEADERS_NAMES:X-Over", "x-over"),
            ("REQUEST_HEADERS_NAMES:TE", "te"),
        ];
        let found = |message: &str, data: &str, link: &[(&str, &str)]| Found {
            message: message.into(),
            data: data.into(),
            values: names.iter().chain(link).copied().map(value).collect(),
            ..Found::default()
        };
        let all: Vec<&str> = names.iter().map(|(variable, _)| *variable).collect();
        let last = [("TX:header_x-over", "/x-over/")];
        for (found, expected) in [
            (found("restricted (/x-over/)", "", &last), &all[1..2]),
            (found("restricted", "found: x-over", &last), &all[1..2]),
            (found("restricted, no-te", "", &last), &all[..]),
            // Without another link each value is a finding.
            (found("restricted (/x-over/)", "", &[]), &all[..]),
        ] {
            assert_eq!(variables(&found), expected, "{found:?}");
        }
    }
}
