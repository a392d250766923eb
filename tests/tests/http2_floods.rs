//! Attacks on HTTP/2: weir closes the attacker's connections and counts the attack, continues to serve others, and keeps its
//! memory bounded.
//!
//! Each test prints the attacker's actions and the latency of the others. There is no assertion about times.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::hpack::{write_index, write_indexed_line, write_line};
use weir_tests::http2::{Frame, Peer, code, flag, kind, setting};
use weir_tests::member::Member;
use weir_tests::nginx::Nginx;
use weir_tests::proxy::{Proxy, Setup};

/// Duration of the load before the attack, and duration of the attack.
const BEFORE: Duration = Duration::from_millis(400);
const ATTACK: Duration = Duration::from_millis(1_500);
/// Maximum number of consecutive connections of an attack.
const CONNECTIONS_MAX: usize = 50;
/// Uploads to `/whole` go to another pool.
const UPLOADS: &str = "policies: { uploads: { rules: \
                       [ { when: 'request.path == \"/whole\"', then: [ { pool: readers } ] } ] } }";
/// The streams that weir permits at once.
const STREAMS: u32 = 100;
/// Maximum growth of weir's memory during an attack.
const GROWTH_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Serialises the attacks, because they are measured.
static TURN: Mutex<()> = Mutex::new(());

/// The metric in which weir counts an attack.
#[derive(Clone, Copy)]
enum Counted {
    /// A flood of this kind.
    Flood(&'static str),
    /// A protocol error.
    Error,
    /// A timeout of this phase.
    Timeout(&'static str),
}

/// The observations of the attacker.
#[derive(Debug, Default)]
struct Seen {
    frames: usize,
    connections: usize,
    cut: usize,
    /// Of those that were cut: those that weir has told why.
    told: usize,
    codes: Vec<u32>,
}

/// Sends batches over one connection after another. If weir must close a connection, the attack continues until that has
/// happened, otherwise until weir has counted it, because it takes longer on a busy machine.
fn attack(
    address: SocketAddr,
    is_to_be_cut: bool,
    is_counted: &AtomicBool,
    settings: &[(u16, u32)],
    batch: &dyn Fn(&mut Peer, &mut Vec<u8>) -> usize,
) -> Seen {
    let begun = Instant::now();
    let goes_on = |cut: usize| {
        let is_slow = if is_to_be_cut { cut == 0 } else { !is_counted.load(Ordering::Acquire) };
        begun.elapsed() < if is_slow { weir_tests::STEP_TIMEOUT } else { ATTACK }
    };
    let mut seen = Seen::default();
    let mut out = Vec::new();
    while goes_on(seen.cut) && seen.connections < CONNECTIONS_MAX {
        let Ok(mut peer) = Peer::try_connect(address, settings) else { continue };
        seen.connections += 1;
        peer.drops_data = true;
        while goes_on(seen.cut) && !peer.closed && peer.goaways.is_empty() {
            out.clear();
            seen.frames += batch(&mut peer, &mut out);
            if peer.send_bytes(&out).is_err() {
                break;
            }
            peer.streams.clear();
            peer.data_order.clear();
            peer.pump_for(Duration::from_millis(1));
        }
        peer.pump_for(Duration::from_millis(20));
        seen.cut += usize::from(peer.closed || !peer.goaways.is_empty());
        seen.told += usize::from(!peer.goaways.is_empty());
        seen.codes.extend(peer.goaways.iter().map(|(_, code)| *code));
    }
    seen.codes.sort_unstable();
    seen.codes.dedup();
    seen
}

/// Sends requests in both versions in turn until `stop` is set. Returns the time of each request in microseconds, or an
/// error.
fn ask(address: SocketAddr, stop: &AtomicBool) -> Result<Vec<u64>, String> {
    let (mut peer, mut client) = (Peer::connect(address), Client::connect(address));
    let mut times = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let begun = Instant::now();
        let response = peer.get("/5");
        times.push(begun.elapsed().as_micros() as u64);
        if response.status() != 200 || response.body != b"xxxxx" {
            return Err(format!("{response:?}"));
        }
        peer.streams.clear();
        let begun = Instant::now();
        let response = client.get("/5");
        times.push(begun.elapsed().as_micros() as u64);
        if response.status != 200 {
            return Err(format!("{response:?}"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(times)
}

/// The median and the 99th percentile, in microseconds.
fn p50_p99(mut times: Vec<u64>) -> (u64, u64) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len().saturating_sub(1) * share / 100).copied();
    (at(50).unwrap_or(0), at(99).unwrap_or(0))
}

fn count(proxy: &Proxy, counted: Counted) -> f64 {
    let metric = |name: &str, label: &str| {
        proxy.metric(&format!("weir_virtual_server_{name}_total"), &[&format!("\"{label}\"")])
    };
    match counted {
        Counted::Flood(kind) => metric("http2_floods", kind),
        Counted::Error => metric("http2_errors", "main"),
        Counted::Timeout(phase) => metric("timeouts", phase),
    }
}

/// Runs an attack against a separate weir while other clients send requests.
fn check(
    name: &str,
    counted: Counted,
    settings: &[(u16, u32)],
    batch: &(dyn Fn(&mut Peer, &mut Vec<u8>) -> usize + Sync),
) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    weir_tests::require!("nginx");
    let member = Nginx::start("a");
    for size in [5, 100_000, 1_000_000] {
        let file = member.files().join(size.to_string());
        std::fs::write(file, vec![b'x'; size]).expect("a file");
    }
    // A member that reads uploads to their end. nginx would answer at once: the stream would be over, and what an attacker sends
    // then is for a closed one.
    let reader = Member::streaming(|exchange| {
        exchange.read_body(|_| ())?;
        exchange.answer("whole")
    });
    // A slow attacker does not reach a timeout, unless it is to.
    let timeout = if matches!(counted, Counted::Timeout(_)) { "500ms" } else { "60s" };
    let setup = Setup::new(&[member.address()])
        .http(&format!("http2: true, body_timeout: {timeout}, header_timeout: {timeout}"))
        .also_pool(&format!("readers: {{ members: [ \"{}\" ] }}", reader.address()))
        .virtual_server("policies: [ uploads ]")
        .top(UPLOADS);
    let mut proxy = Proxy::start(&setup);
    let address = proxy.address();
    let (stop_before, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_counted = &AtomicBool::new(false);
    let (before, during, seen, grown) = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(address, &stop_before));
        thread::sleep(BEFORE);
        stop_before.store(true, Ordering::Release);
        let before = asking.join().expect("who asks");
        let resident = proxy.process().resident_bytes();
        let asking = scope.spawn(|| ask(address, &stop));
        let is_to_be_cut = !matches!(counted, Counted::Timeout(_));
        let attacking =
            scope.spawn(move || attack(address, is_to_be_cut, is_counted, settings, batch));
        let mut most = resident;
        while !attacking.is_finished() {
            most = most.max(proxy.process().resident_bytes());
            if !is_to_be_cut && !is_counted.load(Ordering::Acquire) {
                is_counted.store(count(&proxy, counted) > 0.0, Ordering::Release);
            }
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Release);
        let seen = attacking.join().expect("the attacker");
        (before, asking.join().expect("who asks"), seen, most - resident)
    });
    let before = p50_p99(before.expect("responses before"));
    let during = p50_p99(during.unwrap_or_else(|error| panic!("{name}: {error}")));
    println!(
        "{name}: {} frames on {} connections, {} cut, codes {:?}, others {} / {} us before, {} / {} us during, \
         {} KiB more",
        seen.frames,
        seen.connections,
        seen.cut,
        seen.codes,
        before.0,
        before.1,
        during.0,
        during.1,
        grown / 1024
    );
    assert!(grown < GROWTH_BYTES_MAX, "{name}: {grown} bytes more");
    let is_told = |code: &u32| match counted {
        Counted::Flood(_) => *code == code::ENHANCE_YOUR_CALM,
        Counted::Error => ![code::NO_ERROR, code::ENHANCE_YOUR_CALM].contains(code),
        Counted::Timeout(_) => *code == code::NO_ERROR,
    };
    assert!(seen.codes.iter().all(is_told), "{name}: {seen:?}");
    weir_tests::eventually("it is counted", weir_tests::STEP_TIMEOUT, || {
        count(&proxy, counted) >= 1.0
    });
    if !matches!(counted, Counted::Timeout(_)) {
        assert!(seen.cut > 0, "{name}: nobody was cut");
        // Some attacks become others when the attacker is slow: its stream may be over, and what it sends then is for a closed one.
        let all = || count(&proxy, Counted::Flood("main")) + count(&proxy, Counted::Error);
        weir_tests::eventually("each is counted", weir_tests::STEP_TIMEOUT, || {
            all() >= seen.told as f64
        });
    }
    Peer::connect(address).get("/5").assert_status(200);
    weir_tests::eventually("nothing is left", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_requests_active", &[]) == 0.0
    });
    assert!(proxy.process().exited().is_none());
}

/// Writes a request's head.
fn head(stream: u32, method: &[u8], path: &[u8], end: bool, out: &mut Vec<u8>) {
    let lines: [(&[u8], &[u8]); 4] =
        [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"test")];
    Frame::headers(stream, &lines, end).write(out);
}

#[test]
fn rapid_reset() {
    // CVE-2023-44487
    check("rapid reset", Counted::Flood("streams"), &[], &|peer, out| {
        for _ in 0..100 {
            let stream = peer.new_stream();
            head(stream, b"GET", b"/5", true, out);
            Frame::reset(stream, code::CANCEL).write(out);
        }
        200
    });
}

/// Rapid reset with requests and resets in separate reads, however slow the attacker is: between a request and its reset are the
/// heads of all other streams, more than weir reads at once. The streams have no send window, so their responses are pending when
/// the resets arrive.
#[test]
fn rapid_reset_in_another_breath() {
    let windows = [(setting::INITIAL_WINDOW_SIZE, 0)];
    let lines: [(&[u8], &[u8]); 5] = [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/5"),
        (b":authority", b"test"),
        (b"filler", &[b'x'; 1_000]),
    ];
    check("rapid reset, later", Counted::Flood("streams"), &windows, &|peer, out| {
        for _ in 0..4 * STREAMS {
            let stream = peer.new_stream();
            if let Some(before) = stream.checked_sub(2 * STREAMS) {
                Frame::reset(before, code::CANCEL).write(out);
            }
            Frame::headers(stream, &lines, true).write(out);
        }
        8 * STREAMS as usize
    });
}

#[test]
fn made_you_reset_in_another_breath() {
    check("window update of 0, later", Counted::Flood("streams"), &[], &|peer, out| {
        let opened: Vec<u32> = (0..50).map(|_| peer.new_stream()).collect();
        opened.iter().for_each(|stream| head(*stream, b"GET", b"/100000", true, out));
        let before = opened.iter().filter_map(|stream| stream.checked_sub(100));
        before.for_each(|stream| Frame::window_update(stream, 0).write(out));
        100
    });
}

/// CVE-2025-8671: invalid frames make the server reset streams itself.
fn made_you_reset(name: &str, counted: Counted, frame: impl Fn(u32) -> Frame + Sync) {
    check(name, counted, &[], &|peer, out| {
        for _ in 0..50 {
            let stream = peer.new_stream();
            head(stream, b"GET", b"/100000", true, out);
            frame(stream).write(out);
        }
        100
    });
}

#[test]
fn made_you_reset_by_window_updates_of_nothing() {
    made_you_reset("window update of 0", Counted::Flood("streams"), |stream| {
        Frame::window_update(stream, 0)
    });
}

#[test]
fn made_you_reset_by_windows_too_large() {
    made_you_reset("window overflow", Counted::Flood("streams"), |stream| {
        Frame::window_update(stream, 0x7fff_ffff)
    });
}

#[test]
fn made_you_reset_by_data_behind_the_end() {
    made_you_reset("data behind the end", Counted::Flood("streams"), |stream| {
        Frame::new(kind::DATA, 0, stream, *b"more")
    });
}

#[test]
fn made_you_reset_by_dependencies_on_oneself() {
    made_you_reset("dependency on itself", Counted::Flood("streams"), |stream| {
        let payload = [&stream.to_be_bytes()[..], &[15]].concat();
        Frame::new(kind::PRIORITY, 0, stream, payload)
    });
}

#[test]
fn made_you_reset_by_priorities_of_a_wrong_length() {
    made_you_reset("priority of a wrong length", Counted::Flood("streams"), |stream| {
        Frame::new(kind::PRIORITY, 0, stream, *b"four")
    });
}

#[test]
fn headers_without_a_name() {
    check("empty names", Counted::Flood("streams"), &[], &|peer, out| {
        for _ in 0..50 {
            let stream = peer.new_stream();
            let nothing: (&[u8], &[u8]) = (b"", b"");
            Frame::headers(stream, &[nothing; 50], true).write(out);
        }
        50
    });
}

#[test]
fn streams_beyond_the_limit() {
    check("streams beyond the limit", Counted::Flood("streams"), &[], &|peer, out| {
        for _ in 0..200 {
            head(peer.new_stream(), b"POST", b"/whole", false, out);
        }
        200
    });
}

#[test]
fn continuations_without_end() {
    // CVE-2024-27316
    check("continuations", Counted::Flood("headers"), &[], &|peer, out| {
        let stream = peer.new_stream();
        Frame::new(kind::HEADERS, flag::END_STREAM, stream, []).write(out);
        for _ in 0..100 {
            let mut line = Vec::new();
            write_line(b"x", &[b'y'; 1_000], &mut line);
            Frame::new(kind::CONTINUATION, 0, stream, line).write(out);
        }
        101
    });
}

#[test]
fn empty_continuations() {
    check("empty continuations", Counted::Flood("headers"), &[], &|peer, out| {
        let stream = peer.new_stream();
        Frame::new(kind::HEADERS, flag::END_STREAM, stream, []).write(out);
        (0..1_000).for_each(|_| Frame::new(kind::CONTINUATION, 0, stream, []).write(out));
        1_001
    });
}

#[test]
fn a_table_entry_named_again_and_again() {
    check("HPACK bomb", Counted::Flood("headers"), &[], &|peer, out| {
        let stream = peer.new_stream();
        let mut block = Vec::new();
        write_indexed_line(b"x", &[b'y'; 4_000], &mut block);
        (0..12_000).for_each(|_| write_index(62, &mut block));
        let flags = flag::END_STREAM | flag::END_HEADERS;
        Frame::new(kind::HEADERS, flags, stream, block).write(out);
        1
    });
}

/// Sends many frames of one kind after a request that opens stream 1.
fn frames(name: &str, counted: Counted, frame: impl Fn() -> Frame + Sync) {
    check(name, counted, &[], &|peer, out| {
        if peer.new_stream() == 1 {
            head(1, b"POST", b"/whole", false, out);
        }
        (0..1_000).for_each(|_| frame().write(out));
        1_000
    });
}

#[test]
fn pings() {
    frames("pings", Counted::Flood("frames"), || Frame::new(kind::PING, 0, 0, [0; 8]));
}

#[test]
fn settings() {
    frames("settings", Counted::Flood("frames"), || {
        Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1_000), (setting::HEADER_TABLE_SIZE, 0)])
    });
}

#[test]
fn data_that_brings_nothing() {
    frames("empty data", Counted::Flood("frames"), || Frame::new(kind::DATA, 0, 1, []));
}

/// At once more than weir permits in a second, however slow the attacker is.
#[test]
fn data_that_brings_a_byte_at_a_time() {
    check("tiny data", Counted::Flood("frames"), &[], &|peer, out| {
        if peer.new_stream() == 1 {
            head(1, b"POST", b"/whole", false, out);
        }
        (0..40_000).for_each(|_| Frame::new(kind::DATA, 0, 1, *b"x").write(out));
        40_000
    });
}

/// Uploads whose response arrives first, and which continue. Each counts as an active stream of its client.
#[test]
fn uploads_that_are_not_wanted() {
    check("unwanted uploads", Counted::Flood("streams"), &[], &|peer, out| {
        for _ in 0..50 {
            let stream = peer.new_stream();
            head(stream, b"POST", b"/5", false, out);
            Frame::new(kind::DATA, 0, stream, [b'x'; 100]).write(out);
        }
        100
    });
}

#[test]
fn padding_that_brings_nothing() {
    frames("padding", Counted::Flood("frames"), || {
        Frame::new(kind::DATA, flag::PADDED, 1, [&[99][..], &[0; 99]].concat())
    });
}

#[test]
fn window_updates() {
    frames("window updates", Counted::Flood("frames"), || Frame::window_update(0, 1));
}

#[test]
fn priorities() {
    frames("priorities", Counted::Flood("frames"), || {
        Frame::new(kind::PRIORITY, 0, 1, [0, 0, 0, 0, 15])
    });
}

#[test]
fn frames_of_unknown_types() {
    frames("unknown frames", Counted::Flood("frames"), || Frame::new(99, 0, 1, [0; 100]));
}

#[test]
fn frames_larger_than_allowed() {
    frames("large frames", Counted::Error, || Frame::new(kind::DATA, 0, 1, [0; 16_385]));
}

#[test]
fn windows_of_one_byte() {
    let windows = [(setting::INITIAL_WINDOW_SIZE, 1)];
    check("windows of one byte", Counted::Timeout("body"), &windows, &|peer, out| {
        peer.holds_windows = true;
        let first = peer.new_stream();
        if first == 1 {
            head(1, b"GET", b"/1000000", true, out);
            (0..99).for_each(|_| head(peer.new_stream(), b"GET", b"/1000000", true, out));
            return 100;
        }
        // The window of one stream grows by one byte at a time.
        let stream = ((first - 200) % 200) | 1;
        Frame::window_update(stream, 1).write(out);
        thread::sleep(Duration::from_millis(10));
        1
    });
}

#[test]
fn requests_that_never_end() {
    check("half-open streams", Counted::Timeout("body"), &[], &|peer, out| {
        if peer.new_stream() == 1 {
            head(1, b"POST", b"/whole", false, out);
            (0..98).for_each(|_| head(peer.new_stream(), b"POST", b"/whole", false, out));
            return 99;
        }
        thread::sleep(Duration::from_millis(10));
        0
    });
}

#[test]
fn frames_that_come_byte_by_byte() {
    check("slow frames", Counted::Timeout("head"), &[], &|peer, out| {
        let at = (peer.new_stream() / 2) as usize;
        if at == 0 {
            // Acknowledges weir's SETTINGS first, because no frame may be sent between the bytes.
            peer.pump_until("settings", |peer| !peer.settings.is_empty());
        }
        let mut whole = Vec::new();
        head(1, b"GET", b"/5", true, &mut whole);
        out.push(whole[at.min(whole.len() - 2)]);
        thread::sleep(Duration::from_millis(20));
        0
    });
}
