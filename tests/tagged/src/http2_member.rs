//! HTTP/2 members.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_testing::Random;
use weir_testing::frame::{Frame, code};
use weir_testing::hpack::write_line;

use crate::arrival::Arrival;
use crate::clock::Moment;
use crate::http2::{Event, Http2};
use crate::http2_terms::Change;
use crate::link::{Link, UNTIL_EVENT};
use crate::message::{Fields, Request, agreement_fields, answer_fields, hint_fields, trailers};
use crate::place::Version;
use crate::plan::{Break, Deed, Framing, Method, Plan};
use crate::script::{Progress, Script, Step};
use crate::tag::{Checker, Part};
use crate::tunnel::shows_breaks;
use crate::world::{Finding, Kind, World};

/// A rough member breaks a connection in one of this number of turns, on average.
const ROUGH_TURNS: usize = 400;
/// The same while it writes.
const ROUGH_TURNS_OF_WRITING: usize = 30;
/// Any member stops accepting requests on a connection in one of this number of turns, on average.
const RETIRING_TURNS: usize = 150;

/// Serves one connection of weir to its end.
pub async fn serve(
    world: &World,
    (number, is_rough): (usize, bool),
    mut random: Random,
    mut link: Link,
) -> Result<(), Finding> {
    let random = &mut random;
    let initial = [65_535, 65_535, 3_000, 300_000][random.below(4)];
    let streams_max = [100, 100, 4][random.below(3)];
    // Requests may arrive before the member has sent its settings.
    if random.percent(15) && !world.profile.is_direct {
        world.count(Kind::LateSettings);
        link.pause(world.profile.pause(random, 300_000)).await;
    }
    let mut http2 = Http2::member(link, initial, streams_max);
    if world.profile.is_direct {
        http2.keep_quiet();
    }
    let (streams, unreleased) = (BTreeMap::new(), BTreeMap::new());
    let leaves = false;
    let mut member = Member { world, number, http2, streams, unreleased, leaves, last: None };
    loop {
        while let Some(event) = member.http2.next_event().map_err(|what| member.found(what))? {
            member.heed(event, random);
        }
        let wait = member.send(random);
        if member.http2.link.has_ended() {
            member.ended();
            return Ok(());
        }
        let is_done = member.last.is_some() && member.streams.is_empty();
        if is_done && member.http2.link.still() > world.profile.stuck && !world.is_draining() {
            return Err(member.found("no more requests, and keeps the connection".to_owned()));
        }
        if random.below(RETIRING_TURNS) == 0 && !world.profile.is_direct && !member.leaves {
            member.retire(random).await;
        }
        if is_rough && member.breaks(random) {
            return member.go(random).await;
        }
        if member.leaves {
            return member.leave().await;
        }
        member.chat(random);
        member.http2.link.turn(wait).await;
    }
}

struct Served<'a> {
    arrival: Arrival<'a>,
    script: Script,
    /// Whether the request is complete.
    is_whole: bool,
    /// The time of the member's action.
    due: Option<Moment>,
    /// Checks the bytes of a tunnel from the client.
    up: Option<Checker>,
    /// Until this time, no window updates are sent for the stream.
    rests_until: Option<Moment>,
    begun: Moment,
}

struct Member<'a> {
    world: &'a World,
    number: usize,
    http2: Http2,
    streams: BTreeMap<u32, Served<'a>>,
    /// The number of received bytes, by stream, for which no window update was sent.
    unreleased: BTreeMap<u32, usize>,
    /// Whether the member has ended its half of a tunnel and closes the connection.
    leaves: bool,
    /// The last stream that the member serves, if it has sent GOAWAY.
    last: Option<u32>,
}

impl Member<'_> {
    /// Sends irrelevant frames at random.
    fn chat(&mut self, random: &mut Random) {
        if random.percent(2) {
            let stream = self.streams.keys().last().copied().unwrap_or(1);
            self.http2.chat(stream, random);
        } else if random.percent(1) {
            let initial = [3_000, 65_535, 300_000][random.below(3)];
            self.http2.settle(Change::Initial(initial));
        } else if random.percent(1) {
            let streams_max = [0, 1, 4, 100][random.below(4)];
            if self.http2.settle(Change::StreamsMax(streams_max)) {
                self.world.count(Kind::OtherStreamsMax);
            }
        }
        if std::mem::take(&mut self.http2.has_overdrawn) {
            self.world.count(Kind::NegativeWindows);
        }
    }

    fn found(&self, what: String) -> Finding {
        let received = self.http2.link.recent().to_vec();
        Finding { what: format!("a member of HTTP/2 got {what}"), id: None, received }
    }

    /// Handles a connection that weir has closed.
    fn ended(&self) {
        for served in self.streams.values() {
            if let Err(finding) = served.left(None) {
                self.world.found(&finding);
            }
        }
    }

    /// Announces the last stream with GOAWAY. Later requests are not processed.
    async fn retire(&mut self, random: &mut Random) {
        if self.last.is_some() {
            return;
        }
        if random.percent(30) {
            // The first of two GOAWAY frames, with the maximum stream id (RFC 9113 section 6.8). A pause follows.
            self.http2.write(&Frame::goaway(u32::MAX >> 1, code::NO_ERROR));
        }
        self.http2.link.flush();
        self.http2.link.pause(self.world.profile.pause(random, 1_000)).await;
        let last = self.http2.last_stream();
        self.http2.write(&Frame::goaway(last, code::NO_ERROR));
        self.last = Some(last);
        self.world.count(Kind::Retiring);
    }

    /// Closes the connection in order. The responses are complete. Requests that still arrive are not processed.
    async fn leave(mut self) -> Result<(), Finding> {
        let last = self.http2.last_stream();
        self.http2.write(&Frame::goaway(last, code::NO_ERROR));
        let until = self.http2.link.now() + self.world.profile.stuck;
        while self.http2.link.queued() > 0
            && !self.http2.link.has_ended()
            && self.http2.link.now() < until
        {
            self.http2.link.turn(UNTIL_EVENT).await;
        }
        self.http2.link.finish();
        while !self.http2.link.has_ended() && self.http2.link.now() < until {
            self.http2.link.turn(UNTIL_EVENT).await;
        }
        // Requests in flight are not processed.
        while let Ok(Some(event)) = self.http2.next_event() {
            if let Event::Headers { stream, lines, .. } = event
                && stream > last
            {
                self.leave_unread(stream, lines)?;
            }
        }
        Ok(())
    }

    /// Records a request that is not processed, because its stream is above the announced last one.
    fn leave_unread(&mut self, stream: u32, lines: Fields) -> Result<(), Finding> {
        let (request, _) = request_of(lines).map_err(|what| self.found(what))?;
        self.world.leave_unread(&request).map_err(|what| self.found(what))?;
        self.http2.leave(stream);
        Ok(())
    }

    /// Whether a rough member breaks the connection in this turn.
    fn breaks(&self, random: &mut Random) -> bool {
        let turns = match self.http2.link.queued() {
            0 => ROUGH_TURNS,
            _ => ROUGH_TURNS_OF_WRITING,
        };
        random.below(turns) == 0
    }

    /// Resets the connection, or closes it: after GOAWAY, or within a frame.
    async fn go(mut self, random: &mut Random) -> Result<(), Finding> {
        if self.http2.link.queued() > 0 && random.percent(50) {
            let dropped = 1 + random.below(self.http2.link.queued());
            let out = self.http2.link.out();
            out.truncate(out.len() - dropped);
            self.http2.link.close_in_order(self.world.profile.stuck).await;
            return Ok(());
        }
        if random.percent(40) {
            self.http2.link.reset();
            return Ok(());
        }
        let last = self.streams.keys().last().copied().unwrap_or(0);
        self.http2.write(&Frame::goaway(last, code::NO_ERROR));
        let until = self.http2.link.now() + Duration::from_millis(50);
        while self.http2.link.now() < until && !self.http2.link.has_ended() {
            while let Some(event) = self.http2.next_event().map_err(|what| self.found(what))? {
                self.heed(event, random);
            }
            let wait = self.send(random).min(Duration::from_millis(10));
            self.http2.link.turn(wait).await;
        }
        self.http2.link.close_in_order(self.world.profile.stuck).await;
        Ok(())
    }

    /// Handles an event. An error of a stream is reported, and ends only that stream.
    fn heed(&mut self, event: Event, random: &mut Random) {
        let (stream, heeded) = match event {
            Event::Headers { stream, lines, end } => {
                let is_unread = self.last.is_some_and(|last| stream > last);
                let heeded = match self.streams.get_mut(&stream) {
                    _ if is_unread => self.leave_unread(stream, lines),
                    Some(served) if end => served.end(&lines),
                    Some(served) => Err(served.found("trailers that are not the end")),
                    None => self.begin(stream, lines, end, random),
                };
                (stream, heeded)
            }
            Event::Data { stream, data, end } => (stream, self.heed_data(stream, &data, end)),
            Event::Reset { stream, code } => {
                let left = self.streams.remove(&stream).map(|served| served.left(Some(code)));
                (stream, left.unwrap_or(Ok(())))
            }
            Event::Goaway { code: code::NO_ERROR, .. } => (0, Ok(())),
            Event::Goaway { code, .. } => (0, Err(self.found(format!("GOAWAY with {code}")))),
        };
        if let Err(finding) = heeded {
            self.world.found(&finding.with(self.http2.link.recent()));
            if self.streams.remove(&stream).is_some() {
                self.http2.reset(stream, code::INTERNAL_ERROR);
            }
        }
    }

    fn heed_data(&mut self, stream: u32, data: &[u8], end: bool) -> Result<(), Finding> {
        *self.unreleased.entry(stream).or_default() += data.len();
        let Some(served) = self.streams.get_mut(&stream) else { return Ok(()) };
        let Some(up) = &mut served.up else {
            served.arrival.data(data)?;
            return if end { served.end(&Fields::new()) } else { Ok(()) };
        };
        let taken = up.take(data);
        taken.map_err(|what| served.found(&what))?;
        if end { served.tunnel_ended(self.world) } else { Ok(()) }
    }

    fn begin(
        &mut self,
        stream: u32,
        lines: Fields,
        end: bool,
        random: &mut Random,
    ) -> Result<(), Finding> {
        let (request, length) = request_of(lines).map_err(|what| self.found(what))?;
        let arrival = Arrival::begin(self.world, (Version::Http2, self.number), &request, length)?;
        let (key, id) = (self.world.key, arrival.plan.id);
        let is_tunnel = arrival.plan.tunnel.is_some();
        let part = if is_tunnel { Part::Down } else { Part::ResponseBody };
        let script = Script::new(self.world, id, part);
        let up = is_tunnel.then(|| Checker::new(key, id, Part::Up));
        let (is_whole, due) = (false, None);
        let begun = self.world.now();
        let rest = self.world.profile.rest(random).filter(|_| is_tunnel && random.percent(30));
        let rests_until = rest.map(|time| begun + time);
        let mut served = Served { arrival, script, is_whole, due, up, rests_until, begun };
        let shares = |it: &Served<'_>| it.is_open_tunnel();
        let is_open = |it: &Served<'_>| !it.has_ended();
        let is_shared =
            self.streams.values().any(shares) || (is_tunnel && self.streams.values().any(is_open));
        if is_shared && !self.world.profile.is_direct {
            return Err(served.found("a tunnel and something else on a connection"));
        }
        if is_tunnel {
            served.agree(self.world);
        } else if served.arrival.deed() == Deed::Early {
            served.due = Some(self.world.now());
        } else if served.arrival.expects {
            let lines = vec![(":status".into(), "100".to_owned())];
            self.http2.headers(stream, &lines, false, random);
        }
        if end {
            if is_tunnel {
                return Err(served.found("a tunnel that ends at once"));
            }
            served.end(&Fields::new())?;
        }
        self.streams.insert(stream, served);
        Ok(())
    }

    /// Performs the due actions and sends as much as possible. Returns the time until the next action.
    fn send(&mut self, random: &mut Random) -> Duration {
        let mut wait = UNTIL_EVENT;
        let now = self.world.now();
        let mut held = std::mem::take(&mut self.unreleased);
        held.retain(|stream, bytes| {
            let rests_until = self.streams.get(stream).and_then(|served| served.rests_until);
            let left = rests_until.and_then(|until| now.left_until(until));
            match left {
                Some(left) => wait = wait.min(left),
                None => self.http2.release(*stream, *bytes),
            }
            left.is_some()
        });
        self.unreleased = held;
        let streams: Vec<u32> = self.streams.keys().copied().collect();
        for stream in streams {
            let Some(served) = self.streams.get_mut(&stream) else { continue };
            if let Some(due) = served.due {
                if let Some(left) = self.world.now().left_until(due) {
                    wait = wait.min(left);
                } else {
                    served.due = None;
                    served.act(self.world, random);
                }
            }
            match served.script.go_on(&mut self.http2, stream, random) {
                Progress::Waits(time) => wait = wait.min(time),
                Progress::Reset => {
                    self.streams.remove(&stream);
                }
                Progress::Done if served.leaves() => {
                    self.world.end(served.arrival.plan.id);
                    self.leaves = true;
                }
                Progress::Done if served.has_ended() => {
                    self.http2.close(stream);
                    self.streams.remove(&stream);
                }
                Progress::Done => {}
            }
        }
        wait
    }
}

impl Served<'_> {
    fn found(&self, what: &str) -> Finding {
        Finding::new(format!("a member of HTTP/2 got {what}"), self.arrival.plan.id)
    }

    /// Whether this is a tunnel that can still carry data.
    fn is_open_tunnel(&self) -> bool {
        self.arrival.plan.tunnel.is_some() && !(self.is_whole && self.script.is_done())
    }

    /// Whether the member closes the connection after its half of the tunnel.
    fn leaves(&self) -> bool {
        self.arrival.plan.tunnel.is_some_and(|tunnel| tunnel.member_leaves)
    }

    /// Whether the request is complete and the response was sent, if the script is done.
    fn has_ended(&self) -> bool {
        self.is_whole && self.due.is_none() && self.arrival.deed() != Deed::Stall
    }

    /// Handles the end of a request.
    fn end(&mut self, trailers: &Fields) -> Result<(), Finding> {
        self.arrival.end(trailers)?;
        self.is_whole = true;
        if self.arrival.deed() != Deed::Early {
            self.due = Some(self.arrival.world.now() + self.arrival.plan.delay);
        }
        Ok(())
    }

    /// Handles the end of the client's half of a tunnel.
    fn tunnel_ended(&mut self, world: &World) -> Result<(), Finding> {
        self.is_whole = true;
        let plan = &self.arrival.plan;
        let (Some(tunnel), Some(up)) = (plan.tunnel, &self.up) else { return Ok(()) };
        if tunnel.client_breaks && shows_breaks(plan) {
            return Err(self.found("the end of a tunnel that was broken off"));
        }
        let may_be_cut = tunnel.client_breaks || tunnel.member_breaks || !plan.place.is_calm();
        match up.offset() == tunnel.up || may_be_cut {
            true => {
                world.end(plan.id);
                Ok(())
            }
            false => Err(self.found(&format!("{} of {} bytes", up.offset(), tunnel.up))),
        }
    }

    /// Checks whether weir may have ended the stream early. `code`: the error code of a reset.
    fn left(&self, code: Option<u32>) -> Result<(), Finding> {
        if let Some(tunnel) = self.arrival.plan.tunnel {
            let breaks = tunnel.client_breaks || tunnel.member_breaks;
            return match breaks || !self.arrival.plan.place.is_calm() {
                true => Ok(()),
                false => {
                    let up = self.up.as_ref().map_or(0, Checker::offset);
                    let what = format!("the break of a tunnel ({code:?}) after {up} bytes");
                    Err(self.found(&format!("{what}, {} steps left", self.script.steps_left())))
                }
            };
        }
        if !self.is_whole {
            return self.arrival.cut();
        }
        match self.arrival.plan.may_be_cut() {
            true => Ok(()),
            false => {
                let time = self.arrival.world.now() - self.begun;
                Err(self.found(&format!("the end ({code:?}) of a whole request after {time:?}")))
            }
        }
    }

    /// Sends 200 to an extended CONNECT, and the bytes of the tunnel.
    fn agree(&mut self, world: &World) {
        let plan = &self.arrival.plan;
        let Some(tunnel) = plan.tunnel else { return };
        let mut lines = vec![(":status".into(), "200".to_owned())];
        lines.extend(agreement_fields(world.key, plan));
        self.script.push(Step::Headers(lines, false));
        let sent = if tunnel.member_breaks { tunnel.down / 2 } else { tunnel.down };
        self.script.push(Step::Data(0, sent, !tunnel.member_breaks));
        if tunnel.member_breaks {
            self.script.push(Step::Reset(code::INTERNAL_ERROR));
        }
    }

    /// Performs the member's action.
    fn act(&mut self, world: &World, random: &mut Random) {
        match self.arrival.deed() {
            Deed::Answer => self.answer(world, random),
            Deed::Early => {
                self.answer(world, random);
                // Later frames of the stream are ignored then.
                let resets = random.percent(50) && !world.profile.is_direct;
                if !self.is_whole && resets {
                    self.script.push(Step::Reset(code::NO_ERROR));
                }
            }
            Deed::Silent { by, .. } => {
                world.count(Kind::MemberSilent);
                let code = match by {
                    Break::Reset => code::INTERNAL_ERROR,
                    Break::Close | Break::Half | Break::Stall => code::REFUSED_STREAM,
                };
                self.script.push(Step::Reset(code));
            }
            Deed::Cut { permille, .. } => {
                world.count(Kind::MemberCut);
                self.answer(world, random);
                self.cut(permille);
                self.script.push(Step::Reset(code::INTERNAL_ERROR));
            }
            Deed::Garbled { permille } => {
                world.count(Kind::MemberGarbled);
                self.garble(world, permille);
            }
            Deed::Stall => {}
            Deed::Unended => {
                world.count(Kind::MemberUnended);
                self.answer(world, random);
                self.script.unend();
                self.script.push(Step::Reset(code::INTERNAL_ERROR));
            }
        }
    }

    fn answer(&mut self, world: &World, random: &mut Random) {
        let (key, plan) = (world.key, &self.arrival.plan);
        for number in 0..plan.answer.interim {
            let mut lines = vec![(":status".into(), "103".to_owned())];
            lines.extend(hint_fields(key, plan, number));
            self.script.push(Step::Headers(lines, false));
        }
        let is_bare = plan.method == Method::Head || plan.answer.body.framing == Framing::Empty;
        self.script.push(Step::Headers(head(world, plan), is_bare));
        if is_bare {
            return;
        }
        let body = &plan.answer.body;
        let part = Part::ResponseTrailer;
        let trailers = if body.has_trailers { trailers(key, plan, part) } else { Fields::new() };
        self.script.body(body, trailers, random);
    }

    /// Cuts the response so that it cannot be mistaken for a complete one.
    fn cut(&mut self, permille: usize) {
        let plan = &self.arrival.plan;
        self.script.keep(permille);
        let is_announced = plan.answer.body.framing == Framing::Length;
        if self.script.is_ended()
            || (is_announced && self.script.data_bytes() >= plan.answer.body.bytes)
        {
            self.script.stop();
        }
    }

    /// Sends a malformed response.
    fn garble(&mut self, world: &World, permille: usize) {
        let plan = &self.arrival.plan;
        let body = plan.answer.body;
        if permille.is_multiple_of(2)
            && plan.method != Method::Head
            && body.framing == Framing::Length
            && body.bytes > 0
        {
            self.script.push(Step::Headers(head(world, plan), false));
            return self.script.push(Step::Data(0, body.bytes / 2, true));
        }
        let mut block = Vec::new();
        match permille % 3 {
            0 => write_line(b"content-type", b"text/plain", &mut block),
            1 => {
                write_line(b":status", b"200", &mut block);
                write_line(b"Upper-Case", b"1", &mut block);
            }
            _ => {
                write_line(b":status", b"200", &mut block);
                write_line(b"connection", b"close", &mut block);
            }
        }
        self.script.push(Step::Block(block, true));
    }
}

/// The head of a response.
fn head(world: &World, plan: &Plan) -> Fields {
    let mut lines = vec![(":status".into(), plan.answer.status.to_string())];
    lines.extend(answer_fields(world.key, plan));
    if plan.answer.body.framing == Framing::Length {
        lines.push(("content-length".into(), plan.answer.body.bytes.to_string()));
    }
    lines
}

/// Parses the request of a head. Returns it with the value of Content-Length.
fn request_of(lines: Fields) -> Result<(Request, Option<usize>), String> {
    let mut request = Request::default();
    let (mut length, mut cookies, mut scheme) = (None, Vec::new(), None);
    for (name, value) in lines {
        if name.starts_with(':') && !request.fields.is_empty() {
            return Err(format!("{name} behind fields"));
        }
        match &*name {
            ":method" => request.method = value,
            ":path" => request.target = value,
            ":authority" => request.host = value,
            ":scheme" => scheme = Some(value),
            ":protocol" => request.protocol = Some(value),
            "content-length" => {
                let bytes = value.parse().map_err(|_| format!("content-length {value:?}"))?;
                if length.replace(bytes).is_some() {
                    return Err("two lengths".to_owned());
                }
            }
            "cookie" => cookies.push(value),
            _ => request.fields.push((name, value)),
        }
    }
    if scheme.as_deref() != Some("http") {
        return Err(format!("scheme {scheme:?}"));
    }
    if !cookies.is_empty() {
        request.fields.push(("cookie".into(), cookies.join("; ")));
    }
    Ok((request, length))
}
