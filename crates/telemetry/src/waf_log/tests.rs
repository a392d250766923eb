use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use weir_core::policy::WafMode;
use weir_event_loop::clock;
use weir_http::secret_names::CredentialFields;
use weir_waf::checks::{Action, Check, Checks, Policy};
use weir_waf::inspection::{BodyLength, Limit, Mode, Options, Request};
use weir_waf::plan::{Files, RuleSet, Settings, View};

use super::*;

struct One(String);

impl Files for One {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().into_bytes())
    }
}

const RULES: &str = "SecAction \"id:1,phase:1,nolog,pass,setvar:tx.anomaly_score=5,setvar:tx.inbound_anomaly_score_threshold=5\"
SecRule ARGS|REQUEST_HEADERS \"@contains evil\" \"id:2,phase:1,deny,log,severity:CRITICAL,tag:'attack-x',tag:'level/1',\\
    msg:'Evil \\\"things\\\"',logdata:'found in %{MATCHED_VAR_NAME}: %{MATCHED_VAR}'\"
SecRule ARGS \"@contains evil\" \"id:3,phase:1,pass,nolog,auditlog,msg:'not logged'\"";

/// The inspection of a request by these rules.
fn inspected(rules: &str, target: &str, headers: &[(&str, &str)]) -> Inspection {
    inspected_by(&Options::new(Mode::Detect), rules, target, headers)
}

fn inspected_by(
    options: &Options,
    rules: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Inspection {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut One(rules.into())).expect("rules");
    let view = View::new(Arc::new(rules), &Settings::default()).expect("a view");
    let headers: Vec<(&[u8], &[u8])> =
        headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let request = Request {
        client: address,
        server: address,
        method: b"GET",
        received_target: target.as_bytes(),
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
        headers: &headers,
        body: BodyLength::Unknown,
        changed_cookies: &[],
        unique_id: b"1",
    };
    let mut inspection = Inspection::begin(Arc::new(view), options, &request);
    inspection.request_headers();
    inspection
}

fn unwritten(
    inspection: impl Into<Option<Inspection>>,
    outcome: InspectionOutcome,
    status: u16,
) -> UnwrittenLine {
    let report = InspectionReport {
        request_id: "abc".into(),
        virtual_server: "shop".into(),
        credential_fields: CredentialFields::default(),
        client: Some("192.0.2.1:4711".parse().unwrap()),
        mode: WafMode::Block,
        outcome,
        status,
        inspection: inspection.into(),
    };
    let (sender, _) = sync_channel(1);
    UnwrittenLine { time: "1970-01-01T00:00:00.007Z".into(), report: Box::new(report), sender }
}

fn line(
    inspection: impl Into<Option<Inspection>>,
    outcome: InspectionOutcome,
    status: u16,
) -> Vec<u8> {
    let mut line = Vec::new();
    unwritten(inspection, outcome, status).put(&mut line);
    line
}

fn check(line: Vec<u8>, expected: &str) {
    assert_eq!(String::from_utf8(line).unwrap(), expected.replace('\n', "") + "\n");
}

#[test]
fn a_request_that_was_blocked() {
    let headers = [("Host", "shop.example:8080"), ("User-Agent", "curl/\"8\"")];
    let inspection = inspected(RULES, "/a?id=evil%ff&token=12345", &headers);
    check(
        line(inspection, InspectionOutcome::Blocked(Cause::Rule(2)), 403),
        r#"{"type":"waf","time":"1970-01-01T00:00:00.007Z","request_id":"abc",
"client":"192.0.2.1:4711","virtual_server":"shop","method":"GET","host":"shop.example:8080",
"target":"/a?id=evil%ff&token=***","version":"HTTP/1.1","user_agent":"curl/\"8\"",
"mode":"block","outcome":"blocked","status":403,"rule":2,"blocked":true,"score":5,"threshold":5,
"rules":[{"id":2,"message":"Evil \"things\"","data":"found in ARGS:id: evil\u00ff","severity":"CRITICAL",
"tags":["attack-x","level/1"],"file":"rules.conf","line":2,"values":[{"variable":"ARGS:id","value":"evil\u00ff"}]}]}"#,
    );
}

#[test]
fn a_request_that_could_not_be_judged() {
    let inspection = inspected("SecAction \"id:1,phase:1,nolog,pass\"", "/", &[]);
    let outcome = InspectionOutcome::Unjudged { limit: Limit::Work, is_blocked: false };
    check(
        line(inspection, outcome, 0),
        r#"{"type":"waf","time":"1970-01-01T00:00:00.007Z","request_id":"abc",
"client":"192.0.2.1:4711","virtual_server":"shop","method":"GET","host":"",
"target":"/","version":"HTTP/1.1","user_agent":"","mode":"block","outcome":"unjudged","limit":"work",
"blocked":false,"score":0,"rules":[]}"#,
    );
}

#[test]
fn no_secret_is_in_a_line() {
    for (target, headers) in [
        ("/?password=evil-hunter2", vec![]),
        ("/?pass%77ord=evil-hunter2", vec![]),
        ("/?q=evil-hunter2&pin=hunter2", vec![]),
        ("/?q=evil", vec![("Cookie", "a=evil-hunter2; b=c")]),
        ("/?q=evil+hunter2", vec![("Cookie", "lang=hunter2")]),
        ("/?q=evil", vec![("Authorization", "Basic evil-hunter2")]),
        ("/?q=evil+hunter2", vec![("Authorization", "Bearer HUNTER2")]),
        ("/", vec![("X-Auth-Token", "evil-hunter2")]),
        ("/", vec![("Referer", "https://shop.example/?evil&token=hunter2")]),
    ] {
        let inspection = inspected(RULES, target, &headers);
        assert!(!inspection.matches().is_empty(), "{target} {headers:?}");
        let line = line(inspection, InspectionOutcome::Detected(Cause::Rule(2)), 0);
        let line = String::from_utf8(line).unwrap();
        // The target may contain `hunter2` outside of secret parameters.
        let (head, rules) = line.split_once("\"rules\":").unwrap();
        assert!(!rules.to_ascii_lowercase().contains("hunter2"), "{target} {headers:?}: {rules}");
        assert!(!head.contains("pin=hunter2") && !head.contains("ord=evil"), "{head}");
    }
}

#[test]
fn a_line_is_cut_rule_by_rule() {
    let rule = |id: usize| {
        format!(
            "SecRule ARGS \"@rx .\" \"id:{id},phase:1,pass,log,msg:'%{{MATCHED_VAR}}',logdata:'%{{MATCHED_VAR}}'\"\n"
        )
    };
    let rules: String = (1..=100).map(rule).collect();
    for (value, shown_min) in [("a", 20), ("%ff", 4)] {
        let target = format!("/?a={}", value.repeat(2_000));
        let inspection = inspected(&rules, &target, &[("User-Agent", &"\u{ff}".repeat(9_000))]);
        let line = line(inspection, InspectionOutcome::Passed, 0);
        assert!(line.len() <= LINE_BYTES_MAX && line.ends_with(b"}\n"), "{}", line.len());
        let text = String::from_utf8(line).unwrap();
        let shown = text.matches("\"id\":").count();
        assert!((shown_min..=RULES_MAX).contains(&shown), "{shown}");
        assert!(text.ends_with(&format!("],\"rules_left_out\":{}}}\n", 100 - shown)));
    }
}

#[test]
fn findings_leave_room_for_rules() {
    let mut policy = Policy::default();
    policy.set(Check::NulByte, Action::Alarm);
    let checks = Some(Arc::new(Checks { policy, interface: None }));
    let options = Options { checks, ..Options::new(Mode::Detect) };
    let names = (0..60).map(|number| format!("{}{number}=evil%00", "%ff".repeat(900)));
    let target = format!("/?{}", names.collect::<Vec<_>>().join("&"));
    let inspection = inspected_by(&options, RULES, &target, &[]);
    let count = inspection.findings().len();
    assert!(count > FINDINGS_MAX, "{count}");
    let line = String::from_utf8(line(inspection, InspectionOutcome::Passed, 0)).unwrap();
    assert!(line.len() <= LINE_BYTES_MAX, "{}", line.len());
    assert!(line.contains("\"checks_left_out\":"), "{line}");
    assert!(line.contains("\"rules\":[{\"id\":2,"), "{line}");
}

#[test]
fn lines_are_handed_over_and_those_that_are_not_taken_are_counted() {
    let (sender, receiver) = sync_channel(1);
    let (mut log, counters) = (WafLog::new(sender), WorkerCounters::default());
    let outcome = InspectionOutcome::Detected(Cause::Rule(2));
    for _ in 0..2 {
        let inspection = inspected(RULES, "/?id=evil", &[]);
        let line = unwritten(inspection, outcome, 0);
        let line = log.begin(line.report, clock::now());
        log.write(&line, clock::now(), &counters);
        log.flush(&counters);
    }
    let batch = receiver.try_recv().unwrap();
    assert_eq!((batch.log, batch.lines), (Log::Waf, 1));
    assert!(batch.bytes.starts_with(b"{\"type\":\"waf\"") && batch.bytes.ends_with(b"}\n"));
    assert_eq!(counters.waf_log_lines_dropped.get(), 1);
}

#[test]
fn a_line_of_long_texts_is_written_elsewhere() {
    let outcome = InspectionOutcome::Detected(Cause::Rule(2));
    let target = |bytes: usize| format!("/?id=evil&a={}", "b".repeat(bytes));
    let short = unwritten(inspected(RULES, &target(100), &[]), outcome, 0);
    assert!(!short.is_long());
    let (sender, receiver) = sync_channel(1);
    let long = || {
        let line = unwritten(inspected(RULES, &target(LONG_TEXT_BYTES), &[]), outcome, 0);
        UnwrittenLine { sender: sender.clone(), ..line }
    };
    let mut expected = Vec::new();
    long().put(&mut expected);
    assert!(long().is_long() && long().send());
    assert!(!long().send(), "the queue is full");
    let batch = receiver.try_recv().unwrap();
    assert_eq!((batch.log, batch.lines, batch.bytes), (Log::Waf, 1, expected));
}

#[test]
fn a_request_whose_inspection_was_lost() {
    let outcome = InspectionOutcome::Unjudged { limit: Limit::Time, is_blocked: true };
    check(
        line(None, outcome, 403),
        r#"{"type":"waf","time":"1970-01-01T00:00:00.007Z","request_id":"abc",
"client":"192.0.2.1:4711","virtual_server":"shop","mode":"block","outcome":"unjudged","status":403,
"limit":"time","blocked":true,"lost":true}"#,
    );
}

/// `docs/observability.md` must contain every key of these lines.
#[test]
fn all_keys_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let docs = docs.split("## WAF log").nth(1).unwrap().split("\n## ").next().unwrap();
    let options = Options { keeps_body: true, ..Options::new(Mode::Detect) };
    let inspection = || Some(inspected_by(&options, RULES, "/?id=evil", &[]));
    let unjudged = InspectionOutcome::Unjudged { limit: Limit::Body, is_blocked: true };
    for (inspection, outcome, status) in [
        (inspection(), InspectionOutcome::Blocked(Cause::Rule(2)), 403),
        (inspection(), unjudged, 0),
        (None, unjudged, 403),
    ] {
        let line = String::from_utf8(line(inspection, outcome, status)).unwrap();
        let before_colons = line.split("\":").filter_map(|part| part.rsplit('"').next());
        let keys = before_colons
            .filter(|key| key.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()));
        for key in keys.filter(|key| !["variable", "value"].contains(key)) {
            assert!(docs.contains(&format!("`{key}`")), "{key}");
        }
    }
}

#[test]
fn a_request_that_is_recorded() {
    let options = Options { keeps_body: true, ..Options::new(Mode::Detect) };
    let form = "application/x-www-form-urlencoded";
    let headers = [("Host", "h"), ("Cookie", "a=b"), ("Content-Type", form), ("X", "\u{e9}")];
    let rules = "SecAction \"id:1,phase:1,nolog,pass\"";
    for (body, expected) in [
        (&b"q=1&password=hunter2"[..], r#""body":"cT0xJnBhc3N3b3JkPSoqKg==""#),
        (b"", r#""body":"""#),
        (b"password", r#""body_left_out":true"#),
        (&[b'x'; 65_537], r#""body_left_out":true"#),
    ] {
        let mut inspection = inspected_by(&options, rules, "/?token=hunter2", &headers);
        inspection.body(body);
        let line = String::from_utf8(line(inspection, InspectionOutcome::Passed, 0)).unwrap();
        let head = format!(
            r#""request":{{"head":"GET /?token=*** HTTP/1.1\u000d\u000aHost: h\u000d\u000aCookie: a=***\u000d\u000aContent-Type: {form}\u000d\u000aX: \u00c3\u00a9\u000d\u000a\u000d\u000a","#
        );
        assert!(line.ends_with(&format!("{head}{expected}}}}}\n")), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    let mut inspection = inspected_by(&options, rules, "/", &[]);
    inspection.leave_body_out();
    let told = String::from_utf8(line(inspection, InspectionOutcome::Passed, 0)).unwrap();
    assert!(told.ends_with("\"body_left_out\":true}}\n"), "{told}");
    let long = "x".repeat(200_000);
    let inspection = inspected_by(&options, rules, "/", &[("X", &long)]);
    let told = line(inspection, InspectionOutcome::Passed, 0);
    assert!(told.len() < LINE_BYTES_MAX, "a head that is too long is left out");
}
