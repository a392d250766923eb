//! Small rule files, and the results of inspections.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::{
    BodyLength, Inspection, Limit, Mode, Options, Question, Request, Response, Step, TimeLimit,
    Turn, UnreadBody, Verdict, judge, judge_unread,
};
use crate::checks::{Check, Checks, Policy};
use crate::plan::{Files, RuleSet, Settings, View};

struct One(&'static str);

impl Files for One {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.as_bytes().to_vec())
    }
}

/// Inspects a request for this target in all request phases, in detection mode. `variables`: variables of `TX` that the
/// virtual server sets.
fn inspected(rules: &'static str, variables: &[(&str, &str)], target: &str) -> Inspection {
    judged(rules, variables, target, &Options::new(Mode::Detect)).0
}

/// Inspects a request with these options. Returns the inspection and its verdict.
fn judged(
    rules: &'static str,
    variables: &[(&str, &str)],
    target: &str,
    options: &Options,
) -> (Inspection, Verdict) {
    let mut inspection = begun(rules, variables, target, options);
    inspection.request_headers();
    inspection.end_body();
    let verdict = inspection.request_body();
    (inspection, verdict)
}

/// Begins the inspection of a request.
fn begun(
    rules: &'static str,
    variables: &[(&str, &str)],
    target: &str,
    options: &Options,
) -> Inspection {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut One(rules)).expect("rules");
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let settings = Settings { variables: variables.collect() };
    let view = View::new(Arc::new(rules), &settings).expect("a view");
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let request = Request {
        client: address,
        server: address,
        method: b"GET",
        received_target: target.as_bytes(),
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
        headers: &[],
        body: BodyLength::None,
        changed_cookies: &[],
        unique_id: b"1",
    };
    Inspection::begin(Arc::new(view), options, &request)
}

#[test]
fn a_step_that_changes_nothing_makes_no_text_of_its_own() {
    let rules = "SecRule ARGS \"@rx .\" \"id:1,t:length,t:lowercase,multiMatch,setvar:tx.n=+1\"";
    for (target, count) in [("/?a=1", 1), ("/?a=b", 2), ("/?a=B", 2)] {
        assert_eq!(inspected(rules, &[], target).number("n"), count, "{target}");
    }
}

#[test]
fn variables_of_a_virtual_server_hold_whatever_they_are_named() {
    let rules = "SecRule TX:/^allowed_/ \"@rx ^[0-9]+$\" \"id:1,setvar:tx.sum=+%{MATCHED_VAR}\"
SecAction \"id:2,setvar:'tx.allowed_%{REQUEST_METHOD}=0'\"
SecRule TX:/^allowed_get/ \"@eq 7\" \"id:3,setvar:tx.is_kept=1\"";
    let inspection = inspected(rules, &[("Allowed_GET", "7"), ("allowed_b", "5")], "/");
    assert_eq!((inspection.number("sum"), inspection.number("is_kept")), (12, 1));
}

#[test]
fn the_last_mode_counts_that_a_rule_sets() {
    let rules = "SecAction \"id:1,phase:1,pass,ctl:ruleEngine=DetectionOnly\"
SecRule ARGS:mode \"@streq off\" \"id:2,phase:1,ctl:ruleEngine=Off,ctl:ruleEngine=DetectionOnly\"
SecRule ARGS:mode \"@streq on\" \"id:3,phase:1,ctl:ruleEngine=On\"
SecAction \"id:4,phase:2,deny\"";
    for (target, blocks) in [("/", false), ("/?mode=off", false), ("/?mode=on", true)] {
        let mut inspection = inspected(rules, &[], target);
        assert!(inspection.would_be().is_some(), "{target}");
        inspection.state.mode = Mode::Block;
        assert_eq!(inspection.request_body() != Verdict::Pass, blocks, "{target}");
    }
}

#[test]
fn a_severity_counts_of_a_rule_that_no_request_decides() {
    let rules = "SecRule &TX:a \"@eq 0\" \"id:1,phase:1,pass,nolog,severity:ERROR\"
SecAction \"id:2,phase:2,pass,msg:'%{HIGHEST_SEVERITY}'\"";
    assert_eq!(inspected(rules, &[], "/").matches()[0].message, b"3");
}

#[test]
fn what_a_decided_chain_captures_is_captured_for_each_request() {
    let rules = "SecRule ARGS \"@rx .\" \"id:1,phase:1,pass,capture\"
SecRule &TX:a \"@rx ^()\" \"id:2,phase:1,pass,nolog,capture,chain\"
SecRule &TX:a \"@eq 1\" \"\"
SecAction \"id:3,phase:1,pass,msg:'%{tx.0}'\"";
    let inspection = inspected(rules, &[], "/?a=b");
    assert_eq!(inspection.matches().last().expect("the last").message, b"");
}

#[test]
fn a_request_that_was_too_much_is_not_gone_on_with() {
    let rules = "SecRule ARGS:p \"@rx %{ARGS.p}\" \"id:1,phase:1,deny\"
SecAction \"id:2,phase:5,pass\"";
    let mut inspection = inspected(rules, &[], "/?p=(");
    assert_eq!(inspection.request_body(), Verdict::Exceeded(super::Limit::Pattern));
    inspection.logging();
    assert!(inspection.matches().is_empty());
}

#[test]
fn checks_look_at_the_body_of_a_request_that_was_too_much() {
    let rules = "SecRule ARGS:p \"@rx %{ARGS.p}\" \"id:1,phase:1,deny\"";
    let rules = RuleSet::compile(&["rules.conf".into()], &mut One(rules)).expect("rules");
    let view = Arc::new(View::new(Arc::new(rules), &Settings::default()).expect("a view"));
    let exceeded = Verdict::Exceeded(super::Limit::Pattern);
    let check = Check::JsonRepeatedKey;
    let refused = Verdict::Refused { check, status: check.status() };
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    for (has_checks, body, of_head, of_body) in [
        (true, &b"{\"a\":1,\"a\":2}"[..], &Verdict::Pass, &refused),
        (true, b"{\"a\":1}", &Verdict::Pass, &exceeded),
        (false, b"{\"a\":1,\"a\":2}", &exceeded, &exceeded),
    ] {
        let checks = Checks { policy: Policy::default(), interface: None };
        let checks = has_checks.then(|| Arc::new(checks));
        let options = Options { checks, ..Options::new(Mode::Block) };
        let request = Request {
            client: address,
            server: address,
            method: b"POST",
            received_target: b"/?p=(",
            target: b"/?p=(",
            protocol: b"HTTP/1.1",
            headers: &[(b"Host", b"a.test"), (b"Content-Type", b"application/json")],
            body: BodyLength::Known(body.len() as u64),
            changed_cookies: &[],
            unique_id: b"1",
        };
        let mut inspection = Inspection::begin(Arc::clone(&view), &options, &request);
        assert_eq!(inspection.request_headers(), *of_head);
        inspection.body(body);
        inspection.end_body();
        assert_eq!(inspection.request_body(), *of_body);
    }
}

#[test]
fn nothing_is_denied_when_all_is_over() {
    let mut inspection = inspected(
        "SecAction \"id:1,phase:5,deny\"\nSecAction \"id:2,phase:5,setvar:tx.after=1\"",
        &[],
        "/",
    );
    inspection.state.mode = Mode::Block;
    inspection.logging();
    assert_eq!((inspection.number("after"), inspection.would_be()), (1, None));
}

#[test]
fn chained_rules_have_the_defaults_of_their_phase() {
    let rules = "SecDefaultAction \"phase:1,pass,t:lowercase\"
SecRule ARGS:a \"@streq x\" \"id:1,phase:1,chain\"
SecRule ARGS:b \"@streq y\" \"setvar:tx.found=1\"";
    for (target, found) in [("/?a=X&b=Y", 1), ("/?a=X&b=z", 0)] {
        assert_eq!(inspected(rules, &[], target).number("found"), found, "{target}");
    }
}

#[test]
fn a_known_rule_skips_no_further_than_one_that_skips_it() {
    // Rule 2 skips rule 4 and all rules up to END. Rule 3 only skips rule 4.
    let rules = "SecAction \"id:1,phase:1,pass,nolog,setvar:tx.level=2\"
SecRule ARGS:a \"@eq 1\" \"id:2,phase:2,pass,nolog,skipAfter:END\"
SecRule ARGS:a \"@eq 2\" \"id:3,phase:2,pass,nolog,skip:1\"
SecRule TX:level \"@gt 0\" \"id:4,phase:2,pass,nolog,skipAfter:END\"
SecAction \"id:5,phase:2,pass,nolog,setvar:tx.last=1\"
SecMarker END";
    for (target, last) in [("/?a=0", 0), ("/?a=1", 0), ("/?a=2", 1)] {
        assert_eq!(inspected(rules, &[], target).number("last"), last, "{target}");
    }
}

#[test]
fn of_two_severities_the_last_counts() {
    let rules = "SecRule ARGS \"@rx .\" \"id:1,severity:CRITICAL,severity:NOTICE,\
        msg:'%{rule.severity} %{HIGHEST_SEVERITY}'\"";
    assert_eq!(inspected(rules, &[], "/?a=1").matches()[0].message, b"5 5");
}

#[test]
fn a_rule_that_turns_the_engine_off_blocks_no_more() {
    let off = "SecAction \"id:1,phase:1,deny,ctl:ruleEngine=Off\"";
    assert_eq!(inspected(off, &[], "/").would_be(), None);
    let on = "SecAction \"id:1,phase:1,deny,ctl:ruleEngine=On\"";
    assert!(inspected(on, &[], "/").would_be().is_some());
}

#[test]
fn steps_back_are_work() {
    let rules = "SecRule ARGS \"@rx ^(?:(?:a|aa)(?!x))+b\" \"id:1,phase:1,pass\"";
    let few = inspected(rules, &[], "/?p=aaaaaaaaaaaaaaaaaaaab").work_bytes();
    let many = inspected(rules, &[], "/?p=aaaaaaaaaaaaaaaaaaaac").work_bytes();
    assert!(many > few + 100_000, "{few} and {many}");
}

thread_local! {
    /// The clock. Each reading advances it by one millisecond.
    static NOW_US: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn now_us() -> u64 {
    NOW_US.set(NOW_US.get() + 1_000);
    NOW_US.get()
}

fn in_time(max_us: u64) -> Options {
    Options { time: Some(TimeLimit { max_us, now_us }), ..Options::new(Mode::Block) }
}

#[test]
fn rules_that_take_too_long_are_not_gone_on_with() {
    let rules = "SecRule ARGS:q \"@rx ^attack\" \"id:1,phase:1,pass\"
SecRule ARGS \"@rx ^(?:[^x]|x[^y])*xy[0-9]$\" \"id:2,phase:1,deny,status:403\"
SecRule ARGS \"@rx ^(?:[^v]|v[^w])*vw[0-9]$\" \"id:3,phase:1,deny,status:403\"
SecRule ARGS \"!@rx ^(?:[^v]|v[^y])*$\" \"id:4,phase:1,deny,status:403\"
SecRule ARGS \"@rx ^(?:[^s]|s[^t])*st[0-9]$\" \"id:5,phase:1,deny,status:403\"
SecAction \"id:6,phase:2,deny,status:403\"";
    let long = format!("/?q=attack{}", "a".repeat(100_000));
    let verdict = |target: &str, max_us| judged(rules, &[], target, &in_time(max_us)).1;
    // The clock is read for each rule that inspects the long value. The measured time begins with the first reading.
    let (inspection, exceeded) = judged(rules, &[], &long, &in_time(1_500));
    assert_eq!(exceeded, Verdict::Exceeded(Limit::Time));
    assert_eq!(inspection.matches().len(), 1, "what was found before is told");
    let denied = Verdict::Deny { status: 403, rule: 6 };
    assert_eq!(verdict(&long, 60_000_000), denied);
    let before = NOW_US.get();
    assert_eq!(verdict("/?q=attack", 0), denied, "so little work is not measured");
    assert_eq!(NOW_US.get(), before);
}

#[test]
fn one_rule_may_take_too_long_with_many_values() {
    let rules = "SecRule ARGS \"!@rx ^(?:[^v]|v[^y])*$\" \"id:4,phase:1,deny,status:403\"";
    let mut target = "/?".to_owned();
    for number in 0..400 {
        target += &format!("&a{number}={number}{}", "a".repeat(4_000));
    }
    let (inspection, verdict) = judged(rules, &[], &target, &in_time(3_500));
    assert_eq!(verdict, Verdict::Exceeded(Limit::Time));
    assert!(inspection.counts().compared < 200, "{:?}", inspection.counts());
    let (inspection, verdict) = judged(rules, &[], &target, &in_time(60_000_000));
    assert_eq!((verdict, inspection.counts().compared), (Verdict::Pass, 400));
}

/// Rules of both phases, of which some match.
const SOME: &str = "SecRule ARGS \"@rx ^a\" \"id:1,phase:1,pass,setvar:tx.n=+1\"
SecRule ARGS \"@rx b\" \"id:2,phase:1,pass,capture,setvar:tx.n=+1,msg:'%{tx.0}'\"
SecRule ARGS \"@rx ^z\" \"id:3,phase:2,deny\"
SecRule ARGS \"@rx c\" \"id:4,phase:2,pass,t:lowercase,setvar:tx.n=+1\"
SecRule TX:n \"@ge 3\" \"id:5,phase:2,deny,status:406\"
SecAction \"id:6,phase:2,pass,msg:'never'\"";

/// Judges a request in turns. Returns the number of turns that did not suffice.
fn in_turns(mut inspection: Inspection, turn: Turn) -> (Inspection, Verdict, usize) {
    let (mut count, mut verdict) = (0, Verdict::Pass);
    for question in [Question::Head, Question::Body(None)] {
        let mut step = judge(inspection, question, turn);
        (inspection, verdict) = loop {
            match step {
                Step::Done(inspection, verdict) => break (inspection, verdict),
                Step::More(unfinished) => {
                    count += 1;
                    step = unfinished.proceed(turn);
                }
            }
        };
        if verdict != Verdict::Pass {
            break;
        }
    }
    (inspection, verdict, count)
}

#[test]
fn turns_change_nothing() {
    let options = Options::new(Mode::Block);
    for target in ["/", "/?p=abc", "/?p=abd&q=C", "/?p=z", "/?p=bbb&q=cab&r=xyz"] {
        let (expected, verdict) = judged(SOME, &[], target, &options);
        for (work_bytes_max, count_min) in [(0, 4), (1, 0), (100, 0), (u64::MAX, 0)] {
            let turn = Turn { work_bytes_max, ..Turn::WHOLE };
            let begun = begun(SOME, &[], target, &options);
            let (inspection, of_turns, count) = in_turns(begun, turn);
            assert_eq!(of_turns, verdict, "{target} {turn:?}");
            assert_eq!(inspection.matches(), expected.matches(), "{target} {turn:?}");
            assert_eq!(inspection.work_bytes(), expected.work_bytes(), "{target} {turn:?}");
            assert_eq!(inspection.counts(), expected.counts(), "{target} {turn:?}");
            let is_denied = verdict == Verdict::Deny { status: 403, rule: 3 };
            assert!(is_denied || count >= count_min, "{target} {turn:?}: {count} turns");
            assert!(work_bytes_max < u64::MAX || count == 0, "{target}: {count} turns");
        }
    }
}

#[test]
fn long_input_has_to_wait_and_findings_are_kept_without_a_verdict() {
    let options = Options::new(Mode::Block);
    let turn = Turn { input_bytes_max: 300, ..Turn::WHOLE };
    let short = judge(begun(SOME, &[], "/?p=abc", &options), Question::Head, turn);
    assert!(matches!(short, Step::Done(_, Verdict::Pass)));
    let long = format!("/?p=abc{}", "x".repeat(300));
    let Step::More(unfinished) = judge(begun(SOME, &[], &long, &options), Question::Head, turn)
    else {
        panic!("it is not begun");
    };
    let Step::Done(inspection, Verdict::Pass) = unfinished.proceed(turn) else {
        panic!("it is not held up a second time");
    };
    assert_eq!(inspection.matches().len(), 2);
    let each = Turn { work_bytes_max: 0, ..Turn::WHOLE };
    let Step::More(unfinished) = judge(begun(SOME, &[], "/?p=abc", &options), Question::Head, each)
    else {
        panic!("a first turn may be over before a rule");
    };
    let Step::More(unfinished) = unfinished.proceed(each) else {
        panic!("one rule for each turn");
    };
    let inspection = unfinished.give_up();
    assert_eq!(inspection.matches().iter().map(|it| it.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_short_response_to_a_long_request_does_not_wait() {
    const OF_RESPONSES: &str = "SecRule RESPONSE_HEADERS \"@contains secret\" \"id:1,phase:3,deny\"
SecRule RESPONSE_BODY \"@contains leak\" \"id:2,phase:4,deny,status:502\"";
    const OF_BOTH: &str = "SecRule RESPONSE_STATUS|&ARGS \"@eq 9\" \"id:1,phase:3,deny\"
SecRule RESPONSE_BODY|ARGS \"@contains leak\" \"id:2,phase:4,deny,status:502\"";
    const COUNTS: &str = "SecRule RESPONSE_STATUS|&ARGS|!ARGS:a \"@eq 9\" \"id:1,phase:3,deny\"";
    let turn = Turn { input_bytes_max: 300, ..Turn::WHOLE };
    let long = &*format!("/?p={}", "y".repeat(300));
    let leak = Verdict::Deny { status: 502, rule: 2 };
    for (rules, target, body_bytes, waits) in [
        (OF_RESPONSES, "/", 9, [false, false]),
        (OF_RESPONSES, long, 9, [false, false]),
        (OF_RESPONSES, long, 301, [false, true]),
        (OF_BOTH, "/", 9, [false, false]),
        (OF_BOTH, long, 9, [true, true]),
        (COUNTS, long, 9, [false, false]),
        (COUNTS, "/", 400, [false, false]),
    ] {
        let (mut inspection, verdict) = judged(rules, &[], target, &Options::new(Mode::Block));
        assert_eq!(verdict, Verdict::Pass);
        inspection.response(&Response {
            status: 200,
            protocol: b"HTTP/1.1",
            headers: &[(b"Content-Type", b"text/html")],
        });
        let at_the_end = |step: Step, waits: bool| match step {
            Step::Done(inspection, verdict) => {
                assert!(!waits, "{rules} {target}");
                (inspection, verdict)
            }
            Step::More(unfinished) => {
                assert!(waits, "{rules} {target}");
                let Step::Done(inspection, verdict) = unfinished.proceed(Turn::WHOLE) else {
                    panic!("a turn without an end");
                };
                (inspection, verdict)
            }
        };
        let step = judge(inspection, Question::ResponseHead, turn);
        let (inspection, verdict) = at_the_end(step, waits[0]);
        assert_eq!(verdict, Verdict::Pass);
        let mut body = vec![b'y'; body_bytes];
        body.extend_from_slice(b"leak, behind what is inspected: leak");
        let unread = UnreadBody::Response { body: Arc::new(body), bytes_max: body_bytes + 4 };
        let (_, verdict) = at_the_end(judge_unread(inspection, unread, turn), waits[1]);
        assert_eq!(verdict, if rules == COUNTS { Verdict::Pass } else { leak.clone() });
    }
}

#[test]
fn the_time_of_all_turns_counts() {
    // The clock is read at the start of each further turn, and behind each rule: all of them inspect the long value.
    let rules = "SecRule ARGS \"!@rx ^(?:[^v]|v[^y])*$\" \"id:1,phase:1,deny,status:403\"
SecRule ARGS \"!@rx ^(?:[^v]|v[^x])*$\" \"id:2,phase:1,deny,status:403\"
SecRule ARGS \"!@rx ^(?:[^v]|v[^w])*$\" \"id:3,phase:1,deny,status:403\"
SecRule ARGS \"!@rx ^(?:[^v]|v[^u])*$\" \"id:4,phase:1,deny,status:403\"
SecRule ARGS \"!@rx ^(?:[^v]|v[^s])*$\" \"id:5,phase:1,deny,status:403\"
SecAction \"id:6,phase:1,deny,status:403\"";
    let long = format!("/?q=attack{}", "a".repeat(100_000));
    let turn = Turn { cpu_us_max: 500, ..Turn::WHOLE };
    let (_, verdict, count) = in_turns(begun(rules, &[], &long, &in_time(2_500)), turn);
    assert_eq!(verdict, Verdict::Exceeded(Limit::Time));
    assert!(count >= 2, "{count} turns");
    let (_, verdict, _) = in_turns(begun(rules, &[], &long, &in_time(60_000_000)), turn);
    assert_eq!(verdict, Verdict::Deny { status: 403, rule: 6 });
}

#[test]
fn the_end_of_a_body_is_interrupted() {
    // The clock advances with each reading: behind each part, and at the start of each further turn.
    let turn = Turn { cpu_us_max: 500, ..Turn::WHOLE };
    let options = in_time(60_000_000);
    let (_, expected, count) = in_turns(begun(SOME, &[], "/?p=x", &options), Turn::WHOLE);
    assert_eq!((expected.clone(), count), (Verdict::Pass, 0));
    let (_, verdict, count) = in_turns(begun(SOME, &[], "/?p=x", &options), turn);
    assert_eq!((verdict, count), (expected, 3), "the first part has no time before it");
}

#[test]
fn input_that_grows_at_the_end_of_a_body_ends_a_first_turn() {
    let rules = "SecAction \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=CONTENT\"
SecRule ARGS \"@rx ^never\" \"id:2,phase:2,deny\"";
    let body = format!("{{\"a\":[{}0]}}", "1,".repeat(200));
    let begun = || {
        let mut inspection = begun(rules, &[], "/", &Options::new(Mode::Block));
        assert_eq!(inspection.request_headers(), Verdict::Pass);
        inspection.body(body.as_bytes());
        inspection
    };
    let turn = |input_bytes_max| Turn { input_bytes_max, ..Turn::WHOLE };
    let count = begun().counts().compared;
    // The parsed values have names, which are several times as long as the body.
    let Step::More(unfinished) = judge(begun(), Question::Body(None), turn(body.len() + 1_000))
    else {
        panic!("the input has grown");
    };
    assert_eq!(unfinished.give_up().counts().compared, count, "no rule has read it");
    let step = judge(begun(), Question::Body(None), turn(body.len() + 20_000));
    assert!(matches!(step, Step::Done(_, Verdict::Pass)));
}

#[test]
fn a_rule_with_many_values_is_left_between_two_of_them() {
    let rules = "SecRule ARGS \"!@rx ^(?:[^v]|v[^y])*$\" \"id:1,phase:1,deny,status:403\"
SecAction \"id:2,phase:1,deny,status:406\"";
    let mut target = "/?".to_owned();
    for number in 0..400 {
        target += &format!("&a{number}={number}{}", "a".repeat(4_000));
    }
    let options = in_time(60_000_000);
    let whole = judge(begun(rules, &[], &target, &options), Question::Head, Turn::WHOLE);
    let Step::Done(expected, verdict) = whole else {
        panic!("it has no end");
    };
    let turn = Turn { cpu_us_max: 500, ..Turn::WHOLE };
    let before = NOW_US.get();
    let Step::More(unfinished) = judge(begun(rules, &[], &target, &options), Question::Head, turn)
    else {
        panic!("it takes longer than a turn");
    };
    assert!(NOW_US.get() - before < 5_000, "it was left: {} us", NOW_US.get() - before);
    let Step::More(unfinished) = unfinished.proceed(turn) else {
        panic!("the rule takes a turn");
    };
    let Step::Done(inspection, found) = unfinished.proceed(turn) else {
        panic!("the rule is evaluated whole if a turn begins with it");
    };
    assert_eq!((&found, inspection.counts()), (&verdict, expected.counts()));
    assert_eq!(found, Verdict::Deny { status: 406, rule: 2 });
    assert_eq!(inspection.work_bytes(), expected.work_bytes());
}

#[test]
fn a_rule_that_has_acted_is_not_left() {
    let rules = "SecRule ARGS \"@rx ^a\" \"id:1,phase:1,pass,capture,setvar:tx.n=+1,msg:'%{tx.0}'\"
SecAction \"id:2,phase:1,pass,setvar:tx.m=+1,chain\"
SecRule ARGS \"@rx ^c\" \"setvar:tx.n=+1\"
SecRule ARGS_NAMES|ARGS \"!@rx ^[a-z]$\" \"id:3,phase:1,pass,chain\"
SecRule MATCHED_VARS \"@rx b\" \"t:lowercase,setvar:tx.n=+1\"
SecRule ARGS:/^p/ \"@rx %{tx.n}\" \"id:4,phase:1,pass,setvar:tx.n=+1\"";
    let options = Options::new(Mode::Block);
    let target = "/?p=abc&q=cab&r=B4b&s=a1&t=c&u=d5&pp=5&v=ba";
    let (expected, verdict) = judged(rules, &[], target, &options);
    assert!(expected.number("n") > 5, "all kinds match: {}", expected.number("n"));
    for work_bytes_max in 0..200 {
        let turn = Turn { work_bytes_max, ..Turn::WHOLE };
        let (inspection, found, _) = in_turns(begun(rules, &[], target, &options), turn);
        assert_eq!((&found, inspection.matches()), (&verdict, expected.matches()), "{turn:?}");
        for name in ["n", "m", "0"] {
            assert_eq!(inspection.number(name), expected.number(name), "{name}: {turn:?}");
        }
        assert_eq!(inspection.counts(), expected.counts(), "{turn:?}");
    }
}
