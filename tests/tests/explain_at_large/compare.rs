//! The explanation of a request against what has happened.

use serde_json::Value;

use crate::bed::Seen;

fn list(of: &Value) -> &[Value] {
    of.as_array().map_or(&[], Vec::as_slice)
}

fn texts(of: &Value) -> Vec<String> {
    list(of).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The rules that an explanation calls followed, in the form of the access log.
pub fn followed(explained: &Value) -> Vec<String> {
    let policies = list(&explained["virtual_servers"]).iter().flat_map(|it| list(&it["policies"]));
    let rules = policies.flat_map(|policy| {
        let rules = list(&policy["rules"]).iter().filter(|rule| rule["verdict"] == "followed");
        rules.map(|rule| format!("{}/{}", text(&policy["name"]), text(&rule["name"])))
    });
    rules.collect()
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_default()
}

/// Whether a rule draws the pool by weight.
pub fn is_drawn(explained: &Value) -> bool {
    list(&explained["virtual_servers"]).iter().any(|it| it["pool"]["is_drawn"] == true)
}

/// Whether the record was decided again with all that counted then.
pub fn is_decided_again(why: &Value) -> bool {
    why["again"].is_object() && list(&why["differences"]).is_empty()
}

fn same(what: &str, one: &Value, other: &Value) -> Result<(), String> {
    match one == other {
        true => Ok(()),
        false => Err(format!("{what}: explained {one}, really {other}")),
    }
}

/// The explanation of a request against its line of the access log, and against what client and member have seen.
pub fn outcome(explained: &Value, line: &Value, seen: &Seen) -> Result<(), String> {
    let (told, logged) = (followed(explained), texts(&line["rules"]));
    if told != logged {
        return Err(format!("rules: explained {told:?}, really {logged:?}"));
    }
    let outcome = &explained["outcome"];
    let status = u64::from(seen.status.unwrap_or(0));
    if line["status"] != status {
        return Err(format!("the client has seen {status}, the log says {}", line["status"]));
    }
    // A draw may go to a pool without any member in service.
    if is_drawn(explained) && outcome["kind"] != "closed" {
        return Ok(());
    }
    match text(&outcome["kind"]) {
        "answer" => {
            same("status", &outcome["status"], &line["status"])?;
            same("termination", &outcome["termination"], &line["termination"])
        }
        "closed" => same("termination", &outcome["termination"], &line["termination"]),
        "member" => at_member(explained, line, seen),
        other => Err(format!("explained {other}, really {}", line["termination"])),
    }
}

fn at_member(explained: &Value, line: &Value, seen: &Seen) -> Result<(), String> {
    let outcome = &explained["outcome"];
    same("pool", &outcome["pool"], &line["pool"])?;
    if outcome["member"].is_string() {
        same("member", &outcome["member"], &line["member"])?;
    }
    let mut candidates = list(&explained["balancing"]["candidates"]).iter();
    if !candidates.any(|it| it["is_possible"] == true && it["member"] == line["member"]) {
        return Err(format!("member {} is said to be impossible", line["member"]));
    }
    let (member, request_line) = seen.body.split_once('\n').unwrap_or_default();
    same("member that answered", &line["member"], &member.into())?;
    // Ids of sessions are masked.
    let request_line = request_line.replace("=abcdef", "=***");
    same("request line", &outcome["request_line"], &request_line.into())
}

fn outcome_is_member(explained: &Value) -> bool {
    explained["outcome"]["kind"] == "member"
}

/// The record of a request against its line of the access log and the explanation before it.
pub fn record(explained: &Value, line: &Value, why: &Value) -> Result<(), String> {
    let recorded = &why["recorded"];
    for key in ["member", "status", "termination", "virtual_server"] {
        same(key, &recorded[key], &line[key])?;
    }
    // The access log has the default pool of a request that reached none.
    if recorded["pool"].is_string() || line["member"].is_string() || outcome_is_member(explained) {
        same("pool", &recorded["pool"], &line["pool"])?;
    }
    let decided = list(&recorded["decided"]).iter().flat_map(|it| texts(&it["rules"]));
    let (decided, logged) = (decided.collect::<Vec<_>>(), texts(&line["rules"]));
    if decided != logged {
        return Err(format!("rules: recorded {decided:?}, really {logged:?}"));
    }
    for key in ["outcome", "score"] {
        same(key, &explained["firewall"][key], &recorded["firewall"][key])?;
    }
    if line["member"].is_string() {
        was_candidate(recorded, line)?;
    }
    // Limits that were used up, and bodies, are not there again: the differences say so.
    let mut differences = texts(&why["differences"]).into_iter();
    let is_limited =
        list(&recorded["decided"]).iter().any(|it| text(&it["verdict"]).contains("limit"));
    let is_wrong = |it: &String| it.starts_with("rule ") || it.contains("cannot be decided");
    match differences.find(is_wrong) {
        Some(wrong) if !is_limited => Err(wrong),
        _ => Ok(()),
    }
}

/// Whether the record has the member among those that took requests.
fn was_candidate(recorded: &Value, line: &Value) -> Result<(), String> {
    let sought = list(&recorded["sought"]).last().ok_or("no pool was recorded")?;
    // Another pool may stand in for one without members in service.
    if sought["pool"] != line["pool"] {
        return match list(&sought["candidates"]).iter().any(|it| it["is_eligible"] == true) {
            true => Err(format!("recorded pool {}, really {}", sought["pool"], line["pool"])),
            false => Ok(()),
        };
    }
    let mut candidates = list(&sought["candidates"]).iter();
    let found = candidates.find(|it| it["member"] == line["member"]);
    let found = found.ok_or_else(|| format!("{} is no candidate", line["member"]))?;
    // A member that is drained still gets its sessions.
    match found["is_eligible"] == true || sought["preference"] == "member" {
        true => Ok(()),
        false => Err(format!("{} took no requests: {found}", line["member"])),
    }
}
