//! A request for a member, and the stored part of it for retries.

use weir_http::connection_authentication;
use weir_http::edits::RequestEdits;
use weir_http::h1::write_request_head;
use weir_http::h2::Answer;
use weir_http::h2::message::{LineSink as _, Lines, LinesWriter, RequestForward, write_request};
use weir_http::message::{Framing, Method, RequestHead, Scheme, Version};

use crate::local::forms::Forms;
use crate::parts::end::{End, OwnedTrailers};
use crate::parts::phase::Phase;
use crate::parts::tools::Tools;
use crate::parts::websocket::{self, Handshake};

/// A body piece larger than this is not stored for a retry.
pub const KEPT_PIECE_BYTES_MAX: usize = 4096;

/// The member connections that a transaction may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionChoice {
    /// Any connection that others may use, too.
    Any,
    /// It must be new, and must not use HTTP/2.
    Fresh,
    /// One that belongs to its client, which has some; otherwise any.
    OfClient,
    /// As above. The request authenticates the connection, which belongs to its client from then on.
    Authenticating,
}

/// The requirements of a transaction on its member connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionNeed {
    /// The connections that it may use.
    pub wanted: ConnectionChoice,
    /// The request can be sent again if the connection is stale.
    pub is_repeatable: bool,
    /// It becomes a tunnel, which needs its own connection.
    pub is_tunnel: bool,
    /// The request has a body.
    pub has_body: bool,
    /// The whole request has arrived.
    pub is_whole: bool,
    /// A part of the request was sent to a member before.
    pub is_sent: bool,
    /// Everything that was sent is stored.
    pub is_replayable: bool,
}

impl ConnectionNeed {
    /// Whether the connection must be new, and must not use HTTP/2.
    pub fn is_fresh(self) -> bool {
        self.wanted == ConnectionChoice::Fresh
    }

    /// Whether the request authenticates the connection.
    pub fn is_authenticating(self) -> bool {
        self.wanted == ConnectionChoice::Authenticating
    }
}

/// The stored part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// All of it; nothing was sent to a member yet.
    Unsent,
    /// Everything that was sent.
    Sent,
    /// Not everything that was sent.
    Gone,
}

/// How much of a request has arrived from its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestArrival {
    /// Not everything.
    More,
    /// All of it.
    Whole,
    /// Not everything, and nothing follows: the client has reset its stream without an error, because it has its response.
    Cut,
}

/// The head of a request in the other form.
struct OtherForm {
    lines: Vec<u8>,
}

/// A request for a member.
pub struct Request {
    /// The client's method.
    pub method: Method,
    /// The client's version.
    pub version: Version,
    /// Length of the list of offered protocols, at the end of the head; 0: no upgrade.
    pub upgrade_bytes: u32,
    /// It is an extended CONNECT: the client may send data for the tunnel before the member has accepted it.
    pub is_extended_connect: bool,
    /// The WebSocket handshake, which is translated between HTTP versions.
    pub websocket: Option<Handshake>,
    /// The head in the form for the pool's members, followed by the stored part of the body: with the framing of
    /// HTTP/1, or without framing for a stream.
    pub bytes: Vec<u8>,
    /// The head as lines, if the possible pools need both forms.
    other: Option<Box<OtherForm>>,
    /// Length of the head.
    pub head_bytes: u32,
    replay: Replay,
    /// The trailers, if they are stored.
    trailers: Option<Box<OwnedTrailers>>,
    /// The framing of the body toward the member.
    pub framing: Framing,
    /// The member connections that it may use.
    pub wanted: ConnectionChoice,
    coming: RequestArrival,
    /// Its body was held, was not sent to a member yet, and is too long to be stored for a retry.
    pub has_long_body_ahead: bool,
}

/// The member connections that a request with these changes may use: what the member gets decides, whoever has put it there.
#[inline]
fn wanted_of(edits: &RequestEdits) -> ConnectionChoice {
    if edits.fields.binds_connection() {
        ConnectionChoice::Authenticating
    } else {
        ConnectionChoice::Any
    }
}

impl Request {
    /// A request before it is sent. Writes its head in `forms` to `buffer`, which must be empty.
    pub fn of(
        tools: &Tools,
        (head, input): (&RequestHead, &[u8]),
        forms: Forms,
        edits: &RequestEdits,
        buffer: Vec<u8>,
    ) -> Self {
        let mut bytes = buffer;
        let mut other = None;
        let websocket = Handshake::of(head, input);
        match forms {
            Forms::Text => {}
            Forms::Lines => write_lines(head, input, edits, websocket.as_ref(), &mut bytes),
            Forms::Both => {
                let mut lines = Vec::new();
                write_lines(head, input, edits, websocket.as_ref(), &mut lines);
                other = Some(Box::new(OtherForm { lines }));
            }
        }
        if forms != Forms::Lines {
            if head.extended_connect {
                write_request_head(head, input, &with_websocket_key(tools, edits), &mut bytes);
            } else {
                write_request_head(head, input, edits, &mut bytes);
            }
        }
        Self {
            method: head.method,
            version: head.version,
            upgrade_bytes: head.upgrade.map_or(0, |protocols| protocols.len() as u32),
            is_extended_connect: head.extended_connect,
            websocket,
            head_bytes: bytes.len() as u32,
            bytes,
            other,
            replay: Replay::Unsent,
            trailers: None,
            framing: head.framing,
            wanted: wanted_of(edits),
            coming: if head.framing.is_empty() {
                RequestArrival::Whole
            } else {
                RequestArrival::More
            },
            has_long_body_ahead: false,
        }
    }

    /// Adds fields to the head before it is sent. `forms`: the forms of the head. Fields must not contain line breaks.
    pub fn add_fields<'f>(
        &mut self,
        forms: Forms,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) {
        debug_assert!(!self.is_sent(), "a head that is out stays as it is");
        let (mut text, mut lines) = (Vec::new(), Vec::new());
        for (name, value) in fields {
            if connection_authentication::is_credentials(name, value) {
                self.wanted = ConnectionChoice::Authenticating;
            }
            text.extend_from_slice(name);
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
            LinesWriter::new(&mut lines).field_of_any_case(name, value, false);
        }
        if let Some(other) = &mut self.other {
            other.lines.extend_from_slice(&lines);
        }
        let head_bytes = self.head_bytes as usize;
        let (added, place) = match forms {
            Forms::Lines => (lines, head_bytes),
            // Behind Host, the first field: other code finds positions relative to the end of the head, which must not
            // change.
            Forms::Text | Forms::Both => (text, behind_first_field(&self.bytes[..head_bytes])),
        };
        self.head_bytes += added.len() as u32;
        self.bytes.splice(place..place, added);
    }

    /// Replaces a text in its head by one of the same length.
    pub fn replace_in_head(&mut self, before: &[u8], after: &[u8]) {
        debug_assert_eq!(before.len(), after.len(), "the head keeps its length");
        let head_bytes = (self.head_bytes as usize).min(self.bytes.len());
        let other = self.other.as_mut().map(|other| &mut other.lines[..]);
        for head in [&mut self.bytes[..head_bytes]].into_iter().chain(other) {
            if let Some(at) = memchr::memmem::find(head, before) {
                head[at..at + after.len()].copy_from_slice(after);
            }
        }
    }

    /// The head as lines; see [`LocalPool::forms`](crate::local::pool::LocalPool).
    pub fn lines(&self) -> Lines<'_> {
        let first = &self.bytes[..self.head_bytes as usize];
        Lines(self.other.as_ref().map_or(first, |other| &other.lines))
    }

    /// The protocols that the client offers for an upgrade.
    pub fn upgrade_offer(&self) -> &[u8] {
        let head_bytes = (self.head_bytes as usize).min(self.bytes.len());
        let end = head_bytes.saturating_sub(b"\r\n\r\n".len());
        &self.bytes[end.saturating_sub(self.upgrade_bytes as usize)..end]
    }

    /// The protocol of an extended CONNECT, if it becomes a tunnel.
    pub fn tunnel_protocol(&self) -> Option<&'static [u8]> {
        self.websocket.as_ref().map(|_| websocket::PROTOCOL)
    }

    /// Whether the client's stream carries data for a tunnel that the member has not accepted yet.
    pub fn awaits_tunnel(&self, phase: &Phase) -> bool {
        self.is_extended_connect && phase.begun().is_none()
    }

    /// Whether this status must not be forwarded: a client that sent an extended CONNECT takes any 2xx for an accepted
    /// tunnel (RFC 8441 section 5).
    pub fn is_no_tunnel(&self, phase: &Phase, status: u16) -> bool {
        self.awaits_tunnel(phase) && matches!(status, 200..=299)
    }

    /// The kind of response that is valid on a stream.
    pub fn answer(&self) -> Answer {
        match (self.method, &self.websocket) {
            (_, Some(_)) => Answer::Tunnel,
            (Method::Head, None) => Answer::HeadOnly,
            (_, None) => Answer::Usual,
        }
    }

    /// The requirements on the member connection.
    pub fn need(&self) -> ConnectionNeed {
        ConnectionNeed {
            wanted: self.wanted,
            is_repeatable: self.method.is_idempotent()
                && self.is_whole()
                && !self.has_long_body_ahead,
            is_tunnel: self.websocket.is_some(),
            has_body: !self.framing.is_empty(),
            is_whole: self.is_whole(),
            is_sent: self.is_sent(),
            is_replayable: self.is_replayable(),
        }
    }

    /// Stores trailers: for a retry, or until they may be sent.
    pub fn keep_trailers(&mut self, end: End<'_>) {
        if let Some(trailers) = OwnedTrailers::of(end) {
            self.trailers = Some(trailers);
        }
    }

    /// The end behind the stored part.
    pub fn end(&self) -> End<'_> {
        match &self.trailers {
            Some(trailers) => trailers.get(),
            None if self.is_whole() => End::Data,
            None => End::No,
        }
    }

    /// Whether all of it has arrived from the client.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.coming == RequestArrival::Whole
    }

    /// Whether the client has cut it off.
    pub fn is_cut(&self) -> bool {
        self.coming == RequestArrival::Cut
    }

    /// A part has arrived, perhaps the last one.
    #[inline]
    pub fn receive(&mut self, is_last: bool) {
        if is_last {
            self.coming = RequestArrival::Whole;
        }
    }

    /// The client has cut it off.
    pub fn cut(&mut self) {
        if self.coming == RequestArrival::More {
            self.coming = RequestArrival::Cut;
        }
    }

    /// Whether a part of it was sent to a member.
    pub fn is_sent(&self) -> bool {
        self.replay != Replay::Unsent
    }

    /// Marks a part as sent. Returns true for the first part.
    pub fn send(&mut self) -> bool {
        let is_first = self.replay == Replay::Unsent;
        if is_first {
            self.replay = Replay::Sent;
        }
        is_first
    }

    /// Whether everything that was sent is stored.
    pub fn is_replayable(&self) -> bool {
        self.replay != Replay::Gone
    }

    /// Marks the stored part as incomplete.
    pub fn let_go(&mut self) {
        self.replay = Replay::Gone;
    }
}

/// The edits for an extended CONNECT that becomes an HTTP/1.1 upgrade, which needs a key (RFC 8441 section 5).
#[cold]
#[inline(never)]
fn with_websocket_key(tools: &Tools, edits: &RequestEdits) -> RequestEdits {
    let mut random = [0; websocket::KEY_BYTES];
    (tools.sources.fill_randomly)(&mut random);
    let mut edits = edits.clone();
    edits.fields.add(b"Sec-WebSocket-Key", |out| websocket::write_key(random, out));
    edits
}

/// The end of the first field in a head.
fn behind_first_field(head: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', head).nth(1).map_or(head.len(), |at| at + 1)
}

/// Writes the head for HTTP/2 members, with the scheme of the member connection.
fn write_lines(
    head: &RequestHead,
    input: &[u8],
    edits: &RequestEdits,
    websocket: Option<&Handshake>,
    out: &mut Vec<u8>,
) {
    let protocol = websocket.map(|_| websocket::PROTOCOL);
    let forward = RequestForward { scheme: Scheme::Http, protocol };
    write_request(head, input, edits, &forward, &mut LinesWriter::new(out));
}

#[cfg(test)]
mod tests {
    use weir_http::h1::{HeadLimits, parse_request};
    use weir_http::path::TargetForm;

    use super::*;
    use crate::local::surroundings::Sources;

    #[test]
    fn fields_are_added_to_each_form_of_a_head() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x/1\r\n\r\n";
        let limits = HeadLimits { head_size_max: 65_536, headers_max: 100 };
        let mut head = RequestHead::new();
        parse_request(text, &limits, TargetForm::default(), &mut head).expect("a head");
        let tools = Tools::new(|| 0, Sources { unix_s: || 0, fill_randomly: |_| {} });
        for forms in [Forms::Text, Forms::Lines, Forms::Both] {
            let edits = &RequestEdits::NONE;
            let mut request = Request::of(&tools, (&head, text), forms, edits, Vec::new());
            let added = [(&b"X-User"[..], &b"ann"[..]), (b"X-User", b"")];
            request.add_fields(forms, added.into_iter());
            assert_eq!(request.head_bytes as usize, request.bytes.len());
            if forms != Forms::Lines {
                let sent = String::from_utf8(request.bytes.clone()).expect("text");
                let expected = "GET / HTTP/1.1\r\nHost: a\r\nX-User: ann\r\nX-User: \r\nConnection: upgrade\r\nUpgrade: x/1\r\n\r\n";
                assert_eq!(sent, expected);
                assert_eq!(request.upgrade_offer(), b"x/1");
            }
            if forms != Forms::Text {
                let lines: Vec<_> = request.lines().collect();
                let last: Vec<_> = lines[lines.len() - 2..].iter().map(|it| it.1).collect();
                assert_eq!(last, [&b"ann"[..], b""]);
                assert_eq!(lines[0].0, b":method");
            }
        }
    }

    /// What the member gets decides: a stage may add the credentials.
    #[test]
    fn added_credentials_that_authenticate_a_connection_bind_it() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut head = RequestHead::new();
        let limits = HeadLimits { head_size_max: 1_000, headers_max: 10 };
        parse_request(text, &limits, TargetForm::default(), &mut head).expect("a head");
        for (name, value, expected) in [
            ("Authorization", "Negotiate YII=", ConnectionChoice::Authenticating),
            ("Authorization", "Bearer abc", ConnectionChoice::Any),
            ("X-User", "Negotiate", ConnectionChoice::Any),
        ] {
            let tools = Tools::new(|| 0, Sources { unix_s: || 0, fill_randomly: |_| {} });
            let (message, edits) = ((&head, &text[..]), &RequestEdits::NONE);
            let mut request = Request::of(&tools, message, Forms::Text, edits, Vec::new());
            request.add_fields(Forms::Text, [(name.as_bytes(), value.as_bytes())].into_iter());
            assert!(request.wanted == expected, "{name}: {value}");
        }
    }
}
