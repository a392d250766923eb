//! The evaluation state of one worker: the values of the slots, found at their first use, and buffers for values that
//! are not part of the received bytes.

use std::ops::Range;
use std::sync::Arc;

use weir_http::cookies::{request_cookies, set_cookies};
use weir_http::message::{Field, Span};
use weir_http::query;

use super::facts::{DatagramFacts, Facts};
use super::pattern::{Machine, Pattern};
use super::slots::{Slots, Source};
use super::text_functions::TextFunction;
use super::time;
use super::tokens::Tokens;
use crate::datagram::{quic, radius, sip};
use crate::jwt::{Claims, Refusal};

/// Maximum capacity of a buffer between requests; the excess after an extreme request is freed.
const BUFFER_KEPT_BYTES_MAX: usize = 64 * 1024;

/// Reused from request to request: nothing is allocated once it has grown.
#[derive(Debug)]
pub struct Fields {
    slots: Arc<Slots>,
    values: Box<[Value]>,
    /// The stamp of the current request; values with another stamp belong to an earlier request.
    stamp: u32,
    /// Computed values of slots.
    made: Vec<u8>,
    /// Values during the evaluation of one part of an expression.
    temporary: Vec<u8>,
    /// Output of a function before it is moved to `made` or `temporary`.
    scratch: Vec<u8>,
    machines: Box<[Option<Box<Machine>>]>,
    tokens: Tokens,
    /// The authenticated user, in [`Fields::made`].
    user: Option<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    stamp: u32,
    place: Place,
}

/// The location of a slot's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There is no such header, parameter or cookie.
    Absent,
    /// A part of the request.
    Request(Span),
    /// A part of the response.
    Response(Span),
    /// A part of the datagram.
    Datagram(Span),
    /// A part of [`Fields::made`].
    Made(Span),
}

/// An evaluated text, valid until the next [`Fields::begin`] at most.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'v> {
    Bytes(&'v [u8]),
    Made(Span),
    /// A part of [`Fields::temporary`]; valid until that is truncated.
    Temporary(Span),
}

impl Piece<'_> {
    /// A part of the text.
    fn within(self, range: Range<usize>) -> Self {
        let part = |of: Span| span(of.start as usize + range.start, of.start as usize + range.end);
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.get(range).unwrap_or_default()),
            Self::Made(of) => Self::Made(part(of)),
            Self::Temporary(of) => Self::Temporary(part(of)),
        }
    }
}

impl Fields {
    /// Creates the state for expressions and templates that were compiled into these slots.
    pub fn new(slots: Arc<Slots>) -> Self {
        let nothing = Value { stamp: 0, place: Place::Absent };
        Self {
            values: vec![nothing; slots.sources().len()].into(),
            stamp: 0,
            made: Vec::new(),
            temporary: Vec::new(),
            scratch: Vec::new(),
            machines: slots.patterns().iter().map(|_| None).collect(),
            tokens: Tokens::new(slots.token_readers()),
            user: None,
            slots,
        }
    }

    /// Drops the values of the previous request.
    pub(super) fn forget(&mut self) {
        for buffer in [&mut self.made, &mut self.temporary, &mut self.scratch] {
            buffer.clear();
            buffer.shrink_to(BUFFER_KEPT_BYTES_MAX);
        }
        self.user = None;
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            for value in &mut self.values {
                value.stamp = 0;
            }
            self.tokens.forget();
            self.stamp = 1;
        }
    }

    /// The slots of this state.
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The value of a slot; `None`: there is no such header, parameter or cookie.
    pub(super) fn slot<'v>(&mut self, slot: u32, facts: &Facts<'v>) -> Option<Piece<'v>> {
        let value = self.values[slot as usize];
        let place = if value.stamp == self.stamp { value.place } else { self.load(slot, facts) };
        match place {
            Place::Absent => None,
            Place::Request(span) => Some(Piece::Bytes(span.of(facts.request_input))),
            Place::Response(span) => {
                facts.response.map(|response| Piece::Bytes(span.of(response.input)))
            }
            Place::Datagram(span) => {
                facts.datagram.map(|datagram| Piece::Bytes(span.of(datagram.bytes)))
            }
            Place::Made(span) => Some(Piece::Made(span)),
        }
    }

    fn load(&mut self, slot: u32, facts: &Facts<'_>) -> Place {
        let Self { slots, made, tokens, stamp, .. } = self;
        let place = match &slots.sources()[slot as usize] {
            Source::Claim(reader, name) => {
                let claims = tokens.read(*reader, *stamp, facts).ok();
                let start = made.len();
                match claims.is_some_and(|claims| claims.write(name, made)) {
                    true => Place::Made(span(start, made.len())),
                    false => Place::Absent,
                }
            }
            source => find(source, facts, made),
        };
        self.values[slot as usize] = Value { stamp: self.stamp, place };
        place
    }

    /// The claims of the token, found by the reader with this number.
    pub(super) fn token(&mut self, reader: u32, facts: &Facts<'_>) -> Result<Arc<Claims>, Refusal> {
        self.tokens.read(reader, self.stamp, facts).cloned()
    }

    /// The authenticated user; empty: not authenticated.
    pub(super) fn user<'v>(&self) -> Piece<'v> {
        self.user.map_or(Piece::Bytes(b""), Piece::Made)
    }

    /// Sets the user that a rule has authenticated.
    pub(super) fn set_user(&mut self, name: &[u8]) {
        let start = self.made.len();
        self.made.extend_from_slice(name);
        self.user = Some(span(start, self.made.len()));
    }

    /// The capacity of the buffers.
    #[cfg(test)]
    pub(super) fn capacities(&self) -> [usize; 2] {
        [self.made.capacity(), self.temporary.capacity()]
    }

    pub(super) fn resolve<'p>(&'p self, piece: Piece<'p>) -> &'p [u8] {
        resolve(piece, &self.made, &self.temporary)
    }

    /// The used length of the temporary buffer; see [`Fields::release`].
    pub(super) fn mark(&self) -> usize {
        self.temporary.len()
    }

    /// Drops the values made since the mark.
    pub(super) fn release(&mut self, mark: usize) {
        self.temporary.truncate(mark);
    }

    /// Stores the text that `write` appends.
    pub(super) fn temporary<'v>(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Piece<'v> {
        let start = self.temporary.len();
        write(&mut self.temporary);
        Piece::Temporary(span(start, self.temporary.len()))
    }

    /// The text in lower case.
    pub(super) fn lower<'v>(&mut self, piece: Piece<'v>) -> Piece<'v> {
        if !self.resolve(piece).iter().any(u8::is_ascii_uppercase) {
            return piece;
        }
        let start = self.temporary.len();
        match piece {
            Piece::Bytes(bytes) => self.temporary.extend_from_slice(bytes),
            Piece::Made(span) => self.temporary.extend_from_slice(span.of(&self.made)),
            Piece::Temporary(span) => {
                self.temporary.extend_from_within(span.start as usize..span.end as usize);
            }
        }
        self.temporary[start..].make_ascii_lowercase();
        Piece::Temporary(span(start, self.temporary.len()))
    }

    /// The result of a function on a text.
    pub(super) fn make<'v>(&mut self, function: &TextFunction, piece: Piece<'v>) -> Piece<'v> {
        if let Some(range) = function.within(self.resolve(piece)) {
            return piece.within(range);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        function.write(self.resolve(piece), &mut scratch);
        let start = self.temporary.len();
        self.temporary.extend_from_slice(&scratch);
        self.scratch = scratch;
        Piece::Temporary(span(start, self.temporary.len()))
    }

    /// Whether the regular expression with this number matches anywhere.
    pub(super) fn matches(&mut self, number: u32, piece: Piece<'_>) -> bool {
        let Self { slots, made, temporary, machines, .. } = self;
        let (pattern, machine) = searcher(slots, machines, number);
        pattern.matches(machine, resolve(piece, made, temporary))
    }

    /// The regular expression with this number, and its search state.
    pub(super) fn searcher(&mut self, number: u32) -> (&Pattern, &mut Machine) {
        searcher(&self.slots, &mut self.machines, number)
    }
}

fn searcher<'f>(
    slots: &'f Slots,
    machines: &'f mut [Option<Box<Machine>>],
    number: u32,
) -> (&'f Pattern, &'f mut Machine) {
    let pattern = &slots.patterns()[number as usize];
    let machine = machines[number as usize].get_or_insert_with(|| Box::new(pattern.machine()));
    (pattern, machine)
}

fn resolve<'p>(piece: Piece<'p>, made: &'p [u8], temporary: &'p [u8]) -> &'p [u8] {
    match piece {
        Piece::Bytes(bytes) => bytes,
        Piece::Made(span) => span.of(made),
        Piece::Temporary(span) => span.of(temporary),
    }
}

/// A span; heads, and values made from them, are much smaller than 4 GiB.
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

/// Finds a value in the facts, and computes it if they do not contain it literally.
fn find(source: &Source, facts: &Facts<'_>, made: &mut Vec<u8>) -> Place {
    let (head, input) = (facts.request, facts.request_input);
    match source {
        Source::Host => host(facts, made),
        Source::Target => match head.target_span() {
            Some(span) => Place::Request(span),
            None => make(made, |made| {
                made.extend_from_slice(head.member_path(input));
                if let Some(query) = head.query(input) {
                    made.push(b'?');
                    made.extend_from_slice(query);
                }
            }),
        },
        Source::Query(name) => parameter(name, facts, made),
        Source::Header(name) => join(&head.fields, input, name, made, Place::Request),
        Source::Cookie(name) => request_cookies(&head.fields, input)
            .find(|cookie| cookie.name.of(input) == name.as_bytes())
            .map_or(Place::Absent, |cookie| Place::Request(cookie.value)),
        Source::ResponseHeader(name) => match facts.response {
            Some(response) => {
                join(&response.head.fields, response.input, name, made, Place::Response)
            }
            None => Place::Absent,
        },
        Source::ResponseCookie(name) => facts
            .response
            .and_then(|response| {
                set_cookies(&response.head.fields, response.input)
                    .filter(|cookie| cookie.name.of(response.input) == name.as_bytes())
                    .last()
            })
            .map_or(Place::Absent, |cookie| Place::Response(cookie.value)),
        // Claims of tokens: see [`Fields::load`].
        Source::Claim(..) => Place::Absent,
        Source::DatagramBytes(..)
        | Source::SipHeader(_)
        | Source::RadiusAttribute(_)
        | Source::RadiusVendorAttribute(..)
        | Source::QuicConnectionId => {
            facts.datagram.and_then(|it| of_datagram(source, it, made)).unwrap_or(Place::Absent)
        }
        Source::Date => make(made, |made| time::write_date(facts.around.local_s(), made)),
        Source::Clock => make(made, |made| time::write_clock(facts.around.local_s(), made)),
    }
}

/// Finds a value in a datagram; `None`: it is missing.
fn of_datagram(source: &Source, facts: &DatagramFacts<'_>, made: &mut Vec<u8>) -> Option<Place> {
    let bytes = facts.bytes;
    match source {
        Source::DatagramBytes(offset, length) => {
            let start = usize::from(*offset);
            let read = bytes.get(start..start + usize::from(*length))?;
            Some(make(made, |made| write_hex(read, made)))
        }
        Source::SipHeader(name) => {
            let value = sip::header(bytes, name)?;
            Some(match value.is_folded {
                true => make(made, |made| sip::unfold(value.span.of(bytes), made)),
                false => Place::Datagram(value.span),
            })
        }
        Source::RadiusAttribute(number) => radius::attribute(bytes, *number).map(Place::Datagram),
        Source::RadiusVendorAttribute(vendor, number) => {
            radius::vendor_attribute(bytes, *vendor, *number).map(Place::Datagram)
        }
        Source::QuicConnectionId => {
            let header = quic::Header::parse(bytes, usize::from(facts.quic_id_bytes)).ok()?;
            let id = header.destination().of(bytes);
            Some(make(made, |made| write_hex(id, made)))
        }
        _ => None,
    }
}

/// Appends bytes in hexadecimal digits, in lower case.
fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

fn make(made: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Place {
    let start = made.len();
    write(made);
    Place::Made(span(start, made.len()))
}

fn host(facts: &Facts<'_>, made: &mut Vec<u8>) -> Place {
    let host = facts.request.host(facts.request_input);
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) {
        return make(made, |made| made.extend(host.iter().map(u8::to_ascii_lowercase)));
    }
    let start = facts.request.authority.start;
    Place::Request(Span { start, end: start + host.len() as u32 })
}

fn parameter(name: &str, facts: &Facts<'_>, made: &mut Vec<u8>) -> Place {
    let input = facts.request_input;
    let Some((query, text)) = facts.request.query_place(input) else {
        return Place::Absent;
    };
    let found = query::parameters(query, text)
        .find(|parameter| query::decodes_to(parameter.name.of(text), name.as_bytes()));
    let is_received = std::ptr::eq(text, input);
    match found.map(|parameter| parameter.value) {
        Some(value) if !is_received || query::is_encoded(value.of(text)) => {
            make(made, |made| query::decode(value.of(text), made))
        }
        Some(value) => Place::Request(value),
        None => Place::Absent,
    }
}

/// The values of the fields with this name, joined by `, ` (RFC 9110 section 5.3).
fn join(
    fields: &[Field],
    input: &[u8],
    name: &str,
    made: &mut Vec<u8>,
    place: fn(Span) -> Place,
) -> Place {
    let mut values = fields
        .iter()
        .filter(|field| {
            field.name.len() == name.len()
                && field.name.of(input).eq_ignore_ascii_case(name.as_bytes())
        })
        .map(|field| field.value);
    let Some(first) = values.next() else {
        return Place::Absent;
    };
    let Some(second) = values.next() else {
        return place(first);
    };
    make(made, |made| {
        made.extend_from_slice(first.of(input));
        for value in std::iter::once(second).chain(values) {
            made.extend_from_slice(b", ");
            made.extend_from_slice(value.of(input));
        }
    })
}
