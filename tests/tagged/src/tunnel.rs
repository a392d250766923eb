//! Bytes in both directions over a connection: relayed connections, and WebSockets over HTTP/1.

use weir_testing::Random;

use crate::link::{End, Link};
use crate::paced::{Paced, Wait};
use crate::place::{Server, Version};
use crate::plan::{Break, Plan, Tunnel};
use crate::tag::{Checker, Part};
use crate::world::{Finding, Kind, World};

/// An end of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client, which sends [`Part::Up`].
    Client,
    /// The member, which sends [`Part::Down`].
    Member,
}

impl Side {
    /// The part that this end sends, its length, and whether this end breaks off.
    pub fn sends(self, tunnel: &Tunnel) -> (Part, usize, bool) {
        match self {
            Self::Client => (Part::Up, tunnel.up, tunnel.client_breaks),
            Self::Member => (Part::Down, tunnel.down, tunnel.member_breaks),
        }
    }

    /// The opposite end.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Member,
            Self::Member => Self::Client,
        }
    }
}

/// Whether a break of one end must reach the other end as a break and not as an orderly end.
pub fn shows_breaks(plan: &Plan) -> bool {
    // An end that half-closes before the tunnel opens has ended in order. A close at that time looks the same.
    match plan.abort {
        Some((_, Break::Half)) => false,
        Some((_, Break::Close)) => plan.place.client != Version::Http1,
        _ => true,
    }
}

/// Counts a tunnel that ended as planned.
pub fn count(world: &World, plan: &Plan, is_broken: bool) {
    let place = plan.place;
    world.count(match (place.server, place.client, place.member) {
        (Server::Relay, ..) if is_broken => Kind::RelayBroken,
        (Server::Relay, ..) => Kind::Relayed,
        _ if is_broken => Kind::TunnelBroken,
        (_, Version::Http1, Version::Http1) => Kind::Http1WebSocketToHttp1,
        (_, Version::Http1, Version::Http2) => Kind::Http1WebSocketToHttp2,
        (_, Version::Http2, Version::Http1) => Kind::Http2WebSocketToHttp1,
        (_, Version::Http2, Version::Http2) => Kind::Http2WebSocketToHttp2,
    });
}

/// Sends and receives until the tunnel has ended.
pub async fn run(
    world: &World,
    link: &mut Link,
    plan: &Plan,
    side: Side,
    random: &mut Random,
) -> Result<(), Finding> {
    let Some(tunnel) = plan.tunnel else { return Ok(()) };
    let (part, length, breaks) = side.sends(&tunnel);
    let (other_part, other_length, _) = side.other().sends(&tunnel);
    let found = |link: &Link, what: String| {
        Finding::new(format!("{side:?} of a tunnel: {what}"), plan.id).with(link.recent())
    };
    let mut paced = Paced::new(world.profile);
    paced.add(&world.key.bytes(plan.id, part, length), Wait::Nothing, random);
    if breaks {
        paced.limit(random.below(length + 1));
    }
    let mut checker = Checker::new(world.key, plan.id, other_part);
    let mut is_finished = false;
    let rest = world.profile.rest(random).filter(|_| random.percent(15));
    if let Some(time) = rest {
        link.hold(time);
    }
    // The other half may end first, and this one continues. A break ends both halves.
    while link.ended().is_none() || (link.ended() == Some(End::Fin) && !is_finished) {
        checker.take(link.input()).map_err(|what| found(link, what))?;
        let taken = link.input().len();
        link.take(taken);
        if checker.offset() > other_length {
            return Err(found(link, format!("{} bytes of {other_length}", checker.offset())));
        }
        let wait = paced.feed(link, |_| true);
        if paced.is_done() && link.queued() == 0 && !is_finished {
            if breaks {
                link.reset();
                count(world, plan, true);
                return Ok(());
            }
            link.finish();
            is_finished = true;
        }
        if link.is_deaf() {
            break;
        }
        if link.still() > world.profile.stuck {
            return Err(found(link, format!("stuck after {} bytes", checker.offset())));
        }
        link.turn(wait).await;
    }
    // Bytes that were received before a break must still be checked.
    while link.fill() && !link.input().is_empty() {
        checker.take(link.input()).map_err(|what| found(link, what))?;
        let taken = link.input().len();
        link.take(taken);
    }
    check_end(world, plan, side, (link.ended(), checker.offset())).map_err(|what| found(link, what))
}

/// Checks the end of a tunnel at this side, and the number of bytes received from the other side.
fn check_end(
    world: &World,
    plan: &Plan,
    side: Side,
    (end, bytes): (Option<End>, usize),
) -> Result<(), String> {
    let Some(tunnel) = plan.tunnel else { return Ok(()) };
    let (_, _, breaks) = side.sends(&tunnel);
    let (_, other_length, other_breaks) = side.other().sends(&tunnel);
    let is_whole = bytes == other_length;
    if side == Side::Member && (is_whole || breaks || other_breaks) {
        world.end(plan.id);
    }
    match end {
        _ if breaks => {}
        Some(End::Fin) if other_breaks && shows_breaks(plan) => {
            return Err(format!("a break is told as an end after {bytes} bytes"));
        }
        _ if other_breaks => count(world, plan, true),
        Some(End::Fin) if is_whole => count(world, plan, false),
        // The tunnel was opened during weir's shutdown.
        _ if side == Side::Client && bytes == 0 && world.is_draining() => {}
        // With other exchanges, the other end may have ended before it had read everything.
        end if plan.place.is_calm() => {
            return Err(format!("{end:?} after {bytes} of {other_length} bytes"));
        }
        _ => {}
    }
    Ok(())
}
