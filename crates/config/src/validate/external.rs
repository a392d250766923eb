//! External authorisation services: `type: external` of `authentication`.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::policy::subrequest::external::External;
use weir_core::policy::{Action, Policy, Subrequest};
use weir_http::path::{PathForm, canonicalise};

use super::names::find;
use crate::decode::{Context, NamedItem, OneOrMany, Spanned};
use crate::quote::clip;
use crate::raw;
use crate::raw::authentication::{Authentication, OnError};
use crate::shapes::{FieldName, ProbePath};
use crate::snapshot::Pool;

/// Fields of a denying response that are forwarded to the client: enough for a login page, a redirect to one, and a
/// challenge.
const ANSWER_HEADERS: [&str; 6] =
    ["Location", "Set-Cookie", "WWW-Authenticate", "Content-Type", "Cache-Control", "Retry-After"];

/// The service of an authentication, if it is valid, with its pool.
pub(super) fn external(
    item: &NamedItem<Authentication>,
    raw: &Authentication,
    pools: &BTreeMap<&str, usize>,
    context: &mut Context,
) -> Option<External> {
    let added = names(raw.add_headers.as_ref(), context);
    let answered = names(raw.answer_headers.as_ref(), context);
    let sent = names(raw.request_headers.as_ref(), context);
    let Some(pool) = &raw.pool else {
        let message = "an authentication of type external lacks `pool`";
        let help = "add `pool: NAME`, the pool of the service that is asked";
        context.error_help(item.name_span, message, help);
        return None;
    };
    let pool = find("pool", pools, pool, context)?;
    let path = path(&raw.path, context)?;
    let answered = match &raw.answer_headers {
        Some(_) => answered?,
        None => ANSWER_HEADERS.map(Into::into).into(),
    };
    Some(External {
        name: item.name.as_str().into(),
        pool: pool as u32,
        path,
        sent: Some(sent?).filter(|_| raw.request_headers.is_some()),
        added: added?,
        answered,
        user: raw.user_header.as_ref().map(|name| name.value.0.as_str().into()),
        timeout_ms: raw.timeout.0,
        lets_in_on_error: raw.on_error.value == OnError::Allow,
    })
}

/// A path that is sent unchanged.
fn path(given: &Spanned<ProbePath>, context: &mut Context) -> Option<Box<str>> {
    let text = given.value.0.as_str();
    let path = text.split('?').next().unwrap_or(text);
    if canonicalise(path.as_bytes(), PathForm::Keep, &mut Vec::new()).is_ok() {
        return Some(text.into());
    }
    let message = format!("`{}` cannot be asked for", clip(text));
    context.error_help(given.span, message, "write it without dot-segments and broken escapes");
    None
}

/// Names of fields that can be forwarded.
fn names(
    given: Option<&Spanned<OneOrMany<Spanned<FieldName>>>>,
    context: &mut Context,
) -> Option<Box<[Box<str>]>> {
    let mut is_sound = true;
    let all = given.into_iter().flat_map(|given| &given.value.0);
    let names = all.map(|name| {
        let instead = if name.value.0.contains('*') {
            Some("each name is given whole")
        } else {
            name.value
                .is_framing()
                .map(|_| "weir sets it itself from the message and the connection")
        };
        if let Some(instead) = instead {
            let message = format!("the header `{}` cannot be passed on", clip(&name.value.0));
            context.error_help(name.span, message, instead);
            is_sound = false;
        }
        name.value.0.as_str().into()
    });
    let names = names.collect();
    is_sound.then_some(names)
}

/// The pools that get requests of weir's own for a virtual server.
pub(super) fn pools_beside(policies: &[Arc<Policy>]) -> impl Iterator<Item = usize> {
    let rules = policies.iter().flat_map(|policy| policy.request.all());
    rules.flat_map(|rule| &rule.actions).filter_map(Action::subrequest).map(Subrequest::pool)
}

/// Checks a pool for weir's own requests: without a client, there is no client address for the source.
pub(super) fn refuse_pool(
    item: &NamedItem<raw::Pool>,
    model: Option<&Pool>,
    context: &mut Context,
) {
    if model.is_some_and(|model| model.source.is_client()) {
        let message = format!(
            "weir itself asks the pool `{}`, which connects from the addresses of clients (`source: client`)",
            clip(&item.name)
        );
        context.error_help(item.name_span, message, "remove `source`, or name another pool");
    }
}
