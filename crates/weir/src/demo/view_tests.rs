use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::journal::Entry;
use super::super::picture::ClientResults;
use super::*;

const PALETTE: Palette = Palette::COLOURFUL;

fn place() -> Place {
    Place {
        server_url: "http://127.0.0.1:8080".into(),
        admin_url: "http://127.0.0.1:9900".into(),
        file: "/tmp/weir-demo-42/demo.yaml".into(),
        command: "weir".into(),
        process_id: 42,
        roles: Vec::new(),
        note: None,
    }
}

fn member(role: &'static str, state: MemberState) -> Member {
    let mut member = Member {
        label: "127.0.0.1:45678".into(),
        role,
        state,
        weight: 256,
        rate: 21.4,
        totals: Default::default(),
        latency: Default::default(),
    };
    member.totals.connect_failures = 1_234;
    member.totals.requests_active = 2;
    member.latency.buckets[9] = 100;
    member
}

fn picture() -> Picture {
    let mut picture = Picture {
        uptime: Duration::from_secs(3_605),
        rate: 80.4,
        rates: (0..200).map(|second| second % 90).collect(),
        retries: 12,
        pools: "Pool web".into(),
        members: vec![
            member("quick-1", MemberState::Up),
            member("slow", MemberState::Pending),
            member("flapping", MemberState::Down),
            member("", MemberState::Ejected),
        ],
        traffic: Some(ClientResults { on: true, requests: 9, answered: 9, failed: 0 }),
        events: vec![Entry {
            at: Duration::from_secs(62),
            level: "warning".into(),
            text: "member flapping is down: connection refused (2 of 2)".into(),
        }],
        ..Picture::default()
    };
    picture.server.responses_2xx = 1_234_567;
    picture.server.connections_open = 16;
    picture.latency.buckets[2] = 90;
    picture.latency.buckets[8] = 10;
    picture
}

fn screen_of(picture: &Picture, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| render(frame, &place(), picture, PALETTE)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
    (0..height).map(row).collect()
}

#[track_caller]
fn check(screen: &[String], expected: &[&str]) {
    for text in expected {
        let found = screen.iter().any(|line| line.contains(text));
        assert!(found, "{text:?} is not in\n{}", screen.join("\n"));
    }
}

#[test]
fn all_is_on_a_screen_of_80_x_24() {
    let screen = screen_of(&picture(), 80, 24);
    let expected = [
        "serves http://127.0.0.1:8080  up 1:00:05",
        "q quit  t traffic",
        "Requests/s: 80, highest 89",
        "responses  2xx 1,234,567  4xx 0  5xx 0",
        "latency ms p50 0.39  p90 0.50  p99 48",
        "traffic    0 failed, 12 retries",
        "clients    16 connections, 0 active",
        "Pool web: 1 of 4 members up",
        " member    address         state     weight  req/s active p50 ms p99 ms fails ",
        " quick-1   127.0.0.1:45678 ● up         256     21      2     62     75 1,234 ",
        "◌ pending",
        "○ down",
        "◐ ejected",
        "  1:02 warning member flapping is down: connection refused (2 of 2)",
        "curl http://127.0.0.1:8080/",
        "curl http://127.0.0.1:9900/v1/status",
        "weir check /tmp/weir-demo-42/demo.yaml",
    ];
    check(&screen, &expected);
}

#[test]
fn remarks_are_whole_beside_a_long_command() {
    let place = Place {
        command: "target/release/weir".into(),
        file: "/tmp/weir-demo-1234567/demo.yaml".into(),
        ..place()
    };
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| render(frame, &place, &picture(), PALETTE)).unwrap();
    let screen = terminal.backend().to_string();
    for remark in ["/headers /slow /bytes/9 ", "also /metrics for Prometheus ", "is it sound? "] {
        assert!(screen.contains(remark), "{remark:?} is not in\n{screen}");
    }
}

#[test]
fn a_larger_screen_has_a_histogram_and_more_to_try() {
    let screen = screen_of(&picture(), 120, 40);
    let expected = [
        "Latency, last 10 s",
        "≤ 0.5 ms ████████████████ 90",
        "≤ 50 ms ██ 10",
        "requests found no member",
        "kill -HUP 42",
        "weir demo --config > weir.yaml",
    ];
    check(&screen, &expected);
    assert!(!screen.join("").contains("≤ 75 ms"), "an empty bucket");
}

#[test]
fn failures_and_pauses_are_said_in_words() {
    let mut picture = picture();
    picture.traffic = Some(ClientResults { on: false, failed: 3, ..ClientResults::default() });
    check(&screen_of(&picture, 80, 24), &["paused", "3 failed"]);
    picture.traffic = None;
    let screen = screen_of(&picture, 80, 24);
    check(&screen, &["only yours, 12 retries"]);
    assert!(!screen[0].contains("t traffic"));
}

#[test]
fn any_size_and_any_number_of_members_can_be_drawn() {
    let mut picture = picture();
    for members in [0, 1, 4, 300] {
        let one = member("", MemberState::Up);
        picture.members = std::iter::repeat_n(one, members).collect();
        for (width, height) in [(1, 1), (79, 24), (80, 13), (80, 14), (80, 24), (110, 15)]
            .into_iter()
            .chain((14..60).map(|height| (200, height)))
        {
            let screen = screen_of(&picture, width, height);
            let too_small = width < WIDTH_MIN || height < HEIGHT_MIN;
            let has_members = screen.iter().any(|line| line.contains("members up"));
            assert_eq!(has_members, !too_small, "{width} x {height}");
        }
    }
}

#[test]
fn heights_fill_the_screen() {
    for height in HEIGHT_MIN..200 {
        for members in [0, 1, 4, 12, 1_000] {
            let heights = Heights::of(height, members, 5);
            let Heights { top, members, events, try_this } = heights;
            assert_eq!(1 + top + members + events + try_this, height, "{heights:?}");
            for few in [events, try_this] {
                assert!(few == 0 || few > BORDERS, "{heights:?}");
            }
        }
    }
}

#[test]
fn the_slowest_buckets_are_shown() {
    let mut latency = HistogramTotals::default();
    assert_eq!(shown_buckets(&latency, 5), 0..0);
    latency.buckets[3] = 1;
    assert_eq!(shown_buckets(&latency, 5), 3..4);
    latency.buckets[12] = 1;
    assert_eq!(shown_buckets(&latency, 10), 3..13);
    assert_eq!(shown_buckets(&latency, 5), 8..13);
}
