//! Invariants of requests.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use weir_waf::inspection::{
    BodyLength, Inspection, Match, Mode, Options, Question, Request, Response, Turn, Verdict,
};
use weir_waf::plan::{Settings, View};

use super::rules;
use super::turns::{self, judged, judged_response, judged_with};

/// Maximum number of inspected bytes for a small request.
const WORK_BYTES_MAX: u64 = 8 << 20;

/// A request in the format of these checks: the position of the split and the target, two header fields, each on one line,
/// and the body.
pub const REQUEST: &[u8] =
    b"\x03/a%2fb?x=select+1&y=%3Cscript\nfoo: bar\nCookie: a=foo; b\nx=1&z=%00foo";

/// Rules of all kinds.
pub const RULES: &str = r#"
SecDefaultAction "phase:1,log,auditlog,pass"
SecDefaultAction "phase:2,log,auditlog,deny"
SecAction "id:1,phase:1,pass,nolog,setvar:tx.level=2,setvar:tx.score=0"
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)json" "id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)xml" "id:3,phase:1,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "@rx (?i)any" "id:16,phase:1,pass,nolog,ctl:requestBodyProcessor=CONTENT"
SecRule REQUEST_URI "@beginsWith /free" "id:4,phase:1,pass,nolog,ctl:ruleRemoveTargetByTag=words;ARGS:/^z/"
SecRule ARGS|ARGS_NAMES|REQUEST_COOKIES|XML:/* "@rx (?i)\b(?:select|union\s+all)\b.*?(\d+|foo)?" "id:5,phase:2,block,capture,t:none,t:urlDecodeUni,t:lowercase,tag:words,msg:'%{tx.0} %{tx.1} in %{MATCHED_VAR_NAME}',setvar:tx.score=+5"
SecRule ARGS|REQUEST_BODY|FILES|FILES_TMP_CONTENT "@pmFromFile words.data" "id:6,phase:2,pass,multiMatch,t:none,t:base64Decode,t:htmlEntityDecode,tag:words,setvar:'tx.found_%{MATCHED_VAR_NAME}=%{MATCHED_VAR}'"
SecRule TX:level "@lt 2" "id:7,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@detectSQLi" "id:8,phase:2,pass,t:none,t:urlDecodeUni,setvar:tx.score=+5,logdata:'%{tx.0}'"
SecRule ARGS|REQUEST_HEADERS "@detectXSS" "id:9,phase:2,pass,t:none,t:jsDecode,t:cssDecode,setvar:tx.score=+5"
SecRule &ARGS "@gt 2" "id:10,phase:2,pass,chain"
  SecRule ARGS|!ARGS:x "!@validateByteRange 32-126" "t:urlDecodeUni,chain"
  SecRule MATCHED_VARS "@rx ^(.)(.*)$" "capture,setvar:tx.last=%{tx.2}"
SecRule REQBODY_ERROR|MULTIPART_STRICT_ERROR "!@eq 0" "id:11,phase:2,pass,msg:'%{REQBODY_ERROR_MSG}'"
SecRule TX:/^found_/ "@rx ." "id:12,phase:2,pass,nolog,auditlog,t:length"
SecMarker END
SecRule TX:score "@ge 10" "id:13,phase:2,deny,status:406,msg:'score %{tx.score}'"
SecRule RESPONSE_BODY|RESPONSE_HEADERS "@contains foo" "id:14,phase:4,pass,t:none,t:cmdLine"
SecAction "id:15,phase:5,pass,msg:'%{tx.score} %{tx.last}'"
"#;

/// The views of the fixed rules: with precomputed decisions, and without them.
static VIEWS: LazyLock<[Arc<View>; 2]> = LazyLock::new(|| {
    let rules = rules::compiled(RULES).expect("the fixed rules");
    let settings = Settings::default();
    let view = View::new(Arc::clone(&rules), &settings).expect("a view");
    [Arc::new(view), Arc::new(View::plain(rules, &settings))]
});

/// The result of a request.
#[derive(Debug, PartialEq)]
struct Outcome {
    verdicts: Vec<Verdict>,
    matches: Vec<Match>,
}

/// Inspects a request with the fixed rules. Both views, the body in one or two pieces, and turns of any size must have the same
/// outcome.
pub fn check(input: &[u8]) {
    check_with([&VIEWS[0], &VIEWS[1]], input);
}

pub fn check_with([view, plain]: [&Arc<View>; 2], input: &[u8]) {
    for mode in [Mode::Detect, Mode::Block] {
        let of_work = turns::of_work(input.iter().map(|byte| u64::from(*byte)).sum());
        let expected = outcome(view, mode, input, (false, Turn::WHOLE));
        for (view, how) in [
            (plain, (false, Turn::WHOLE)),
            (view, (true, Turn::WHOLE)),
            (view, (false, turns::SHORTEST)),
            (view, (true, of_work)),
            (view, (false, Turn { input_bytes_max: usize::MAX, ..of_work })),
        ] {
            assert_eq!(outcome(view, mode, input, how), expected, "{}", input.escape_ascii());
        }
    }
}

fn outcome(view: &Arc<View>, mode: Mode, input: &[u8], (is_cut, turn): (bool, Turn)) -> Outcome {
    let (cut, rest) = input.split_first().unwrap_or((&0, &[]));
    let mut lines = rest.splitn(4, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (target, one, other, body) = (line(), line(), line(), line());
    let headers: Vec<(&[u8], &[u8])> = [one, other].into_iter().map(field).collect();
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let request = Request {
        client: address,
        server: address,
        method: b"POST",
        received_target: target,
        target,
        protocol: b"HTTP/1.1",
        headers: &headers,
        body: BodyLength::Known(body.len() as u64),
        changed_cookies: &[],
        unique_id: b"1",
    };
    let options = Options { work_bytes_max: WORK_BYTES_MAX, ..Options::new(mode) };
    let inspection = Inspection::begin(Arc::clone(view), &options, &request);
    let (mut inspection, verdict) = judged(inspection, Question::Head, turn);
    let mut verdicts = vec![verdict];
    let (mut inspection, verdict) = match is_cut {
        true => {
            let at = usize::from(*cut).min(body.len());
            inspection.body(&body[..at]);
            inspection.body(&body[at..]);
            judged(inspection, Question::Body(None), turn)
        }
        false => judged_with(inspection, body, turn),
    };
    verdicts.push(verdict);
    inspection.response(&Response { status: 200, protocol: b"HTTP/1.1", headers: &headers });
    let (inspection, verdict) = judged(inspection, Question::ResponseHead, turn);
    verdicts.push(verdict);
    let (mut inspection, verdict) = judged_response(inspection, body, turn);
    verdicts.push(verdict);
    inspection.logging();
    // The amount of work depends on precomputed decisions. So if the limit is exceeded, outcomes may differ.
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Exceeded(_))) {
        return Outcome { verdicts: Vec::new(), matches: Vec::new() };
    }
    let told = inspection.matches().iter().filter(|it| it.is_logged || it.is_audited);
    Outcome { verdicts, matches: told.cloned().collect() }
}

fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        Some(at) => (&line[..at], line[at + 1..].trim_ascii()),
        None => (b"x", line),
    }
}
