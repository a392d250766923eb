//! The simple evaluator that compiled expressions are compared with: it walks the source tree, with
//! owned values, over a model of a request that was never serialised.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::expression::ast::{Kind, Node, Operator, Relation};
use crate::expression::testing::{BLOCKED, OFFICE, PREFIXES, TARGETS};
use crate::jwt::testing::Issuer;

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Model {
    pub method: &'static str,
    /// As sent, as expressions read it, and as the member gets it.
    pub path: (&'static str, &'static str, &'static str),
    /// Names and values as sent.
    pub query: Option<Vec<(&'static str, &'static str)>>,
    /// The sent value, and its value in expressions.
    pub host: (&'static str, &'static str),
    pub headers: Vec<(&'static str, &'static str)>,
    /// One Cookie field each.
    pub cookies: Vec<Vec<(&'static str, &'static str)>>,
    pub client: Option<SocketAddr>,
    pub status: u16,
    pub response_headers: Vec<(&'static str, &'static str)>,
    /// Whether it has the token with [`CLAIMS`].
    pub has_token: bool,
}

/// A claim of a token, and its value in expressions.
pub const CLAIMS: [(&str, &str, &[&str]); 4] = [
    ("sub", r#""a""#, &["a"]),
    ("groups", r#"["x","1","/a"]"#, &["x", "1", "/a"]),
    ("level", "2", &["2"]),
    ("exp", "9999", &["9999"]),
];

/// A token of the issuer used by samples.
static TOKEN: LazyLock<String> = LazyLock::new(|| {
    let claims = CLAIMS.map(|(name, json, _)| format!("\"{name}\":{json}"));
    Issuer::ed(7).sign(r#"{"alg":"EdDSA"}"#, &format!("{{{}}}", claims.join(",")))
});

impl Model {
    fn query_text(&self) -> String {
        let pairs = self.query.iter().flatten().map(|(name, value)| format!("{name}={value}"));
        let text = pairs.collect::<Vec<_>>().join("&");
        if self.query.is_some() { format!("?{text}") } else { text }
    }

    pub fn request(&self) -> String {
        let mut text = format!(
            "{} {}{} HTTP/1.1\r\nHost: {}\r\n",
            self.method,
            self.path.0,
            self.query_text(),
            self.host.0
        );
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        for line in self.cookie_lines() {
            text += &format!("Cookie: {line}\r\n");
        }
        if self.has_token {
            text += &format!("Authorization: Bearer {}\r\n", *TOKEN);
        }
        text + "\r\n"
    }

    fn cookie_lines(&self) -> Vec<String> {
        let line = |pairs: &Vec<(&str, &str)>| {
            pairs
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join("; ")
        };
        self.cookies.iter().map(line).collect()
    }

    pub fn response(&self) -> String {
        let mut text = format!("HTTP/1.1 {} X\r\nContent-Length: 0\r\n", self.status);
        for (name, value) in &self.response_headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n"
    }

    fn values(&self, map: &str, name: &str) -> Found {
        let headers = match (map, name) {
            ("request.headers", "host") => &vec![("host", self.host.0)],
            ("request.headers", "cookie") => {
                let lines = self.cookie_lines().into_iter();
                return Found::List(lines.map(|line| Found::Text(line.into())).collect());
            }
            ("request.headers", _) => &self.headers,
            _ => &self.response_headers,
        };
        let of_name = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        Found::List(of_name.map(|(_, value)| Found::Text((*value).into())).collect())
    }

    fn claim(&self, name: &str) -> Option<&'static [&'static str]> {
        let claim = CLAIMS.iter().find(|(known, _, _)| *known == name);
        claim.filter(|_| self.has_token).map(|(_, _, texts)| *texts)
    }

    fn named(&self, map: &str, name: &str) -> Option<Vec<u8>> {
        let joined = |headers: &[(&str, &str)]| {
            let of_name = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            let values: Vec<&str> = of_name.map(|(_, value)| *value).collect();
            (!values.is_empty()).then(|| values.join(", ").into_bytes())
        };
        match map {
            "request.headers" => match name.to_ascii_lowercase().as_str() {
                "host" => Some(self.host.0.into()),
                "cookie" => {
                    let lines = self.cookie_lines();
                    (!lines.is_empty()).then(|| lines.join(", ").into_bytes())
                }
                _ => joined(&self.headers),
            },
            "response.headers" => joined(&self.response_headers),
            "response.cookies" => {
                let set = self
                    .response_headers
                    .iter()
                    .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
                let pairs = set.filter_map(|(_, value)| {
                    let (name, value) = value.split(';').next()?.split_once('=')?;
                    Some((name.trim(), value.trim()))
                });
                let mut of_name = pairs.filter(|(known, _)| *known == name);
                of_name.next_back().map(|(_, value)| value.as_bytes().to_vec())
            }
            "jwt api.claims" => {
                let texts = self.claim(name)?;
                Some(texts.join(", ").into_bytes())
            }
            "jwt other.claims" => None,
            "request.cookies" => self
                .cookies
                .iter()
                .flatten()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_bytes().to_vec()),
            "request.query" => {
                let pairs = self.query.iter().flatten();
                let mut decoded = pairs.map(|(name, value)| (unescape(name), unescape(value)));
                decoded.find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value)
            }
            other => panic!("{other}"),
        }
    }
}

/// Percent-decoding, part by part.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    out.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        match part.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                out.push(byte);
                out.extend(part[2..].bytes());
            }
            _ => {
                out.push(b'%');
                out.extend(part.bytes());
            }
        }
    }
    out
}

#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Boolean(bool),
    Text(Vec<u8>),
    Integer(i64),
    Address(Option<IpAddr>),
    Network(String),
    List(Vec<Found>),
    /// A value that is read with brackets, by its path.
    Named(String),
}

impl Found {
    /// The value as a template writes it.
    pub fn text(self) -> Vec<u8> {
        match self {
            Found::Text(text) => text,
            Found::Integer(value) => value.to_string().into(),
            Found::Address(address) => address.map_or(String::new(), |ip| ip.to_string()).into(),
            other => panic!("{other:?}"),
        }
    }

    fn boolean(self) -> bool {
        match self {
            Found::Boolean(value) => value,
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Default)]
pub struct Reference {
    regexes: HashMap<String, Regex>,
}

impl Reference {
    pub fn evaluate(&mut self, node: &Node, model: &Model) -> Found {
        match &node.kind {
            Kind::Text(text) => Found::Text(text.clone().into()),
            Kind::Integer(value) => Found::Integer(*value),
            Kind::Boolean(value) => Found::Boolean(*value),
            Kind::Name(name) => Found::Named(name.clone()),
            Kind::Field { of, name } => {
                let Found::Named(group) = self.evaluate(of, model) else { panic!() };
                field(model, format!("{group}.{}", name.text))
            }
            Kind::Index { of, key } => {
                let map = match self.evaluate(of, model) {
                    Found::Named(map) => map,
                    Found::List(values) => {
                        let Found::Integer(at) = self.evaluate(key, model) else { panic!() };
                        let value = values.into_iter().nth(at as usize);
                        return value.unwrap_or(Found::Text(Vec::new()));
                    }
                    other => panic!("{other:?}"),
                };
                let key = self.evaluate(key, model).text();
                match map.as_str() {
                    "pools" => Found::Named(format!("pool {}", String::from_utf8(key).unwrap())),
                    "jwt" => Found::Named(format!("jwt {}", String::from_utf8(key).unwrap())),
                    "data" => Found::Named(format!("data {}", String::from_utf8(key).unwrap())),
                    "data targets" => {
                        let target = TARGETS.iter().find(|(known, _)| known.as_bytes() == key);
                        Found::Text(target.map_or("", |(_, value)| *value).into())
                    }
                    map => {
                        let name = String::from_utf8(key).unwrap();
                        Found::Text(model.named(map, &name).unwrap_or_default())
                    }
                }
            }
            Kind::Call { of, name, arguments } => {
                let of = of.as_ref().map(|of| self.evaluate(of, model));
                if let (Some(Found::Named(map)), "all") = (&of, name.text.as_str()) {
                    let name = self.evaluate(&arguments[0], model).text();
                    return model.values(map, std::str::from_utf8(&name).unwrap());
                }
                let values = of.into_iter().chain(
                    arguments
                        .iter()
                        .map(|argument| self.evaluate(argument, model))
                        .collect::<Vec<_>>(),
                );
                self.call(&name.text, values.collect())
            }
            Kind::List(nodes) => {
                Found::List(nodes.iter().map(|node| self.evaluate(node, model)).collect())
            }
            Kind::Not(of) => Found::Boolean(!self.evaluate(of, model).boolean()),
            Kind::Negative(of) => {
                let Found::Integer(value) = self.evaluate(of, model) else { panic!() };
                Found::Integer(within_64_bits(-i128::from(value)))
            }
            Kind::Arithmetic { operator, sides } => {
                let [left, right] =
                    [0, 1].map(|side: usize| match self.evaluate(&sides[side], model) {
                        Found::Integer(value) => i128::from(value),
                        other => panic!("{other:?}"),
                    });
                Found::Integer(within_64_bits(match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left.checked_div(right).unwrap_or(0),
                    Operator::Remainder => left.checked_rem(right).unwrap_or(0),
                }))
            }
            Kind::Compare { relation: Relation::In, sides } if is_claim(&sides[1]) => {
                Found::Boolean(self.is_among_claims(&sides[0], &sides[1], model))
            }
            Kind::Compare { relation, sides } => {
                let left = self.evaluate(&sides[0], model);
                let right = self.evaluate(&sides[1], model);
                Found::Boolean(compare(*relation, left, right, model))
            }
            // Without short cuts: nothing has side effects.
            Kind::All(nodes) => Found::Boolean(
                nodes
                    .iter()
                    .map(|node| self.evaluate(node, model).boolean())
                    .fold(true, |a, b| a & b),
            ),
            Kind::Any(nodes) => Found::Boolean(
                nodes
                    .iter()
                    .map(|node| self.evaluate(node, model).boolean())
                    .fold(false, |a, b| a | b),
            ),
            Kind::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if self.evaluate(condition, model).boolean() { yes } else { no };
                self.evaluate(chosen, model)
            }
        }
    }

    fn is_among_claims(&mut self, text: &Node, claim: &Node, model: &Model) -> bool {
        let Kind::Index { of, key } = &claim.kind else { panic!() };
        let Found::Named(map) = self.evaluate(of, model) else { panic!() };
        let name = String::from_utf8(self.evaluate(key, model).text()).unwrap();
        let text = self.evaluate(text, model).text();
        let texts = model.claim(&name).filter(|_| map == "jwt api.claims");
        // A number is not a text.
        let is_text = !matches!(name.as_str(), "level" | "exp");
        let has = |texts: &[&str]| texts.iter().any(|it| it.as_bytes() == text);
        is_text && texts.is_some_and(has)
    }

    fn call(&mut self, name: &str, mut values: Vec<Found>) -> Found {
        if let Some(made) = made(name, &values) {
            return Found::Text(made);
        }
        let argument = values.pop().unwrap();
        let receiver = values.pop();
        match (name, receiver, argument) {
            ("cidr", None, Found::Text(text)) => Found::Network(String::from_utf8(text).unwrap()),
            ("string", None, value) => Found::Text(value.text()),
            // Below one there is only one number.
            ("random", None, Found::Integer(1)) => Found::Integer(0),
            ("int", None, Found::Text(text)) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let is_signed = text.starts_with('+');
                let value = text.parse().ok().filter(|_| !is_signed);
                Found::Integer(value.map_or(0, within_64_bits))
            }
            ("size", None, Found::List(values)) => Found::Integer(values.len() as i64),
            ("size", None, Found::Text(text)) => Found::Integer(text.len() as i64),
            ("lowerAscii", None, Found::Text(text)) => Found::Text(text.to_ascii_lowercase()),
            ("containsIP", Some(Found::Network(network)), Found::Address(address)) => {
                Found::Boolean(address.is_some_and(|address| within(address, &network)))
            }
            ("matches", Some(Found::Text(text)), Found::Text(pattern)) => {
                let pattern = String::from_utf8(pattern).unwrap();
                let regex = self.regexes.entry(pattern).or_insert_with_key(|pattern| {
                    let build = |unicode| RegexBuilder::new(pattern).unicode(unicode).build();
                    build(false).or_else(|_| build(true)).unwrap()
                });
                Found::Boolean(regex.is_match(&text))
            }
            (name, Some(Found::Text(text)), Found::Text(part)) => {
                Found::Boolean(has_part(name, &text, &part))
            }
            (name, Some(Found::Text(text)), set) => {
                let name = name.strip_suffix("Any").unwrap();
                Found::Boolean(texts(set).iter().any(|part| has_part(name, &text, part)))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn within_64_bits(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The result of a function on a text, with a character for each byte.
fn made(name: &str, values: &[Found]) -> Option<Vec<u8>> {
    let Some(Found::Text(receiver)) = values.first() else { return None };
    let text: String = receiver.iter().map(|byte| char::from(*byte)).collect();
    let given = |place: usize| match &values[place] {
        Found::Text(text) => text.iter().map(|byte| char::from(*byte)).collect::<String>(),
        other => panic!("{other:?}"),
    };
    let number = |place: usize| match &values[place] {
        Found::Integer(number) => *number as usize,
        other => panic!("{other:?}"),
    };
    let made = match name {
        "part" => text.split(&given(1)).nth(number(2)).unwrap_or_default().to_owned(),
        "segment" => {
            let path = text.strip_prefix('/').unwrap_or(&text);
            path.split('/').nth(number(1) - 1).unwrap_or_default().to_owned()
        }
        "substring" => {
            let to = if values.len() > 2 { number(2) } else { usize::MAX };
            text.chars().take(to).skip(number(1)).collect()
        }
        "replace" => text.replace(&given(1), &given(2)),
        "urlDecode" => {
            let (mut out, mut rest) = (String::new(), &text[..]);
            while let Some(first) = rest.chars().next() {
                let digits =
                    rest.get(1..3).filter(|it| it.chars().all(|it| it.is_ascii_hexdigit()));
                match (first, digits) {
                    ('%', Some(digits)) => {
                        out.push(char::from(u8::from_str_radix(digits, 16).unwrap()));
                        rest = &rest[3..];
                    }
                    _ => {
                        out.push(first);
                        rest = &rest[first.len_utf8()..];
                    }
                }
            }
            out
        }
        "base64Decode" => {
            let digits = receiver.iter().filter(|byte| **byte != b'=');
            let plain = digits.map(|byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                other => *other,
            });
            let plain: Vec<u8> = plain.collect();
            let is_mixed = receiver.iter().any(|byte| b"-_".contains(byte))
                && receiver.iter().any(|byte| b"+/".contains(byte));
            let padding = receiver.len() - plain.len();
            let is_padded = padding == 0 || (padding + plain.len()).is_multiple_of(4);
            let is_at_end = receiver[..plain.len()].iter().all(|byte| *byte != b'=');
            let decoded = data_encoding::BASE64_NOPAD.decode(&plain).ok();
            return decoded.filter(|_| !is_mixed && is_padded && is_at_end).or(Some(Vec::new()));
        }
        _ => return None,
    };
    Some(made.chars().map(|it| it as u32 as u8).collect())
}

/// Whether it is `jwt[…].claims[…]`.
fn is_claim(node: &Node) -> bool {
    let Kind::Index { of, .. } = &node.kind else { return false };
    matches!(&of.kind, Kind::Field { name, .. } if name.text == "claims")
}

fn field(model: &Model, path: String) -> Found {
    let text = |text: &str| Found::Text(text.into());
    match path.as_str() {
        "request.method" => text(model.method),
        "request.path" => text(model.path.1),
        "request.raw_path" => text(model.path.0),
        "request.target" => text(&(model.path.2.to_owned() + &model.query_text())),
        "request.raw_query" => text(model.query_text().trim_start_matches('?')),
        "request.host" => text(model.host.1),
        "request.scheme" => text("http"),
        "request.version" => text("1.1"),
        "request.user" => text(""),
        "jwt api.valid" => Found::Boolean(model.has_token),
        "jwt other.valid" => Found::Boolean(false),
        "client.ip" => Found::Address(model.client.map(|client| unmap(client.ip()))),
        "client.port" => Found::Integer(model.client.map_or(0, |client| client.port().into())),
        "server.ip" => Found::Address(Some([192, 0, 2, 80].into())),
        "server.port" => Found::Integer(443),
        "pool web.up_members" => Found::Integer(2),
        "pool web.connections" => Found::Integer(17),
        "member.ip" => Found::Address(Some([10, 0, 0, 11].into())),
        "member.port" => Found::Integer(9001),
        "member.name" => text("web.example:9001"),
        "member.pool" => text("web"),
        "tls.client_certificate.serial" | "tls.client_certificate.fingerprint" => text(""),
        "tls.client_certificate.uris" => Found::List(Vec::new()),
        "time.hour" => Found::Integer(3),
        "time.minute" => Found::Integer(55),
        "time.weekday" => Found::Integer(7),
        "time.day" => Found::Integer(29),
        "time.month" => Found::Integer(11),
        "time.year" => Found::Integer(2026),
        "time.date" => text("2026-11-29"),
        "time.clock" => text("03:55:33"),
        "response.status" => Found::Integer(model.status.into()),
        "tls.sni" | "tls.client_certificate.subject" => text(""),
        _ => Found::Named(path),
    }
}

fn unmap(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        v4 => v4,
    }
}

fn bits(address: IpAddr) -> String {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets.iter().map(|octet| format!("{octet:08b}")).collect()
}

fn within(address: IpAddr, network: &str) -> bool {
    let (first, length) = network.split_once('/').unwrap_or((network, "128"));
    let (address, first) = (bits(address), bits(unmap(first.parse().unwrap())));
    let length = length.parse::<usize>().unwrap().min(first.len());
    address.len() == first.len() && address[..length] == first[..length]
}

fn has_part(name: &str, text: &[u8], part: &[u8]) -> bool {
    match name {
        "startsWith" => text.get(..part.len()) == Some(part),
        "endsWith" => text.len() >= part.len() && &text[text.len() - part.len()..] == part,
        "contains" => part.is_empty() || text.windows(part.len()).any(|window| window == part),
        other => panic!("{other}"),
    }
}

/// The texts of a list or a data set.
fn texts(set: Found) -> Vec<Vec<u8>> {
    let owned = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match set {
        Found::List(values) => values.into_iter().map(Found::text).collect(),
        Found::Named(name) if name == "data blocked" => owned(&BLOCKED),
        Found::Named(name) if name == "data prefixes" => owned(&PREFIXES),
        Found::Named(name) if name == "data targets" => owned(&TARGETS.map(|(key, _)| key)),
        other => panic!("{other:?}"),
    }
}

fn compare(relation: Relation, left: Found, right: Found, model: &Model) -> bool {
    let order = match (&left, &right) {
        (Found::Text(one), Found::Text(other)) => one.cmp(other),
        (Found::Integer(one), Found::Integer(other)) => one.cmp(other),
        (Found::Boolean(one), Found::Boolean(other)) => one.cmp(other),
        (Found::Address(one), Found::Address(other)) => one.cmp(other),
        (Found::Address(address), Found::Text(text))
        | (Found::Text(text), Found::Address(address)) => {
            let literal = std::str::from_utf8(text).unwrap().parse().unwrap();
            address.cmp(&Some(unmap(literal)))
        }
        _ => return is_in(left, right, model),
    };
    match relation {
        Relation::Equal => order.is_eq(),
        Relation::NotEqual => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
        Relation::In => panic!("{left:?} in {right:?}"),
    }
}

fn is_in(left: Found, right: Found, model: &Model) -> bool {
    match (left, right) {
        (Found::Address(address), Found::List(networks)) => networks.into_iter().any(|network| {
            let network = String::from_utf8(network.text()).unwrap();
            address.is_some_and(|address| within(address, &network))
        }),
        (Found::Address(address), Found::Named(name)) => {
            assert_eq!(name, "data office");
            address.is_some_and(|address| OFFICE.iter().any(|network| within(address, network)))
        }
        (left, Found::List(values)) => values.contains(&left),
        (Found::Text(text), Found::Named(name)) if name.starts_with("data ") => {
            texts(Found::Named(name)).contains(&text)
        }
        (Found::Text(name), Found::Named(map)) => {
            model.named(&map, std::str::from_utf8(&name).unwrap()).is_some()
        }
        other => panic!("{other:?}"),
    }
}
