//! Describes a recorded request.

use std::sync::Arc;

use weir_api::explanation::Field;
use weir_api::recorded::{
    AmountsTold, AskedTold, CandidateTold, DecidedTold, FailedTold, FirewallTold, RecordedRequest,
    RequestSummary, SoughtTold, WafRuleTold,
};
use weir_config::snapshot::{RuleName, Snapshot};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::local::pool::Preference;
use weir_http::h1::{HeadLimits, ParseProgress, parse_request};
use weir_http::message::{RequestHead, Span, Version};
use weir_http::path::TargetForm;
use weir_telemetry::records::record::{
    Candidate, FailedAttempt, Firewall, MemberSearch, Notes, Record, RecordedDecision,
    RecordedVerdict,
};

use crate::masks::{self, Masks};

/// The head of a recorded request, and its secrets.
struct Head {
    head: RequestHead,
    masks: Masks,
}

impl Head {
    /// Parses the recorded head. A head that cannot be parsed is not shown, because its secrets are unknown.
    fn of(notes: &Notes) -> Option<Self> {
        let mut head = RequestHead::new();
        let is_read = match notes.is_refused {
            true => read_refused(&notes.head, &mut head),
            false => {
                let form = TargetForm::default();
                let read = parse_request(&notes.head, &limits(notes), form, &mut head);
                matches!(read, Ok(ParseProgress::Complete { .. }))
            }
        };
        is_read.then(|| {
            let masks = Masks::of(&head, &notes.head, &notes.credential_fields);
            Self { head, masks }
        })
    }
}

/// Reads method and target of a refused request. The target may be the reason for the refusal, so it is not parsed.
fn read_refused(line: &[u8], head: &mut RequestHead) -> bool {
    let Some(space) = line.iter().position(|byte| *byte == b' ') else { return false };
    let span = |start: usize, end: usize| {
        Some(Span { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
    };
    let (Some(method), Some(target)) = (span(0, space), span(space + 1, line.len())) else {
        return false;
    };
    (head.method_text, head.target) = (method, target);
    true
}

/// The masks for texts that may contain any part of the request. If the head is incomplete or cannot be parsed, not all of its
/// secrets are known, so these texts are hidden.
fn masks_of_texts<'a>(head: Option<&'a Head>, notes: &Notes, none: &'a Masks) -> &'a Masks {
    match head {
        Some(head) if !notes.is_head_cut => &head.masks,
        None if notes.head.is_empty() => none,
        _ => &masks::ALL,
    }
}

/// Every stored head is within these limits.
pub(crate) fn limits(notes: &Notes) -> HeadLimits {
    let bytes = u32::try_from(notes.head.len() + 1).unwrap_or(u32::MAX);
    HeadLimits { head_size_max: bytes, headers_max: u16::MAX }
}

/// The known facts about a request.
pub fn summary(record: &Record) -> RequestSummary {
    let head = record.notes.as_deref().and_then(Head::of);
    summary_of(record, head.as_ref())
}

fn summary_of(record: &Record, head: Option<&Head>) -> RequestSummary {
    let amounts = record.amounts;
    let notes = record.notes.as_deref();
    let none = Masks::default();
    let masks = notes.map_or(&none, |notes| masks_of_texts(head, notes, &none));
    let text = |text: &[u8]| masks.text(text);
    let of_head = |read: &dyn Fn(&Head, &[u8]) -> String| {
        head.zip(notes).map(|(head, notes)| read(head, &notes.head))
    };
    let client = notes.and_then(|notes| notes.decided.first()?.client).or(record.client);
    RequestSummary {
        id: record.id.to_string(),
        begun_unix_ms: record.begun_unix_ms,
        virtual_server: record.virtual_server.to_string(),
        entered_at: record.entered_at.as_ref().map(ToString::to_string),
        client: client.map(|client| client.ip().to_string()),
        asked: AskedTold {
            method: of_head(&|it, input| it.masks.text(it.head.method_text.of(input))),
            host: of_head(&|it, input| it.masks.text(it.head.authority(input))),
            target: of_head(&|it, input| it.masks.target(it.head.target.of(input))),
            version: notes.and_then(|notes| notes.version).map(|it| version(it).to_owned()),
        },
        tls: record
            .tls
            .as_ref()
            .map(|(version, _)| version.to_string())
            .filter(|it| !it.is_empty()),
        status: record.status,
        pool: record.pool.as_ref().filter(|_| reached_pool(record)).map(ToString::to_string),
        member: record.member.as_ref().map(ToString::to_string),
        amounts: AmountsTold {
            retries: amounts.retries,
            bytes_received: amounts.bytes_received,
            bytes_sent: amounts.bytes_sent,
            queue_us: amounts.queue_us,
            connect_us: amounts.connect_us,
            first_byte_us: amounts.first_byte_us,
            total_us: amounts.total_us,
        },
        is_slow: record.is_slow,
        rules: record.rules.iter().map(rule_name).collect(),
        marks: record.marks.iter().map(|mark| text(mark)).collect(),
        persistence: record.persistence.map(|kept| kept.as_str().to_owned()),
        user: (!record.user.is_empty()).then(|| String::from_utf8_lossy(&record.user).into_owned()),
        waf: notes.and_then(|notes| notes.firewall.as_ref()).map(|it| it.outcome.to_owned()),
        termination: record.termination.as_str().to_owned(),
    }
}

/// Whether a member was sought. The pool of other records is the default pool of the virtual server.
fn reached_pool(record: &Record) -> bool {
    record.member.is_some() || record.notes.as_ref().is_none_or(|notes| !notes.sought.is_empty())
}

fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    }
}

fn rule_name(name: &RuleName) -> String {
    format!("{}/{}", name.policy, name.rule)
}

/// The whole record. `now`: the configuration in force.
pub fn recorded(record: &Record, now: &Arc<Snapshot>) -> RecordedRequest {
    let nothing = Notes::default();
    let notes = record.notes.as_deref().unwrap_or(&nothing);
    let head = Head::of(notes);
    let none = Masks::default();
    let masks = masks_of_texts(head.as_ref(), notes, &none);
    let fields = head.iter().flat_map(|it| it.head.fields.iter().map(move |field| (it, field)));
    let headers = fields.map(|(it, field)| {
        let (name, value) = (field.name.of(&notes.head), field.value.of(&notes.head));
        // Without all secrets of the head, any value may repeat one.
        let value = match notes.is_head_cut {
            true => masks.text(value),
            false => it.masks.field(name, value),
        };
        Field { name: it.masks.text(name), value }
    });
    let is_of_other = is_of_other(notes, now);
    // The rules of an equal configuration have the same places.
    let equal = || (!is_of_other).then(|| Arc::clone(now));
    let snapshot = notes.snapshot.upgrade().or_else(equal);
    let tls = notes.tls.as_ref();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    RecordedRequest {
        summary: summary_of(record, head.as_ref()),
        peer: record.peer.map(|peer| peer.to_string()),
        listen: notes.listen.map(|listen| listen.to_string()),
        server_name: tls.and_then(|tls| some(&tls.server_name)),
        cipher: record.tls.as_ref().and_then(|(_, cipher)| some(cipher)),
        certificate: tls.and_then(|tls| some(&tls.subject)),
        headers: headers.collect(),
        is_head_cut: notes.is_head_cut,
        is_of_other_configuration: is_of_other,
        decided: notes.decided.iter().map(|it| decided(it, snapshot.as_deref())).collect(),
        sought: notes.sought.iter().map(sought).collect(),
        failed: notes.failed.iter().map(failed).collect(),
        firewall: notes.firewall.as_ref().map(|it| firewall(it, masks)),
    }
}

/// Whether a request was decided by another configuration than this one. After a reload that has changed nothing it is the same.
pub(crate) fn is_of_other(notes: &Notes, now: &Arc<Snapshot>) -> bool {
    notes.content != now.resolved.content
}

fn decided(decided: &RecordedDecision, snapshot: Option<&Snapshot>) -> DecidedTold {
    let rules = snapshot.map(|snapshot| {
        let names = decided.followed.iter().filter_map(|rule| snapshot.rules.get(*rule as usize));
        names.map(rule_name).collect()
    });
    DecidedTold {
        virtual_server: decided.virtual_server.to_string(),
        client: decided.client.map(|client| client.ip().to_string()),
        rules,
        verdict: verdict(&decided.verdict),
    }
}

fn verdict(verdict: &RecordedVerdict) -> String {
    match verdict {
        RecordedVerdict::Forward { pool, delay_us: 0 } => format!("goes to pool {pool}"),
        RecordedVerdict::Forward { pool, delay_us } => {
            format!("goes to pool {pool}, held back for {} ms by a limit", delay_us.div_ceil(1_000))
        }
        RecordedVerdict::HandedOver(to) => format!("is handed to virtual server {to}"),
        RecordedVerdict::Ended(0) => "loses its connection by a rule".into(),
        RecordedVerdict::Ended(status) => format!("is answered with {status} by a rule"),
        RecordedVerdict::Misdirected => {
            "is for a name with other TLS settings than its connection".into()
        }
        RecordedVerdict::Limited(seconds) => {
            format!("is above a limit: another would pass in {seconds} s")
        }
        RecordedVerdict::LimitClosed => "is above a limit that closes connections".into(),
        RecordedVerdict::Unsendable => "cannot be sent: rules make an invalid target of it".into(),
    }
}

fn sought(sought: &MemberSearch) -> SoughtTold {
    let preference = match sought.preference {
        Preference::Any => "any",
        Preference::Key(_) => "key",
        Preference::Member(_) => "member",
    };
    SoughtTold {
        pool: sought.pool.to_string(),
        preference: preference.into(),
        candidates: sought.candidates.iter().map(candidate).collect(),
        left_out: sought.left_out,
    }
}

fn candidate(candidate: &Candidate) -> CandidateTold {
    let state = match candidate.health {
        Health::Up | Health::Draining if candidate.is_ejected => "ejected",
        health => health.as_str(),
    };
    CandidateTold {
        member: candidate.member.to_string(),
        state: state.into(),
        administrative: AdminState::as_str(candidate.state).into(),
        occupancy: candidate.occupancy,
        is_eligible: candidate.is_eligible,
    }
}

fn failed(failed: &FailedAttempt) -> FailedTold {
    FailedTold {
        pool: failed.pool.to_string(),
        member: failed.member.to_string(),
        why: failed.why.termination().as_str().into(),
        after_us: failed.after_us,
        took_us: failed.took_us,
    }
}

fn firewall(firewall: &Firewall, masks: &Masks) -> FirewallTold {
    let rule =
        |(id, message): &(u64, Box<[u8]>)| WafRuleTold { id: *id, message: masks.text(message) };
    FirewallTold {
        mode: firewall.mode.into(),
        outcome: firewall.outcome.into(),
        status: (firewall.status != 0).then_some(firewall.status),
        score: firewall.score,
        rules: firewall.rules.iter().map(rule).collect(),
        checks: firewall.checks.iter().map(|name| (*name).to_owned()).collect(),
    }
}
