//! Request ids: for members and clients, if configured, and in logs.

use std::io::Write as _;
use std::rc::Rc;

use weir_config::snapshot::{ClientAddress, RequestIdSettings};
use weir_core::policy::Decision;
use weir_http::edits::FieldEdits;

use crate::local::client_address::named;
use crate::parts::arrival::Arrival;
use crate::parts::request_context::RequestContext;
use crate::parts::request_trace::RequestTrace;
use crate::parts::tools::Tools;
use crate::transaction::tracing;

/// Maximum length of an accepted id.
pub const TAKEN_BYTES_MAX: usize = 128;

/// The id of a request.
#[derive(Debug, Default)]
pub struct RequestName {
    /// The number; 0: the request has an id from a proxy, or none yet.
    pub number: u64,
    /// The id from a trusted proxy; empty: it has a number, or no id.
    pub taken: Box<[u8]>,
    /// Its trace context.
    pub traced: Option<Box<RequestTrace>>,
}

/// Gives a request its id and its trace context, if its virtual server uses them.
pub fn identify(arrival: &Arrival<'_>, decision: &mut Decision, tools: &mut Tools) -> RequestName {
    let settings = arrival.server.settings();
    let named = settings.request_id.as_ref().map(|it| name(it, arrival, decision, tools));
    let traced = settings.tracing.as_ref().map(|it| tracing::begin(it, arrival, decision, tools));
    RequestName { traced: traced.map(Box::new), ..named.unwrap_or_default() }
}

/// Gives a request its id, and tells its member and client if configured. A field that a rule has written stays.
fn name(
    settings: &RequestIdSettings,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    tools: &mut Tools,
) -> RequestName {
    let mut scratch = tools.scratch.take();
    let mut named = RequestName::default();
    match taken(settings, arrival.client_address(), arrival) {
        Some(id) => {
            named.taken = id.into();
            scratch.extend_from_slice(id);
        }
        None => {
            named.number = tools.request_ids.next(tools.sources.fill_randomly);
            let id = tools.request_ids.id(named.number);
            write!(scratch, "{id:032x}").expect("a Vec takes all");
        }
    }
    put(&mut decision.request.fields, settings.header.as_bytes(), &scratch);
    if settings.respond {
        put(&mut decision.later.response, settings.header.as_bytes(), &scratch);
    }
    tools.scratch.give(scratch);
    named
}

/// The id from a trusted proxy.
fn taken<'a>(
    settings: &'a RequestIdSettings,
    client: &ClientAddress,
    arrival: &Arrival<'a>,
) -> Option<&'a [u8]> {
    let peer = arrival.peer()?;
    if !client.trust.contains(peer.ip()) {
        return None;
    }
    let name = settings.header.as_bytes();
    let mut values = named(&arrival.head.fields, arrival.input, name);
    let id = values.next().filter(|id| is_sound(id))?;
    values.next().is_none().then_some(id)
}

/// The id of an inspected request. A request without an id gets a number.
pub fn name_inspected(
    tools: &mut Tools,
    number: &mut u64,
    context: Option<&RequestContext>,
) -> Rc<str> {
    let is_taken = context.is_some_and(|context| !context.request_id.is_empty());
    if *number == 0 && !is_taken {
        *number = tools.request_ids.next(tools.sources.fill_randomly);
    }
    id_of(tools, *number, context)
}

/// The id of a request with a number or an id from a trusted proxy.
pub fn id_of(tools: &Tools, number: u64, context: Option<&RequestContext>) -> Rc<str> {
    let taken = context.map_or(&b""[..], |context| &context.request_id);
    match std::str::from_utf8(taken) {
        Ok(taken) if !taken.is_empty() => taken.into(),
        _ => format!("{:032x}", tools.request_ids.id(number)).into(),
    }
}

/// Whether this text may appear unchanged in logs, pages and fields.
fn is_sound(id: &[u8]) -> bool {
    let may_stand = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte);
    (1..=TAKEN_BYTES_MAX).contains(&id.len()) && id.iter().all(may_stand)
}

fn put(fields: &mut FieldEdits, name: &[u8], id: &[u8]) {
    if !fields.added().any(|(added, _)| added.eq_ignore_ascii_case(name)) {
        fields.set(name, |out| out.extend_from_slice(id));
    }
}

#[cfg(test)]
mod tests {
    use super::{TAKEN_BYTES_MAX, is_sound};

    #[test]
    fn an_id_is_taken_that_may_stand_anywhere() {
        let longest = "a".repeat(TAKEN_BYTES_MAX);
        for id in
            ["0", "4bf92f35-77b3.4da6_a3ce~929d", "Root=1-67891233-abcdef", "a:b/c+d=e@f", &longest]
        {
            assert!(is_sound(id.as_bytes()), "{id}");
        }
        let too_long = "a".repeat(TAKEN_BYTES_MAX + 1);
        for id in ["", " ", "a b", "a,b", "a\"b", "<b>", "a\\b", "a;b", "\u{e9}", "a\tb", &too_long]
        {
            assert!(!is_sound(id.as_bytes()), "{id:?}");
        }
    }
}
