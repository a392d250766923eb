//! Inspections in turns.

use std::sync::Arc;

use weir_waf::inspection::{
    Inspection, Question, Step, Turn, UnreadBody, Verdict, judge, judge_unread, may_read_later,
};

/// Turns that end after each rule, and after each part of the end of a body.
pub const SHORTEST: Turn = Turn { work_bytes_max: 0, ..Turn::WHOLE };

/// Turns that end after so much work. Most inspections have to wait before the first one.
pub fn of_work(work_bytes_max: u64) -> Turn {
    Turn { work_bytes_max, input_bytes_max: 64, ..Turn::WHOLE }
}

/// Judges in as many turns as are needed.
pub fn judged(inspection: Inspection, question: Question, turn: Turn) -> (Inspection, Verdict) {
    to_the_end(judge(inspection, question, turn), turn)
}

/// As [`judged`], for the whole request with this body. Turns read the body themselves, if they can: from its fourth byte on.
pub fn judged_with(mut inspection: Inspection, body: &[u8], turn: Turn) -> (Inspection, Verdict) {
    if turn == Turn::WHOLE || !may_read_later(&inspection) {
        inspection.body(body);
        return judged(inspection, Question::Body(None), turn);
    }
    let from = body.len().min(3);
    inspection.body(&body[..from]);
    let unread = UnreadBody::Request { body: Arc::new(body.to_vec()), from, limit: None };
    to_the_end(judge_unread(inspection, unread, turn), turn)
}

/// As [`judged`], for the whole response with this body, which a turn reads itself.
pub fn judged_response(
    mut inspection: Inspection,
    body: &[u8],
    turn: Turn,
) -> (Inspection, Verdict) {
    if turn == Turn::WHOLE {
        inspection.response_content(body);
        return judged(inspection, Question::ResponseBody, turn);
    }
    let unread = UnreadBody::Response { body: Arc::new(body.to_vec()), bytes_max: usize::MAX };
    to_the_end(judge_unread(inspection, unread, turn), turn)
}

fn to_the_end(mut step: Step, turn: Turn) -> (Inspection, Verdict) {
    loop {
        match step {
            Step::Done(inspection, verdict) => return (inspection, verdict),
            Step::More(unfinished) => step = unfinished.proceed(turn),
        }
    }
}
