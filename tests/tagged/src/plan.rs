//! The course of an exchange: drawn from the seed and the number, so that client and member derive
//! the same from the number alone.

use std::time::Duration;

use weir_testing::Random;

use crate::place::{Place, Server, Version};
use crate::profile::Profile;
use crate::tag::Id;

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Repeatable.
    Get,
    /// The same, without the body of the response.
    Head,
    /// Repeatable, with a body.
    Put,
    /// Repeatable, mostly without a body.
    Delete,
    /// Not repeatable, with a body.
    Post,
}

impl Method {
    /// Its name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Post => "POST",
        }
    }
}

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// Content-Length.
    Length,
    /// Chunks; over HTTP/2 no Content-Length.
    Chunked,
    /// The end of the connection; over HTTP/2 no Content-Length.
    UntilClose,
}

/// A body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// Its framing.
    pub framing: Framing,
    /// Its length.
    pub bytes: usize,
    /// Trailers come behind it.
    pub has_trailers: bool,
}

/// Above this length a body is refused where limits are tested.
pub const SMALL_BODY_BYTES_MAX: usize = 1_024;

/// Longer bodies are not held where rules inspect them.
pub const HELD_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Percentage of clients that fill the window, among those that send early into a tunnel.
const LONG_AHEAD_PERCENT: usize = 10;
/// Weir sends a window update when half of the window was used, and that is less.
const LONG_AHEAD_BYTES_MIN: usize = 150_000;

const EMPTY: Body = Body { framing: Framing::Empty, bytes: 0, has_trailers: false };

/// The action of rules on a request; the second segment of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing but choosing the pool.
    Plain,
    /// Another location.
    Redirect,
    /// 403.
    Respond,
    /// The connection closes.
    Close,
    /// The connection is reset.
    Reset,
    /// Another path, query and host; fields set, added and removed, of request and response.
    Rewrite,
    /// 429 above a rate.
    Limited,
    /// Delayed above a rate, and 429 if that took too long.
    Delayed,
    /// The connection closes above a rate.
    Shut,
}

impl Rule {
    /// Its name in the path.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Redirect => "redirect",
            Self::Respond => "respond",
            Self::Close => "close",
            Self::Reset => "reset",
            Self::Rewrite => "rewrite",
            Self::Limited => "limited",
            Self::Delayed => "delayed",
            Self::Shut => "shut",
        }
    }
}

/// The flaw of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A space before a colon; over HTTP/2 an upper-case name.
    Name,
    /// A control character in a value.
    Value,
    /// Contradicting lengths; over HTTP/2 a connection-specific field.
    Framing,
    /// An unknown expectation.
    Expectation,
    /// A head above the limit.
    LargeHead,
    /// An invalid chunk; over HTTP/2 less data than announced.
    Data,
    /// A body above the limit.
    LargeBody,
    /// Not HTTP at all; over HTTP/2 data on a stream that was never opened.
    Garbage,
}

/// How a side breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// The connection is reset; of HTTP/2 the stream.
    Reset,
    /// The connection closes; of HTTP/2 the stream is reset as well, with another code.
    Close,
    /// The connection is half-closed; of HTTP/2 reset as a whole.
    Half,
    /// Nothing more is sent, and no end either.
    Stall,
}

/// Where a client breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After this part of its request, in thousandths.
    Sent(usize),
    /// After this many bytes of the response.
    Received(usize),
}

/// A member's action on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It answers once the request is complete.
    Answer,
    /// It answers before the body of the request, and reads that afterwards.
    Early,
    /// It ends without a byte of a response: the first time, or every time.
    Silent {
        /// It answers the repeated request.
        is_once: bool,
        /// How it ends.
        by: Break,
    },
    /// It breaks off within its response, after this many thousandths of it.
    Cut {
        /// How much of it goes out.
        permille: usize,
        /// How it breaks off.
        by: Break,
    },
    /// Its response is malformed, from this many thousandths of it on.
    Garbled {
        /// The valid part of it.
        permille: usize,
    },
    /// It never answers.
    Stall,
}

/// A member's response.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Body,
    /// Interim responses (103) before it.
    pub interim: usize,
    /// It is of a type that is compressed.
    pub is_text: bool,
    /// It has a Date.
    pub has_date: bool,
    /// Fields of its own.
    pub fields: usize,
    /// It is the last on its connection.
    pub closes: bool,
}

/// Bytes in both directions, after a WebSocket handshake or on a relayed connection.
#[derive(Debug, Clone, Copy)]
pub struct Tunnel {
    /// From the client.
    pub up: usize,
    /// From the member.
    pub down: usize,
    /// The client breaks off instead of ending.
    pub client_breaks: bool,
    /// The member breaks off instead of ending.
    pub member_breaks: bool,
    /// The HTTP/2 member ends its connection when it has ended its half.
    pub member_leaves: bool,
    /// The HTTP/1 member answers as if no tunnel had been requested.
    pub is_ignored: bool,
    /// Bytes of its half that an HTTP/2 client sends before the member has accepted.
    pub ahead: usize,
    /// A client that breaks off on a stream does so by trailers, which a tunnel cannot have.
    pub has_trailers: bool,
}

/// Clients' values of Accept-Encoding.
pub const ACCEPTS: [&str; 10] = [
    "gzip",
    "br",
    "zstd",
    "gzip, br, zstd",
    "deflate, gzip;q=0.5, br;q=0.9",
    "gzip;q=0, br;q=0, zstd",
    "zstd;q=0, *",
    "identity",
    "*;q=0, gzip",
    "gzip;q=0, br;q=0.0, zstd;q=0.000",
];

/// Whether a client with this value accepts a coding (RFC 9110 section 12.5.3).
pub fn takes(accepts: &str, coding: &str) -> bool {
    let of = |name: &str| {
        let parts = accepts.split(", ").map(|part| part.split_once(";q=").unwrap_or((part, "1")));
        parts.filter(|(it, _)| *it == name).map(|(_, weight)| weight).next()
    };
    let weight = of(coding).or_else(|| of("*"));
    weight.is_some_and(|weight| weight.bytes().any(|digit| matches!(digit, b'1'..=b'9')))
}

/// All of an exchange.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its number.
    pub id: Id,
    /// Its place.
    pub place: Place,
    /// The method.
    pub method: Method,
    /// The request is one of HTTP/1.0.
    pub is_old: bool,
    /// The client announces that it is its last.
    pub closes: bool,
    /// The request's body.
    pub body: Body,
    /// The client waits for 100 before it sends the body.
    pub expects: bool,
    /// It waits for long.
    pub is_patient: bool,
    /// Further fields of the request.
    pub fields: usize,
    /// Blocks in each of these, and in those of the response.
    pub field_blocks: usize,
    /// The codings that the client can decode.
    pub accepts: Option<&'static str>,
    /// The rules' action.
    pub rule: Rule,
    /// The flaw of the request.
    pub flaw: Option<Flaw>,
    /// How the client breaks off.
    pub abort: Option<(At, Break)>,
    /// The member's action.
    pub deed: Deed,
    /// The member's response.
    pub answer: Answer,
    /// The member's delay.
    pub delay: Duration,
    /// It is a WebSocket, or a relayed connection.
    pub tunnel: Option<Tunnel>,
}

/// The possible outcomes of an exchange, as its client sees it.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// The member's complete response.
    pub whole: bool,
    /// The member's response, cut.
    pub cut: bool,
    /// The end of the connection, or of the stream, without a response.
    pub silence: bool,
    /// A response of weir's own with one of these statuses.
    pub own: Vec<u16>,
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

impl Plan {
    /// The plan of the exchange with this number, if there can be one.
    pub fn of(seed: u64, profile: &Profile, id: Id) -> Option<Self> {
        let place = Place::of(id)?;
        let mut random = Random::new(seed ^ id.0.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let random = &mut random;
        let mut plan = Self {
            id,
            place,
            method: Method::Get,
            is_old: false,
            closes: false,
            body: EMPTY,
            expects: false,
            is_patient: random.percent(50),
            fields: 1 + random.below(4),
            field_blocks: if random.percent(3) { 30 } else { 1 + random.below(4) },
            accepts: None,
            rule: Rule::Plain,
            flaw: None,
            abort: None,
            deed: Deed::Answer,
            answer: Answer {
                status: 200,
                body: EMPTY,
                interim: 0,
                is_text: random.percent(70),
                has_date: random.percent(50),
                fields: 1 + random.below(3),
                closes: false,
            },
            delay: Duration::ZERO,
            tunnel: None,
        };
        if place.server == Server::Relay {
            plan.draw_tunnel(profile, random);
            return Some(plan);
        }
        plan.draw_rule(random);
        if random.percent(4) && plan.rule == Rule::Plain {
            plan.draw_tunnel(profile, random);
        } else {
            plan.draw_request(profile, random);
            plan.draw_answer(profile, random);
            plan.draw_deed(random);
            plan.draw_flaw(random);
        }
        plan.draw_abort(random);
        if profile.is_direct {
            plan.make_direct();
        }
        Some(plan)
    }

    /// Removes everything that only weir makes possible between a client and a member.
    fn make_direct(&mut self) {
        (self.is_old, self.closes, self.rule, self.flaw) = (false, false, Rule::Plain, None);
        if self.deed != Deed::Early {
            self.deed = Deed::Answer;
        }
        self.abort = None;
        if let Some(tunnel) = &mut self.tunnel {
            (tunnel.member_leaves, tunnel.is_ignored) = (false, false);
            // Later bytes after a break are ignored.
            (tunnel.client_breaks, tunnel.member_breaks) = (false, false);
        }
        if self.answer.body.framing == Framing::UntilClose {
            self.answer.body.framing = Framing::Length;
        }
    }

    fn draw_rule(&mut self, random: &mut Random) {
        if self.place.server != Server::Policies {
            return;
        }
        let ends_connection = self.place.client == Version::Http1 || self.place.is_fragile;
        self.rule = match random.below(100) {
            0..10 => Rule::Redirect,
            10..20 => Rule::Respond,
            20..28 if ends_connection => Rule::Close,
            28..32 if ends_connection => Rule::Reset,
            32..60 => Rule::Rewrite,
            60..65 => Rule::Limited,
            65..72 => Rule::Delayed,
            72..78 if ends_connection => Rule::Shut,
            _ => Rule::Plain,
        };
    }

    fn draw_tunnel(&mut self, profile: &Profile, random: &mut Random) {
        let breaks = random.percent(30);
        // A member that breaks off may look as if it had not answered, and then another is tried.
        let client_breaks = breaks && (random.percent(50) || self.place.server == Server::Sourced);
        let member = (self.place.server != Server::Relay).then_some(self.place.member);
        let is_ignored = member == Some(Version::Http1) && random.percent(15);
        // Now and then more than the windows of streams.
        let mut length = || match random.percent(25) {
            true => 2_000 + random.below(20_000),
            false => profile.length(random),
        };
        let (mut up, down) = (length(), length());
        let is_ahead = random.percent(30);
        let mut ahead = if is_ahead { up / 3 } else { 0 };
        if is_ahead && !client_breaks && random.percent(LONG_AHEAD_PERCENT) {
            up = LONG_AHEAD_BYTES_MIN + random.below(LONG_AHEAD_BYTES_MIN);
            ahead = up;
        }
        self.tunnel = Some(Tunnel {
            up,
            down,
            client_breaks,
            member_breaks: breaks && !client_breaks,
            member_leaves: member == Some(Version::Http2) && !breaks && random.percent(30),
            is_ignored,
            ahead,
            has_trailers: random.percent(30),
        });
        if is_ignored {
            let bytes = profile.length(random);
            self.answer.body = Body { framing: Framing::Length, bytes, has_trailers: false };
        }
    }

    fn draw_request(&mut self, profile: &Profile, random: &mut Random) {
        let is_http1 = self.place.client == Version::Http1;
        self.is_old = is_http1 && random.percent(4);
        self.closes = is_http1 && (self.is_old || random.percent(4));
        self.method = match random.below(100) {
            0..40 => Method::Get,
            // On a refused connection, weir cannot know that the method was HEAD.
            40..45 if self.place.server != Server::Limits => Method::Head,
            45..65 => Method::Put,
            65..70 => Method::Delete,
            _ => Method::Post,
        };
        if matches!(self.method, Method::Put | Method::Post) {
            let framing = match random.percent(50) && !self.is_old {
                true => Framing::Chunked,
                false => Framing::Length,
            };
            let has_trailers = framing == Framing::Chunked && random.percent(25);
            self.body = Body { framing, bytes: profile.length(random), has_trailers };
            // A queued request waits with its body.
            let share = if self.place.server == Server::Queue { 25 } else { 8 };
            self.expects = !self.is_old && self.body.bytes > 0 && random.percent(share);
        }
        if self.place.server == Server::Compressed && random.percent(85) {
            self.accepts = Some(pick(random, &ACCEPTS));
        }
    }

    fn draw_answer(&mut self, profile: &Profile, random: &mut Random) {
        let status = match random.below(100) {
            0..5 => 204,
            5..9 => 304,
            9..15 => 404,
            15..20 => 503,
            20..25 => 201,
            _ => 200,
        };
        let is_bare = matches!(status, 204 | 304);
        let framing = match random.below(100) {
            _ if is_bare => Framing::Empty,
            0..45 => Framing::Length,
            45..85 => Framing::Chunked,
            _ => Framing::UntilClose,
        };
        let is_trailed = framing == Framing::Chunked && self.method != Method::Head;
        let has_trailers = is_trailed && random.percent(30);
        let bytes = if is_bare { 0 } else { profile.length(random) };
        let body = Body { framing, bytes, has_trailers };
        let interim = if random.percent(12) { 1 + random.below(3) } else { 0 };
        let closes = framing == Framing::UntilClose || random.percent(4);
        self.answer = Answer { status, body, interim, closes, ..self.answer };
        if random.percent(25) {
            self.delay = profile.pause(random, 4_000);
        }
    }

    fn draw_deed(&mut self, random: &mut Random) {
        let by = pick(random, &[Break::Reset, Break::Close]);
        let is_rough = self.place.server == Server::Rough;
        self.deed = match random.below(100) {
            0..6 if self.body.framing != Framing::Empty => Deed::Early,
            // A repeated request is at another member then.
            6..16 if self.place.server == Server::Sourced => Deed::Answer,
            6..9 => Deed::Silent { is_once: true, by },
            9..11 => Deed::Silent { is_once: false, by },
            11..16 => {
                // The end of a connection would be that of the body.
                let is_closed = self.answer.body.framing == Framing::UntilClose;
                let by = if is_closed { Break::Reset } else { by };
                Deed::Cut { permille: random.below(1_000), by }
            }
            16..19 => Deed::Garbled { permille: random.below(1_000) },
            19..22 if is_rough => Deed::Stall,
            _ => Deed::Answer,
        };
        // Some refuse the rest, and close after that response.
        self.answer.closes |= self.deed == Deed::Early && random.percent(40);
    }

    fn draw_flaw(&mut self, random: &mut Random) {
        if !random.percent(5) || self.rule != Rule::Plain {
            return;
        }
        let flaw = pick(
            random,
            &[
                Flaw::Name,
                Flaw::Value,
                Flaw::Framing,
                Flaw::Expectation,
                Flaw::LargeHead,
                Flaw::Data,
                Flaw::LargeBody,
                Flaw::Garbage,
            ],
        );
        if flaw == Flaw::Garbage && self.place.client == Version::Http2 && !self.place.is_fragile {
            return; // It ends the connection.
        }
        self.flaw = Some(flaw);
        (self.is_old, self.expects) = (false, false);
        let bytes = 1 + random.below(3_000);
        match flaw {
            Flaw::Data => {
                let framing = match self.place.client {
                    Version::Http1 => Framing::Chunked,
                    Version::Http2 => Framing::Length,
                };
                self.method = Method::Post;
                self.body = Body { framing, bytes, has_trailers: false };
                self.deed = Deed::Answer;
            }
            Flaw::LargeBody => {
                self.method = Method::Post;
                self.body = Body { framing: Framing::Length, bytes, has_trailers: false };
                self.deed = Deed::Answer;
            }
            _ => {
                self.method = Method::Get;
                self.body = EMPTY;
            }
        }
    }

    fn draw_abort(&mut self, random: &mut Random) {
        if self.flaw.is_some() {
            return;
        }
        if self.place.server == Server::Rough && random.percent(4) {
            self.abort = Some((At::Sent(random.below(1_000)), Break::Stall));
            return;
        }
        let share = if self.place.server == Server::Queue { 25 } else { 4 };
        let is_plain = self.place.client == Version::Http1 && self.tunnel.is_none();
        if is_plain && random.percent(share) {
            // It has sent everything, and waits for its answer.
            self.abort = Some((At::Sent(1_000), Break::Half));
            return;
        }
        if !self.place.is_fragile || !random.percent(25) {
            return;
        }
        let at = match random.percent(60) {
            true => At::Sent(random.below(1_001)),
            false => At::Received(random.below(2 * self.answer.body.bytes + 300)),
        };
        self.abort = Some((at, pick(random, &[Break::Reset, Break::Close, Break::Half])));
    }

    /// Whether its body is held until rules have inspected it: then weir itself sends 100 to a
    /// waiting client.
    pub fn is_held(&self) -> bool {
        let is_announced_long =
            self.body.framing == Framing::Length && self.body.bytes > HELD_BODY_BYTES_MAX;
        let has_body = match self.body.framing {
            Framing::Empty => false,
            Framing::Length => self.body.bytes > 0,
            Framing::Chunked | Framing::UntilClose => true,
        };
        self.place.server == Server::Guarded && has_body && !is_announced_long
    }

    /// Whether its member has to send 100.
    pub fn awaits_member(&self) -> bool {
        self.expects && !self.is_held()
    }

    /// Whether a member may see the request more than once. Requests reported as unprocessed do not
    /// count.
    pub fn may_repeat(&self) -> bool {
        let is_unread = self.place.member == Version::Http2
            && matches!(self.deed, Deed::Silent { by: Break::Close, .. });
        self.method != Method::Post || self.place.server == Server::Rough || is_unread
    }

    /// Whether the request may reach a member only in part.
    pub fn may_be_cut(&self) -> bool {
        let is_flawed =
            matches!(self.flaw, Some(Flaw::Data | Flaw::LargeBody)) || self.is_too_large();
        !self.place.is_calm() || is_flawed || self.deed != Deed::Answer
    }

    /// Whether its body is above the limit of its virtual server.
    pub fn is_too_large(&self) -> bool {
        self.place.server == Server::Limits && self.body.bytes > SMALL_BODY_BYTES_MAX
    }

    /// Whether it may be the last of its connection, by its outcome.
    pub fn may_end_connection(&self) -> bool {
        matches!(self.rule, Rule::Close | Rule::Reset | Rule::Shut)
    }

    /// Whether the request may reach a member at all.
    pub fn may_reach_member(&self) -> bool {
        let is_sound = matches!(self.flaw, None | Some(Flaw::Data));
        let is_answered =
            matches!(self.rule, Rule::Redirect | Rule::Respond | Rule::Close | Rule::Reset);
        let is_announced = self.is_too_large() && self.body.framing == Framing::Length;
        is_sound && !is_answered && !is_announced
    }

    /// Its possible outcomes.
    pub fn allowed(&self) -> Allowed {
        let mut allowed = Allowed { whole: true, ..Allowed::default() };
        match self.rule {
            Rule::Plain | Rule::Rewrite => {}
            Rule::Redirect => allowed = Allowed { own: vec![301], ..Allowed::default() },
            Rule::Respond => allowed = Allowed { own: vec![403], ..Allowed::default() },
            Rule::Close | Rule::Reset => {
                allowed = Allowed { silence: true, ..Allowed::default() };
            }
            Rule::Limited | Rule::Delayed => allowed.own.push(429),
            Rule::Shut => allowed.silence = true,
        }
        if let Some(flaw) = self.flaw {
            allowed = self.allowed_with(flaw);
        }
        match self.deed {
            Deed::Answer | Deed::Early => {}
            _ if self.flaw.is_some() || !allowed.whole => {}
            Deed::Silent { is_once, .. } => {
                allowed.whole = is_once;
                allowed.own.push(502);
            }
            Deed::Cut { .. } | Deed::Garbled { .. } => {
                (allowed.whole, allowed.cut) = (false, true);
                allowed.own.push(502);
            }
            Deed::Stall => {
                allowed.whole = false;
                allowed.own.push(504);
            }
        }
        if self.place.client == Version::Http2 && self.place.is_fragile {
            (allowed.cut, allowed.silence) = (true, true);
        }
        // Trailers are not kept for another HTTP/2 member if the first is unreachable.
        if self.body.has_trailers && self.place.member == Version::Http2 && allowed.whole {
            allowed.own.push(502);
        }
        // Only HTTP/1.1 allows a plain answer to an upgrade.
        let is_on_stream = self.place.client == Version::Http2;
        if is_on_stream && self.tunnel.is_some_and(|tunnel| tunnel.is_ignored) {
            allowed.whole = false;
            allowed.own.push(502);
        }
        // A reset may destroy bytes sent before it.
        if self.tunnel.is_some_and(|tunnel| tunnel.member_breaks) {
            allowed.own.push(502);
        }
        match self.place.server {
            Server::Queue => {
                allowed.own.push(503);
                // A client that has half-closed gives up its place there.
                let is_half_closed = matches!(self.abort, Some((_, Break::Half)));
                allowed.silence |= is_half_closed && self.place.member == Version::Http2;
            }
            Server::Kept | Server::Sourced => allowed.own.push(503),
            Server::Limits => {
                allowed.own.extend([429, 503]);
                if self.is_too_large() {
                    // The early answer of a member may be followed by 413, or not.
                    let may_come =
                        self.body.framing == Framing::Chunked && self.deed == Deed::Early;
                    allowed.own.push(413);
                    (allowed.whole, allowed.cut) = (may_come, may_come);
                }
            }
            Server::Rough => {
                allowed.own.extend([408, 502, 503, 504]);
                (allowed.cut, allowed.silence) = (true, true);
            }
            _ => {}
        }
        allowed
    }

    fn allowed_with(&self, flaw: Flaw) -> Allowed {
        let is_http1 = self.place.client == Version::Http1;
        let own = match flaw {
            Flaw::Expectation => vec![417],
            Flaw::LargeHead => vec![431],
            Flaw::LargeBody => vec![413],
            Flaw::Garbage if is_http1 => vec![400, 501],
            _ if is_http1 => vec![400],
            // In HTTP/2 that stream is reset.
            _ => vec![],
        };
        let silence = own.is_empty();
        Allowed { own, silence, ..Allowed::default() }
    }
}
