//! HTTP/2 clients: many concurrent requests on one connection.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_testing::Random;
use weir_testing::frame::{Frame, code, kind};

use crate::answer::{Came, Response};
use crate::clock::Moment;
use crate::flood::Flood;
use crate::http2::{Event, Http2};
use crate::http2_terms::Change;
use crate::link::{END_TOLD_MAX, Link, UNTIL_EVENT};
use crate::message::{Fields, add_cookie, request, trailers, wants_trailers};
use crate::place::{Place, Server};
use crate::plan::{At, Break, Flaw, Framing, Plan};
use crate::script::{Progress, Script, Step};
use crate::tag::{Checker, Id, Part};
use crate::tunnel::{self, shows_breaks};
use crate::world::{Finding, Kind, World};

/// Content-Length of a body above the limit.
const LARGE_BODY_BYTES: usize = 1 << 30;
/// Size of a header that exceeds the limit of a head.
const LARGE_HEAD_BYTES: usize = 40_000;
/// With more data frames or complete messages than this, weir need not detect a flood.
const USEFUL_MAX: usize = 100;
/// Maximum duration of a turn while a tunnel has not ended at its member.
const ENDING_TURN: Duration = Duration::from_millis(5);

/// Sends the requests of one connection.
pub async fn session(world: &World, thread: usize, mut random: Random, place: Place, link: Link) {
    let random = &mut random;
    let since = world.begun_by(thread);
    let initial = [65_535, 65_535, 2_000, 200_000][random.below(4)];
    let mut http2 = Http2::client(link, initial);
    if world.profile.is_direct {
        http2.keep_quiet();
    }
    http2.may_be_refused = place.server == Server::Limits;
    let (left, width) = (1 + random.below(40), 1 + random.below(10));
    let is_late = random.percent(20);
    let mut session = Session {
        world,
        thread,
        place,
        http2,
        streams: BTreeMap::new(),
        left,
        width,
        is_late,
        unreleased: BTreeMap::new(),
        flood: None,
        is_calmed: false,
        ending: Vec::new(),
    };
    loop {
        session.open(random);
        let then = match session.turn(random).await {
            Ok(Then::Over) => session.close().await.map(|()| Then::Over),
            then => then,
        };
        match then {
            Ok(Then::GoOn) => {}
            Ok(Then::Over) => return,
            Ok(Then::Reset) => return session.http2.link.reset(),
            Ok(Then::Refused) => return,
            Err(finding) => {
                world.found(&finding);
                return world.spoil(thread, since);
            }
        }
    }
}

enum Then {
    GoOn,
    Over,
    Reset,
    /// The connection exceeds the limit of connections.
    Refused,
}

/// A request in flight.
struct Stream<'a> {
    response: Response<'a>,
    script: Script,
    /// Whether the response is complete.
    is_answered: bool,
    /// Checks the bytes of a tunnel from the member.
    down: Option<Checker>,
    /// Until this time, no window updates are sent for the stream.
    rests_until: Option<Moment>,
    /// The number of received bytes of the response.
    received: usize,
}

struct Session<'a> {
    world: &'a World,
    thread: usize,
    place: Place,
    http2: Http2,
    streams: BTreeMap<u32, Stream<'a>>,
    /// The number of requests to send, and the maximum of concurrent ones.
    left: usize,
    width: usize,
    /// Whether window updates are delayed.
    is_late: bool,
    unreleased: BTreeMap<u32, usize>,
    /// The flood that the client has sent, and its exchange.
    flood: Option<(Flood, Id)>,
    /// Whether weir has reported the flood.
    is_calmed: bool,
    /// Tunnels that have ended for the client, but possibly not for their members.
    ending: Vec<Id>,
}

impl Session<'_> {
    fn can_open(&self) -> bool {
        let streams_max = self.width.min(self.http2.streams_max);
        self.left > 0 && self.streams.len() < streams_max && !self.http2.is_leaving()
    }

    fn open(&mut self, random: &mut Random) {
        while self.can_open() {
            self.left -= 1;
            let id = self.place.id(self.thread, self.world.next(self.thread));
            let Some(plan) = self.world.plan(id) else { return };
            if plan.flaw == Some(Flaw::Garbage) {
                let stream = 1_000_001;
                self.http2.write(&Frame::new(kind::DATA, 0, stream, *b"garbage"));
                self.left = 0;
                return;
            }
            if self.begins_flood(&plan, random) {
                continue;
            }
            let part = if plan.tunnel.is_some() { Part::Up } else { Part::RequestBody };
            let mut script = Script::new(self.world, id, part);
            write_request(self.world, &plan, &mut script, random);
            let stream = self.http2.open();
            let stalls = matches!(plan.abort, Some((_, Break::Stall)));
            let mut response = Response::new(self.world, plan);
            if stalls {
                response.forgive();
            }
            let rest = self.world.profile.rest(random).filter(|_| random.percent(30));
            let rest = rest.filter(|_| response.plan.tunnel.is_some());
            let begun = Stream {
                response,
                script,
                is_answered: false,
                down: None,
                rests_until: rest.map(|time| self.world.now() + time),
                received: 0,
            };
            self.streams.insert(stream, begun);
        }
    }

    /// Sends a flood instead of the request, at random. At most one flood per connection. Returns whether it did.
    fn begins_flood(&mut self, plan: &Plan, random: &mut Random) -> bool {
        // Rules of `Policies` may end the connection first. Streams must be opened in order of their ids.
        let is_alone = self.place.is_fragile
            && self.place.server != Server::Policies
            && self.streams.values().all(|stream| stream.script.has_begun);
        if !is_alone || self.flood.is_some() || !Flood::is_for(plan) || !random.percent(8) {
            return false;
        }
        let flood = Flood::draw(random);
        let lines = head_lines(self.world, plan, random);
        flood.write(&mut self.http2, &lines, random);
        self.flood = Some((flood, plan.id));
        if flood.is_too_much() {
            self.left = 0;
        } else {
            self.world.count(Kind::RapidResets);
        }
        true
    }

    /// Checks the error code of GOAWAY: ENHANCE_YOUR_CALM is an error without a flood.
    fn check_code(&mut self, code: u32) -> Result<(), Finding> {
        let too_much = self.flood.filter(|(flood, _)| flood.is_too_much());
        let is_calm = code == code::ENHANCE_YOUR_CALM;
        match too_much {
            Some(_) if is_calm => {
                self.world.count(Kind::Floods);
                self.is_calmed = true;
                Ok(())
            }
            None if is_calm => Err(self.found(0, format!("a flood is seen in {:?}", self.flood))),
            _ => Ok(()),
        }
    }

    /// Checks that a connection with a flood ended with ENHANCE_YOUR_CALM.
    fn check_calmed(&self) -> Result<(), Finding> {
        let too_much = self.flood.filter(|(flood, _)| flood.is_too_much() && !self.is_calmed);
        // A reset after the response caused no wasted work, and useful work raises weir's limit.
        let is_useful = self.http2.useful > USEFUL_MAX;
        let ends_anyway = is_useful || self.world.is_draining() || self.http2.is_refused;
        match too_much.filter(|_| !ends_anyway) {
            Some((flood, id)) => Err(Finding::new(format!("{flood:?} is not seen as a flood"), id)),
            None => Ok(()),
        }
    }

    fn found(&self, stream: u32, what: String) -> Finding {
        let id = self.streams.get(&stream).map(|it| it.response.plan.id);
        let what = format!("a client of HTTP/2: {what}");
        Finding { what, id, received: self.http2.link.recent().to_vec() }
    }

    async fn turn(&mut self, random: &mut Random) -> Result<Then, Finding> {
        while let Some(event) = self.http2.next_event().map_err(|what| self.found(0, what))? {
            if let Then::Reset = self.heed(event, random)? {
                return Ok(Then::Reset);
            }
        }
        if self.http2.is_refused {
            self.world.count(Kind::ConnectionRefused);
            return Ok(Then::Refused);
        }
        if std::mem::take(&mut self.http2.has_overdrawn) {
            self.world.count(Kind::NegativeWindows);
        }
        if random.percent(2) {
            self.http2.link.hold(self.world.profile.pause(random, 10_000));
        }
        let mut wait = UNTIL_EVENT;
        let keys: Vec<u32> = self.streams.keys().copied().collect();
        for stream in keys {
            match self.send(stream, random) {
                Progress::Waits(time) => wait = wait.min(time),
                Progress::Done => {}
                Progress::Reset => {
                    let broken = self.streams.remove(&stream);
                    if let Some((_, Break::Half)) = broken.and_then(|it| it.response.plan.abort) {
                        self.world.count(Kind::ClientAborts);
                        return Ok(Then::Reset);
                    }
                }
            }
        }
        self.chat(random);
        if random.percent(50) || !self.is_late {
            wait = wait.min(self.open_windows());
        } else if !self.unreleased.is_empty() {
            wait = wait.min(Duration::from_millis(2));
        }
        let is_done = self.left == 0 || self.http2.is_leaving() || self.world.is_over();
        // The connection must not end before the members have seen the ends of the tunnels.
        self.ending.retain(|id| !self.world.has_ended(*id));
        let is_sent = self.http2.link.queued() == 0 || self.http2.link.is_deaf();
        if self.streams.is_empty() && is_done && self.ending.is_empty() && is_sent {
            return Ok(Then::Over);
        }
        if self.world.is_over() {
            self.left = 0;
        }
        if self.http2.link.has_ended() {
            return self.ended();
        }
        if self.http2.link.still() > self.world.profile.stuck {
            if let (Some(id), true) = (self.ending.first(), self.streams.is_empty()) {
                let what = "the end of a client's half of a tunnel did not get to its member";
                return Err(Finding::new(what, *id));
            }
            let stream = self.streams.keys().next().copied().unwrap_or(0);
            let left = self.streams.get(&stream).map_or(0, |it| it.script.steps_left());
            return Err(self.found(stream, format!("stuck with {left} steps left")));
        }
        if self.can_open() {
            return Ok(Then::GoOn);
        }
        let wait = if self.ending.is_empty() { wait } else { wait.min(ENDING_TURN) };
        self.http2.link.turn(wait).await;
        Ok(Then::GoOn)
    }

    /// Sends window updates for received bytes. Returns the time until the next one that is due.
    fn open_windows(&mut self) -> Duration {
        let mut wait = UNTIL_EVENT;
        let now = self.world.now();
        let mut held = std::mem::take(&mut self.unreleased);
        held.retain(|stream, bytes| {
            let rests_until = self.streams.get(stream).and_then(|it| it.rests_until);
            let left = rests_until.and_then(|until| now.left_until(until));
            match left {
                Some(left) => wait = wait.min(left),
                None => self.http2.release(*stream, *bytes),
            }
            left.is_some()
        });
        self.unreleased = held;
        wait
    }

    /// Sends irrelevant frames at random.
    fn chat(&mut self, random: &mut Random) {
        if random.percent(2) {
            let stream = self.streams.keys().last().copied().unwrap_or(1);
            self.http2.chat(stream, random);
        } else if random.percent(1) {
            let initial = [2_000, 65_535, 200_000][random.below(3)];
            self.http2.settle(Change::Initial(initial));
        }
    }

    /// Closes the connection in order. No more frames of an exchange may arrive.
    async fn close(&mut self) -> Result<(), Finding> {
        let until = self.http2.link.now() + END_TOLD_MAX;
        while self.world.is_draining() && !self.http2.is_leaving() && !self.http2.link.has_ended() {
            if self.http2.link.now() >= until {
                return Err(self.found(0, "it is not told of the end".to_owned()));
            }
            while self.http2.next_event().map_err(|what| self.found(0, what))?.is_some() {}
            self.http2.link.turn(until - self.http2.link.now()).await;
        }
        self.http2.link.finish();
        while !self.http2.link.has_ended() && self.http2.link.still() < self.world.profile.stuck {
            while let Some(event) = self.http2.next_event().map_err(|what| self.found(0, what))? {
                match event {
                    Event::Goaway { code, .. } => self.check_code(code)?,
                    _ => return Err(self.found(0, format!("{event:?} after all responses"))),
                }
            }
            self.http2.link.turn(UNTIL_EVENT).await;
        }
        self.check_calmed()
    }

    fn send(&mut self, stream: u32, random: &mut Random) -> Progress {
        let Some(it) = self.streams.get_mut(&stream) else { return Progress::Done };
        let progress = it.script.go_on(&mut self.http2, stream, random);
        let is_over = progress == Progress::Done && it.is_answered;
        if progress == Progress::Reset {
            let kind = match it.down {
                Some(_) => Kind::TunnelBroken,
                None => Kind::ClientAborts,
            };
            self.world.count(kind);
        }
        if is_over {
            self.http2.close(stream);
            if let Some(it) = self.streams.remove(&stream)
                && let (Some(_), Some(tunnel)) = (it.down, it.response.plan.tunnel)
                && self.place.is_calm()
                && !(tunnel.member_breaks || tunnel.client_breaks)
            {
                self.ending.push(it.response.plan.id);
            }
        }
        progress
    }

    /// Handles a connection that weir has closed.
    fn ended(&mut self) -> Result<Then, Finding> {
        self.check_calmed()?;
        let streams: Vec<u32> = self.streams.keys().copied().collect();
        for stream in streams {
            if let Some(it) = self.streams.get_mut(&stream)
                && !it.is_answered
                && it.down.is_none()
            {
                it.response.cut().map_err(|what| self.found(stream, what))?;
            } else if self.streams.get(&stream).is_some_and(|it| it.down.is_some())
                && self.place.is_calm()
            {
                return Err(self.found(stream, "a tunnel ends with its connection".to_owned()));
            }
        }
        Ok(Then::Over)
    }

    fn heed(&mut self, event: Event, random: &mut Random) -> Result<Then, Finding> {
        let (stream, result) = match event {
            Event::Headers { stream, lines, end } => {
                (stream, self.heed_headers(stream, lines, end))
            }
            Event::Data { stream, data, end } => (stream, self.heed_data(stream, &data, end)),
            Event::Reset { stream, code } => (stream, self.heed_reset(stream, code)),
            Event::Goaway { last, code, text } => {
                self.left = 0;
                self.check_code(code)?;
                let is_allowed = code == code::NO_ERROR || self.place.is_fragile;
                if !is_allowed {
                    return Err(self.found(0, format!("GOAWAY with {code}: {text}")));
                }
                // Requests above the last stream were not processed. They may be retried on another connection.
                self.streams.retain(|stream, _| *stream <= last);
                return Ok(Then::GoOn);
            }
        };
        result.map_err(|what| self.found(stream, what))?;
        Ok(self.break_off(stream, random))
    }

    /// Breaks off a stream if the client has received as many bytes as planned.
    fn break_off(&mut self, stream: u32, random: &mut Random) -> Then {
        let Some(it) = self.streams.get_mut(&stream) else { return Then::GoOn };
        match it.response.plan.abort {
            Some((At::Received(bytes), how)) if it.received >= bytes && !it.is_answered => {
                self.world.count(Kind::ClientAborts);
                if how == Break::Half {
                    return Then::Reset;
                }
                self.streams.remove(&stream);
                self.http2.reset(stream, code::CANCEL);
            }
            // The response is complete. At random, the client resets the stream and does not send the rest of the request.
            _ if it.is_answered
                && !it.script.is_done()
                && it.down.is_none()
                && random.percent(50) =>
            {
                self.streams.remove(&stream);
                self.http2.reset(stream, code::NO_ERROR);
            }
            _ => {}
        }
        Then::GoOn
    }

    fn heed_headers(&mut self, stream: u32, lines: Fields, end: bool) -> Result<(), String> {
        let Some(it) = self.streams.get_mut(&stream) else { return Ok(()) };
        if it.down.is_some() {
            return Err("trailers of a tunnel".to_owned());
        }
        let is_tunnel = it.response.plan.tunnel.is_some() && !self.world.profile.is_direct;
        if is_tunnel && self.http2.was_opened_early(stream) {
            return Err("the window of a tunnel opens before its member agrees".to_owned());
        }
        if it.response.has_head() {
            if !end {
                return Err("trailers that are not the end".to_owned());
            }
            it.is_answered = true;
            return it.response.end(&lines);
        }
        let mut fields = lines;
        let status = match fields.first() {
            Some((name, value)) if name == ":status" && value.len() == 3 => value.parse().ok(),
            _ => None,
        };
        let status = status.ok_or_else(|| format!("a head without a status: {fields:?}"))?;
        fields.remove(0);
        let length = fields.iter().position(|(name, _)| name == "content-length");
        let length = length.map(|place| fields.remove(place).1);
        let length = length.map(|text| text.parse().map_err(|_| format!("length {text:?}")));
        it.received += 1;
        match it.response.head(status, fields, length.transpose()?)? {
            Came::Interim if end => Err("an interim response at the end".to_owned()),
            Came::Interim => {
                it.script.continued |= it.response.continued;
                Ok(())
            }
            Came::Tunnel if end => Err("a tunnel that ends at once".to_owned()),
            Came::Tunnel => {
                it.open_tunnel(self.world);
                Ok(())
            }
            Came::Final => {
                it.script.continued = true;
                it.is_answered = end;
                if end { it.response.end(&Fields::new()) } else { Ok(()) }
            }
        }
    }

    fn heed_data(&mut self, stream: u32, data: &[u8], end: bool) -> Result<(), String> {
        *self.unreleased.entry(stream).or_default() += data.len();
        let Some(it) = self.streams.get_mut(&stream) else { return Ok(()) };
        it.received += data.len();
        if let Some(down) = &mut it.down {
            down.take(data)?;
            return if end { it.tunnel_ended(self.world) } else { Ok(()) };
        }
        it.response.data(data)?;
        if end {
            it.is_answered = true;
            it.response.end(&Fields::new())?;
        }
        Ok(())
    }

    fn heed_reset(&mut self, stream: u32, code: u32) -> Result<(), String> {
        let Some(it) = self.streams.get_mut(&stream) else { return Ok(()) };
        let plan = &it.response.plan;
        let is_lenient = !plan.place.is_calm();
        let result = match (&it.down, plan.tunnel) {
            _ if it.is_answered => Ok(()),
            (Some(down), Some(tunnel)) => {
                if tunnel.member_breaks {
                    tunnel::count(self.world, plan, true);
                }
                match tunnel.member_breaks || tunnel.client_breaks || is_lenient {
                    true => Ok(()),
                    false => Err(format!("a tunnel is reset after {} bytes", down.offset())),
                }
            }
            _ => it.response.cut(),
        };
        match result {
            Ok(()) => {
                self.streams.remove(&stream);
                Ok(())
            }
            Err(what) => Err(format!("{what}, reset with {code}")),
        }
    }
}

impl Stream<'_> {
    fn open_tunnel(&mut self, world: &World) {
        let plan = &self.response.plan;
        let Some(tunnel) = plan.tunnel else { return };
        self.down = Some(Checker::new(world.key, plan.id, Part::Down));
        let sent = if tunnel.client_breaks { tunnel.up / 2 } else { tunnel.up };
        let ahead = ahead(plan);
        self.script.push(Step::Data(ahead.min(sent), sent, !tunnel.client_breaks));
        if tunnel.client_breaks && tunnel.has_trailers {
            let line = ("x-trailer".into(), "of a tunnel".to_owned());
            self.script.push(Step::Headers(vec![line], true));
        } else if tunnel.client_breaks {
            self.script.push(Step::Reset(code::CANCEL));
        }
    }

    /// Handles the end of the member's half of a tunnel.
    fn tunnel_ended(&mut self, world: &World) -> Result<(), String> {
        let plan = &self.response.plan;
        let (Some(tunnel), Some(down)) = (plan.tunnel, &self.down) else { return Ok(()) };
        self.is_answered = true;
        match down.offset() == tunnel.down {
            _ if tunnel.member_breaks && shows_breaks(plan) => {
                Err(format!("a break is told as an end after {} bytes", down.offset()))
            }
            false if !tunnel.member_breaks => {
                Err(format!("{} of {} bytes of a tunnel", down.offset(), tunnel.down))
            }
            _ => {
                tunnel::count(world, plan, tunnel.member_breaks);
                Ok(())
            }
        }
    }
}

/// The number of bytes that the client sends through a tunnel before the member has accepted it.
fn ahead(plan: &Plan) -> usize {
    let is_whole = plan.abort.is_none();
    let tunnel = plan.tunnel.filter(|it| !it.is_ignored && is_whole);
    tunnel.map_or(0, |tunnel| tunnel.ahead)
}

/// The head of a request, without its framing.
fn head_lines(world: &World, plan: &Plan, random: &mut Random) -> Fields {
    let key = world.key;
    let mut request = request(key, plan);
    add_cookie(world.keeping.ask(plan, world.now()), &mut request.fields, random);
    let mut lines = Fields::with_capacity(request.fields.len() + 8);
    lines.extend([
        (":method".into(), request.method),
        (":scheme".into(), "http".to_owned()),
        (":path".into(), request.target),
        (":authority".into(), request.host),
    ]);
    lines.extend(request.protocol.map(|protocol| (":protocol".into(), protocol)));
    for (name, value) in request.fields {
        match value.split_once("; ") {
            // A Cookie header may be split.
            Some((one, other)) if name == "cookie" && random.percent(50) => {
                lines.push((name.clone(), one.to_owned()));
                lines.push((name, other.to_owned()));
            }
            _ => lines.push((name, value)),
        }
    }
    lines
}

/// Adds the frames of a request to the script of its stream.
fn write_request(world: &World, plan: &Plan, script: &mut Script, random: &mut Random) {
    let key = world.key;
    let mut lines = head_lines(world, plan, random);
    let mut line = |name: &'static str, value: &str| lines.push((name.into(), value.to_owned()));
    if wants_trailers(plan) {
        line("te", "trailers");
    }
    match (plan.flaw, plan.body.framing) {
        (Some(Flaw::LargeBody), _) => line("content-length", &LARGE_BODY_BYTES.to_string()),
        (_, Framing::Length) => line("content-length", &plan.body.bytes.to_string()),
        _ => {}
    }
    match plan.flaw {
        Some(Flaw::Name) => line("X-Flaw", "1"),
        Some(Flaw::Value) => line("x-flaw", "a\u{1}b"),
        Some(Flaw::Framing) => line("connection", "close"),
        Some(Flaw::Expectation) => line("expect", "much"),
        Some(Flaw::LargeHead) => {
            line("x-large", &key.text(plan.id, Part::RequestField, 0, LARGE_HEAD_BYTES / 16));
        }
        _ => {}
    }
    let is_bare = plan.body.framing == Framing::Empty && plan.tunnel.is_none();
    script.push(Step::Headers(lines, is_bare));
    if random.percent(25) {
        script.push(Step::Chat);
    }
    if plan.expects {
        script.push(Step::Continue(world.profile.continue_max(plan.is_patient)));
    }
    let mut body = plan.body;
    if plan.flaw == Some(Flaw::Data) {
        body.bytes -= 1;
    }
    let part = Part::RequestTrailer;
    let trailers = if body.has_trailers { trailers(key, plan, part) } else { Fields::new() };
    if plan.flaw == Some(Flaw::LargeBody) {
        script.push(Step::Data(0, body.bytes, false));
    } else if !is_bare && plan.tunnel.is_none() {
        script.body(&body, trailers, random);
    }
    if ahead(plan) > 0 {
        script.push(Step::Data(0, ahead(plan), false));
    }
    if let Some((At::Sent(permille), how)) = plan.abort {
        script.keep(permille);
        if how != Break::Stall {
            script.push(Step::Reset(code::CANCEL));
        }
    }
}
