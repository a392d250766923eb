//! A client and a server, both with weir's implementation, communicate with random cuts, windows, resets, settings, trailers
//! and ends. Failures report the seed. Neither side may report an error of the other, every received byte must equal the
//! sent one, and every stream must end unless it was reset. With small budgets, one side may end the connection because of a
//! flood, but no other failure is permitted.

use std::collections::BTreeMap;

use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::{
    Allowance, Answer, Connection, ConnectionError, ErrorCode, Event, HeadersKind, Limits,
    OpenError, ResetBy, SendKind,
};

const SEEDS: u64 = 128;
const STEPS: usize = 1500;

/// The generator xorshift64*, as in the other tests.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// The state of a stream on one side.
#[derive(Debug, Default, Clone)]
struct View {
    head_sent: bool,
    head_received: bool,
    sent: u64,
    /// The announced length of the data to send, if any.
    announced: Option<u64>,
    we_ended: bool,
    received: u64,
    peer_ended: bool,
    /// The number of received bytes whose window was not returned yet.
    held: u32,
    is_reset: bool,
    /// Whether the server has answered without reading the rest of the request.
    is_left: bool,
}

struct Side {
    name: &'static str,
    connection: Connection,
    block: HeaderBlock,
    out: Vec<u8>,
    views: BTreeMap<u32, View>,
    pongs: u32,
    pings: u32,
    is_ending: bool,
    has_small_budgets: bool,
    /// Whether this side has reported a flood.
    is_flooded: bool,
}

impl Side {
    fn new(name: &'static str, mut connection: Connection) -> Self {
        let mut out = Vec::new();
        connection.start(&mut out);
        Self {
            name,
            connection,
            block: HeaderBlock::new(),
            out,
            views: BTreeMap::new(),
            pongs: 0,
            pings: 0,
            is_ending: false,
            has_small_budgets: false,
            is_flooded: false,
        }
    }

    fn receive(&mut self, mut input: &[u8]) {
        loop {
            let received = match self.connection.receive(input, 0, &mut self.block, &mut self.out) {
                Ok(received) => received,
                Err(ConnectionError::Flooded(_)) if self.has_small_budgets => {
                    self.is_flooded = true;
                    return;
                }
                Err(error) => panic!("{} finds fault: {error}", self.name),
            };
            let (bytes, event) = (input, received.event);
            input = &input[received.consumed..];
            match event {
                Event::NeedMore => {
                    assert!(input.is_empty());
                    return;
                }
                event => self.note(event, bytes),
            }
        }
    }

    fn note(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::Headers { stream, kind, end_stream, .. } => {
                let view = self.views.entry(stream).or_default();
                assert!(!view.peer_ended, "{stream} goes on after its end");
                assert_eq!(kind == HeadersKind::Trailers, view.head_received);
                assert_eq!(self.block.excess(), None);
                view.head_received |= kind != HeadersKind::Interim;
                view.peer_ended = end_stream;
            }
            Event::Data { stream, start, end, end_stream, .. } => {
                let view = self.views.get_mut(&stream).expect("a stream that is known");
                assert!(view.head_received && !view.peer_ended);
                for byte in &input[start..end] {
                    assert_eq!(*byte, pattern(stream, view.received), "{stream}");
                    view.received += 1;
                }
                view.held += (end - start) as u32;
                view.peer_ended = end_stream;
            }
            Event::StreamReset { stream, by, .. } => {
                assert_eq!(by, ResetBy::Peer, "{} resets {stream} for an error", self.name);
                self.views.get_mut(&stream).expect("a stream that is known").is_reset = true;
            }
            Event::Goaway { last_stream, .. } => {
                for (stream, view) in &mut self.views {
                    view.is_reset |= *stream > last_stream;
                }
            }
            Event::Pong { .. } => self.pongs += 1,
            _ => {}
        }
    }

    /// A random open stream.
    fn some_stream(&self, random: &mut Random) -> Option<u32> {
        let alive: Vec<u32> = self.connection.streams().map(|(stream, _)| stream).collect();
        if alive.is_empty() { None } else { Some(alive[random.below(alive.len())]) }
    }

    fn send_data(&mut self, stream: u32, wish: usize, end: bool) {
        let Some(view) = self.views.get_mut(&stream) else { return };
        if !view.head_sent || view.we_ended {
            return;
        }
        let left = view.announced.map_or(usize::MAX, |announced| (announced - view.sent) as usize);
        let length = self.connection.data_allowance(stream).min(wish).min(left);
        let end = end && view.announced.is_none_or(|_| length == left);
        self.connection
            .write_data_header(stream, length, end, &mut self.out)
            .expect("within the allowance");
        for _ in 0..length {
            self.out.push(pattern(stream, view.sent));
            view.sent += 1;
        }
        view.we_ended = end;
    }

    fn send_trailers(&mut self, stream: u32) {
        let Some(view) = self.views.get_mut(&stream) else { return };
        let is_whole = view.announced.is_none_or(|announced| announced == view.sent);
        if !view.head_sent || view.we_ended || !is_whole {
            return;
        }
        self.connection
            .send_headers(stream, SendKind::Trailers, true, &mut self.out, |lines| {
                lines.field(b"x-checksum", b"none");
            })
            .expect("a stream that is open");
        view.we_ended = true;
    }

    fn release(&mut self, stream: u32, wish: u32) {
        let Some(view) = self.views.get_mut(&stream) else { return };
        let bytes = view.held.min(wish);
        view.held -= bytes;
        self.connection.release(stream, bytes, &mut self.out);
    }

    fn reset(&mut self, stream: u32) {
        self.connection.reset(stream, ErrorCode::CANCEL, &mut self.out);
        self.views.entry(stream).or_default().is_reset = true;
    }

    /// Leaves an answered stream, whose request may not be complete.
    fn leave(&mut self, stream: u32) {
        let Some(view) = self.views.get_mut(&stream) else { return };
        if view.we_ended && !view.peer_ended {
            view.is_left = true;
            let held = std::mem::take(&mut view.held);
            self.connection.release(stream, held, &mut self.out);
            self.connection.leave_answered(stream, 500, 0, &mut self.out);
        }
    }

    fn respond(&mut self, stream: u32, random: &mut Random) {
        let Some(view) = self.views.get_mut(&stream) else { return };
        if view.head_sent || view.we_ended {
            return;
        }
        if random.one_in(4) {
            self.connection
                .send_headers(stream, SendKind::Interim, false, &mut self.out, |lines| {
                    lines.field(b":status", b"103");
                })
                .expect("before the head");
            return;
        }
        let end = random.one_in(5);
        let announced = if !end && random.one_in(2) { Some(random.below(40_000)) } else { None };
        self.connection
            .send_headers(stream, SendKind::Response, end, &mut self.out, |lines| {
                lines.field(b":status", b"200");
                if let Some(length) = announced {
                    lines.field(b"content-length", length.to_string().as_bytes());
                }
                some_fields(random, lines);
            })
            .expect("a stream that was asked on");
        view.head_sent = true;
        view.we_ended = end;
        view.announced = announced.map(|length| length as u64);
    }

    fn open(&mut self, random: &mut Random) {
        let end = random.one_in(3);
        let announced = if !end && random.one_in(2) { Some(random.below(40_000)) } else { None };
        let opened = self.connection.open_stream(Answer::Usual, end, &mut self.out, |lines| {
            lines.field(b":method", b"POST");
            if let Some(length) = announced {
                lines.field(b"content-length", length.to_string().as_bytes());
            }
            some_fields(random, lines);
        });
        match opened {
            Ok(stream) => {
                let announced = announced.map(|length| length as u64);
                let view = View { head_sent: true, we_ended: end, announced, ..View::default() };
                self.views.insert(stream, view);
            }
            Err(OpenError::Full | OpenError::Closing) => {}
        }
    }
}

/// Writes random fields, which sometimes exceed the size of a frame.
fn some_fields(random: &mut Random, lines: &mut weir_http::h2::hpack::BlockEncoder<'_>) {
    for number in 0..random.below(6) {
        let longest = if random.one_in(20) { 9000 } else { 40 };
        let value = vec![b'a' + random.below(26) as u8; random.below(longest)];
        lines.field(format!("x-{number}").as_bytes(), &value);
    }
}

fn pattern(stream: u32, offset: u64) -> u8 {
    (u64::from(stream) * 31 + offset * 7 + offset / 251) as u8
}

/// Transfers at most `length` bytes.
fn deliver(from: &mut Side, to: &mut Side, length: usize) {
    let length = length.min(from.out.len());
    let bytes: Vec<u8> = from.out.drain(..length).collect();
    to.receive(&bytes);
}

fn some_limits(random: &mut Random) -> Limits {
    let plenty = Allowance { burst: u32::MAX, per_second: 0 };
    Limits {
        streams_max: 1 + random.below(30) as u32,
        header_list_size_max: 100_000,
        header_list_hard_size_max: 200_000,
        continuations_max: 100,
        decoder_table_size: [0, 100, 4096, 10_000][random.below(4)],
        encoder_table_size_max: [0, 200, 4096, 65_536][random.below(4)],
        stream_window_size: [1, 100, 16_384, 65_535, 300_000][random.below(5)],
        connection_window_size: [65_535, 100_000, 1 << 20][random.below(3)],
        interim_responses_max: u16::MAX,
        resets: plenty,
        stream_errors: plenty,
        closed_streams: plenty,
        refused_streams: plenty,
        settings: plenty,
        pings: plenty,
        priorities: plenty,
        window_updates: plenty,
        empty_data: plenty,
        tiny_data: plenty,
        ..Limits::DEFAULT
    }
}

fn with_small_budgets(limits: Limits, random: &mut Random) -> Limits {
    let few = Allowance { burst: random.below(30) as u32, per_second: 0 };
    Limits {
        resets: few,
        stream_errors: few,
        closed_streams: few,
        refused_streams: few,
        settings: few,
        pings: few,
        window_updates: few,
        ..limits
    }
}

fn step(random: &mut Random, client: &mut Side, server: &mut Side) {
    match random.below(12) {
        0 => return client.open(random),
        1 => return deliver(client, server, random.below(1 + 40_000 / 8)),
        2 => return deliver(server, client, random.below(1 + 40_000 / 8)),
        3 => return deliver(client, server, random.below(20)),
        4 => return deliver(server, client, random.below(20)),
        _ => {}
    }
    let is_client = random.one_in(2);
    let side = if is_client { client } else { server };
    let Some(stream) = side.some_stream(random) else { return };
    match random.below(30) {
        0..=4 if !is_client => side.respond(stream, random),
        5..=14 => {
            let wish = [0, 1, 300, 20_000][random.below(4)];
            side.send_data(stream, wish, random.one_in(6));
        }
        15 => side.send_trailers(stream),
        16..=24 => {
            let held: Vec<u32> = side
                .views
                .iter()
                .filter(|(_, view)| view.held > 0)
                .map(|(stream, _)| *stream)
                .collect();
            if !held.is_empty() {
                side.release(held[random.below(held.len())], 1 + random.below(30_000) as u32);
            }
        }
        25 if random.one_in(2) => side.reset(stream),
        25 if !is_client => side.leave(stream),
        26 => {
            let size = [1, 50, 16_384, 100_000][random.below(4)];
            side.connection.set_stream_window(size, &mut side.out);
        }
        27 => {
            side.pings += 1;
            side.connection.ping([7; 8], &mut side.out);
        }
        28 if !is_client && random.one_in(40) => {
            side.is_ending = true;
            side.connection.announce_end(&mut side.out);
        }
        29 if side.is_ending && random.one_in(3) => {
            side.connection.end(ErrorCode::NO_ERROR, "", &mut side.out);
        }
        _ => {}
    }
}

/// Completes all streams.
fn finish(random: &mut Random, client: &mut Side, server: &mut Side) {
    for round in 0..1000 {
        deliver(client, server, 1 << 20);
        deliver(server, client, 1 << 20);
        if client.is_flooded || server.is_flooded {
            return;
        }
        for side in [&mut *client, &mut *server] {
            // The windows are enlarged, because single bytes would take too long.
            if round == 3 {
                assert!(side.connection.set_stream_window(65_535, &mut side.out));
            }
        }
        for side in [&mut *client, &mut *server] {
            let streams: Vec<u32> = side.views.keys().copied().collect();
            for stream in streams {
                side.release(stream, u32::MAX);
                if side.connection.tag(stream).is_none() {
                    continue;
                }
                if side.name == "server" {
                    side.respond(stream, random);
                }
                side.send_data(stream, 1 << 20, true);
            }
        }
        if client.connection.stream_count() + server.connection.stream_count() == 0
            && client.out.is_empty()
            && server.out.is_empty()
        {
            return;
        }
    }
    panic!("streams are left: {:?}", client.connection.streams().collect::<Vec<_>>());
}

fn simulate(seed: u64) {
    let mut random = Random(seed);
    let mut limits = [some_limits(&mut random), some_limits(&mut random)];
    let has_small_budgets = seed.is_multiple_of(4);
    if has_small_budgets {
        limits = limits.map(|limits| with_small_budgets(limits, &mut random));
    }
    let mut client = Side::new("client", Connection::client(limits[0]));
    let mut server = Side::new("server", Connection::server(limits[1]));
    for side in [&mut client, &mut server] {
        side.has_small_budgets = has_small_budgets;
    }
    for _ in 0..STEPS {
        step(&mut random, &mut client, &mut server);
        client.connection.check_invariants();
        server.connection.check_invariants();
        if client.is_flooded || server.is_flooded {
            return;
        }
    }
    finish(&mut random, &mut client, &mut server);
    if client.is_flooded || server.is_flooded {
        return;
    }
    for (stream, asked) in &client.views {
        let Some(answered) = server.views.get(stream) else {
            assert!(asked.is_reset || server.is_ending || true_refusal(&client), "{stream}");
            continue;
        };
        if asked.is_reset || answered.is_reset {
            continue;
        }
        if answered.is_left {
            assert_eq!((asked.received, asked.peer_ended), (answered.sent, true), "{stream}");
            continue;
        }
        assert!(asked.peer_ended && answered.peer_ended, "{stream}");
        assert_eq!((asked.sent, asked.received), (answered.received, answered.sent), "{stream}");
    }
    assert_eq!((client.pings, server.pings), (client.pongs, server.pongs));
    for side in [&client, &server] {
        assert!(side.connection.memory_size() < 300_000, "{}", side.connection.memory_size());
        assert!(side.connection.is_between_frames());
    }
}

/// Whether the server may have refused streams because the client did not know its limit yet.
fn true_refusal(client: &Side) -> bool {
    client.connection.peer_settings().streams_max < 31
}

#[test]
fn a_client_and_a_server_understand_each_other() {
    for seed in 1..=SEEDS {
        let caught = std::panic::catch_unwind(|| simulate(seed));
        assert!(caught.is_ok(), "seed {seed}");
    }
}
