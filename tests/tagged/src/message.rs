//! The heads and trailers of an exchange on both sides of weir, and the checks of received ones.

use std::borrow::Cow;

use weir_testing::Random;

use crate::accept::accept_of;
use crate::place::{Server, Version};
use crate::plan::{Answer, Framing, Method, Plan, Rule, takes};
use crate::tag::{Id, Key, Part};

/// The name of a field, in lower case.
pub type Name = Cow<'static, str>;
/// Names and values.
pub type Fields = Vec<(Name, String)>;

/// Blocks are numbered so that consecutive fields start this number of blocks apart.
const FIELD_BLOCKS: usize = 64;
/// The Date of members' responses.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
/// Length of a Date value.
const DATE_BYTES: usize = DATE.len();

/// A request, sent or received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The host.
    pub host: String,
    /// The `:protocol` of an extended CONNECT.
    pub protocol: Option<String>,
    /// All other fields except those for framing and connection.
    pub fields: Fields,
}

/// Frequent field names, which need no allocation.
const NAMES: [&str; 24] = [
    "x-tag-1",
    "x-tag-2",
    "x-tag-3",
    "x-tag-4",
    "date",
    "etag",
    "cookie",
    "set-cookie",
    "content-type",
    "content-length",
    "host",
    "te",
    "connection",
    "authorization",
    "transfer-encoding",
    "x-trailer",
    "x-hint",
    "accept-encoding",
    "content-encoding",
    "expect",
    "upgrade",
    "vary",
    "sec-websocket-key",
    "sec-websocket-version",
];

/// A received field name in lower case.
pub fn name_of(text: &str) -> Name {
    let is_same = |it: &&str| it.len() == text.len() && it.eq_ignore_ascii_case(text);
    let known = NAMES.into_iter().find(is_same);
    known.map_or_else(|| text.to_ascii_lowercase().into(), Cow::Borrowed)
}

/// Capacity of a list of fields, enough for most heads.
const FIELDS_USUAL: usize = 16;

fn field(name: impl Into<Name>, value: impl Into<String>) -> (Name, String) {
    (name.into(), value.into())
}

/// A list of fields with spare capacity.
fn fields<const COUNT: usize>(first: [(Name, String); COUNT]) -> Fields {
    let mut fields = Fields::with_capacity(FIELDS_USUAL);
    fields.extend(first);
    fields
}

/// The field with this number. Its value has many blocks.
fn tagged(key: Key, plan: &Plan, part: Part, number: usize) -> (Name, String) {
    let value = key.text(plan.id, part, number * FIELD_BLOCKS, plan.field_blocks);
    match number {
        1..=4 => field(NAMES[number - 1], value),
        _ => field(format!("x-tag-{number}"), value),
    }
}

fn one(key: Key, plan: &Plan, part: Part) -> String {
    key.text(plan.id, part, 0, 1)
}

/// The user, as the authorisation service names it.
pub fn user(key: Key, plan: &Plan) -> String {
    key.text(plan.id, Part::Authorization, FIELD_BLOCKS, 1)
}

/// The path segment by which weir selects the pool.
fn pool_segment(plan: &Plan) -> &'static str {
    match plan.place.member {
        Version::Http1 => "1",
        Version::Http2 => "2",
    }
}

/// The path and the query as the client sends them.
pub fn target(key: Key, plan: &Plan) -> String {
    let (path, query) = (one(key, plan, Part::Path), one(key, plan, Part::Query));
    let (pool, rule) = (pool_segment(plan), plan.rule.segment());
    ["/", pool, "/", rule, "/", &path, "?q=", &query].concat()
}

/// The host in the client's request.
pub fn host(key: Key, plan: &Plan) -> String {
    one(key, plan, Part::Host) + ".test"
}

/// The block in the path that a member received.
pub fn path_block(target: &str) -> Option<&[u8]> {
    let path = target.split('?').next()?;
    path.split('/').nth(3).map(str::as_bytes)
}

/// Whether client and member send `TE: trailers`.
pub fn wants_trailers(plan: &Plan) -> bool {
    plan.body.has_trailers || plan.answer.body.has_trailers
}

/// The Sec-WebSocket-Key of a client.
pub fn socket_key(key: Key, plan: &Plan) -> String {
    crate::accept::base64(one(key, plan, Part::RequestField).as_bytes())
}

/// The request as the client intends it, without flaws.
pub fn request(key: Key, plan: &Plan) -> Request {
    let authorization = key.text(plan.id, Part::Authorization, 0, 2);
    let [a, b] = [0, 1].map(|place| key.text(plan.id, Part::Cookie, place, 1));
    let mut fields = fields([
        field("authorization", ["Bearer ", &authorization].concat()),
        field("cookie", ["a=", &a, "; b=", &b].concat()),
    ]);
    fields.extend((1..=plan.fields).map(|number| tagged(key, plan, Part::RequestField, number)));
    fields.extend(plan.accepts.map(|coding| field("accept-encoding", coding)));
    if plan.expects {
        fields.push(field("expect", "100-continue"));
    }
    let (target, host) = (target(key, plan), host(key, plan));
    let (mut method, mut protocol) = (plan.method.text(), None);
    if plan.tunnel.is_some() {
        fields.push(field("sec-websocket-version", "13"));
        if plan.place.client == Version::Http1 {
            fields.push(field("sec-websocket-key", socket_key(key, plan)));
        } else {
            (method, protocol) = ("CONNECT", Some("websocket".to_owned()));
        }
    }
    Request { method: method.to_owned(), target, host, protocol, fields }
}

/// Adds a cookie to those of a request, at a random position.
pub fn add_cookie(cookie: Option<String>, fields: &mut Fields, random: &mut Random) {
    let Some(cookie) = cookie else { return };
    for (_, value) in fields.iter_mut().filter(|(name, _)| name == "cookie") {
        let mut cookies: Vec<&str> = value.split("; ").collect();
        cookies.insert(random.below(cookies.len() + 1), &cookie);
        *value = cookies.join("; ");
    }
}

/// The request as the member must receive it.
fn request_for_member(key: Key, plan: &Plan) -> Request {
    let mut request = request(key, plan);
    if plan.rule == Rule::Rewrite {
        let (path, query) = (one(key, plan, Part::Path), one(key, plan, Part::Query));
        request.target = format!("/{}/rewritten/{path}?from={query}", pool_segment(plan));
        request.host = "inner.test".to_owned();
        request.fields.retain(|(name, _)| name != "x-tag-1");
        let cookie = key.text(plan.id, Part::Cookie, 0, 1);
        for (name, value) in &mut request.fields {
            if name == "cookie" {
                *value = format!("a={cookie}");
            }
        }
        request.fields.push(field("x-set", query));
    }
    match plan.place.server {
        // Inspections that go on elsewhere may hold other bodies, too.
        Server::Guarded => request.fields.retain(|(name, _)| name != "expect"),
        Server::Asked => request.fields.push(field("x-user", user(key, plan))),
        // Members respond without compression.
        Server::Rewritten => request.fields.retain(|(name, _)| name != "accept-encoding"),
        _ => {}
    }
    if plan.tunnel.is_some() {
        request.fields.retain(|(name, _)| name != "sec-websocket-key");
        (request.method, request.protocol) = match plan.place.member {
            Version::Http1 => ("GET".to_owned(), None),
            Version::Http2 => ("CONNECT".to_owned(), Some("websocket".to_owned())),
        };
    }
    request
}

/// Checks all fields of a request that a member has received against its plan.
pub fn check_request(key: Key, plan: &Plan, got: &Request) -> Result<(), String> {
    let expected = request_for_member(key, plan);
    let same = |what, got: &str, expected: &str| match got == expected {
        true => Ok(()),
        false => Err(format!("{what} {got:?} instead of {expected:?}")),
    };
    same("method", &got.method, &expected.method)?;
    same("target", &got.target, &expected.target)?;
    same("host", &got.host, &expected.host)?;
    if got.protocol != expected.protocol {
        return Err(format!("protocol {:?}", got.protocol));
    }
    compare(&got.fields, expected.fields, |name, value| match name {
        "te" => wants_trailers(plan) && value == "trailers",
        "expect" => plan.place.server == Server::Guarded && plan.expects && !plan.is_held(),
        "accept-encoding" => plan.place.server == Server::Rewritten && value == "identity",
        // Without a key from the client, weir generates one.
        "sec-websocket-key" if plan.tunnel.is_some() => {
            plan.place.client == Version::Http2 || value == socket_key(key, plan)
        }
        _ => false,
    })
}

/// The headers of a member's response, without framing.
pub fn answer_fields(key: Key, plan: &Plan) -> Fields {
    let answer = &plan.answer;
    let mark = one(key, plan, Part::ResponseMark);
    let tag = key.text(plan.id, Part::ResponseMark, 1, 1);
    let mut fields = fields([
        field("content-type", content_type(answer)),
        field("set-cookie", ["m=", &mark, "; Path=/"].concat()),
        field("etag", ["\"", &tag, "\""].concat()),
    ]);
    fields.extend((1..=answer.fields).map(|number| tagged(key, plan, Part::ResponseField, number)));
    if answer.has_date {
        fields.push(field("date", DATE));
    }
    fields
}

fn content_type(answer: &Answer) -> &'static str {
    if answer.is_text { "text/plain" } else { "application/octet-stream" }
}

/// The headers of an interim response.
pub fn hint_fields(key: Key, plan: &Plan, number: usize) -> Fields {
    vec![field("x-hint", key.text(plan.id, Part::Interim, number * FIELD_BLOCKS, 2))]
}

/// The trailers of a request or a response.
pub fn trailers(key: Key, plan: &Plan, part: Part) -> Fields {
    vec![field("x-trailer", key.text(plan.id, part, 0, 2))]
}

/// Compares received trailers with the plan. Returns whether there are any. Trailers may be dropped but not changed.
pub fn check_trailers(
    key: Key,
    plan: &Plan,
    part: Part,
    planned: bool,
    got: &Fields,
) -> Result<bool, String> {
    if got.is_empty() {
        return Ok(false);
    }
    if !planned {
        return Err(format!("trailers {got:?} where none were sent"));
    }
    compare(got, trailers(key, plan, part), |_, _| false).map(|()| true)
}

/// Whether a value has the form of a date.
pub fn is_date(value: &str) -> bool {
    value.len() == DATE_BYTES && value.ends_with(" GMT") && value.as_bytes()[3] == b','
}

/// Whether a response head is from a member.
pub fn is_of_member(fields: &Fields) -> bool {
    fields.iter().any(|(name, value)| name == "set-cookie" && value.starts_with("m="))
}

/// Field name of unsolicited responses.
const SURPLUS: &str = "x-surplus";

/// The header of the unsolicited response that follows the response of this exchange.
pub fn surplus_field(key: Key, plan: &Plan) -> (Name, String) {
    field(SURPLUS, one(key, plan, Part::ResponseMark))
}

/// The exchange whose member sent this unsolicited response; `None`: not an unsolicited response.
pub fn surplus_of(key: Key, fields: &Fields) -> Option<Id> {
    let (_, mark) = fields.iter().find(|(name, _)| name == SURPLUS)?;
    key.read(mark.as_bytes()).map(|(id, ..)| id)
}

/// Checks a final head that a client has received against the plan of the member's response. Returns the content coding of
/// the body.
pub fn check_answer(
    key: Key,
    plan: &Plan,
    status: u16,
    got: &Fields,
) -> Result<Option<String>, String> {
    if status != plan.answer.status {
        return Err(format!("status {status} instead of {}", plan.answer.status));
    }
    let mut expected = answer_fields(key, plan);
    let is_rewritten = plan.is_rewritten() && plan.answer.body.framing != Framing::Empty;
    let value_of = |name| got.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone());
    let coding = value_of("content-encoding");
    if let Some(coding) = &coding {
        let is_taken = plan.accepts.is_some_and(|accepts| takes(accepts, coding));
        if !is_taken || !plan.answer.is_text {
            return Err(format!("Content-Encoding {coding} for {:?}", plan.accepts));
        }
        expected.push(field("content-encoding", &**coding));
    }
    let is_compressed = matches!(plan.place.server, Server::Compressed | Server::Rewritten);
    if coding.is_some() || is_rewritten || is_weakened(plan, got) {
        for (name, value) in &mut expected {
            if name == "etag" {
                value.insert_str(0, "W/");
            }
        }
    }
    if plan.rule == Rule::Rewrite {
        expected.retain(|(name, _)| name != "x-tag-1");
        expected.push(field("x-answered", one(key, plan, Part::Query)));
    }
    let has_date = plan.answer.has_date;
    compare(got, expected, |name, value| match name {
        "date" => !has_date && is_date(value),
        "vary" => is_compressed && value == "Accept-Encoding",
        _ => false,
    })?;
    Ok(coding)
}

/// Whether the entity tag of a response without a body is weak: it may be that of the rewritten body.
fn is_weakened(plan: &Plan, got: &Fields) -> bool {
    let is_weak = |(name, value): &(Name, String)| name == "etag" && value.starts_with("W/");
    plan.is_rewritten() && got.iter().any(is_weak)
}

/// Checks the head of 101, or of 2xx to an extended CONNECT.
pub fn check_agreement(key: Key, plan: &Plan, got: &Fields) -> Result<(), String> {
    let mut expected = agreement_fields(key, plan);
    if plan.place.client == Version::Http1 {
        expected.push(field("sec-websocket-accept", accept_of(&socket_key(key, plan))));
    }
    compare(got, expected, |name, value| match name {
        "date" => is_date(value),
        // The answer of an HTTP/1 member to the key that weir generated. The key is unknown here.
        "sec-websocket-accept" => plan.place.client == Version::Http2 && value.len() == 28,
        _ => false,
    })
}

/// The headers of a member's response that accepts a tunnel, without those of the handshake.
pub fn agreement_fields(key: Key, plan: &Plan) -> Fields {
    let mark = one(key, plan, Part::ResponseMark);
    vec![
        field("set-cookie", format!("m={mark}; Path=/")),
        tagged(key, plan, Part::ResponseField, 1),
    ]
}

/// The length of the response body that the client receives, before compression.
pub fn answer_bytes(plan: &Plan) -> usize {
    match plan.method {
        Method::Head => 0,
        _ if plan.answer.body.framing == Framing::Empty => 0,
        _ => plan.answer.body.bytes,
    }
}

/// Compares fields, each of which must occur once. `is_free` decides about unexpected fields.
pub fn compare(
    got: &Fields,
    mut expected: Fields,
    is_free: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    for (at, (name, value)) in got.iter().enumerate() {
        if let Some(place) = expected.iter().position(|(it, _)| it == name) {
            let (_, wanted) = expected.swap_remove(place);
            if wanted != *value {
                return Err(format!("{name}: {value:?} instead of {wanted:?}"));
            }
        } else if !is_free(name, value) || got[..at].iter().any(|(it, _)| it == name) {
            return Err(format!("surplus field {name}: {value:?}"));
        }
    }
    match expected.first() {
        None => Ok(()),
        Some((name, value)) => Err(format!("missing field {name}: {value:?}")),
    }
}
