//! A request on its way to a member, and the part of it that can be sent again.

use weir_http::edits::RequestEdits;
use weir_http::h1::write_request_head;
use weir_http::h2::Answer;
use weir_http::h2::message::{LineSink as _, Lines, LinesWriter, RequestForward, write_request};
use weir_http::message::{Framing, Method, RequestHead, Scheme, Version};

use crate::local::pool::Forms;
use crate::parts::end::{End, OwnedTrailers};
use crate::parts::tools::Tools;
use crate::parts::websocket::{self, Handshake};

/// A longer piece of a body is not kept for another try.
pub const KEPT_PIECE_BYTES_MAX: usize = 4096;

/// The kind of member connection that a transaction needs.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// One that nothing was spoken on.
    pub is_fresh: bool,
    /// It can be sent again if the connection has gone stale.
    pub is_repeatable: bool,
    /// It becomes a tunnel, which has a connection for itself.
    pub is_tunnel: bool,
    /// It has a body.
    pub has_body: bool,
    /// All of it is here.
    pub is_whole: bool,
    /// Some of it was sent to a member already.
    pub is_sent: bool,
    /// All that was sent of it is here to be sent again.
    pub is_replayable: bool,
}

/// The part of a request that can be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// All of it; nothing was handed to a member connection yet.
    Unsent,
    /// All that was handed to one.
    Sent,
    /// Not all that was.
    Gone,
}

/// The head of a request in its second form.
struct OtherForm {
    lines: Vec<u8>,
}

/// A request on its way to a member.
pub struct Request {
    /// The client's method.
    pub method: Method,
    /// The client's version.
    pub version: Version,
    /// Length of the protocols offered for a change, which end its head; 0: none.
    pub upgrade_bytes: u32,
    /// It is an extended CONNECT: its client sends data for the tunnel before that is agreed to.
    pub is_extended_connect: bool,
    /// The WebSocket handshake; HTTP/2 members support it, too.
    pub websocket: Option<Handshake>,
    /// Its head as members of its pool are asked, and behind it as much of its body as is kept: as HTTP/1 sends it, on a
    /// stream bare.
    pub bytes: Vec<u8>,
    /// The head as lines, where pools that it may go to are asked in both ways.
    other: Option<Box<OtherForm>>,
    /// Length of its head.
    pub head_bytes: u32,
    replay: Replay,
    /// Its end, if it is kept and has trailers.
    trailers: Option<Box<OwnedTrailers>>,
    /// How the body is framed towards the member.
    pub framing: Framing,
    /// All of it has come from the client.
    pub is_whole: bool,
    /// Its body was held, is not handed to a member yet, and is too long to be kept for another try.
    pub has_long_body_ahead: bool,
    /// Its client has ended it short, since it knew the answer.
    pub is_cut: bool,
}

impl Request {
    /// One of which nothing was sent yet: its head is written to `buffer`, which is empty, as members are asked.
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
            is_whole: head.framing.is_empty(),
            has_long_body_ahead: false,
            is_cut: false,
        }
    }

    /// Adds fields to its head, which has these `forms` and was not sent yet. They contain no line breaks.
    pub fn add_fields<'f>(
        &mut self,
        forms: Forms,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) {
        debug_assert!(!self.is_sent(), "a head that is out stays as it is");
        let (mut text, mut lines) = (Vec::new(), Vec::new());
        for (name, value) in fields {
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
            // Behind Host, the first field: the end of the head is searched elsewhere, and must stay where it is.
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

    /// Its head as lines; see [`LocalPool::forms`](crate::local::pool::LocalPool).
    pub fn lines(&self) -> Lines<'_> {
        let first = &self.bytes[..self.head_bytes as usize];
        Lines(self.other.as_ref().map_or(first, |other| &other.lines))
    }

    /// The protocols that the client offers to change to.
    pub fn upgrade_offer(&self) -> &[u8] {
        let end = self.bytes.len().saturating_sub(b"\r\n\r\n".len());
        &self.bytes[end.saturating_sub(self.upgrade_bytes as usize)..end]
    }

    /// The protocol of an extended CONNECT, if it becomes a tunnel.
    pub fn tunnel_protocol(&self) -> Option<&'static [u8]> {
        self.websocket.as_ref().map(|_| websocket::PROTOCOL)
    }

    /// The kind of response that it gets on a stream.
    pub fn answer(&self) -> Answer {
        match (self.method, &self.websocket) {
            (_, Some(_)) => Answer::Tunnel,
            (Method::Head, None) => Answer::HeadOnly,
            (_, None) => Answer::Usual,
        }
    }

    /// The kind of member connection that it needs.
    pub fn need(&self) -> Need {
        Need {
            is_fresh: false,
            is_repeatable: self.method.is_idempotent()
                && self.is_whole
                && !self.has_long_body_ahead,
            is_tunnel: self.websocket.is_some(),
            has_body: !self.framing.is_empty(),
            is_whole: self.is_whole,
            is_sent: self.is_sent(),
            is_replayable: self.is_replayable(),
        }
    }

    /// Keeps trailers: for another attempt, or until they may be sent.
    pub fn keep_trailers(&mut self, end: End<'_>) {
        if let Some(trailers) = OwnedTrailers::of(end) {
            self.trailers = Some(trailers);
        }
    }

    /// The end behind the kept part.
    pub fn end(&self) -> End<'_> {
        match &self.trailers {
            Some(trailers) => trailers.get(),
            None if self.is_whole => End::Data,
            None => End::No,
        }
    }

    /// Whether something of it was handed to a member connection.
    pub fn is_sent(&self) -> bool {
        self.replay != Replay::Unsent
    }

    /// Notes that something of it is handed to a member connection; whether it is the first of it.
    pub fn send(&mut self) -> bool {
        let is_first = self.replay == Replay::Unsent;
        if is_first {
            self.replay = Replay::Sent;
        }
        is_first
    }

    /// Whether all that was sent is kept.
    pub fn is_replayable(&self) -> bool {
        self.replay != Replay::Gone
    }

    /// Notes that not all of it is kept any more.
    pub fn let_go(&mut self) {
        self.replay = Replay::Gone;
    }
}

/// The edits of an extended CONNECT for HTTP/1.1, which alone has a key (RFC 8441 section 5).
#[cold]
#[inline(never)]
fn with_websocket_key(tools: &Tools, edits: &RequestEdits) -> RequestEdits {
    let mut random = [0; websocket::KEY_BYTES];
    (tools.sources.fill_randomly)(&mut random);
    let mut edits = edits.clone();
    edits.fields.add(b"Sec-WebSocket-Key", |out| websocket::write_key(random, out));
    edits
}

/// Where the first field of a head ends.
fn behind_first_field(head: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', head).nth(1).map_or(head.len(), |at| at + 1)
}

/// Writes the head for HTTP/2 members. The scheme is that of the member's connection.
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
    use crate::local::around::Sources;

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
}
