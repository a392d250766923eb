//! HTTP/1 clients: sequential or pipelined requests on a connection that is read at all times.

use std::time::Duration;

use weir_testing::Random;

use crate::answer::{Came, Response};
use crate::http1::{BodyReader, Step, framing_field, take_head, write_body, write_head};
use crate::link::{END_TOLD_MAX, End, Link};
use crate::message::{Fields, add_cookie, request, trailers, wants_trailers};
use crate::paced::{Paced, Wait};
use crate::place::{Place, Server};
use crate::plan::{At, Break, Flaw, Method, Plan};
use crate::tag::Part;
use crate::tunnel::{self, Side};
use crate::world::{Finding, Kind, World};

/// How long a client waits until weir closes a connection.
const CLOSING_MAX: Duration = Duration::from_secs(2);
/// Content-Length of a body above the limit.
const LARGE_BODY_BYTES: usize = 1 << 30;
/// Size of a header that exceeds the limit of a head.
const LARGE_HEAD_BYTES: usize = 40_000;

/// Sends the requests of one connection.
pub async fn session(
    world: &World,
    thread: usize,
    mut random: Random,
    place: Place,
    mut link: Link,
) {
    let since = world.begun_by(thread);
    if let Err(finding) = requests(world, thread, &mut random, place, &mut link).await {
        world.found(&finding);
        world.spoil(thread, since);
    }
}

async fn requests(
    world: &World,
    thread: usize,
    random: &mut Random,
    place: Place,
    link: &mut Link,
) -> Result<(), Finding> {
    let mut last: Option<Plan> = None;
    for _ in 0..1 + random.below(12) {
        if world.is_over() {
            break;
        }
        if let Some(plan) = last.as_ref().filter(|_| world.is_draining()) {
            return told_of_end(link, plan).await;
        }
        let plans = plans(world, thread, random, place);
        let Some(plan) = plans.last().cloned() else { break };
        let is_stray = link.fill() && !link.input().is_empty();
        // weir rejects a connection above the limit at once.
        let may_be_refused = place.server == Server::Limits && last.is_none();
        if is_stray && !may_be_refused {
            return Err(Finding::new("bytes without a request", plan.id).with(link.recent()));
        }
        if link.has_ended() {
            return Ok(());
        }
        if random.percent(8) {
            link.hold(world.profile.pause(random, 15_000));
        }
        let mut batch = Batch::new(world, link, plans, random);
        match batch.run().await? {
            Then::GoOn => {}
            Then::Closed => return watch_end(link, &plan).await,
            Then::Gone => return Ok(()),
            Then::Reset => {
                link.reset();
                return Ok(());
            }
            Then::Tunnel => return tunnel::run(world, link, &plan, Side::Client, random).await,
        }
        last = Some(plan);
    }
    match last {
        Some(plan) if random.percent(50) => watch_end(link, &plan).await,
        _ => Ok(()),
    }
}

/// The plans of one batch. A request that ends the connection is the last of its batch.
fn plans(world: &World, thread: usize, random: &mut Random, place: Place) -> Vec<Plan> {
    let pipelines = random.percent(30) && !world.profile.is_direct;
    let count = if pipelines { 2 + random.below(3) } else { 1 };
    let mut plans: Vec<Plan> = Vec::new();
    while plans.len() < count {
        let id = place.id(thread, world.next(thread));
        let Some(plan) = world.plan(id) else { break };
        let is_last = plan.closes
            || plan.flaw.is_some()
            || plan.tunnel.is_some()
            || plan.abort.is_some()
            || plan.may_end_connection();
        plans.push(plan);
        if is_last {
            break;
        }
    }
    if plans.len() > 1 {
        world.count(Kind::Pipelined);
    }
    plans
}

/// The state of the connection after a batch.
enum Then {
    GoOn,
    /// weir must close it.
    Closed,
    /// It is closed.
    Gone,
    Reset,
    Tunnel,
}

/// Waits until weir, during its shutdown, closes the idle connection.
async fn told_of_end(link: &mut Link, plan: &Plan) -> Result<(), Finding> {
    let until = link.now() + END_TOLD_MAX;
    while !link.has_ended() && link.now() < until {
        link.turn(until - link.now()).await;
    }
    match link.has_ended() {
        true => Ok(()),
        false => Err(Finding::new("a client of HTTP/1 is not told of the end", plan.id)),
    }
}

/// Checks that nothing follows the last response.
async fn watch_end(link: &mut Link, plan: &Plan) -> Result<(), Finding> {
    link.finish();
    let until = link.now() + CLOSING_MAX;
    while !link.has_ended() && link.now() < until {
        if !link.input().is_empty() {
            break;
        }
        link.turn(until - link.now()).await;
    }
    match link.input().is_empty() {
        true => Ok(()),
        false => Err(Finding::new("bytes behind the last response", plan.id).with(link.recent())),
    }
}

enum Reading {
    Head,
    Body(BodyReader),
}

/// A batch of pipelined requests and their responses.
struct Batch<'a> {
    world: &'a World,
    link: &'a mut Link,
    responses: Vec<Response<'a>>,
    /// The index of the request whose response is next.
    at: usize,
    reading: Reading,
    /// Whether weir has announced that it closes the connection after this response.
    closes: bool,
    paced: Paced,
    /// The position at which the client breaks off, and how.
    abort: Option<(At, Break)>,
    is_half_closed: bool,
    /// The number of bytes received before this response.
    received_before: usize,
}

impl<'a> Batch<'a> {
    fn new(world: &'a World, link: &'a mut Link, plans: Vec<Plan>, random: &mut Random) -> Self {
        let mut paced = Paced::new(world.profile);
        let mut abort = None;
        for (at, plan) in plans.iter().enumerate() {
            let before = paced.length();
            add_request(world, plan, at, &mut paced, random);
            if let Some((At::Sent(permille), how)) = plan.abort {
                let bytes = permille * (paced.length() - before) / 1_000;
                // Without any byte of a request, the connection is idle and has no request timeout.
                let bytes_min = usize::from(how == Break::Stall);
                paced.limit(before + bytes.max(bytes_min));
            }
            abort = plan.abort;
        }
        let received_before = link.received;
        let responses = plans.into_iter().map(|plan| Response::new(world, plan)).collect();
        Self {
            world,
            link,
            responses,
            at: 0,
            reading: Reading::Head,
            closes: false,
            paced,
            abort,
            is_half_closed: false,
            received_before,
        }
    }

    fn found(&self, what: String) -> Finding {
        let id = self.responses[self.at.min(self.responses.len() - 1)].plan.id;
        Finding::new(format!("a client of HTTP/1: {what}"), id).with(self.link.recent())
    }

    async fn run(&mut self) -> Result<Then, Finding> {
        loop {
            if let Some(then) = self.read().map_err(|what| self.found(what))? {
                return Ok(then);
            }
            if self.at == self.responses.len() && self.paced.is_done() && self.abort.is_none() {
                return Ok(if self.is_half_closed { Then::Closed } else { Then::GoOn });
            }
            // The remaining input is not enough for a step.
            if self.link.has_ended() {
                return self.ended().map_err(|what| self.found(what));
            }
            if self.abort.is_some() {
                if let Some(then) = self.break_off() {
                    return Ok(then);
                }
                if self.abort.is_none() {
                    continue;
                }
            }
            if self.link.still() > self.world.profile.stuck {
                let (sent, all) = (self.paced.sent(), self.paced.length());
                return Err(self.found(format!("stuck with {sent} of {all} bytes sent")));
            }
            let (responses, at) = (&self.responses, self.at);
            let is_met = |wait| match wait {
                Wait::Continue(place, _) => {
                    at > place || responses[place].continued || responses[place].has_head()
                }
                Wait::Answered(place) => at > place,
                _ => true,
            };
            let wait = self.paced.feed(self.link, is_met);
            self.link.turn(wait).await;
        }
    }

    /// Breaks off, if the position for that is reached. `Some`: the connection is done.
    fn break_off(&mut self) -> Option<Then> {
        let (at, how) = self.abort?;
        let is_now = match at {
            At::Sent(_) => self.paced.is_done() && self.link.queued() == 0,
            At::Received(bytes) => {
                let is_last = self.at + 1 >= self.responses.len();
                is_last && self.link.received - self.received_before >= bytes
            }
        };
        let is_over = self.at == self.responses.len() && self.paced.is_done();
        if !is_now && !is_over {
            return None;
        }
        self.abort = None;
        let is_whole = matches!(at, At::Sent(1_000))
            || (matches!(at, At::Received(_)) && self.paced.is_done() && self.link.queued() == 0);
        match how {
            Break::Reset => {
                self.world.count(Kind::ClientAborts);
                Some(Then::Reset)
            }
            Break::Close => {
                self.world.count(Kind::ClientAborts);
                Some(Then::Gone)
            }
            Break::Half => {
                self.world.count(Kind::HalfClosed);
                if !is_whole {
                    self.paced.stop();
                    self.responses.last_mut()?.forgive();
                }
                self.link.finish();
                self.is_half_closed = true;
                None
            }
            Break::Stall => {
                self.responses.last_mut()?.forgive();
                None
            }
        }
    }

    /// Parses all available input. `Some`: the connection is done.
    fn read(&mut self) -> Result<Option<Then>, String> {
        while self.at < self.responses.len() {
            let response = &mut self.responses[self.at];
            match &mut self.reading {
                Reading::Head => {
                    let Some((head, length)) = take_head(self.link.input())? else {
                        return Ok(None);
                    };
                    self.link.take(length);
                    let status = status_of(&head.start)?;
                    // After a timeout of the head, weir does not know that the method is HEAD.
                    let to_head = response.plan.method == Method::Head && status != 408;
                    let body = BodyReader::of_response(&head, status, to_head);
                    let (closes, upgrade) = (head.has_option("close"), head.upgrade.clone());
                    match response.head(status, head.fields, head.length)? {
                        Came::Interim => {}
                        Came::Tunnel if upgrade.as_deref() == Some("websocket") => {
                            return Ok(Some(Then::Tunnel));
                        }
                        Came::Tunnel => return Err(format!("101 with Upgrade: {upgrade:?}")),
                        Came::Final => {
                            if body == BodyReader::UntilClose && !response.plan.is_old {
                                return Err("a body up to the end for HTTP/1.1".to_owned());
                            }
                            self.closes = closes || response.plan.is_old;
                            self.reading = Reading::Body(body);
                        }
                    }
                }
                Reading::Body(body) => {
                    let (length, step) = body.step(self.link.input())?;
                    match step {
                        Step::More => return Ok(None),
                        Step::Data(data) => response.data(data)?,
                        Step::End(trailers) => {
                            response.end(&trailers)?;
                            self.at += 1;
                            self.reading = Reading::Head;
                            self.received_before = self.link.received - self.link.input().len();
                        }
                    }
                    self.link.take(length);
                    if matches!(self.reading, Reading::Head) && self.closes {
                        return Ok(Some(Then::Closed));
                    }
                }
            }
        }
        match self.link.input() {
            [] => Ok(None),
            _ => Err("bytes behind all responses".to_owned()),
        }
    }

    /// Handles a connection that weir has closed before all responses.
    fn ended(&mut self) -> Result<Then, String> {
        let end = self.link.ended();
        if self.at == self.responses.len() {
            return Ok(Then::Gone);
        }
        let response = &mut self.responses[self.at];
        self.world.check_rest(self.link.input(), Some(response.plan.id))?;
        let is_until_close = matches!(self.reading, Reading::Body(BodyReader::UntilClose));
        match end {
            Some(End::Fin) if is_until_close => response.end(&Fields::new())?,
            _ if matches!(self.reading, Reading::Head) && self.link.input().is_empty() => {
                response.silence()?;
            }
            _ => response.cut()?,
        }
        Ok(Then::Gone)
    }
}

fn status_of(start: &str) -> Result<u16, String> {
    let rest = start.strip_prefix("HTTP/1.1 ").ok_or_else(|| format!("status line {start:?}"))?;
    let (status, reason) = rest.split_once(' ').ok_or_else(|| format!("status line {start:?}"))?;
    let is_known = matches!(
        reason,
        "Some Phrase"
            | "Continue"
            | "Early Hints"
            | "Switching Protocols"
            | "OK"
            | "Created"
            | "No Content"
            | "Moved Permanently"
            | "Not Modified"
            | "Bad Request"
            | "Forbidden"
            | "Not Found"
            | "Request Timeout"
            | "Content Too Large"
            | "Expectation Failed"
            | "Too Many Requests"
            | "Request Header Fields Too Large"
            | "Not Implemented"
            | "Bad Gateway"
            | "Service Unavailable"
            | "Gateway Timeout"
            | ""
    );
    let status = status.parse().ok().filter(|_| status.len() == 3 && is_known);
    status.ok_or_else(|| format!("status line {start:?}"))
}

/// Appends a request to the output.
fn add_request(world: &World, plan: &Plan, at: usize, paced: &mut Paced, random: &mut Random) {
    let key = world.key;
    let request = request(key, plan);
    let mut fields = vec![("host".into(), request.host)];
    fields.extend(request.fields);
    add_cookie(world.keeping.ask(plan, world.now()), &mut fields, random);
    let mut connection = Vec::new();
    if wants_trailers(plan) && !plan.is_old {
        fields.push(("te".into(), "trailers".to_owned()));
        connection.push("te");
    }
    if plan.closes && !plan.is_old {
        connection.push("close");
    }
    if plan.tunnel.is_some() {
        fields.push(("upgrade".into(), "websocket".to_owned()));
        connection.push("upgrade");
    }
    if !connection.is_empty() {
        fields.push(("connection".into(), connection.join(", ")));
    }
    let version = if plan.is_old { "1.0" } else { "1.1" };
    let mut start = format!("{} {} HTTP/{version}", request.method, request.target);
    match plan.flaw {
        Some(Flaw::LargeBody) => {
            fields.push(("content-length".into(), LARGE_BODY_BYTES.to_string()));
        }
        _ => fields.extend(framing_field(&plan.body)),
    }
    match plan.flaw {
        Some(Flaw::Name) => fields.push(("x-flaw ".into(), "1".to_owned())),
        Some(Flaw::Value) => fields.push(("x-flaw".into(), "a\u{1}b".to_owned())),
        Some(Flaw::Framing) => {
            fields.push(("content-length".into(), "5".to_owned()));
            fields.push(("transfer-encoding".into(), "chunked".to_owned()));
        }
        Some(Flaw::Expectation) => fields.push(("expect".into(), "much".to_owned())),
        Some(Flaw::LargeHead) => {
            let value = key.text(plan.id, Part::RequestField, 0, LARGE_HEAD_BYTES / 16);
            fields.push(("x-large".into(), value));
        }
        // A method that is too long, or a request line without a version.
        Some(Flaw::Garbage) => {
            start = key.text(plan.id, Part::Path, 0, 1 + 2 * random.below(2)) + " /\r\n";
        }
        _ => {}
    }
    let mut head = Vec::new();
    write_head(&start, &fields, &mut head);
    let mut body = Vec::new();
    let has_trailers = plan.body.has_trailers;
    let part = Part::RequestTrailer;
    let trailers = if has_trailers { trailers(key, plan, part) } else { Fields::new() };
    write_body((key, plan.id, Part::RequestBody), &plan.body, &trailers, random, &mut body);
    if plan.flaw == Some(Flaw::Data) {
        body.truncate(body.len() - b"0\r\n\r\n".len());
        body.extend_from_slice(b"-1\r\n");
    }
    if plan.expects {
        paced.add(&head, Wait::Continue(at, world.profile.continue_max(plan.is_patient)), random);
        return paced.add(&body, Wait::Nothing, random);
    }
    head.extend_from_slice(&body);
    let then = match random.below(10) {
        0..7 => Wait::Nothing,
        7..9 => Wait::Time(world.profile.pause(random, 2_000)),
        _ => Wait::Answered(at),
    };
    paced.add(&head, then, random);
}
