//! Output for pools. The document is a shortened answer of weir.

use weir_api::health::HealthState;

use super::*;

/// A pool with three members: up, drained and down.
pub const POOL: &str = r#"{
  "name": "web", "health": { "state": "degraded", "why": "1 of 3 members in service" }, "balance": "round_robin", "members_up": 2, "members_in_service": 1,
  "retries": 2, "no_member": 0, "queue_requests": 0, "queued": 9,
  "response_duration": { "p50_ms": 1.1, "p99_ms": 7.5 },
  "members": [
    { "address": "127.0.0.1:9001", "name": "app.example", "state": "up",
      "administrative": "enabled", "administrative_source": "file", "draining_requests": null,
      "ejected_for_ms": null, "monitors": [
        { "type": "http", "state": "up", "passes": 12, "failures": 0,
          "last_probe": "2026-11-21T06:00:00.000Z", "last_failure": null } ],
      "weight": 1, "occupancy": 2, "connections_max": null, "requests": 12001,
      "connections_open": 5, "connections_idle": 3, "connect_failures": 0, "response_failures": 0,
      "ejections": 0, "responses": { "5xx": 0 },
      "response_duration": { "p50_ms": 1.2, "p99_ms": 8.0 } },
    { "address": "127.0.0.1:9002", "name": null, "state": "up",
      "administrative": "drain", "administrative_source": "runtime", "draining_requests": 1,
      "ejected_for_ms": null, "monitors": [], "weight": 3, "occupancy": 1, "connections_max": 50,
      "requests": 800, "connections_open": 1, "connections_idle": 0, "connect_failures": 1,
      "response_failures": 2, "ejections": 1, "responses": { "5xx": 3 },
      "response_duration": { "p50_ms": 0.25, "p99_ms": 0.9 } },
    { "address": "127.0.0.1:9003", "name": null, "state": "down",
      "administrative": "enabled", "administrative_source": "file", "draining_requests": null,
      "ejected_for_ms": null, "monitors": [
        { "type": "tcp", "state": "down", "passes": 0, "failures": 7,
          "last_probe": "2026-11-21T06:00:00.000Z", "last_failure": "connection refused" } ],
      "weight": 1, "occupancy": 0, "connections_max": null, "requests": 0,
      "connections_open": 0, "connections_idle": 0, "connect_failures": 0, "response_failures": 0,
      "ejections": 0, "responses": { "5xx": 0 },
      "response_duration": { "p50_ms": null, "p99_ms": null } }
  ]
}"#;

fn pool() -> Pool {
    serde_json::from_str(POOL).unwrap()
}

#[test]
fn a_pool_is_a_table() {
    let expected = "\
pool web: round_robin, 1 of 3 members in service
  degraded: 1 of 3 members in service
  latency p50 1.1 ms, p99 7.5 ms
  member          state  administrative    requests  active  errors      p50
  127.0.0.1:9001  up     enabled             12,001       2       0   1.2 ms
  127.0.0.1:9002  up     drain (run time)       800       1       6  0.25 ms
! 127.0.0.1:9003  down   enabled                  0       0       0        -
!   tcp monitor: connection refused
";
    assert_eq!(table_of(&pool(), Paint::Plain), expected);
}

#[test]
fn latency_that_is_not_counted_by_member_has_no_column() {
    let mut pool = pool();
    pool.members.iter_mut().for_each(|member| member.response_duration = None);
    let expected = "\
pool web: round_robin, 1 of 3 members in service
  degraded: 1 of 3 members in service
  latency p50 1.1 ms, p99 7.5 ms
  member          state  administrative    requests  active  errors
  127.0.0.1:9001  up     enabled             12,001       2       0
  127.0.0.1:9002  up     drain (run time)       800       1       6
! 127.0.0.1:9003  down   enabled                  0       0       0
!   tcp monitor: connection refused
";
    assert_eq!(table_of(&pool, Paint::Plain), expected);
    assert!(!detail(&pool, Paint::Plain).contains("p50 -"));
}

#[test]
fn colours_tell_wrong_from_unusual() {
    let text = table_of(&pool(), Paint::Colourful);
    assert!(text.contains("\x1b[33m  127.0.0.1:9002"), "{text}");
    assert!(text.contains("\x1b[1;31m! 127.0.0.1:9003"), "{text}");
    assert!(text.contains("\n  127.0.0.1:9001"), "{text}");
}

#[test]
fn pools_are_rows() {
    let expected = "  pool  balance      members  in service  active  retries  no member\n\
                    ! web   round_robin        3           1       3        2          0\n";
    assert_eq!(overview(&[pool()], Paint::Plain), expected);
    assert_eq!(overview(&[], Paint::Plain), "The configuration has no pool.\n");
}

#[test]
fn a_pool_in_detail() {
    let expected = "\
pool web: round_robin, 1 of 3 members in service
  degraded: 1 of 3 members in service
  latency p50 1.1 ms, p99 7.5 ms
  retries 2, requests that found no member 0

  member 127.0.0.1:9001 (app.example)
    state           up
    administrative  enabled
    weight          1
    requests        12,001; 2 under way
    connections     5 open, 3 of them idle
    errors          0: 0 not connected, 0 cut short, late or malformed, 0 answered 5xx; ejected 0 times
    latency         p50 1.2 ms, p99 8.0 ms
    http monitor    up; 12 passed, 0 failed; last at 2026-11-21T06:00:00.000Z

  member 127.0.0.1:9002
    state           up
    administrative  drain (run time): gets nothing new, 1 request under way
    weight          3
    requests        800; 1 under way of at most 50
    connections     1 open, 0 of them idle
    errors          6: 1 not connected, 2 cut short, late or malformed, 3 answered 5xx; ejected 1 time
    latency         p50 0.25 ms, p99 0.90 ms

! member 127.0.0.1:9003
!   state           down
    administrative  enabled
    weight          1
    requests        0; 0 under way
    connections     0 open, 0 of them idle
    errors          0: 0 not connected, 0 cut short, late or malformed, 0 answered 5xx; ejected 0 times
    latency         p50 -, p99 -
!   tcp monitor     down; 0 passed, 7 failed; last at 2026-11-21T06:00:00.000Z: connection refused
";
    assert_eq!(detail(&pool(), Paint::Plain), expected);
}

#[test]
fn an_ejected_member_says_why_and_for_how_long() {
    let mut pool = pool();
    pool.members[0].state = "ejected".into();
    pool.members[0].ejected_for_ms = Some(12_000);
    pool.members[0].ejected_why = Some("it answered 503".into());
    pool.members_in_service = 0;
    pool.health.state = HealthState::Down;
    pool.health.why = Some("none of its 3 members is in service".into());
    let text = table_of(&pool, Paint::Plain);
    for expected in [
        "! pool web: round_robin, 0 of 3 members in service\n",
        "! down: none of its 3 members is in service\n",
        "! 127.0.0.1:9001  ejected",
        "!   it answered 503: gets none for another 12 s\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert_eq!(tone_of_pool(&pool), Tone::Wrong);
}

#[test]
fn a_member_that_a_delay_holds_up_says_so() {
    let mut pool = pool();
    let monitor = &mut pool.members[2].monitors[0];
    monitor.last_failure = None;
    monitor.held_up_for_ms = Some(12_400);
    let why = "passes, up in 12 s if it goes on (up_delay)";
    let text = table_of(&pool, Paint::Plain);
    assert!(text.contains(&format!("!   tcp monitor: {why}\n")), "{text}");
    let text = detail(&pool, Paint::Plain);
    assert!(text.contains(&format!("T06:00:00.000Z: {why}\n")), "{text}");
}
