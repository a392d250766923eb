//! Checks that a client receives a valid response to its request: the member's response, byte for byte, or a response of
//! weir itself in its exact form.

use crate::keeping::take_cookie;
use crate::message::{
    Fields, answer_bytes, check_agreement, check_answer, check_trailers, compare, hint_fields,
    host, is_date, is_of_member, surplus_of, target,
};
use crate::place::{Server, Version};
use crate::plan::{Allowed, Deed, Flaw, Framing, Method, Plan, Rule, ServiceDeed};
use crate::service::{REFUSAL_TYPE, refusal};
use crate::settings::REPLACED;
use crate::tag::{Checker, Part};
use crate::world::{Kind, World};

/// The kind of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// An interim response.
    Interim,
    /// The head of the response.
    Final,
    /// The member accepts a tunnel.
    Tunnel,
}

#[derive(Debug)]
enum Origin {
    Nothing,
    Member(Checker),
    /// A body that weir has compressed, or in which it has replaced text.
    Changed {
        coding: Option<String>,
        bytes: Vec<u8>,
    },
    Own {
        status: u16,
        fields: Fields,
        bytes: Vec<u8>,
    },
    /// An unsolicited response that the member sent while the request was in flight to it.
    Surplus,
}

/// The response to one request, while it is received.
#[derive(Debug)]
pub struct Response<'a> {
    world: &'a World,
    /// The exchange.
    pub plan: Plan,
    allowed: Allowed,
    hints: usize,
    /// Whether 100 has arrived.
    pub continued: bool,
    origin: Origin,
}

/// Maximum length of responses of weir itself.
const OWN_BYTES_MAX: usize = 4_096;

/// weir stores a request until it is answered if its body has at most this length, with any head: the limit for both
/// together is 16 KiB.
const REPLAYED_BYTES_MAX: usize = 12_000;

impl<'a> Response<'a> {
    /// The state before the first byte.
    pub fn new(world: &'a World, plan: Plan) -> Self {
        let allowed = plan.allowed();
        Self { world, plan, allowed, hints: 0, continued: false, origin: Origin::Nothing }
    }

    /// Allows an incomplete response, because the client has broken off. The received part must still be correct.
    pub fn forgive(&mut self) {
        (self.allowed.cut, self.allowed.silence) = (true, true);
        self.allowed.own.extend([400, 408, 503]);
    }

    /// Whether a final head has arrived.
    pub fn has_head(&self) -> bool {
        !matches!(self.origin, Origin::Nothing)
    }

    /// Checks a received head, with the value of Content-Length.
    pub fn head(
        &mut self,
        status: u16,
        mut fields: Fields,
        length: Option<usize>,
    ) -> Result<Came, String> {
        let key = self.world.key;
        if status == 100 {
            let is_first = !std::mem::replace(&mut self.continued, true);
            return match self.plan.expects && is_first && fields.is_empty() {
                true => Ok(Came::Interim),
                false => Err(format!("100 {fields:?}")),
            };
        }
        if status == 103 {
            compare(&fields, hint_fields(key, &self.plan, self.hints), |_, _| false)?;
            self.hints += 1;
            return match self.hints <= self.plan.answer.interim {
                true => Ok(Came::Interim),
                false => Err("one interim response too many".to_owned()),
            };
        }
        if let Some(of) = surplus_of(key, &fields) {
            self.world.surplus.receive(self.plan.id, of);
            self.origin = Origin::Surplus;
            return Ok(Came::Final);
        }
        if is_of_member(&fields) {
            let cookie = take_cookie(&mut fields);
            self.world.keeping.answered(&self.plan, cookie.as_deref())?;
        }
        if self.plan.tunnel.is_some() && is_of_member(&fields) {
            let agreed = if self.plan.place.client == Version::Http1 { 101 } else { 200 };
            if status == agreed {
                return check_agreement(key, &self.plan, &fields).map(|()| Came::Tunnel);
            }
        }
        if !is_of_member(&fields) {
            self.origin = Origin::Own { status, fields, bytes: Vec::new() };
            if status == 503 {
                self.world.keeping.refused(&self.world.tally, &self.plan)?;
            }
            return match self.allowed.own.contains(&status) || self.is_given_up(status) {
                true => Ok(Came::Final),
                false => Err(format!("a response of weir's own with {status}")),
            };
        }
        let coding = check_answer(key, &self.plan, status, &fields)?;
        self.check_hints()?;
        self.check_length(coding.is_some(), length)?;
        if !self.allowed.whole && !self.allowed.cut {
            return Err("the member's response where there is to be none".to_owned());
        }
        self.origin = match coding {
            None if !self.plan.is_rewritten() => {
                Origin::Member(Checker::new(key, self.plan.id, Part::ResponseBody))
            }
            coding => Origin::Changed { coding, bytes: Vec::new() },
        };
        Ok(Came::Final)
    }

    /// Whether the 502 may mean that members have left the request unprocessed too often: weir retries it once, if it has
    /// stored the whole request.
    fn is_given_up(&self, status: u16) -> bool {
        let may_be = status == 502 && self.plan.place.member == Version::Http2;
        if may_be {
            let is_kept = self.plan.body.bytes <= REPLAYED_BYTES_MAX;
            let what = format!("a response of weir's own with {status}");
            self.world.suspect(self.plan.id, what, 1 + u32::from(is_kept));
        }
        may_be
    }

    /// Checks that all interim responses arrived before the final one. An HTTP/1.0 client gets none.
    fn check_hints(&self) -> Result<(), String> {
        let sent = if self.plan.is_old { 0 } else { self.plan.answer.interim };
        // A malformed response has no interim responses before it.
        match self.hints == sent || matches!(self.plan.deed, Deed::Garbled { .. }) {
            true => Ok(()),
            false => Err(format!("{} of {sent} interim responses", self.hints)),
        }
    }

    fn check_length(&self, is_compressed: bool, length: Option<usize>) -> Result<(), String> {
        let body = &self.plan.answer.body;
        // Compression changes or removes the length. This also applies to the response to a HEAD request whose GET response
        // would be compressed.
        let is_changed = is_compressed || self.plan.is_rewritten();
        if is_changed || self.plan.place.server == Server::Compressed {
            if !is_compressed && self.plan.accepts.is_some() {
                self.world.count(Kind::Uncompressed);
            }
            return Ok(());
        }
        let expected = match body.framing {
            Framing::Length => Some(body.bytes),
            _ => None,
        };
        match (length, expected) {
            _ if length == expected => Ok(()),
            // A response without a body may have Content-Length: 0.
            (Some(0), None) if answer_bytes(&self.plan) == 0 => Ok(()),
            _ => Err(format!("Content-Length {length:?} instead of {expected:?}")),
        }
    }

    /// Checks received data.
    pub fn data(&mut self, data: &[u8]) -> Result<(), String> {
        match &mut self.origin {
            Origin::Nothing => Err("data before a head".to_owned()),
            Origin::Surplus => Ok(()),
            Origin::Member(checker) => {
                checker.take(data)?;
                match checker.offset() <= answer_bytes(&self.plan) {
                    true => Ok(()),
                    false => Err(format!("{} bytes of a body", checker.offset())),
                }
            }
            Origin::Changed { bytes, .. } => {
                bytes.extend_from_slice(data);
                Ok(())
            }
            Origin::Own { bytes, .. } => {
                bytes.extend_from_slice(data);
                match bytes.len() <= OWN_BYTES_MAX {
                    true => Ok(()),
                    false => Err("a long response of weir's own".to_owned()),
                }
            }
        }
    }

    /// Checks a response that is complete by its framing.
    pub fn end(&mut self, trailers: &Fields) -> Result<(), String> {
        let key = self.world.key;
        let has_trailers = self.plan.answer.body.has_trailers && !self.plan.is_old;
        let part = Part::ResponseTrailer;
        match std::mem::replace(&mut self.origin, Origin::Nothing) {
            Origin::Nothing => return Err("the end of a response without a head".to_owned()),
            Origin::Surplus => return Ok(()),
            Origin::Own { status, fields, bytes } => {
                self.check_own(status, &fields, &bytes)?;
                return self.count_own(status);
            }
            Origin::Member(checker) => self.check_whole(checker.offset())?,
            Origin::Changed { coding, bytes } => {
                let original = self.check_changed(coding.as_deref(), &bytes, true)?;
                self.check_whole(original)?;
                match coding.as_deref() {
                    None => {}
                    Some("gzip") => self.world.count(Kind::Gzip),
                    Some("br") => self.world.count(Kind::Brotli),
                    Some(_) => self.world.count(Kind::Zstd),
                }
            }
        }
        if check_trailers(key, &self.plan, part, has_trailers, trailers)? {
            self.world.count(Kind::ResponseTrailers);
        }
        self.count_whole();
        Ok(())
    }

    fn check_whole(&self, bytes: usize) -> Result<(), String> {
        let expected = answer_bytes(&self.plan);
        match bytes == expected {
            _ if !self.allowed.whole => {
                Err(format!("a response that was broken off is called whole ({bytes} bytes)"))
            }
            true => Ok(()),
            false => Err(format!("{bytes} of {expected} bytes are called the whole response")),
        }
    }

    /// Checks that a changed body is made of the member's body or of a prefix of it. Returns the length of that.
    fn check_changed(
        &self,
        coding: Option<&str>,
        bytes: &[u8],
        to_end: bool,
    ) -> Result<usize, String> {
        if bytes.is_empty() && self.plan.method == Method::Head {
            return Ok(0);
        }
        let (mut body, is_whole) = match coding {
            Some(coding) => weir_testing::decode(coding, bytes),
            None => (bytes.to_vec(), true),
        };
        if self.plan.is_rewritten() {
            let rewritten_bytes = body.len();
            body = original_of(&body)?;
            if body.len() != rewritten_bytes {
                self.world.count(Kind::Replaced);
            }
        }
        let mut checker = Checker::new(self.world.key, self.plan.id, Part::ResponseBody);
        checker.take(&body)?;
        match is_whole || !to_end {
            true => Ok(body.len()),
            false => Err(format!("{coding:?} that does not end, after {} bytes", body.len())),
        }
    }

    fn count_whole(&self) {
        let place = self.plan.place;
        let world = self.world;
        world.count(match (place.client, place.member) {
            (Version::Http1, Version::Http1) => Kind::Http1ToHttp1,
            (Version::Http1, Version::Http2) => Kind::Http1ToHttp2,
            (Version::Http2, Version::Http1) => Kind::Http2ToHttp1,
            (Version::Http2, Version::Http2) => Kind::Http2ToHttp2,
        });
        let happened = [
            (self.plan.rule == Rule::Rewrite, Kind::Rewritten),
            (self.continued, Kind::Continues),
            (self.hints > 0, Kind::Hints),
            (self.plan.is_old, Kind::Old),
            (self.plan.deed == Deed::Early, Kind::Early),
            (self.plan.place.server == Server::Chain, Kind::Tls),
        ];
        happened.iter().filter(|(it, _)| *it).for_each(|(_, kind)| world.count(*kind));
    }

    fn count_own(&self, status: u16) -> Result<(), String> {
        self.world.count(match status {
            301 => Kind::Own301,
            400 => Kind::Own400,
            403 => Kind::Own403,
            408 => Kind::Own408,
            413 => Kind::Own413,
            417 => Kind::Own417,
            429 => Kind::Own429,
            431 => Kind::Own431,
            501 => Kind::Own501,
            502 => Kind::Own502,
            503 => Kind::Own503,
            504 => Kind::Own504,
            _ => return Err(format!("no response of weir's own has {status}")),
        });
        Ok(())
    }

    /// Checks the exact form of a response of weir itself.
    fn check_own(&self, status: u16, fields: &Fields, bytes: &[u8]) -> Result<(), String> {
        let plan = &self.plan;
        let key = self.world.key;
        let query = key.text(plan.id, Part::Query, 0, 1);
        let reason = match status {
            301 => "Moved Permanently",
            400 => "Bad Request",
            403 => "Forbidden",
            408 => "Request Timeout",
            413 => "Content Too Large",
            417 => "Expectation Failed",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            _ => "Gateway Timeout",
        };
        let (mut body, mut expected) = (format!("{status} {reason}\n"), Fields::new());
        let mut content_type = "text/plain; charset=utf-8";
        if plan.service == ServiceDeed::Deny && status == 403 {
            // The response of the service.
            body = refusal(key, plan);
            content_type = REFUSAL_TYPE;
        }
        match plan.rule {
            Rule::Redirect if status == 301 => {
                let location = format!("https://{}{}", host(key, plan), target(key, plan));
                expected.push(("location".into(), location));
                body.clear();
            }
            Rule::Respond if status == 403 => {
                body = format!("no {query} here\n");
                content_type = "text/weir";
                expected.push(("x-refused".into(), query.clone()));
            }
            _ => {}
        }
        if plan.method == Method::Head && bytes.is_empty() {
            body.clear();
        }
        if plan.place.server == Server::Guarded && status == 413 && is_page_of_firewall(bytes) {
            body = String::from_utf8_lossy(bytes).into_owned();
        }
        if bytes != body.as_bytes() {
            return Err(format!("\"{}\" instead of {body:?}", bytes.escape_ascii()));
        }
        compare(fields, expected, |name, value| match name {
            "date" => is_date(value),
            "content-type" => value == content_type,
            "retry-after" => matches!(status, 429 | 503) && value.parse::<u8>().is_ok(),
            // Response rules may also apply to responses of weir itself.
            "x-answered" => plan.rule == Rule::Rewrite && value == query,
            _ => false,
        })
    }

    /// Checks a response that was visibly broken off.
    pub fn cut(&mut self) -> Result<(), String> {
        let happened = match std::mem::replace(&mut self.origin, Origin::Nothing) {
            Origin::Nothing => return self.silence(),
            Origin::Surplus => return Ok(()),
            Origin::Member(checker) => format!("cut after {} bytes", checker.offset()),
            Origin::Changed { coding, bytes } => {
                self.check_changed(coding.as_deref(), &bytes, false)?;
                format!("cut after {} bytes of {coding:?}", bytes.len())
            }
            Origin::Own { status, .. } => format!("weir's own {status} is cut"),
        };
        self.world.count(Kind::Cut);
        if self.allowed.cut { Ok(()) } else { Err(happened) }
    }

    /// Checks a connection or a stream that ended without a response.
    pub fn silence(&mut self) -> Result<(), String> {
        let is_refused = self.plan.flaw.is_some_and(|flaw| flaw != Flaw::LargeBody);
        self.world.count(if is_refused { Kind::Refused } else { Kind::Silence });
        // weir may close a connection that is opened during shutdown.
        match self.allowed.silence || self.world.is_draining() {
            true => Ok(()),
            false => Err("ended without a response".to_owned()),
        }
    }
}

/// Whether this is the response of the firewall to a blocked request.
fn is_page_of_firewall(body: &[u8]) -> bool {
    let text = body.strip_prefix(b"The request was blocked. Its number is ");
    let number = text.and_then(|text| text.strip_suffix(b".\n"));
    number.is_some_and(|it| it.len() == 32 && it.iter().all(u8::is_ascii_hexdigit))
}

/// The member's body, of which this is what the client gets after the replacement, or a prefix of it.
fn original_of(rewritten: &[u8]) -> Result<Vec<u8>, String> {
    let [from, to] = REPLACED;
    if let Some(place) = rewritten.windows(from.len()).position(|it| it == from.as_bytes()) {
        return Err(format!("{from:?} at {place} is not replaced"));
    }
    let text = String::from_utf8_lossy(rewritten);
    // The prefix may end within a replacement.
    let begun = (1..to.len()).rev().find_map(|length| text.strip_suffix(&to[..length]));
    let text = begun.unwrap_or(&text);
    Ok(text.replace(to, from).into_bytes())
}

#[test]
fn what_was_rewritten_shows_what_it_was() {
    let original = |text: &str| original_of(text.as_bytes()).map(|it| it.len());
    assert_eq!(original("01a<->b<-><->f"), Ok("01aabbababf".len()));
    assert_eq!(original("01<->a<-"), Ok("01aba".len()));
    assert!(original("0<->ab").is_err());
}
