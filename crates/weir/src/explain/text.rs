//! An explanation as text: one paragraph per step, `✓` and `✗` for true and false.

use weir_api::explanation::{
    Balancing, Candidate, Considered, Explanation, Field, Firewall, LimitTold, Outcome,
    PersistenceTold, PolicyTold, RuleTold, RuleVerdict, ValueTold,
};

use crate::admin::text::{Paint, counted, grouped, printable};

/// Maximum number of rules shown per policy whose conditions do not hold.
const FALSE_RULES_MAX: usize = 6;

/// Maximum number of members shown.
const CANDIDATES_MAX: usize = 12;

/// Maximum number of firewall rules shown.
const WAF_RULES_MAX: usize = 10;

/// Width of a paragraph's title.
const TITLE_COLUMNS: usize = 13;

/// Maximum width of the columns with rule names and places.
const COLUMNS_MAX: usize = 48;

/// A mark before a line.
#[derive(Clone, Copy)]
pub enum Mark {
    /// The condition holds, or the item was selected.
    Yes,
    /// The condition does not hold.
    No,
    /// No mark.
    Neutral,
}

/// Text that consists of paragraphs.
pub struct Story {
    pub text: String,
    paint: Paint,
}

impl Story {
    pub fn new(paint: Paint) -> Self {
        Self { text: String::new(), paint }
    }

    pub fn heading(&mut self, text: &str) {
        self.text += &self.paint.heading(text);
    }

    /// A line with its title, or a further line of the same paragraph.
    pub fn line(&mut self, title: &str, text: &str) {
        let title = format!("{title:TITLE_COLUMNS$}");
        let title = self.dim(&title);
        self.text += &format!("{title}{}\n", printable(text).trim_end());
    }

    pub fn marked(&mut self, mark: Mark, text: &str) {
        self.marked_in("", mark, text);
    }

    /// A line with a mark, behind a title.
    pub fn marked_in(&mut self, title: &str, mark: Mark, text: &str) {
        let (sign, colour) = match mark {
            Mark::Yes => ("✓", "32"),
            Mark::No => ("✗", "31"),
            Mark::Neutral => ("·", "2"),
        };
        let sign = self.coloured(sign, colour);
        let title = format!("{title:TITLE_COLUMNS$}");
        let title = self.dim(&title);
        self.text += &format!("{title}{sign} {}\n", printable(text).trim_end());
    }

    fn dim(&self, text: &str) -> String {
        self.coloured(text, "2")
    }

    fn coloured(&self, text: &str, colour: &str) -> String {
        match self.paint {
            Paint::Colourful => format!("\x1b[{colour}m{text}\x1b[0m"),
            Paint::Plain => text.to_owned(),
        }
    }
}

/// The explanation as text.
pub fn render(explanation: &Explanation, paint: Paint) -> String {
    let mut story = Story::new(paint);
    let Explanation { request, listener, .. } = explanation;
    let version = &request.version;
    story.heading(&format!(
        "{} {}  (HTTP/{version}, from {})",
        request.method, request.url, request.peer
    ));
    let address = listener.address.as_ref().map_or(String::new(), |at| format!(" at {at}"));
    story.line("listener", &format!("{}{address}: {}", listener.virtual_server, listener.because));
    if let Some(tls) = &listener.tls {
        let certificate = match &tls.certificate {
            None => "none: the handshake is refused".into(),
            Some(certificate) => {
                let default = if certificate.is_default { ", the default one" } else { "" };
                format!("{} for {}{default}", certificate.subject, certificate.names.join(", "))
            }
        };
        story.line("certificate", &certificate);
    }
    limits(&mut story, &listener.limits);
    explanation.connection_policies.iter().for_each(|policy| self::policy(&mut story, policy));
    for considered in &explanation.virtual_servers {
        if explanation.virtual_servers.len() > 1 {
            story.text.push('\n');
            story.heading(&format!("virtual server {}", considered.virtual_server));
        }
        self::considered(&mut story, considered);
    }
    if let Some(firewall) = &explanation.firewall {
        self::firewall(&mut story, firewall);
    }
    if let Some(balancing) = &explanation.balancing {
        self::balancing(&mut story, balancing);
    }
    outcome(&mut story, &explanation.outcome);
    for (index, remark) in explanation.remarks.iter().enumerate() {
        story.line(if index == 0 { "remarks" } else { "" }, remark);
    }
    story.text
}

/// The decision of a virtual server.
pub fn considered(story: &mut Story, considered: &Considered) {
    let client = considered.client.as_deref().unwrap_or("unknown");
    story.line("client", &format!("{client} (from {})", considered.client_from));
    limits(story, &considered.limits);
    considered.policies.iter().for_each(|policy| self::policy(story, policy));
    for rewrite in &considered.rewrites {
        let (part, before, after) = (&rewrite.part, &rewrite.before, &rewrite.after);
        story.line("rewritten", &format!("{part}  {before}  →  {after}"));
    }
    considered.authentication.iter().for_each(|it| story.line("user", it));
    if let Some(persistence) = &considered.persistence {
        self::persistence(story, persistence);
    }
    let because = considered.pool.as_ref().map(|pool| format!(": {}", pool.because));
    story.line("decision", &format!("{}{}", considered.verdict, because.unwrap_or_default()));
}

fn limits(story: &mut Story, limits: &[LimitTold]) {
    for (index, limit) in limits.iter().enumerate() {
        let title = if index == 0 { "limits" } else { "" };
        let key = limit.key.as_ref().map_or(String::new(), |key| format!(" of {key}"));
        let (room, max) = (grouped(limit.room), grouped(limit.max));
        let name = &limit.name;
        let text = match limit.is_rate {
            true => format!("{name}{key}: {room} more may come at once, of a burst of {max}"),
            false => format!("{name}{key}: room for {room} of {max}"),
        };
        let mark = if limit.is_exceeded { Mark::No } else { Mark::Yes };
        story.marked_in(title, mark, &text);
    }
}

fn policy(story: &mut Story, policy: &PolicyTold) {
    story.line("policy", &format!("{} ({})", policy.name, policy.strategy));
    let is_silent =
        |rule: &&RuleTold| matches!(rule.verdict, RuleVerdict::False | RuleVerdict::NotReached);
    let (mut shown, mut left_out) = (Vec::new(), 0);
    for rule in &policy.rules {
        let silent = shown.iter().filter(|rule: &&&RuleTold| is_silent(rule)).count();
        if is_silent(&rule) && silent == FALSE_RULES_MAX {
            left_out += 1;
        } else {
            shown.push(rule);
        }
    }
    let columns = |of: fn(&RuleTold) -> &str| {
        let widths = shown.iter().map(|rule| of(rule).chars().count());
        widths.max().unwrap_or_default().min(COLUMNS_MAX)
    };
    let columns = (columns(|rule| &rule.name), columns(|rule| &rule.place));
    shown.iter().for_each(|rule| self::rule(story, rule, columns));
    if left_out > 0 {
        let more = counted(left_out, "further rule");
        story.marked(Mark::Neutral, &format!("{more} not followed (--json lists all)"));
    }
}

fn rule(story: &mut Story, rule: &RuleTold, (name_columns, place_columns): (usize, usize)) {
    let (mark, remark) = match rule.verdict {
        RuleVerdict::Followed => (Mark::Yes, ""),
        RuleVerdict::WithResponse => (Mark::Yes, "  (with the response)"),
        RuleVerdict::False => (Mark::No, ""),
        RuleVerdict::NotReached => (Mark::Neutral, "  (true, but not reached)"),
        RuleVerdict::AwaitsResponse => (Mark::Neutral, "  (the response decides)"),
    };
    let when = rule.when.as_deref().unwrap_or("always");
    let (name, place) = (&rule.name, &rule.place);
    story.marked(mark, &format!("{name:name_columns$}  {place:place_columns$}  {when}{remark}"));
    let is_of_use = !matches!(rule.verdict, RuleVerdict::NotReached | RuleVerdict::AwaitsResponse);
    if is_of_use && !rule.values.is_empty() {
        let values: Vec<String> = rule.values.iter().map(value).collect();
        story.line("", &format!("    {}", values.join(", ")));
    }
    if matches!(rule.verdict, RuleVerdict::Followed | RuleVerdict::WithResponse) {
        rule.actions.iter().for_each(|action| story.line("", &format!("    → {action}")));
    }
}

fn value(value: &ValueTold) -> String {
    match &value.value {
        Some(text) => format!("{} = \"{text}\"", value.name),
        None => format!("{} is absent", value.name),
    }
}

fn persistence(story: &mut Story, it: &PersistenceTold) {
    let name = if it.name.is_empty() { "a rule" } else { &it.name };
    let member = it.member.as_ref().map_or(String::new(), |member| format!(" at {member}"));
    let verdict = match &*it.verdict {
        "kept" => format!("the client is{member}"),
        "by_rule" => format!("names the member{member}"),
        "by_key" => "a key of the request leads to a member".into(),
        "new" => "the client is new".into(),
        "no_key" => "the request has no key".into(),
        other => other.to_owned(),
    };
    let remembers = it.remembers.as_ref().map_or(String::new(), |it| format!("; {it}"));
    story.line("persistence", &format!("{name} ({}): {verdict}{remembers}", it.kind));
}

fn firewall(story: &mut Story, firewall: &Firewall) {
    let mark = match &*firewall.outcome {
        "passed" => Mark::Yes,
        "blocked" => Mark::No,
        _ => Mark::Neutral,
    };
    let score = match firewall.threshold {
        0 => String::new(),
        threshold => format!(", score {} of {threshold}", firewall.score),
    };
    let status = firewall.status.map_or(String::new(), |status| format!(" with {status}"));
    let text = format!("{}{status}{score} (mode {})", firewall.outcome, firewall.mode);
    story.marked_in("firewall", mark, &text);
    for check in &firewall.checks {
        story
            .marked(Mark::No, &format!("check {} ({}): {}", check.name, check.action, check.found));
    }
    for rule in firewall.rules.iter().take(WAF_RULES_MAX) {
        let place = rule.place.as_ref().map_or(String::new(), |place| format!("  {place}"));
        let severity = rule.severity.as_ref().map_or(String::new(), |it| format!(" {it}"));
        story.marked(Mark::No, &format!("rule {}{severity} {}{place}", rule.id, rule.message));
        if let Some(found) = rule.values.first() {
            story.line("", &format!("    {}", value(found)));
        }
    }
    let left = firewall.rules.len().saturating_sub(WAF_RULES_MAX) + firewall.left_out;
    if left > 0 {
        story.line("", &format!("  {} more", counted(left as u64, "finding")));
    }
}

fn balancing(story: &mut Story, balancing: &Balancing) {
    let Balancing { pool, method, because, timeouts, .. } = balancing;
    story.line("balancing", &format!("{method} in pool {pool}: {because}"));
    let columns = balancing.candidates.iter().map(|it| label(it).chars().count()).max();
    let columns = columns.unwrap_or_default();
    // If the list is shortened, possible members come first.
    let mut candidates: Vec<&Candidate> = balancing.candidates.iter().collect();
    if candidates.len() > CANDIDATES_MAX {
        candidates.sort_by_key(|it| !it.is_possible);
    }
    for candidate in candidates.iter().take(CANDIDATES_MAX) {
        let mark = match (candidate.is_possible, candidate.is_eligible) {
            (true, _) => Mark::Yes,
            (false, true) => Mark::Neutral,
            (false, false) => Mark::No,
        };
        let label = label(candidate);
        story.marked(mark, &format!("{label:columns$}  {}", state(candidate)));
    }
    let left = candidates.len().saturating_sub(CANDIDATES_MAX) + balancing.left_out;
    if left > 0 {
        story.line("", &format!("  {} more", counted(left as u64, "member")));
    }
    let queue = timeouts.queue_ms.map_or(String::new(), |ms| format!(", in the queue {ms} ms"));
    let retries = counted(timeouts.retries.into(), "other member");
    story.line(
        "timeouts",
        &format!(
            "to connect {} ms, to respond {} ms{queue}; {retries} tried on failure",
            timeouts.connect_ms, timeouts.response_ms
        ),
    );
    if let Some(health) = &balancing.health {
        let mark = if health.state == "degraded" { Mark::Neutral } else { Mark::No };
        story.marked_in(
            "health",
            mark,
            &format!("pool {pool} is {}: {}", health.state, health.why),
        );
    }
}

fn label(candidate: &Candidate) -> String {
    match &candidate.name {
        Some(name) => format!("{} ({name})", candidate.member),
        None => candidate.member.clone(),
    }
}

fn state(it: &Candidate) -> String {
    let administrative = match &*it.administrative {
        "enabled" => String::new(),
        other => format!(", {other}"),
    };
    let max = it.connections_max.map_or(String::new(), |max| format!(" of {max}"));
    let priority =
        if it.priority > 0 { format!("  priority {}", it.priority) } else { String::new() };
    let time = it.response_time_us.map_or(String::new(), |us| format!("  {us} µs"));
    let state = format!("{}{administrative}", it.state);
    format!("{state:12}  weight {}{priority}  requests {}{max}{time}", it.weight, it.occupancy)
}

fn outcome(story: &mut Story, outcome: &Outcome) {
    story.text.push('\n');
    match outcome {
        Outcome::Member { pool, member, request_line, headers, body_bytes, response_policies } => {
            let member = match member {
                Some(member) => format!("{member} of pool {pool} gets it"),
                None => format!("one of the members of pool {pool} gets it"),
            };
            story.marked_in("result", Mark::Yes, &member);
            story.line("", &format!("  {request_line}"));
            fields(story, headers);
            if *body_bytes > 0 {
                story.line("", &format!("  and {} of body", counted(*body_bytes as u64, "byte")));
            }
            if !response_policies.is_empty() {
                story.line("response", "rules that look at it, or change it");
                response_policies.iter().for_each(|policy| self::policy(story, policy));
            }
        }
        Outcome::Answer { status, termination, headers, body } => {
            let mark = if *status < 400 { Mark::Yes } else { Mark::No };
            let text = format!("weir answers {status} (termination {termination})");
            story.marked_in("result", mark, &text);
            fields(story, headers);
            if let Some(body) = body {
                story.line("", &format!("  {}", body.lines().next().unwrap_or_default()));
            }
        }
        Outcome::Queue { pool, waiting, length_max } => {
            let text =
                format!("it waits in the queue of pool {pool}: {waiting} of {length_max} wait");
            story.marked_in("result", Mark::Neutral, &text);
        }
        Outcome::Closed { termination, is_reset } => {
            let how = if *is_reset { "reset" } else { "closed" };
            let text =
                format!("the connection is {how} without an answer (termination {termination})");
            story.marked_in("result", Mark::No, &text);
        }
    }
}

fn fields(story: &mut Story, fields: &[Field]) {
    fields.iter().for_each(|field| story.line("", &format!("  {}: {}", field.name, field.value)));
}

#[cfg(test)]
mod tests {
    use weir_api::asked::Asked;
    use weir_control::explanations;

    use super::*;

    const TEXT: &str = "virtual_servers:
  shop: { listen: 127.0.0.1:8080, pool: web, policies: [ switching ], persistence: c, limits: { requests_per_second: 100 } }
persistence: { c: { type: cookie, name: WEIR } }
pools:
  web: { members: [ 127.0.0.1:9001, { address: 127.0.0.1:9002, state: drain } ] }
  images: { members: [ 127.0.0.1:9003 ] }
policies:
  switching:
    rules:
      - { name: images, when: 'request.path.endsWith(\".png\")', then: [ { pool: images } ] }
      - { name: old, when: 'request.path.startsWith(\"/old/\")', then: [ { rewrite_path: { regex: \"^/old/\", to: \"/new/\" } } ] }
      - { name: rest, then: [ { set_header: { X-Token: \"${request.headers['authorization']}\" } } ] }
";

    fn story(url: &str) -> String {
        let config = weir_config::parse("weir.yaml", TEXT).config.expect("a configuration");
        let asked: Asked = serde_json::from_value(serde_json::json!({
            "url": url, "headers": ["Authorization: Bearer s3cr3t-t0ken"], "from": "192.0.2.7",
        }))
        .expect("a request");
        let explanation = explanations::by_configuration(&config, &asked).expect("it is clear");
        render(&explanation, Paint::Plain)
    }

    #[test]
    fn it_is_a_story() {
        let text = story("http://127.0.0.1:8080/old/a?b");
        let expected = "\
GET http://127.0.0.1:8080/old/a?b  (HTTP/1.1, from 192.0.2.7)
listener     shop at 127.0.0.1:8080: it listens on port 8080
client       192.0.2.7 (from the connection)
limits       ✓ requests: 10 more may come at once, of a burst of 10
policy       switching (first_match)
             ✗ images  weir.yaml:10:9  request.path.endsWith(\".png\")
                 request.path = \"/old/a\"
             ✓ old     weir.yaml:11:9  request.path.startsWith(\"/old/\")
                 request.path = \"/old/a\"
                 → rewrite_path: by a regular expression
             · rest    weir.yaml:12:9  always  (true, but not reached)
rewritten    path  /old/a  →  /new/a
persistence  c (cookie): the client is new; the response sets the cookie WEIR
decision     goes to pool web: the pool of the virtual server
balancing    round_robin in pool web: it is the only member that takes requests
             ✓ 127.0.0.1:9001  up            weight 1  requests 0
             ✗ 127.0.0.1:9002  up, drain     weight 1  requests 0
";
        assert_eq!(&text[..expected.len().min(text.len())], expected, "{text}");
        assert!(text.contains("\nresult       ✓ 127.0.0.1:9001 of pool web gets it\n"), "{text}");
        assert!(text.contains("               GET /new/a?b HTTP/1.1\n"), "{text}");
        assert!(!text.contains("s3cr3t"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
    }

    #[test]
    fn a_pool_that_is_not_up_is_told() {
        let config = weir_config::parse("weir.yaml", TEXT).config.expect("a configuration");
        let asked = serde_json::json!({ "url": "http://127.0.0.1:8080/a.png" });
        let asked: Asked = serde_json::from_value(asked).expect("a request");
        let explanation = explanations::by_configuration(&config, &asked).expect("it is clear");
        let check = |state: &str, expected: &str| {
            let mut explanation = explanation.clone();
            let health = weir_api::explanation::PoolHealth {
                state: state.into(),
                why: "9 of 9 requests failed in the last 6 s".into(),
            };
            explanation.balancing.as_mut().expect("a member").health = Some(health);
            let text = render(&explanation, Paint::Plain);
            assert!(text.contains(expected), "{text}");
        };
        let why = "9 of 9 requests failed in the last 6 s";
        check("failing", &format!("\nhealth       ✗ pool images is failing: {why}\n\nresult"));
        check("degraded", &format!("\nhealth       · pool images is degraded: {why}\n\nresult"));
        assert!(!render(&explanation, Paint::Plain).contains("\nhealth "));
    }

    #[test]
    fn there_are_no_escapes_without_a_terminal() {
        assert!(!story("http://127.0.0.1:8080/").contains('\x1b'));
    }
}
