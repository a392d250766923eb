//! The content of a request and its response.

use std::sync::LazyLock;

use weir_http::flaws::Flaws;
use weir_http::h1::{HeadLimits, ParseProgress, parse_request, parse_response_of_member};
use weir_http::message::{Framing, Method, RequestHead, ResponseHead, Version};
use weir_http::path::TargetForm;
use weir_testing::Random;

use super::choices::Choices;
use super::scene::{JUDGED_BYTES_MAX, Server};

/// Maximum number of bytes that each side sends.
pub const BYTES_MAX: usize = 40_000;
/// The number of bytes that each side may send on a stream before window is returned.
pub const WINDOW_BYTES: usize = 16 * 1024;
const LIMITS: HeadLimits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };

/// The field that names a gRPC call, or its response.
const TYPE_OF_CALL: &str = "Content-Type: application/grpc\r\n";

/// The source of body data: random bytes, so that data at a wrong position is detected.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Random::new(1);
    std::iter::repeat_with(|| random.next() as u8).take(4 * BYTES_MAX).collect()
});
/// The number of bytes that show whether a body begins with a gRPC message: a flag, a length, and the tag of a field.
const CALL_BYTES: usize = 6;
/// As [`NOISE`], where each body begins with a message that is longer than the body.
static CALLS: LazyLock<Vec<u8>> = LazyLock::new(|| noise_beginning_with([0, 0, 1, 0, 0, 0x0a]));
/// As [`NOISE`], where each body begins almost as with a message: nobody sends one so long.
static CLAIMS: LazyLock<Vec<u8>> =
    LazyLock::new(|| noise_beginning_with([0, 0xff, 0xff, 0xff, 0xff, 0x0a]));

fn noise_beginning_with(beginning: [u8; CALL_BYTES]) -> Vec<u8> {
    let mut noise = NOISE.clone();
    for number in 0..NUMBERS {
        noise[number * REQUEST_STEP..][..CALL_BYTES].copy_from_slice(&beginning);
    }
    noise
}

/// The numbers of requests that have bytes of their own.
const NUMBERS: usize = 64;
/// The distance of the bodies of two requests in [`NOISE`].
const REQUEST_STEP: usize = 97;

/// The kind of a client's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A request without a body.
    Get,
    /// A HEAD request.
    Head,
    /// A GET request in HTTP/1.0.
    OldGet,
    /// A repeatable request with a body.
    Put,
    /// A non-repeatable request with a body.
    Post,
    /// As [`Self::Post`], with `Expect`: the client waits for a response to the head before it sends the body.
    Expect,
    /// As [`Self::Post`], with the type of a gRPC call.
    Call,
    /// As [`Self::Call`], but the body is none of a call.
    Claim,
    /// A tunnel.
    WebSocket,
}

/// The kinds from which is chosen: tunnels twice, because much can happen in them.
const ASKS: [Ask; 10] = [
    Ask::Get,
    Ask::Head,
    Ask::OldGet,
    Ask::Put,
    Ask::Post,
    Ask::Expect,
    Ask::Call,
    Ask::Claim,
    Ask::WebSocket,
    Ask::WebSocket,
];

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed {
    /// A length that precedes the body.
    Length,
    /// A mark after the last piece.
    Mark,
    /// A mark with trailers.
    Trailers,
    /// The end of the connection. In a request or on a stream, a mark is used instead.
    Close,
}

const FRAMED: [Framed; 4] = [Framed::Length, Framed::Mark, Framed::Trailers, Framed::Close];

/// A body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The length.
    pub bytes: usize,
    /// The size of a piece, as it arrives.
    pub piece: usize,
    /// The framing.
    pub framed: Framed,
}

impl Body {
    fn draw(choices: &mut dyn Choices) -> Self {
        const BYTES: [usize; 7] = [10, 1, 0, 200, 6_000, 20_000, BYTES_MAX];
        const PIECES: [usize; 4] = [7, 100, 5_000, WINDOW_BYTES];
        let bytes = BYTES[choices.below(BYTES.len())];
        // This limits the number of pieces.
        let piece = PIECES[choices.below(PIECES.len())].max(bytes / 40);
        Self { bytes, piece, framed: FRAMED[choices.below(FRAMED.len())] }
    }
}

/// A request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The number of the request, which determines its bytes.
    pub number: usize,
    /// Whether the client uses HTTP/2.
    pub has_http2_client: bool,
    /// Whether the members use HTTP/2.
    pub has_http2_members: bool,
    /// The virtual server that receives the request.
    pub server: Server,
    /// Whether each inspection goes on elsewhere after its first rule.
    pub judges_elsewhere: bool,
    /// The kind of the request.
    pub ask: Ask,
    /// The request's body.
    pub request: Body,
    /// The response.
    pub response: Body,
    /// Whether the member closes its connection after the response.
    pub member_closes: bool,
    /// Whether other requests occupy all places at the members.
    pub others: bool,
    /// The number of connection attempts that fail immediately.
    pub bad_connects: usize,
}

impl Plan {
    /// Chooses a plan.
    pub fn draw(choices: &mut dyn Choices, number: usize) -> Self {
        let mut plan = Self {
            number,
            has_http2_client: choices.below(2) == 1,
            has_http2_members: choices.below(2) == 1,
            server: Server::ALL[choices.below(Server::ALL.len())],
            judges_elsewhere: choices.below(2) == 1,
            ask: ASKS[choices.below(ASKS.len())],
            request: Body::draw(choices),
            response: Body::draw(choices),
            member_closes: choices.below(4) == 1,
            others: choices.below(2) == 1,
            bad_connects: choices.below(6).saturating_sub(3),
        };
        if plan.has_type_of_call() && choices.below(4) > 0 {
            plan.favour_call(choices);
        }
        plan.settle();
        plan
    }

    /// Makes it likely that the type of a call matters: where one is possible, and inspected. Few of all plans are so.
    fn favour_call(&mut self, choices: &mut dyn Choices) {
        const INSPECTING: [Server; 5] = [
            Server::Guarded,
            Server::Watched,
            Server::Screened,
            Server::Tolerant,
            Server::Observed,
        ];
        (self.has_http2_client, self.has_http2_members) = (true, true);
        self.server = INSPECTING[choices.below(INSPECTING.len())];
        (self.others, self.bad_connects) = (false, 0);
    }

    /// A few plans of each kind, for which all sequences of first events are tested.
    pub fn few() -> Vec<Self> {
        let mut plans = Vec::new();
        for (has_http2_client, has_http2_members) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            for (server, judges_elsewhere, ask) in [
                (Server::Plain, false, Ask::Get),
                (Server::Plain, false, Ask::Put),
                (Server::Plain, false, Ask::WebSocket),
                (Server::Queue, false, Ask::Expect),
                (Server::Relay, false, Ask::Get),
                (Server::Guarded, false, Ask::Put),
                (Server::Guarded, true, Ask::Expect),
                (Server::Guarded, true, Ask::Get),
                (Server::Watched, false, Ask::Expect),
                (Server::Watched, true, Ask::Put),
                (Server::Screened, false, Ask::Get),
                (Server::Screened, true, Ask::Get),
                (Server::Screened, true, Ask::Put),
                (Server::Observed, true, Ask::Get),
                (Server::Guarded, false, Ask::Claim),
                (Server::Watched, true, Ask::Call),
                (Server::Screened, true, Ask::Call),
                (Server::Tolerant, true, Ask::Call),
                (Server::Tolerant, true, Ask::Claim),
                (Server::Observed, true, Ask::Call),
                (Server::Rewritten, false, Ask::Get),
                (Server::Asked, false, Ask::Put),
                (Server::Asked, false, Ask::WebSocket),
                (Server::HandedOver, false, Ask::Put),
                (Server::HandedOver, false, Ask::WebSocket),
            ] {
                let mut plan = Self {
                    has_http2_client,
                    has_http2_members,
                    judges_elsewhere,
                    others: !matches!(ask, Ask::Call | Ask::Claim),
                    ..Self::judged_elsewhere(server, ask)
                };
                plan.settle();
                // Elsewhere the type of a call means nothing.
                if !plans.contains(&plan) && plan.has_type_of_call() == plan.is_call() {
                    plans.push(plan);
                }
            }
        }
        plans
    }

    /// A short request that may be a call, at members that serve nobody else.
    pub fn judged_elsewhere(server: Server, ask: Ask) -> Self {
        let body = Body { bytes: 10, piece: 7, framed: Framed::Mark };
        let mut plan = Self {
            number: 1,
            has_http2_client: true,
            has_http2_members: true,
            server,
            judges_elsewhere: true,
            ask,
            request: body,
            response: body,
            member_closes: false,
            others: false,
            bad_connects: 0,
        };
        plan.settle();
        plan
    }

    /// Changes combinations that are not possible.
    fn settle(&mut self) {
        self.judges_elsewhere &= self.server.inspects();
        if self.server == Server::Relay {
            (self.has_http2_client, self.has_http2_members) = (false, false);
            self.ask = Ask::Get;
        }
        if self.has_type_of_call() {
            if !self.server.inspects() {
                self.ask = Ask::Post;
            } else if self.request.bytes <= 10 {
                // More than one piece shows what it is.
                self.request.piece = 3;
            }
        }
        if self.ask == Ask::OldGet && self.has_http2_client {
            self.ask = Ask::Get;
        }
        if self.request.framed == Framed::Close
            || self.ask == Ask::Expect && self.request.bytes == 0
        {
            self.request.framed = Framed::Mark;
        }
        if self.ask == Ask::Head {
            self.response.framed = Framed::Length;
        }
    }

    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        let may_have =
            matches!(self.ask, Ask::Put | Ask::Post | Ask::Expect | Ask::Call | Ask::Claim);
        may_have && !(self.request.bytes == 0 && self.request.framed == Framed::Length)
    }

    fn has_type_of_call(&self) -> bool {
        matches!(self.ask, Ask::Call | Ask::Claim)
    }

    /// Whether the request may be a gRPC call, for all that its head says: such a body is not held.
    fn is_call(&self) -> bool {
        let is_possible = self.has_http2_client && self.has_http2_members;
        self.has_type_of_call() && is_possible && self.has_body()
    }

    /// Whether the member answers as one of gRPC does.
    fn has_response_of_call(&self) -> bool {
        self.has_type_of_call() && self.response.framed == Framed::Trailers
    }

    /// The number of bytes that members get at most of a body that is called that of a call and is none; `None`: it is forwarded.
    pub fn unmasked_bytes(&self) -> Option<usize> {
        let is_none = match self.ask {
            Ask::Claim => self.request.bytes > 0,
            _ => (1..CALL_BYTES).contains(&self.request.bytes),
        };
        (self.is_call() && is_none && self.blocks() && !self.passes_unjudged())
            .then_some(CALL_BYTES - 1)
    }

    /// Whether the body is held until it was inspected.
    pub fn is_held(&self) -> bool {
        let is_short = self.request.bytes <= JUDGED_BYTES_MAX;
        self.blocks() && !self.passes_unjudged() && self.has_body() && !self.is_call() && is_short
    }

    /// Whether rules block requests.
    fn blocks(&self) -> bool {
        matches!(self.server, Server::Guarded | Server::Screened | Server::Tolerant)
    }

    /// Whether what rules would block may be passed on without a verdict.
    fn passes_unjudged(&self) -> bool {
        self.server == Server::Tolerant
    }

    /// Whether rules block the request, if they get to judge it.
    fn is_bad(&self) -> bool {
        let is_read = self.has_body() && !self.is_call();
        let has_bad_body =
            is_read && (self.request.bytes == 200 || self.request.bytes > JUDGED_BYTES_MAX);
        self.blocks() && (self.number % 10 == 7 || has_bad_body)
    }

    /// Whether members do not receive the request.
    pub fn is_blocked(&self) -> bool {
        self.is_bad() && !self.passes_unjudged()
    }

    /// Whether rules block the response, if they get to judge it.
    fn is_leak(&self) -> bool {
        matches!(self.server, Server::Screened | Server::Tolerant)
            && self.response.bytes == 200
            && !self.is_tunnel()
            && !self.has_response_of_call()
    }

    /// Whether clients do not receive the whole response.
    pub fn is_kept(&self) -> bool {
        self.is_leak() && !self.passes_unjudged()
    }

    /// Whether rules may block the request or its response.
    pub fn may_be_blocked(&self) -> bool {
        // A response that is read shows that its request was no call, if that has not begun as one before.
        let may_seem_none = self.is_call() && self.server == Server::Screened;
        self.is_bad() || self.is_leak() || may_seem_none || self.unmasked_bytes().is_some()
    }

    /// Whether a service authorises the request.
    pub fn is_asked(&self) -> bool {
        matches!(self.server, Server::Asked | Server::HandedOver)
    }

    /// Whether the request may be repeated.
    pub fn is_idempotent(&self) -> bool {
        !matches!(self.ask, Ask::Post | Ask::Expect | Ask::Call | Ask::Claim)
    }

    /// Whether the transaction becomes a tunnel, if nothing fails.
    pub fn is_tunnel(&self) -> bool {
        self.ask == Ask::WebSocket || self.server == Server::Relay
    }

    /// The bytes of the client's body or tunnel from a position.
    pub fn request_bytes(&self, at: usize, count: usize) -> &'static [u8] {
        let start = self.number % NUMBERS * REQUEST_STEP + at;
        let source = match self.ask {
            Ask::Call => &CALLS,
            Ask::Claim => &CLAIMS,
            _ => &NOISE,
        };
        &source[start..start + count]
    }

    /// The bytes of the member's body or tunnel from a position.
    pub fn response_bytes(&self, at: usize, count: usize) -> &'static [u8] {
        let start = 2 * BYTES_MAX + self.number % NUMBERS * 89 + at;
        &NOISE[start..start + count]
    }

    /// The length of the request body, or of the client's data in a tunnel.
    pub fn request_length(&self) -> usize {
        if self.has_body() || self.is_tunnel() { self.request.bytes } else { 0 }
    }

    /// The length of the response body.
    pub fn response_length(&self) -> usize {
        if self.ask == Ask::Head { 0 } else { self.response.bytes }
    }

    /// The request head as parsed by the client's connection, and its text.
    pub fn request_head(&self) -> (RequestHead, Vec<u8>) {
        let method = match self.ask {
            Ask::Get | Ask::OldGet | Ask::WebSocket => "GET",
            Ask::Head => "HEAD",
            Ask::Put => "PUT",
            Ask::Post | Ask::Expect | Ask::Call | Ask::Claim => "POST",
        };
        let version = if self.ask == Ask::OldGet { "1.0" } else { "1.1" };
        let mut text = format!("{method} /{} HTTP/{version}\r\nHost: a\r\n", self.number);
        match (self.has_body(), self.request.framed) {
            (false, _) => {}
            (true, Framed::Length) => {
                text.push_str(&format!("Content-Length: {}\r\n", self.request.bytes));
            }
            (true, _) => text.push_str("Transfer-Encoding: chunked\r\n"),
        }
        if self.has_type_of_call() {
            text.push_str(TYPE_OF_CALL);
        }
        if self.ask == Ask::Expect {
            text.push_str("Expect: 100-continue\r\n");
        }
        if self.ask == Ask::WebSocket {
            text.push_str("Connection: upgrade\r\nUpgrade: websocket\r\n");
            if !self.has_http2_client {
                text.push_str("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
            }
        }
        text.push_str("\r\n");
        let mut head = RequestHead::new();
        let parsed = parse_request(text.as_bytes(), &LIMITS, TargetForm::default(), &mut head);
        assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{text}: {parsed:?}");
        if self.has_http2_client {
            head.version = Version::Http2;
            head.extended_connect = self.ask == Ask::WebSocket;
        }
        (head, text.into_bytes())
    }

    fn method(&self) -> Method {
        match self.ask {
            Ask::Get | Ask::OldGet | Ask::WebSocket => Method::Get,
            Ask::Head => Method::Head,
            Ask::Put => Method::Put,
            Ask::Post | Ask::Expect | Ask::Call | Ask::Claim => Method::Post,
        }
    }

    /// A response head as parsed by the member's connection, and its text. `is_end`: nothing follows the head on its stream.
    pub fn response_head(&self, status: u16, is_end: bool) -> (ResponseHead, Vec<u8>) {
        let mut text = format!("HTTP/1.1 {status} Said\r\n");
        if status == 101 {
            text.push_str("Connection: upgrade\r\nUpgrade: websocket\r\n");
        } else if status >= 200 {
            match self.response.framed {
                Framed::Length => {
                    text.push_str(&format!("Content-Length: {}\r\n", self.response.bytes));
                }
                Framed::Mark | Framed::Trailers if !self.has_http2_members => {
                    text.push_str("Transfer-Encoding: chunked\r\n");
                }
                _ => {}
            }
            if self.has_response_of_call() {
                text.push_str(TYPE_OF_CALL);
            }
            if self.member_closes {
                text.push_str("Connection: close\r\n");
            }
        }
        text.push_str("\r\n");
        let mut head = ResponseHead::new();
        let (method, mut repaired) = (self.method(), Vec::new());
        let parsed = parse_response_of_member(
            text.as_bytes(),
            &LIMITS,
            method,
            Flaws::NONE,
            &mut repaired,
            &mut head,
        );
        assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{text}: {parsed:?}");
        if self.has_http2_members {
            head.version = Version::Http2;
            if head.framing == Framing::UntilClose {
                head.framing = if is_end { Framing::Length(0) } else { Framing::Chunked };
            }
        }
        (head, text.into_bytes())
    }
}
