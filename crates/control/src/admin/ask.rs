//! A request as its handler receives it.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::Context;
use super::answer::Answer;
use super::peer::Caller;
use super::problem::Problem;
use super::tags::Tags;

/// A request that has passed the checks of its route.
pub(super) struct Ask {
    pub(super) context: Context,
    pub(super) caller: Caller,
    /// Decoded path parameters by name.
    pub(super) path: Vec<(String, String)>,
    pub(super) query: Query,
    pub(super) body: Bytes,
    pub(super) if_match: Option<Tags>,
    /// Whether the client prefers an answer compressed by gzip.
    pub(super) takes_gzip: bool,
}

impl Ask {
    /// A path parameter; empty if the route does not have it.
    pub(super) fn name(&self, part: &str) -> &str {
        self.path.iter().find(|(name, _)| name == part).map_or("", |(_, value)| value)
    }

    /// A numeric path parameter.
    pub(super) fn number(&self, part: &str) -> Result<u64, Problem> {
        let wrong = |_| Problem::bad_request(format_args!("`{part}` in the path is no number"));
        self.name(part).parse().map_err(wrong)
    }

    /// Parses the document in the body.
    pub(super) fn document<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        // A list would be taken for the values of an object, in their order.
        if self.body.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::wrong_document("it is a list, and has to be an object"));
        }
        serde_json::from_slice(&self.body).map_err(Problem::wrong_document)
    }

    /// Checks `If-Match` against the tag of the current resource. The caller must hold the lock on changes.
    pub(super) fn must_match(&self, now: &Answer) -> Result<(), Problem> {
        let is_it = |tags: &Tags| now.tag.as_ref().is_some_and(|tag| tags.have(tag));
        if self.if_match.as_ref().is_none_or(is_it) {
            return Ok(());
        }
        let detail = "the resource has changed since the `ETag` in `If-Match`";
        Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail)
            .help("read it again, and decide again"))
    }
}

/// The decoded parameters of a path.
pub(super) fn path_parameters(
    path: Result<RawPathParams, RawPathParamsRejection>,
) -> Result<Vec<(String, String)>, Problem> {
    let path = path.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    Ok(path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// A query parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) summary: &'static str,
}

/// The type of a query parameter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A positive integer.
    Number { max: u64, default: u64 },
    /// A time in whole seconds; by default no condition.
    Seconds { max: u64 },
    /// A number of milliseconds, or 0.
    Time { max: u64, default: u64 },
    /// An IP address.
    Ip,
    /// A status of HTTP, or a class of them: `404`, `5xx`.
    Status,
}

/// The values of [`Kind::Status`], as a regular expression.
pub(super) const STATUS_PATTERN: &str = "^[1-9]([0-9]{2}|xx|XX)$";

/// The first and the last status of a value of [`Kind::Status`].
pub(super) fn statuses(text: &str) -> Option<(u16, u16)> {
    let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
    let (from, to) = match class {
        Some(class) => {
            let class: u16 = class.parse().ok()?;
            (class.checked_mul(100)?, class.checked_mul(100)?.checked_add(99)?)
        }
        None => (text.parse().ok()?, text.parse().ok()?),
    };
    (text.len() == 3 && from >= 100).then_some((from, to))
}

/// Validated query parameters.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Refuses unknown and repeated parameters and invalid values.
    pub(super) fn parse(query: &str, known: &'static [Parameter]) -> Result<Self, Problem> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                return Err(unknown(&name, known));
            };
            if found.iter().any(|(other, _)| *other == parameter.name) {
                return Err(Problem::bad_request(format_args!("`{name}` is given twice")));
            }
            check(parameter, &value)?;
            found.push((parameter.name, value.into_owned()));
        }
        Ok(Self(found))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn ip(&self, name: &str) -> Option<IpAddr> {
        self.text(name)?.parse().ok()
    }

    /// The value of a number, or its default.
    pub(super) fn number(&self, parameter: &Parameter) -> usize {
        let default = match parameter.kind {
            Kind::Number { default, .. } | Kind::Time { default, .. } => default,
            _ => 0,
        };
        let given = self.text(parameter.name).and_then(|text| text.parse().ok());
        usize::try_from(given.unwrap_or(default)).unwrap_or(usize::MAX)
    }
}

fn unknown(name: &str, known: &[Parameter]) -> Problem {
    let names = known.iter().map(|parameter| parameter.name);
    let problem = Problem::bad_request(format_args!("there is no parameter `{name}`"));
    match super::problem::listed(names) {
        Some(names) => problem.help(format!("available: {names}")),
        None => problem.help("this path takes no parameters"),
    }
}

fn check(parameter: &Parameter, value: &str) -> Result<(), Problem> {
    let expected = match parameter.kind {
        Kind::Text if value.is_empty() => "a text".to_owned(),
        Kind::Word(words) if !words.contains(&value) => format!("one of {}", words.join(", ")),
        Kind::Number { max, .. }
            if !value.parse::<u64>().is_ok_and(|number| (1..=max).contains(&number)) =>
        {
            format!("a number from 1 to {max}")
        }
        Kind::Seconds { max } if !value.parse::<u64>().is_ok_and(|number| number <= max) => {
            format!("a number of seconds up to {max}")
        }
        Kind::Time { max, .. } if !value.parse::<u64>().is_ok_and(|number| number <= max) => {
            format!("a number from 0 to {max}")
        }
        Kind::Ip if value.parse::<IpAddr>().is_err() => "an IP address".to_owned(),
        Kind::Status if statuses(value).is_none() => {
            "a status such as 404, or a class such as 5xx".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Problem::bad_request(format_args!("`{}` is {expected}", parameter.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] = &[
        Parameter { name: "limit", kind: Kind::Number { max: 10, default: 3 }, summary: "" },
        Parameter { name: "after", kind: Kind::Text, summary: "" },
        Parameter { name: "client", kind: Kind::Ip, summary: "" },
        Parameter { name: "state", kind: Kind::Word(&["up", "down"]), summary: "" },
        Parameter { name: "status", kind: Kind::Status, summary: "" },
    ];

    #[test]
    fn statuses_and_classes() {
        for (text, expected) in [
            ("404", Some((404, 404))),
            ("5xx", Some((500, 599))),
            ("2XX", Some((200, 299))),
            ("99", None),
            ("0xx", None),
            ("+99", None),
            ("1000", None),
            ("5xX", None),
            ("xx", None),
            ("", None),
        ] {
            assert_eq!(statuses(text), expected, "{text}");
        }
    }

    #[test]
    fn queries() {
        let parsed = |text| Query::parse(text, KNOWN).map_err(|problem| problem.detail);
        let query = parsed("after=team%2Fweb&client=%3A%3A1&limit=7&state=up").expect("it is good");
        assert_eq!(query.text("after"), Some("team/web"));
        assert_eq!(query.ip("client"), Some(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)));
        assert_eq!(query.number(&KNOWN[0]), 7);
        assert_eq!(parsed("").expect("it is good").number(&KNOWN[0]), 3);
        for (bad, why) in [
            ("limit=0", "`limit` is a number from 1 to 10"),
            ("limit=11", "`limit` is a number from 1 to 10"),
            ("limit=-1", "`limit` is a number from 1 to 10"),
            ("limit=", "`limit` is a number from 1 to 10"),
            ("limit=1&limit=1", "`limit` is given twice"),
            ("after=", "`after` is a text"),
            ("client=a", "`client` is an IP address"),
            ("state=Up", "`state` is one of up, down"),
            ("status=x", "`status` is a status such as 404, or a class such as 5xx"),
            ("other=1", "there is no parameter `other`"),
            ("&=&", "there is no parameter ``"),
        ] {
            assert_eq!(parsed(bad).err().as_deref(), Some(why), "{bad}");
        }
    }
}
