//! Runs one stage: a request in all phases, with the response of CRS's test backend.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weir_waf::inspection::{
    BodyLength, Inspection, Limit, Mode, Options, Question, Request, Response, Turn, Verdict,
};
use weir_waf::plan::View;

use crate::support::answer::Answer;
use crate::support::ftw::Stage;
use crate::turns::{self, judged, judged_response, judged_with};

const HERE: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

pub fn run(view: &Arc<View>, stage: &Stage) -> Result<(), String> {
    let sent = &stage.request;
    let headers: Vec<(&[u8], &[u8])> =
        sent.headers.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let request = Request {
        client: HERE,
        server: HERE,
        method: &sent.method,
        received_target: &sent.target,
        target: &sent.target,
        // A request line without a version means HTTP/0.9.
        protocol: if sent.protocol.is_empty() { b"HTTP/0.9" } else { &sent.protocol },
        headers: &headers,
        body: BodyLength::Known(sent.body.len() as u64),
        changed_cookies: &[],
        unique_id: b"a-test",
    };
    let begin = || Inspection::begin(Arc::clone(view), &Options::new(Mode::Detect), &request);
    let (verdicts, inspection) = through(begin(), stage, Turn::WHOLE);
    let (verdicts_of_turns, in_turns) = through(begin(), stage, turns::SHORTEST);
    if (&verdicts, inspection.matches()) != (&verdicts_of_turns, in_turns.matches()) {
        return Err(format!(
            "in turns: {verdicts_of_turns:?} {:?}\nin one go: {verdicts:?} {:?}",
            in_turns.matches(),
            inspection.matches()
        ));
    }
    // Input that cannot be parsed has this verdict. The findings before it still count.
    let is_judged =
        |verdict: &&Verdict| !matches!(verdict, Verdict::Pass | Verdict::Exceeded(Limit::Body));
    if let Some(verdict) = verdicts.iter().find(is_judged) {
        return Err(format!("{verdict:?}"));
    }
    judge(stage, &inspection)
}

/// Inspects a request and its response in all phases. Returns their verdicts.
fn through(inspection: Inspection, stage: &Stage, turn: Turn) -> (Vec<Verdict>, Inspection) {
    let (inspection, of_head) = judged(inspection, Question::Head, turn);
    let (mut inspection, of_body) = judged_with(inspection, &stage.request.body, turn);
    let answer = Answer::to(stage);
    let answered: Vec<(&[u8], &[u8])> =
        answer.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    inspection.response(&Response {
        status: answer.status,
        protocol: b"HTTP/1.1",
        headers: &answered,
    });
    let (inspection, of_answer) = judged(inspection, Question::ResponseHead, turn);
    let (mut inspection, of_content) = judged_response(inspection, &answer.body, turn);
    inspection.logging();
    (vec![of_head, of_body, of_answer, of_content], inspection)
}

fn judge(stage: &Stage, inspection: &Inspection) -> Result<(), String> {
    let told = inspection.matches().iter().filter(|it| it.is_logged || it.is_audited);
    let ids: Vec<u64> = told.clone().map(|it| it.id).collect();
    let expect = &stage.expect;
    if let Some(missing) = expect.ids.iter().find(|id| !ids.contains(id)) {
        return Err(format!("{missing} is missing among {ids:?}"));
    }
    if let Some(found) = expect.no_ids.iter().find(|id| ids.contains(id)) {
        let what = inspection.matches().iter().find(|it| it.id == *found);
        return Err(format!("{found} was not expected: {what:?}"));
    }
    let log: String = told
        .map(|it| {
            format!(
                "[id \"{}\"] [msg \"{}\"] [data \"{}\"]\n",
                it.id,
                String::from_utf8_lossy(&it.message),
                // On one line, as in logs.
                String::from_utf8_lossy(&it.log_data).escape_debug()
            )
        })
        .collect();
    let matches = |pattern: &str| regex::Regex::new(pattern).expect("a pattern").is_match(&log);
    if let Some(pattern) = expect.pattern.as_ref().filter(|pattern| !matches(pattern)) {
        return Err(format!("the log does not match {pattern}: {log}"));
    }
    if let Some(pattern) = expect.no_pattern.as_ref().filter(|pattern| matches(pattern)) {
        return Err(format!("the log matches {pattern}: {log}"));
    }
    Ok(())
}
