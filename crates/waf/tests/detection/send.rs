//! Requests in the form that programs send, and the verdicts on them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weir_waf::inspection::{BodyLength, Inspection, Mode, Options, Request, Verdict};
use weir_waf::plan::{RuleSet, Settings, View};

const CLIENT: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)), 51_234);
const SERVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), 443);
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
pub const FORM: &str = "application/x-www-form-urlencoded";

/// A request.
#[derive(Debug, Clone)]
pub struct Sent {
    pub method: &'static str,
    pub target: Vec<u8>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Sent {
    /// The request of a browser that follows a link.
    pub fn get(target: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("Host", "www.example.com"),
            ("User-Agent", BROWSER),
            ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("Accept-Language", "en-US,en;q=0.5"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ];
        let owned = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { method: "GET", target: target.into(), headers: owned.into(), body: Vec::new() }
    }

    /// A POST request with a body of this type.
    pub fn post(target: impl Into<Vec<u8>>, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let sent = Self::get(target);
        let sent = sent.with("Content-Type", content_type);
        let sent = sent.with("Content-Length", &body.len().to_string());
        Self { method: "POST", body, ..sent }
    }

    /// A form with encoded names and values.
    pub fn form(target: &str, fields: &[(&str, &[u8])]) -> Self {
        Self::post(target, FORM, pairs(fields))
    }

    /// A GET request with encoded arguments in the query.
    pub fn query(path: &str, fields: &[(&str, &[u8])]) -> Self {
        Self::get([path.as_bytes(), b"?", &pairs(fields)].concat())
    }

    /// Adds a header, or replaces its value.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

fn pairs(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let pair =
        |(name, value): &(&str, &[u8])| [escaped(name.as_bytes()), escaped(value)].join(&b'=');
    fields.iter().map(pair).collect::<Vec<_>>().join(&b'&')
}

/// Encodes a text as browsers encode forms (application/x-www-form-urlencoded of the URL standard).
fn escaped(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.len() * 2);
    for byte in part {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(*byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

/// A view of the rules with these settings.
pub fn view(rules: &Arc<RuleSet>, pairs: &[(&str, &str)]) -> Arc<View> {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let settings = Settings { variables: owned.collect() };
    Arc::new(View::new(Arc::clone(rules), &settings).unwrap_or_else(|it| panic!("{it:?}")))
}

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The rule that denies the request, and its phase; `None`: it passes.
    pub denied: Option<(u64, u8)>,
    pub score: i64,
    /// The logged rules that matched.
    pub ids: Vec<u64>,
}

/// The parts of a request.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub protocol: &'a [u8],
    pub headers: &'a [(&'a [u8], &'a [u8])],
    pub body: &'a [u8],
}

/// The verdict, its phase, and the findings.
pub struct Judged {
    pub verdict: Verdict,
    pub phase: u8,
    pub inspection: Inspection,
}

impl Judged {
    /// The ids of the logged rules that matched.
    pub fn ids(&self) -> Vec<u64> {
        let logged = self.inspection.matches().iter().filter(|it| it.is_logged);
        logged.map(|it| it.id).collect()
    }
}

/// Inspects a request in both request phases, as a virtual server in blocking mode does.
pub fn judge(view: &Arc<View>, options: &Options, parts: &Parts<'_>) -> Judged {
    let request = Request {
        client: CLIENT,
        server: SERVER,
        method: parts.method,
        received_target: parts.target,
        target: parts.target,
        protocol: parts.protocol,
        headers: parts.headers,
        body: BodyLength::Known(parts.body.len() as u64),
        changed_cookies: &[],
        unique_id: b"detection",
    };
    let mut inspection = Inspection::begin(Arc::clone(view), options, &request);
    let (mut verdict, mut phase) = (inspection.request_headers(), 1);
    if verdict == Verdict::Pass {
        // A body that no rule needs is not inspected.
        if inspection.needs_body() {
            inspection.body(parts.body);
            inspection.end_body();
        }
        (verdict, phase) = (inspection.request_body(), 2);
    }
    Judged { verdict, phase, inspection }
}

/// The verdict on a request.
pub fn judged(view: &Arc<View>, sent: &Sent) -> Verdict {
    judge_sent(view, sent).verdict
}

/// Inspects a request. Panics if the verdict is neither a pass nor the denial by a rule.
pub fn run(view: &Arc<View>, sent: &Sent) -> Outcome {
    let judged = judge_sent(view, sent);
    Outcome {
        denied: rule_of(&judged.verdict).map(|rule| (rule, judged.phase)),
        score: judged.inspection.number("blocking_inbound_anomaly_score"),
        ids: judged.ids(),
    }
}

/// The verdict on a request, with its phase and findings.
pub fn judge_sent(view: &Arc<View>, sent: &Sent) -> Judged {
    judge_with(view, &Options::new(Mode::Block), sent)
}

/// The same with these options.
pub fn judge_with(view: &Arc<View>, options: &Options, sent: &Sent) -> Judged {
    let headers: Vec<(&[u8], &[u8])> =
        sent.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let parts = Parts {
        method: sent.method.as_bytes(),
        target: &sent.target,
        protocol: b"HTTP/1.1",
        headers: &headers,
        body: &sent.body,
    };
    judge(view, options, &parts)
}

fn rule_of(verdict: &Verdict) -> Option<u64> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Deny { status: 403, rule } => Some(*rule),
        other => panic!("{other:?}"),
    }
}
