//! A running weir with a large random configuration: its explanations, its access log, its records and its members agree about
//! random requests. `WEIR_EXPLAIN_CASES=10000` makes as many requests.
//!
//! Each request is explained, then sent. Nothing else happens in between, so that limits and members are as they were.

mod bed;
mod compare;

use serde_json::Value;
use weir_testing::Random;
use weir_testing::configurations::{self, Request};

use bed::{Bed, Seen};

/// Requests, by default.
const CASES: usize = 200;

/// After so many requests, the access log is read, and the administrator changes the state of a member.
const BATCH: usize = 20;

/// A request that was explained, then sent.
struct Sent {
    request: Request,
    /// The explanation before.
    explained: Value,
    seen: Seen,
    /// Its id.
    id: String,
    /// The explanation of its record.
    why: Value,
}

/// Draws a request, has it explained, and sends it.
fn send(bed: &mut Bed, random: &mut Random) -> Sent {
    let server = random.below(bed::SERVERS);
    let request = configurations::request(bed.cookie.take(), random);
    let explained = bed.explain(server, &request);
    let seen = bed.send(server, &request);
    let id = bed.recorded();
    let why = bed.why(&id);
    Sent { request, explained, seen, id, why }
}

/// How many requests were of which kind.
#[derive(Debug, Default)]
struct Tally {
    requests: usize,
    certain: usize,
    uncertain: usize,
    answered: usize,
    limited: usize,
    blocked: usize,
    closed: usize,
    kept: usize,
    handed_over: usize,
    http2: usize,
    drawn: usize,
    with_rules: usize,
    decided_again: usize,
}

#[test]
fn what_it_says_is_what_it_does() {
    let cases = std::env::var("WEIR_EXPLAIN_CASES").ok();
    let cases = cases.map_or(CASES, |it| it.parse().expect("WEIR_EXPLAIN_CASES is a number"));
    let mut random = Random::new(20);
    let mut bed = Bed::new(&mut random);
    let mut tally = Tally::default();
    let mut number = 0;
    while number < cases {
        bed.change_a_member(&mut random);
        let batch: Vec<Sent> = (0..BATCH).map(|_| send(&mut bed, &mut random)).collect();
        let lines = bed.log_lines(batch.len());
        for sent in &batch {
            let line = &lines[&sent.id];
            let Sent { request, explained, seen, why, .. } = sent;
            let story = || format!("{request:?}\n{explained:#}\n{line:#}\n{why:#}\n{seen:?}");
            if let Err(error) = compare::outcome(explained, line, seen) {
                panic!("request {number}: {error}\n{}", story());
            }
            if let Err(error) = compare::record(explained, line, why) {
                panic!("the record of request {number}: {error}\n{}", story());
            }
            tally.http2 += usize::from(request.is_http2);
            tally.count(explained, why);
            number += 1;
        }
    }
    eprintln!("{tally:?}");
    let Tally { requests, certain, answered, limited, closed, with_rules, .. } = tally;
    let usual = [certain, answered, closed, with_rules, tally.decided_again, tally.http2];
    assert!(usual.iter().all(|count| *count * 40 > requests), "{tally:?}");
    let rare = [limited, tally.uncertain, tally.blocked, tally.kept, tally.handed_over];
    assert!(cases <= CASES || rare.iter().all(|count| *count * 200 > requests), "{tally:?}");
}

impl Tally {
    fn count(&mut self, explained: &Value, why: &Value) {
        let outcome = &explained["outcome"];
        let is_certain = outcome["member"].is_string();
        let counter = match (outcome["kind"].as_str(), outcome["status"].as_u64()) {
            (Some("member"), _) if is_certain => &mut self.certain,
            (Some("member"), _) => &mut self.uncertain,
            (Some("answer"), Some(429)) => &mut self.limited,
            (Some("answer"), _) => &mut self.answered,
            _ => &mut self.closed,
        };
        *counter += 1;
        self.requests += 1;
        self.blocked += usize::from(explained["firewall"]["outcome"] == "blocked");
        self.kept += usize::from(why["recorded"]["persistence"] == "kept");
        let servers = explained["virtual_servers"].as_array().map_or(0, Vec::len);
        self.handed_over += usize::from(servers > 1);
        self.drawn += usize::from(compare::is_drawn(explained));
        self.with_rules += usize::from(!compare::followed(explained).is_empty());
        self.decided_again += usize::from(compare::is_decided_again(why));
    }
}
