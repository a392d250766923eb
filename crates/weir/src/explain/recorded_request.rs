//! The text of a recorded request: its record, and a new evaluation of the rules.

use weir_api::explanation::Outcome;
use weir_api::recorded::{RecordedRequest, RequestExplanation, SoughtTold};

use super::text::{Mark, Story, considered};
use crate::admin::text::{Paint, latency};

/// Renders the full text.
pub fn render(explanation: &RequestExplanation, paint: Paint) -> String {
    let RequestExplanation { recorded, again, differences } = explanation;
    let mut story = Story::new(paint);
    arrival(&mut story, recorded);
    for decided in &recorded.decided {
        let rules = match &decided.rules {
            Some(rules) if rules.is_empty() => "no rule was followed".to_owned(),
            Some(rules) => format!("followed {}", rules.join(", ")),
            None => "its configuration is gone".to_owned(),
        };
        story.line("decided", &format!("{}: {}; {rules}", decided.virtual_server, decided.verdict));
    }
    if let Some(persistence) = &recorded.summary.persistence {
        story.line("persistence", persistence);
    }
    if let Some(firewall) = &recorded.firewall {
        let text = format!("{} ({}), score {}", firewall.outcome, firewall.mode, firewall.score);
        story.line("firewall", &text);
        let rules = firewall.rules.iter().map(|rule| format!("{}  {}", rule.id, rule.message));
        for found in rules.chain(firewall.checks.iter().cloned()) {
            story.marked(Mark::No, &found);
        }
    }
    recorded.sought.iter().for_each(|it| sought(&mut story, it, recorded));
    for failed in &recorded.failed {
        let (after, took) = (time(failed.after_us), time(failed.took_us));
        let text = format!("{} after {after}, for {took}: {}", failed.member, failed.why);
        story.marked_in("failed", Mark::No, &text);
    }
    ended(&mut story, recorded);
    if let Some(again) = again {
        story.text.push('\n');
        story.heading("the same request, decided again by the current rules");
        again.virtual_servers.iter().for_each(|it| considered(&mut story, it));
        if let Outcome::Member { request_line, headers, .. } = &again.outcome {
            story.line("gets", request_line);
            headers.iter().for_each(|it| story.line("", &format!("{}: {}", it.name, it.value)));
        }
        again.remarks.iter().for_each(|remark| story.line("remark", remark));
    }
    differences.iter().for_each(|it| story.marked_in("note", Mark::Neutral, it));
    story.text
}

fn arrival(story: &mut Story, recorded: &RecordedRequest) {
    let summary = &recorded.summary;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let what = match &summary.asked.method {
        Some(method) => {
            format!("{method} {}{}", part(&summary.asked.host), part(&summary.asked.target))
        }
        None => "a request that was not read".to_owned(),
    };
    let version = summary.asked.version.as_ref().map_or(String::new(), |it| format!("HTTP/{it}, "));
    let client = summary.client.as_deref().unwrap_or("a unix socket");
    story.heading(&format!("{what}  ({version}from {client})"));
    let begun = weir_control::time::rfc3339(summary.begun_unix_ms);
    story.line("request", &format!("{}, at {begun}", summary.id));
    let server = summary.entered_at.as_ref().unwrap_or(&summary.virtual_server);
    let at = recorded.listen.as_ref().map_or(String::new(), |listen| format!(" at {listen}"));
    story.line("listener", &format!("{server}{at}"));
    if let Some(tls) = &summary.tls {
        let name = recorded.server_name.as_deref().unwrap_or("no name");
        let cipher = recorded.cipher.as_deref().unwrap_or_default();
        story.line("tls", &format!("{tls}, {cipher}, asked for {name}"));
    }
    if let Some(subject) = &recorded.certificate {
        story.line("certificate", &format!("of the client: {subject}"));
    }
}

fn sought(story: &mut Story, sought: &SoughtTold, recorded: &RecordedRequest) {
    let led = match &*sought.preference {
        "member" => "its client was at a member",
        "key" => "a key leads to a member",
        _ => "any member would do",
    };
    story.line("members then", &format!("pool {}: {led}", sought.pool));
    for candidate in &sought.candidates {
        let is_it = recorded.summary.member.as_ref() == Some(&candidate.member);
        let mark = match (is_it, candidate.is_eligible) {
            (true, _) => Mark::Yes,
            (false, true) => Mark::Neutral,
            (false, false) => Mark::No,
        };
        let administrative = match &*candidate.administrative {
            "enabled" => String::new(),
            other => format!(", {other}"),
        };
        let (member, state) = (&candidate.member, &candidate.state);
        let requests = candidate.occupancy;
        story.marked(mark, &format!("{member}  {state}{administrative}  requests {requests}"));
    }
    if sought.left_out > 0 {
        story.line("", &format!("and {} more", sought.left_out));
    }
}

fn ended(story: &mut Story, recorded: &RecordedRequest) {
    let summary = &recorded.summary;
    let status = match summary.status {
        0 => "no status".to_owned(),
        status => format!("status {status}"),
    };
    let by = match &summary.member {
        Some(member) => format!("last at member {member}"),
        None => "no member".to_owned(),
    };
    let mark = if summary.termination == "complete" { Mark::Yes } else { Mark::No };
    story.marked_in("result", mark, &format!("{status}, {by}: {}", summary.termination));
    let slow = if summary.is_slow { ": slow" } else { "" };
    story.line(
        "times",
        &format!(
            "waited {}, connected {}, response {}, in all {}{slow}",
            time(summary.amounts.queue_us),
            time(summary.amounts.connect_us),
            time(summary.amounts.first_byte_us),
            time(summary.amounts.total_us),
        ),
    );
    let (received, sent) = (summary.amounts.bytes_received, summary.amounts.bytes_sent);
    let retries = match summary.amounts.retries {
        0 => String::new(),
        retries => format!("; tried again {retries}×"),
    };
    story.line("bytes", &format!("{received} of the body received, {sent} sent{retries}"));
    if !summary.marks.is_empty() {
        story.line("marks", &summary.marks.join(", "));
    }
}

fn time(us: u64) -> String {
    latency(Some(us as f64 / 1_000.0))
}
