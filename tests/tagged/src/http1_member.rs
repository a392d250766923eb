//! HTTP/1 members.

use std::time::Duration;

use weir_testing::Random;

use crate::arrival::Arrival;
use crate::http1::{BodyReader, Head, Step, framing_field, take_head, write_body, write_head};
use crate::link::{Link, UNTIL_EVENT, Unasked};
use crate::message::{
    Fields, Request, agreement_fields, answer_fields, hint_fields, surplus_field, trailers,
};
use crate::paced::{Paced, Wait};
use crate::place::{Server, Version};
use crate::plan::{Break, Deed, Framing, Method, Plan};
use crate::tag::Part;
use crate::tunnel::{self, Side};
use crate::world::{Finding, Kind, World};

/// How long a member that refuses a body waits for the delivery of its response.
const DELIVERY_MAX: Duration = Duration::from_secs(5);

/// Share of short responses that are followed by unsolicited bytes, in per mille.
const SURPLUS_PERMILLE: usize = 10;
/// Share of idle connections on which unsolicited bytes are sent, in per mille.
const IDLE_SURPLUS_PERMILLE: usize = 60;
/// Share of long responses that are followed by unsolicited bytes, in percent. Long responses are rare.
const LONG_SURPLUS_PERCENT: usize = 40;
/// Lengths that may fill one read exactly, so that the bytes after them remain in the socket.
const READ_BYTES: [usize; 4] = [64 * 1_024, 64 * 1_024, 24 * 1_024, 16 * 1_024];
/// Percentage of members that do not read for a while, of those that respond before the body and keep the connection open.
const RESTS_PERCENT: usize = 70;
/// Maximum length of that pause.
const RESTS_US_MAX: usize = 20_000;
/// How often a member checks whether its bytes have been read.
const LOOKS_MAX: usize = 200;

/// The end of an exchange for the connection.
enum Then {
    GoOn,
    Close,
    Reset,
    /// Closed with unread input.
    Drop,
}

/// Serves one connection of weir to its end.
pub async fn serve(
    world: &World,
    number: usize,
    mut random: Random,
    mut link: Link,
) -> Result<(), Finding> {
    let random = &mut random;
    loop {
        let mut head = match next_head(&mut link).await {
            Ok(Some(head)) => head,
            Ok(None) => {
                let rest = world.check_rest(link.input(), None);
                return rest.map_err(|what| found(&link, what));
            }
            Err(what) => return Err(found(&link, what)),
        };
        let request = request_of(&mut head).map_err(|what| found(&link, what))?;
        let arrival = Arrival::begin(world, (Version::Http1, number), &request, head.length);
        let mut arrival = arrival.map_err(|finding| finding.with(link.recent()))?;
        if arrival.plan.tunnel.is_some_and(|tunnel| !tunnel.is_ignored) {
            return agree(world, &mut link, &arrival.plan, &request, random).await;
        }
        let mut member = Member { world, link: &mut link, random };
        match member.exchange(&mut arrival, &head).await? {
            Then::GoOn => {}
            Then::Close => {
                link.close_in_order(world.profile.stuck).await;
                return Ok(());
            }
            Then::Reset => {
                link.reset();
                return Ok(());
            }
            Then::Drop => return Ok(()),
        }
    }
}

fn found(link: &Link, what: String) -> Finding {
    Finding { what: format!("a member got {what}"), id: None, received: link.recent().to_vec() }
}

/// Reads the next head; `None`: the connection ended before it, or within it.
async fn next_head(link: &mut Link) -> Result<Option<Head>, String> {
    loop {
        if let Some((head, length)) = take_head(link.input())? {
            link.take(length);
            return Ok(Some(head));
        }
        if link.has_ended() {
            return Ok(None);
        }
        link.turn(UNTIL_EVENT).await;
    }
}

/// Parses the request of a head. Moves the headers out of it.
fn request_of(head: &mut Head) -> Result<Request, String> {
    let mut words = head.start.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!("request line {:?}", head.start));
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut fields = std::mem::take(&mut head.fields);
    let place = fields.iter().position(|(name, _)| name == "host").ok_or("no Host")?;
    let (_, host) = fields.remove(place);
    let expected = match (&head.upgrade, fields.iter().any(|(name, _)| name == "te")) {
        (Some(protocol), _) if protocol != "websocket" => return Err(format!("{protocol:?}")),
        (Some(_), true) => &["te", "upgrade"][..],
        (Some(_), false) => &["upgrade"],
        (None, true) => &["te"],
        (None, false) => &[],
    };
    match head.connection == expected {
        true => Ok(Request { method, target, host, protocol: None, fields }),
        false => Err(format!("Connection {:?} instead of {expected:?}", head.connection)),
    }
}

/// Sends 101 and serves the tunnel.
async fn agree(
    world: &World,
    link: &mut Link,
    plan: &Plan,
    request: &Request,
    random: &mut Random,
) -> Result<(), Finding> {
    let key = request.fields.iter().find(|(name, _)| name == "sec-websocket-key");
    let Some((_, key)) = key else {
        return Err(Finding::new("a member got a WebSocket without a key", plan.id));
    };
    let mut fields = agreement_fields(world.key, plan);
    fields.push(("upgrade".into(), "websocket".to_owned()));
    fields.push(("connection".into(), "upgrade".to_owned()));
    fields.push(("sec-websocket-accept".into(), crate::accept::accept_of(key)));
    write_head("HTTP/1.1 101 Switching Protocols", &fields, link.out());
    tunnel::run(world, link, plan, Side::Member, random).await
}

struct Member<'a> {
    world: &'a World,
    link: &'a mut Link,
    random: &'a mut Random,
}

impl Member<'_> {
    async fn exchange(&mut self, arrival: &mut Arrival<'_>, head: &Head) -> Result<Then, Finding> {
        let mut body = BodyReader::of_request(head);
        let deed = arrival.deed();
        if deed == Deed::Early {
            return self.early(arrival, &mut body).await;
        }
        if arrival.expects {
            write_head("HTTP/1.1 100 Continue", &Fields::new(), self.link.out());
        }
        // A member that ends without a response may do so before it has read the whole request.
        let is_hasty = matches!(deed, Deed::Silent { .. }) && self.random.percent(50);
        if !is_hasty && !self.read_body(arrival, &mut body).await? {
            return Ok(Then::Close);
        }
        if body == BodyReader::Length(0) && !self.link.input().is_empty() {
            let what = "more than a request before it was answered";
            return Err(Finding::new(what, arrival.plan.id).with(self.link.recent()));
        }
        let plan = &arrival.plan;
        self.link.pause(plan.delay).await;
        match deed {
            Deed::Answer | Deed::Early | Deed::Unended => {
                let bytes = self.response(plan);
                if !plan.answer.closes && self.says_more(bytes.len()) {
                    return self.say_more(plan, bytes).await;
                }
                self.send(&bytes).await;
                let then = self.after_answer(plan);
                let speaks = matches!(then, Then::GoOn)
                    && self.random.below(1_000) < IDLE_SURPLUS_PERMILLE
                    && !self.world.profile.is_direct;
                if speaks { self.say_idle(plan).await } else { Ok(then) }
            }
            Deed::Silent { by, .. } => {
                self.world.count(Kind::MemberSilent);
                Ok(broken(by))
            }
            Deed::Cut { permille, by } => {
                self.world.count(Kind::MemberCut);
                let bytes = self.response(plan);
                let length = 1 + permille * (bytes.len() - 2) / 1_000;
                self.send(&bytes[..length]).await;
                Ok(broken(by))
            }
            Deed::Garbled { permille } => {
                self.world.count(Kind::MemberGarbled);
                let bytes = self.garbled(plan, permille);
                self.send(&bytes).await;
                Ok(Then::Close)
            }
            Deed::Stall => {
                while !self.link.has_ended() && !self.world.is_over() {
                    self.link.turn(UNTIL_EVENT).await;
                }
                Ok(Then::Close)
            }
        }
    }

    fn says_more(&mut self, bytes: usize) -> bool {
        let is_long = bytes > READ_BYTES[READ_BYTES.len() - 1];
        let permille = if is_long { 10 * LONG_SURPLUS_PERCENT } else { SURPLUS_PERMILLE };
        self.random.below(1_000) < permille && !self.world.profile.is_direct
    }

    /// Sends the response, directly followed by bytes that look like another response.
    async fn say_more(&mut self, plan: &Plan, bytes: Vec<u8>) -> Result<Then, Finding> {
        let read_bytes = READ_BYTES[self.random.below(READ_BYTES.len())];
        let tail_bytes = match bytes.len() >= read_bytes {
            true => read_bytes,
            false => 1 + self.random.below(bytes.len().min(read_bytes)),
        };
        let (rest, tail) = bytes.split_at(bytes.len() - tail_bytes);
        if !rest.is_empty() {
            self.send(rest).await;
        }
        let surplus = self.surplus(plan);
        for _ in 0..LOOKS_MAX {
            if self.link.has_ended() || self.link.is_deaf() {
                break;
            }
            if self.link.say_unasked(tail, &surplus) {
                self.world.count(Kind::SurplusBehind);
                return self.watch_unasked(plan).await;
            }
            self.link.pause(Duration::from_micros(100)).await;
        }
        // weir does not read at the moment, so no unsolicited bytes are sent.
        self.send(tail).await;
        Ok(self.after_answer(plan))
    }

    /// Sends unsolicited bytes on the idle connection, if weir has not closed it.
    async fn say_idle(&mut self, plan: &Plan) -> Result<Then, Finding> {
        self.link.pause(self.world.profile.pause(self.random, 3_000)).await;
        let surplus = self.surplus(plan);
        match !self.link.has_ended() && self.link.say_unasked(b"", &surplus) {
            true => {
                self.world.count(Kind::SurplusIdle);
                self.watch_unasked(plan).await
            }
            false => Ok(Then::GoOn),
        }
    }

    /// Checks that weir does not use the connection again after unsolicited bytes.
    async fn watch_unasked(&mut self, plan: &Plan) -> Result<Then, Finding> {
        while self.link.input().is_empty() && !self.link.has_ended() && !self.world.is_over() {
            self.link.turn(UNTIL_EVENT).await;
        }
        match self.link.unasked() {
            Some(Unasked::Ignored) => {
                let what = "a member got a request where it had said what was not asked";
                Err(Finding::new(what, plan.id).with(self.link.recent()))
            }
            Some(Unasked::Crossed) => {
                self.world.surplus.excuse(plan.id);
                Ok(Then::Reset)
            }
            _ => Ok(Then::Close),
        }
    }

    /// Bytes that look like a response, with a header that marks them as unsolicited.
    fn surplus(&mut self, plan: &Plan) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let fields = vec![
                surplus_field(self.world.key, plan),
                ("content-length".into(), "7".to_owned()),
            ];
            write_head("HTTP/1.1 200 Some Phrase", &fields, &mut bytes);
            bytes.extend_from_slice(b"surplus");
        }
        bytes
    }

    fn after_answer(&mut self, plan: &Plan) -> Then {
        if plan.answer.closes {
            return Then::Close;
        }
        // Closes without `Connection: close` in the response.
        let is_rude = plan.place.server == Server::Rough && self.random.percent(10);
        match is_rude {
            true if self.random.percent(50) => Then::Close,
            true => Then::Reset,
            false => Then::GoOn,
        }
    }

    /// Responds before the body has arrived.
    async fn early(
        &mut self,
        arrival: &mut Arrival<'_>,
        body: &mut BodyReader,
    ) -> Result<Then, Finding> {
        let bytes = self.response(&arrival.plan);
        let mut paced = Paced::new(self.world.profile);
        let mut is_whole = false;
        // A response that ends with the connection cannot wait for the rest of a request, because the client waits for that
        // end.
        let ends = arrival.plan.answer.body.framing == Framing::UntilClose;
        let refuses = arrival.plan.answer.closes;
        if !refuses && !ends && self.random.percent(RESTS_PERCENT) {
            let time = self.world.profile.pause(self.random, RESTS_US_MAX);
            // Received bytes stay in the socket meanwhile.
            self.link.hold(time);
            self.link.take_nothing(true);
            self.send(&bytes).await;
            self.link.pause(time).await;
            if arrival.plan.place.server == Server::Rough && self.random.percent(80) {
                self.world.count(Kind::LeftUnread);
                arrival.cut()?;
                return Ok(Then::Drop);
            }
            self.link.take_nothing(false);
        } else {
            paced.add(&bytes, Wait::Nothing, self.random);
        }
        while !(paced.is_done() && self.link.queued() == 0 && (is_whole || ends)) {
            if !is_whole {
                is_whole = self.read_some(arrival, body)?;
            }
            let wait = paced.feed(self.link, |_| true);
            if refuses && !is_whole && paced.is_done() && self.link.queued() == 0 {
                // The member stops reading, and closes when the whole response including FIN is delivered.
                self.link.finish();
                if self.link.delivered(DELIVERY_MAX).await {
                    arrival.cut()?;
                    return Ok(Then::Drop);
                }
                return Ok(Then::Close);
            }
            // The remaining input is not enough for a step.
            if self.link.has_ended() || self.link.is_deaf() {
                arrival.cut()?;
                return Ok(Then::Close);
            }
            if self.link.still() > self.world.profile.stuck {
                return Err(Finding::new("a member waits for a body", arrival.plan.id));
            }
            if !is_whole || self.link.queued() > 0 || !paced.is_done() {
                self.link.turn(wait).await;
            }
        }
        Ok(if arrival.plan.answer.closes { Then::Close } else { Then::GoOn })
    }

    /// Reads the body of a request to its end; false: it was broken off.
    async fn read_body(
        &mut self,
        arrival: &mut Arrival<'_>,
        body: &mut BodyReader,
    ) -> Result<bool, Finding> {
        loop {
            if self.read_some(arrival, body)? {
                return Ok(true);
            }
            if self.link.has_ended() {
                return arrival.cut().map(|()| false).map_err(|it| it.with(self.link.recent()));
            }
            if self.link.still() > self.world.profile.stuck {
                return Err(Finding::new("a member waits for a body", arrival.plan.id));
            }
            self.link.turn(UNTIL_EVENT).await;
        }
    }

    /// Parses the available part of a body. Returns whether the body is complete.
    fn read_some(&mut self, arrival: &mut Arrival, body: &mut BodyReader) -> Result<bool, Finding> {
        loop {
            let link = &mut *self.link;
            let found = |what| Finding::new(format!("a member got {what}"), arrival.plan.id);
            let stepped = body.step(link.input());
            let (length, step) = stepped.map_err(|what| found(what).with(link.recent()))?;
            match step {
                Step::More => return Ok(false),
                Step::Data(data) => arrival.data(data).map_err(|it| it.with(link.recent()))?,
                Step::End(trailers) => {
                    arrival.end(&trailers).map_err(|it| it.with(link.recent()))?;
                    link.take(length);
                    *body = BodyReader::Length(0);
                    return Ok(true);
                }
            }
            link.take(length);
        }
    }

    /// The complete response in bytes, with its interim responses.
    fn response(&mut self, plan: &Plan) -> Vec<u8> {
        let (key, answer) = (self.world.key, &plan.answer);
        let mut bytes = Vec::new();
        for number in 0..answer.interim {
            write_head("HTTP/1.1 103 Early Hints", &hint_fields(key, plan, number), &mut bytes);
        }
        let mut fields = answer_fields(key, plan);
        fields.extend(framing_field(&answer.body));
        if answer.closes {
            fields.push(("connection".into(), "close".to_owned()));
        }
        write_head(&format!("HTTP/1.1 {} Some Phrase", answer.status), &fields, &mut bytes);
        if plan.method != Method::Head {
            let part = Part::ResponseTrailer;
            let has_trailers = answer.body.has_trailers;
            let trailers = if has_trailers { trailers(key, plan, part) } else { Fields::new() };
            let what = (key, plan.id, Part::ResponseBody);
            write_body(what, &answer.body, &trailers, self.random, &mut bytes);
        }
        bytes
    }

    /// A malformed response. Either the head or the chunks of the body are malformed.
    fn garbled(&mut self, plan: &Plan, permille: usize) -> Vec<u8> {
        let bytes = self.response(plan);
        let has_chunks =
            plan.answer.body.framing == Framing::Chunked && plan.method != Method::Head;
        if has_chunks && permille >= 500 {
            // The last chunk, which marks the end, is replaced.
            let mut cut = bytes;
            cut.truncate(cut.windows(5).rposition(|it| it == b"\r\n0\r\n").map_or(0, |at| at + 2));
            cut.extend_from_slice(b"no size\r\n");
            return cut;
        }
        let head = format!("HTTP/1.1 200 OK\r\nset-cookie: m={}\r\n", plan.id);
        let garbage: &[u8] = match permille % 3 {
            0 => b"HTTP/1.1 2x0 OK\r\ncontent-length: 0\r\n\r\n",
            1 => b"no status line at all\r\n\r\n",
            _ => b"a line without a colon\r\n\r\n",
        };
        if permille % 3 == 2 { [head.as_bytes(), garbage].concat() } else { garbage.to_vec() }
    }

    /// Sends bytes in pieces. Received bytes stay in the input.
    async fn send(&mut self, bytes: &[u8]) {
        let mut paced = Paced::new(self.world.profile);
        paced.add(bytes, Wait::Nothing, self.random);
        let until = self.link.now() + 2 * self.world.profile.stuck;
        loop {
            let wait = paced.feed(self.link, |_| true);
            if paced.is_done() && self.link.queued() == 0 {
                return;
            }
            // If the peer does not read for this time, its client has broken off, or weir is stuck. The client reports a
            // stuck connection.
            if self.link.is_deaf() || self.link.has_ended() || self.link.now() > until {
                return;
            }
            self.link.turn(wait).await;
        }
    }
}

fn broken(by: Break) -> Then {
    match by {
        Break::Reset => Then::Reset,
        Break::Close | Break::Half | Break::Stall => Then::Close,
    }
}
