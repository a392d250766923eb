//! The members that get requests of weir's own: the authorisation service, and the member that gets copies.
//!
//! The service reacts as the plan of the exchange says. It must be given up in time, and at once when its client has left: without
//! the client's request, nobody waits for its response. A copy must be whole, and is sent only of a request that was let in.

use std::time::Duration;

use weir_testing::Random;

use crate::http1::{BodyReader, Head, Step, take_head, write_head};
use crate::link::{Link, UNTIL_EVENT};
use crate::message::{Fields, Request, check_request, host, path_block, target, user};
use crate::place::Server;
use crate::plan::{Break, Plan, ServiceDeed};
use crate::tag::{Checker, Id, Key, Part};
use crate::world::{Finding, Kind, World};

/// Content-Type of the service's responses to refused requests.
pub const REFUSAL_TYPE: &str = "text/weir";
/// A request of weir's own is given up by then at the latest: each has a timeout of at most 10 seconds.
const GIVEN_UP_MAX: Duration = Duration::from_secs(20);
/// Maximum pause before a response, with rare exceptions.
const PAUSE_US_MAX: usize = 3_000;
/// Maximum length of responses to copies.
const RESPONSE_BYTES_MAX: usize = 3_000;

/// The body of the service's response to a refused request.
pub fn refusal(key: Key, plan: &Plan) -> String {
    format!("{} is refused\n", user(key, plan))
}

/// Serves one connection of weir as the authorisation service.
pub async fn answer(world: &World, mut random: Random, mut link: Link) -> Result<(), Finding> {
    let random = &mut random;
    while let Some(head) = next_head(world, &mut link).await? {
        let plan = asked_about(world, &head).map_err(|it| it.with(link.recent()))?;
        link.pause(world.profile.pause(random, PAUSE_US_MAX)).await;
        let key = world.key;
        let (status, name, value, body) = match plan.service {
            ServiceDeed::LetIn => {
                world.count(Kind::LetIn);
                ("200 Let In", "x-user", user(key, &plan), String::new())
            }
            ServiceDeed::Deny => {
                world.count(Kind::Denied);
                let content_type = REFUSAL_TYPE.to_owned();
                ("403 Refused", "content-type", content_type, refusal(key, &plan))
            }
            ServiceDeed::Fail => {
                world.count(Kind::ServiceFailed);
                ("500 Failed", "x-user", user(key, &plan), "failed".to_owned())
            }
            ServiceDeed::Break(how) => {
                world.count(Kind::ServiceFailed);
                if how == Break::Reset {
                    link.reset();
                }
                return Ok(());
            }
            ServiceDeed::Stall => {
                given_up(world, &mut link, "a question", plan.id).await?;
                world.count(Kind::ServiceLeft);
                return Ok(());
            }
        };
        let length = ("content-length".into(), body.len().to_string());
        write_head(&format!("HTTP/1.1 {status}"), &vec![(name.into(), value), length], link.out());
        link.out().extend_from_slice(body.as_bytes());
        if random.percent(10) {
            link.close_in_order(world.profile.stuck).await;
            return Ok(());
        }
        link.flush();
    }
    Ok(())
}

/// Serves one connection of weir as the member that gets copies.
pub async fn take_copies(world: &World, mut random: Random, mut link: Link) -> Result<(), Finding> {
    let random = &mut random;
    while let Some(head) = next_head(world, &mut link).await? {
        let plan = copied(world, &head).map_err(|it| it.with(link.recent()))?;
        if !take_body(world, &mut link, &head, &plan).await? {
            return Ok(());
        }
        world.count(Kind::Copies);
        link.pause(world.profile.pause(random, PAUSE_US_MAX)).await;
        match random.below(100) {
            0..70 => {
                let length = random.below(RESPONSE_BYTES_MAX);
                let fields = vec![("content-length".into(), length.to_string())];
                write_head("HTTP/1.1 200 Copied", &fields, link.out());
                let body = world.key.bytes(plan.id, Part::ResponseBody, length);
                link.out().extend_from_slice(&body);
                link.flush();
            }
            70..80 => return Ok(()),
            80..90 => {
                link.reset();
                return Ok(());
            }
            _ => {
                given_up(world, &mut link, "a response to a copy", plan.id).await?;
                world.count(Kind::CopiesLeft);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads the next head; `None`: the connection ended before it, or within it. All of it must be of one exchange.
async fn next_head(world: &World, link: &mut Link) -> Result<Option<Head>, Finding> {
    let found = |link: &Link, what: String| Finding {
        what: format!("a request of weir's own has {what}"),
        id: None,
        received: link.recent().to_vec(),
    };
    loop {
        let taken = take_head(link.input()).map_err(|what| found(link, what))?;
        if let Some((head, length)) = taken {
            let text = &link.input()[..length];
            world.check_rest(text, None).map_err(|what| found(link, what))?;
            link.take(length);
            return Ok(Some(head));
        }
        if link.has_ended() {
            world.check_rest(link.input(), None).map_err(|what| found(link, what))?;
            return Ok(None);
        }
        link.turn(UNTIL_EVENT).await;
    }
}

/// Waits until weir gives up a request that gets no response. A worker that has ended does not.
async fn given_up(world: &World, link: &mut Link, what: &str, id: Id) -> Result<(), Finding> {
    let until = link.now() + GIVEN_UP_MAX;
    while !link.has_ended() && !world.is_over() {
        if link.now() >= until {
            if world.is_draining() {
                return Ok(());
            }
            return Err(Finding::new(format!("{what} is not given up"), id));
        }
        link.turn(until - link.now()).await;
    }
    Ok(())
}

/// The exchange with this target, if it is one that a service decides about, and reaches a service.
fn plan_of(world: &World, target: &str, what: &str) -> Result<Plan, Finding> {
    let block = path_block(target).unwrap_or_default();
    let named = world.key.read(block).and_then(|(id, ..)| world.plan(id));
    let plan = named.filter(|plan| plan.place.server == Server::Asked);
    plan.ok_or_else(|| Finding {
        what: format!("{what} {target:?} of no exchange"),
        id: None,
        received: Vec::new(),
    })
}

/// Checks a question to the service. Returns the plan of the exchange that it is about.
fn asked_about(world: &World, head: &Head) -> Result<Plan, Finding> {
    let value_of = |name| head.fields.iter().find(|(it, _)| it == name).map(|(_, value)| &**value);
    let told = value_of("x-forwarded-uri").unwrap_or_default();
    let plan = plan_of(world, told, "a question about")?;
    let (key, found) = (world.key, |what: String| Finding::new(what, plan.id));
    for (name, expected) in [
        ("x-forwarded-uri", target(key, &plan)),
        // An extended CONNECT is told as the GET that it stands for.
        ("x-forwarded-method", plan.method.text().to_owned()),
        ("x-forwarded-host", host(key, &plan)),
        ("host", host(key, &plan)),
    ] {
        if value_of(name) != Some(&*expected) {
            return Err(found(format!("a question with {name}: {:?}", value_of(name))));
        }
    }
    let is_bare = !head.is_chunked && head.length.unwrap_or(0) == 0;
    match head.start == "GET /verify HTTP/1.1" && is_bare && value_of("x-user").is_none() {
        true => Ok(plan),
        false => Err(found(format!("a question {head:?}"))),
    }
}

/// Checks the head of a copy. Returns the plan of its exchange.
fn copied(world: &World, head: &Head) -> Result<Plan, Finding> {
    let mut words = head.start.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let plan = plan_of(world, target, "a copy")?;
    let found = |what: String| Finding::new(format!("a copy {what}"), plan.id);
    if !plan.may_reach_member() || plan.flaw.is_some() || plan.tunnel.is_some() {
        return Err(found("of a request that is not copied".to_owned()));
    }
    let (marks, mut fields): (Fields, Fields) =
        head.fields.iter().cloned().partition(|(name, _)| name.starts_with("x-mirrored"));
    if marks.len() != 2 {
        return Err(found(format!("with the marks {marks:?}")));
    }
    let place = fields.iter().position(|(name, _)| name == "host");
    let (_, host) = fields.remove(place.ok_or_else(|| found("without Host".to_owned()))?);
    if plan.expects {
        // Nobody waits for 100 to a copy.
        fields.push(("expect".into(), "100-continue".to_owned()));
    }
    let (method, target) = (method.to_owned(), target.to_owned());
    let got = Request { method, target, host, protocol: None, fields };
    check_request(world.key, &plan, &got).map_err(|what| found(format!("with {what}")))?;
    Ok(plan)
}

/// Reads the body of a copy, which must be whole; false: the connection ended within it.
async fn take_body(
    world: &World,
    link: &mut Link,
    head: &Head,
    plan: &Plan,
) -> Result<bool, Finding> {
    let mut body = BodyReader::of_request(head);
    let mut checker = Checker::new(world.key, plan.id, Part::RequestBody);
    let found = |link: &Link, what: String| {
        Finding::new(format!("a copy with {what}"), plan.id).with(link.recent())
    };
    loop {
        let (length, step) = body.step(link.input()).map_err(|what| found(link, what))?;
        match step {
            Step::Data(data) => checker.take(data).map_err(|what| found(link, what))?,
            Step::End(_) if checker.offset() == plan.body.bytes => {
                link.take(length);
                return Ok(true);
            }
            Step::End(_) => {
                let what = format!("{} of {} bytes", checker.offset(), plan.body.bytes);
                return Err(found(link, what));
            }
            Step::More if link.has_ended() => return Ok(false),
            Step::More if link.still() > world.profile.stuck => {
                return Err(found(link, "a body that does not come".to_owned()));
            }
            Step::More => {
                link.turn(UNTIL_EVENT).await;
                continue;
            }
        }
        link.take(length);
    }
}
