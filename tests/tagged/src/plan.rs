//! The plan of an exchange. It is derived from the seed and the number, so client and member know it from the number alone.

use std::time::Duration;

use weir_testing::Random;

use crate::place::{Place, Server, Version};
use crate::profile::Profile;
use crate::tag::Id;

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET: may be retried.
    Get,
    /// HEAD: may be retried; the response has no body.
    Head,
    /// PUT: may be retried, with a body.
    Put,
    /// DELETE: may be retried, mostly without a body.
    Delete,
    /// POST: must not be retried, with a body.
    Post,
}

impl Method {
    /// The name of the method.
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

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    Empty,
    /// Content-Length.
    Length,
    /// Chunked; with HTTP/2, without Content-Length.
    Chunked,
    /// Until the close of the connection; with HTTP/2, without Content-Length.
    UntilClose,
}

/// A body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The framing.
    pub framing: Framing,
    /// The length in bytes.
    pub bytes: usize,
    /// Whether trailers follow.
    pub has_trailers: bool,
}

/// `body_size_max` of the virtual server [`Server::Limits`].
pub const SMALL_BODY_BYTES_MAX: usize = 1_024;

/// Maximum size of a body that weir holds until rules have inspected it.
pub const HELD_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Percentage of clients that send their whole half, of those that send before the member accepts the tunnel.
const LONG_AHEAD_PERCENT: usize = 10;
/// Minimum length of the half of a tunnel that these clients send: more than the half of a window after which weir sends a
/// window update.
const LONG_AHEAD_BYTES_MIN: usize = 150_000;

const EMPTY: Body = Body { framing: Framing::Empty, bytes: 0, has_trailers: false };

/// The action of rules on a request. It is the second segment of the request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Only the selection of the pool.
    Plain,
    /// A redirect.
    Redirect,
    /// 403.
    Respond,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
    /// Path, query and host are rewritten. Fields of request and response are set, added and removed.
    Rewrite,
    /// 429 above a rate limit.
    Limited,
    /// Delayed above a rate limit, and 429 above the maximum delay.
    Delayed,
    /// The connection is closed above a rate limit.
    Shut,
}

impl Rule {
    /// The path segment.
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

/// A flaw of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A space before a colon; with HTTP/2, an upper-case header name.
    Name,
    /// A control character in a header value.
    Value,
    /// Contradictory framing; with HTTP/2, a connection-specific header.
    Framing,
    /// An unknown expectation.
    Expectation,
    /// A head above the limit.
    LargeHead,
    /// An invalid chunk; with HTTP/2, less data than Content-Length.
    Data,
    /// A body above the limit.
    LargeBody,
    /// Not HTTP at all; with HTTP/2, data on an idle stream.
    Garbage,
}

/// How a side breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// A reset of the connection; with HTTP/2, of the stream.
    Reset,
    /// A close of the connection; with HTTP/2, a reset of the stream (by a member: with REFUSED_STREAM).
    Close,
    /// A half-close of the connection; with HTTP/2, a reset of the connection.
    Half,
    /// Silence without an end.
    Stall,
}

/// The position at which a client breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After this part of the request, in per mille.
    Sent(usize),
    /// After this number of bytes of the response.
    Received(usize),
}

/// A member's action on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The member responds when the request is complete.
    Answer,
    /// The member responds before the body of the request, and then reads the body.
    Early,
    /// The member ends without a response: on the first arrival of the request, or on every one.
    Silent {
        /// Whether it responds to the retried request.
        is_once: bool,
        /// How it ends.
        by: Break,
    },
    /// The member breaks off within its response.
    Cut {
        /// The part of the response that is sent, in per mille.
        permille: usize,
        /// How it breaks off.
        by: Break,
    },
    /// The member sends a malformed response.
    Garbled {
        /// Selects the kind of the error.
        permille: usize,
    },
    /// The member never responds.
    Stall,
    /// A member with HTTP/2 sends all of its Content-Length and breaks off in the place of END_STREAM. The response is whole,
    /// and no reason to end the connection of its client.
    Unended,
}

/// The reaction of the authorisation service to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceDeed {
    /// It accepts the request.
    LetIn,
    /// It refuses the request with 403.
    Deny,
    /// It responds with 500.
    Fail,
    /// It ends the connection without a response.
    Break(Break),
    /// It never responds.
    Stall,
}

/// A member's response.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Body,
    /// The number of interim responses (103) before it.
    pub interim: usize,
    /// Whether its content type is one that weir compresses.
    pub is_text: bool,
    /// Whether it has a Date.
    pub has_date: bool,
    /// The number of tagged headers.
    pub fields: usize,
    /// Whether the member closes the connection after it.
    pub closes: bool,
}

/// A tunnel: the bytes in both directions after a WebSocket handshake or on a relayed connection.
#[derive(Debug, Clone, Copy)]
pub struct Tunnel {
    /// The number of bytes from the client.
    pub up: usize,
    /// The number of bytes from the member.
    pub down: usize,
    /// Whether the client breaks off.
    pub client_breaks: bool,
    /// Whether the member breaks off.
    pub member_breaks: bool,
    /// Whether an HTTP/2 member closes its connection after its half of the tunnel.
    pub member_leaves: bool,
    /// Whether an HTTP/1 member ignores the upgrade and sends a plain response.
    pub is_ignored: bool,
    /// The number of bytes that an HTTP/2 client sends before the member has accepted the tunnel.
    pub ahead: usize,
    /// Whether an HTTP/2 client breaks off by trailers, which a tunnel cannot have.
    pub has_trailers: bool,
}

/// The clients' values of Accept-Encoding.
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

/// The plan of an exchange.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The number of the exchange.
    pub id: Id,
    /// The place.
    pub place: Place,
    /// The method.
    pub method: Method,
    /// Whether the request is HTTP/1.0.
    pub is_old: bool,
    /// Whether the client announces that this is the last request of its connection.
    pub closes: bool,
    /// The body of the request.
    pub body: Body,
    /// Whether the client waits for 100 before it sends the body.
    pub expects: bool,
    /// Whether the client waits a long time for 100.
    pub is_patient: bool,
    /// The number of tagged headers of the request.
    pub fields: usize,
    /// The number of blocks in each tagged header of request and response.
    pub field_blocks: usize,
    /// The client's value of Accept-Encoding.
    pub accepts: Option<&'static str>,
    /// The action of rules.
    pub rule: Rule,
    /// The flaw of the request, if any.
    pub flaw: Option<Flaw>,
    /// Where and how the client breaks off, if at all.
    pub abort: Option<(At, Break)>,
    /// The reaction of the authorisation service, if there is one.
    pub service: ServiceDeed,
    /// The member's action.
    pub deed: Deed,
    /// The member's response.
    pub answer: Answer,
    /// The delay of the member's response.
    pub delay: Duration,
    /// The tunnel, if this is a WebSocket or a relayed connection.
    pub tunnel: Option<Tunnel>,
}

/// The valid outcomes of an exchange for its client.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// The complete response of the member.
    pub whole: bool,
    /// An incomplete response.
    pub cut: bool,
    /// The end of the connection or of the stream without a response.
    pub silence: bool,
    /// The statuses of valid responses of weir itself.
    pub own: Vec<u16>,
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

impl Plan {
    /// The plan of the exchange with this number; `None`: no valid number.
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
            service: ServiceDeed::LetIn,
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
        plan.draw_service(random);
        if profile.is_direct {
            plan.make_direct();
        }
        Some(plan)
    }

    /// Removes the features that require weir between client and member.
    fn make_direct(&mut self) {
        (self.is_old, self.closes, self.rule, self.flaw) = (false, false, Rule::Plain, None);
        if self.deed != Deed::Early {
            self.deed = Deed::Answer;
        }
        self.abort = None;
        if let Some(tunnel) = &mut self.tunnel {
            (tunnel.member_leaves, tunnel.is_ignored) = (false, false);
            // The checks ignore the bytes after a break.
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
        // After a break of the member, weir may retry at another member, which a client with persistence by address would
        // notice.
        let client_breaks = breaks && (random.percent(50) || self.place.server == Server::Sourced);
        let member = (self.place.server != Server::Relay).then_some(self.place.member);
        let is_ignored = member == Some(Version::Http1) && random.percent(15);
        // In some cases, more than the windows of streams.
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
            // weir rejects a connection above the limit without reading the method.
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
            // A request in the queue does not get 100.
            let share = if self.place.server == Server::Queue { 25 } else { 8 };
            self.expects = !self.is_old && self.body.bytes > 0 && random.percent(share);
        }
        let is_compressed = matches!(self.place.server, Server::Compressed | Server::Rewritten);
        if is_compressed && random.percent(85) {
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
        let is_copied = self.place.server == Server::Asked;
        self.deed = match random.below(100) {
            // What is stored for a copy is dropped then.
            0..30 if is_copied && self.body.framing != Framing::Empty => Deed::Early,
            0..6 if self.body.framing != Framing::Empty => Deed::Early,
            // A retry goes to another member, which changes the persistence of the client.
            6..16 if self.place.server == Server::Sourced => Deed::Answer,
            6..9 => Deed::Silent { is_once: true, by },
            9..11 => Deed::Silent { is_once: false, by },
            11..16 => {
                // A close of the connection would be the valid end of the body.
                let is_closed = self.answer.body.framing == Framing::UntilClose;
                let by = if is_closed { Break::Reset } else { by };
                Deed::Cut { permille: random.below(1_000), by }
            }
            16..19 => Deed::Garbled { permille: random.below(1_000) },
            19..22 if is_rough => Deed::Stall,
            22..27 if self.is_long_on_stream() => Deed::Unended,
            _ => Deed::Answer,
        };
        // Some members refuse the rest of the body, and close after the response.
        self.answer.closes |= self.deed == Deed::Early && random.percent(40);
    }

    /// Whether a member with HTTP/2 announces the length of its response.
    fn is_long_on_stream(&self) -> bool {
        let body = self.answer.body;
        let is_announced = body.framing == Framing::Length && body.bytes > 0;
        self.place.member == Version::Http2 && is_announced && self.method != Method::Head
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
            return; // This flaw ends the connection.
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
            // The client has sent the whole request, and waits for the response.
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

    fn draw_service(&mut self, random: &mut Random) {
        // weir itself refuses a flawed request, sooner or later.
        if self.place.server != Server::Asked || self.flaw.is_some() {
            return;
        }
        self.service = match random.below(100) {
            0..60 => ServiceDeed::LetIn,
            60..74 => ServiceDeed::Deny,
            74..80 => ServiceDeed::Fail,
            80..86 => ServiceDeed::Break(pick(random, &[Break::Reset, Break::Close])),
            _ => ServiceDeed::Stall,
        };
    }

    /// Whether weir holds the body until rules have inspected it. Then weir itself sends 100 to a client that waits for it.
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

    /// Whether members may receive the request more than once. Requests that a member reports as unprocessed do not count.
    pub fn may_repeat(&self) -> bool {
        let is_unread = self.place.member == Version::Http2
            && matches!(self.deed, Deed::Silent { by: Break::Close, .. });
        self.method != Method::Post || self.place.server == Server::Rough || is_unread
    }

    /// Whether a member may receive only a part of the request.
    pub fn may_be_cut(&self) -> bool {
        let is_flawed =
            matches!(self.flaw, Some(Flaw::Data | Flaw::LargeBody)) || self.is_too_large();
        !self.place.is_calm() || is_flawed || self.deed != Deed::Answer
    }

    /// Whether the body exceeds the limit of the virtual server.
    pub fn is_too_large(&self) -> bool {
        self.place.server == Server::Limits && self.body.bytes > SMALL_BODY_BYTES_MAX
    }

    /// Whether the action of rules may end the connection.
    pub fn may_end_connection(&self) -> bool {
        matches!(self.rule, Rule::Close | Rule::Reset | Rule::Shut)
    }

    /// Whether a member may receive the request at all.
    pub fn may_reach_member(&self) -> bool {
        let is_sound = matches!(self.flaw, None | Some(Flaw::Data));
        let is_answered =
            matches!(self.rule, Rule::Redirect | Rule::Respond | Rule::Close | Rule::Reset);
        let is_announced = self.is_too_large() && self.body.framing == Framing::Length;
        is_sound && !is_answered && !is_announced && self.service == ServiceDeed::LetIn
    }

    /// Whether text in the body of the response is replaced, if it has one.
    pub fn is_rewritten(&self) -> bool {
        self.place.server == Server::Rewritten && self.answer.is_text
    }

    /// The valid outcomes.
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
        match self.service {
            ServiceDeed::LetIn => {}
            ServiceDeed::Deny => allowed = Allowed { own: vec![403], ..Allowed::default() },
            ServiceDeed::Fail | ServiceDeed::Break(_) | ServiceDeed::Stall => {
                allowed = Allowed { own: vec![503], ..Allowed::default() };
            }
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
            Deed::Unended => {}
            Deed::Stall => {
                allowed.whole = false;
                allowed.own.push(504);
            }
        }
        if self.place.client == Version::Http2 && self.place.is_fragile {
            (allowed.cut, allowed.silence) = (true, true);
        }
        // weir does not store the trailers for a retry at another HTTP/2 member if the first one is unreachable.
        if self.body.has_trailers && self.place.member == Version::Http2 && allowed.whole {
            allowed.own.push(502);
        }
        // Only HTTP/1.1 allows a plain response to an upgrade.
        let is_on_stream = self.place.client == Version::Http2;
        if is_on_stream && self.tunnel.is_some_and(|tunnel| tunnel.is_ignored) {
            allowed.whole = false;
            allowed.own.push(502);
        }
        // A reset may destroy bytes that were sent before it.
        if self.tunnel.is_some_and(|tunnel| tunnel.member_breaks) {
            allowed.own.push(502);
        }
        self.allow_at_server(&mut allowed);
        allowed
    }

    /// Adds the outcomes that its virtual server makes valid.
    fn allow_at_server(&self, allowed: &mut Allowed) {
        match self.place.server {
            Server::Queue => {
                allowed.own.push(503);
                // The pool of HTTP/2 members removes a half-closed client from its queue.
                let is_half_closed = matches!(self.abort, Some((_, Break::Half)));
                allowed.silence |= is_half_closed && self.place.member == Version::Http2;
            }
            Server::Kept | Server::Sourced => allowed.own.push(503),
            // A body above the inspected size is refused in some configurations.
            Server::Guarded if self.body.bytes > HELD_BODY_BYTES_MAX => allowed.own.push(413),
            Server::Limits => {
                allowed.own.extend([429, 503]);
                if self.is_too_large() {
                    // 413 may follow the early response of a member or replace it.
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
    }

    fn allowed_with(&self, flaw: Flaw) -> Allowed {
        let is_http1 = self.place.client == Version::Http1;
        let own = match flaw {
            Flaw::Expectation => vec![417],
            Flaw::LargeHead => vec![431],
            Flaw::LargeBody => vec![413],
            Flaw::Garbage if is_http1 => vec![400, 501],
            _ if is_http1 => vec![400],
            // With HTTP/2, weir resets the stream.
            _ => vec![],
        };
        let silence = own.is_empty();
        Allowed { own, silence, ..Allowed::default() }
    }
}
