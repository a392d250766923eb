//! Limits: rates, and their keys.

use std::sync::Arc;

use weir_core::keyed_hash::PrefixLengths;
use weir_core::limit::Rate;

use super::compiler::Compiler;
use crate::decode::{Context, Spanned, if_given, or_absent};
use crate::document::Span;
use crate::rate;
use crate::raw::limit as raw;
use crate::scalar::Duration;
use crate::snapshot::{CountedEvents, KeyLimit, KeyMeasure, LimitAction, LimitKey, Limits};

/// The default burst is the number of requests in this fraction of a second.
const BURST_SHARE: u32 = 10;

/// The period of a rate without a unit.
pub(super) const PER_SECOND_MS: u32 = 1_000;

impl Compiler<'_> {
    /// The limits of a virtual server.
    pub fn limits(
        &mut self,
        owner: &str,
        raw: Option<&Spanned<raw::Limits>>,
        context: &mut Context,
    ) -> Option<Limits> {
        let raw = or_absent(raw);
        if let (Some(burst), None) = (&raw.burst, &raw.requests_per_second) {
            let message = "`burst` belongs to `requests_per_second`, which is not given";
            context.error_help(burst.span, message, "add `requests_per_second`");
        }
        let burst = raw.burst.as_ref().map(|burst| burst.value.0);
        let requests = if_given(raw.requests_per_second.as_ref(), |limit| {
            rate(limit.value, burst, limit.span, context)
        });
        let connections = if_given(raw.connections_per_second.as_ref(), |limit| {
            rate(limit.value, None, limit.span, context)
        });
        let (mut per_key, mut per_key_connections) = (Vec::new(), Vec::new());
        let mut is_sound = true;
        for (index, limit) in raw.per_key.iter().flat_map(|limits| limits.iter()).enumerate() {
            let name = format!("virtual_servers.{owner}.limits.per_key[{index}]");
            let Some(key) = self.limit_key(limit, context) else {
                is_sound = false;
                continue;
            };
            refuse_connections_beside_key(limit, context);
            let of_requests = self.request_limits(&name, &key, limit, context);
            let of_connections = self.connection_limits(&name, &key, limit, context);
            is_sound &= of_requests.is_some() && of_connections.is_some();
            per_key.extend(of_requests.into_iter().flatten());
            per_key_connections.extend(of_connections.into_iter().flatten());
        }
        let (requests, connections) = (requests?, connections?);
        is_sound.then(|| Limits {
            connections_max: raw.connections.map(|limit| limit.0),
            connections,
            requests_max: raw.requests.map(|limit| limit.0),
            requests,
            per_key,
            per_key_connections,
        })
    }

    /// The limits of a rule, as indexes in the snapshot.
    pub fn rule_limits(
        &mut self,
        name: &str,
        raw: &Spanned<raw::RateLimit>,
        context: &mut Context,
    ) -> Option<Vec<usize>> {
        let key = self.limit_key(raw, context);
        let mut is_sound = true;
        if counts_requests(raw) {
            for (key, span) in connection_keys(raw) {
                if let Some(span) = span {
                    let message = format!(
                        "`{key}` cannot be used with a limit on requests: the two are checked at different times"
                    );
                    let help = "put it into a policy for connections, or into `limits.per_key` of the virtual server";
                    context.error_help(span, message, help);
                    is_sound = false;
                }
            }
            return self.request_limits(name, &key?, raw, context).filter(|_| is_sound);
        }
        let of_requests = [
            ("burst", raw.burst.as_ref().map(|burst| burst.span)),
            ("exceed", raw.exceed.given.then_some(raw.exceed.span)),
            ("delay_max", raw.delay_max.given.then_some(raw.delay_max.span)),
        ];
        for (key, span) in of_requests {
            if let Some(span) = span {
                let message =
                    format!("`{key}` is about requests: a connection beyond a limit is closed");
                context.error_help(span, message, "remove it");
                is_sound = false;
            }
        }
        self.connection_limits(name, &key?, raw, context).filter(|_| is_sound)
    }

    /// The key of a limit. A limit without a limited value is an error too.
    fn limit_key(
        &mut self,
        raw: &Spanned<raw::RateLimit>,
        context: &mut Context,
    ) -> Option<LimitKey> {
        if !counts_requests(raw) && connection_keys(raw).iter().all(|(_, span)| span.is_none()) {
            context.error_help(
                raw.span,
                "this limits nothing",
                "add `requests_per_second`, `requests`, `connections_per_second` or `connections`",
            );
            return None;
        }
        let Some(text) = &raw.key else {
            return Some(LimitKey::Address(PrefixLengths {
                v4: raw.prefix_v4.0,
                v6: raw.prefix_v6.0,
            }));
        };
        let prefixes = [
            ("prefix_v4", raw.prefix_v4.given.then_some(raw.prefix_v4.span)),
            ("prefix_v6", raw.prefix_v6.given.then_some(raw.prefix_v6.span)),
        ];
        refuse_beside_key(&prefixes, context);
        self.key("key", text, context).map(LimitKey::Text)
    }

    fn request_limits(
        &mut self,
        name: &str,
        key: &LimitKey,
        raw: &Spanned<raw::RateLimit>,
        context: &mut Context,
    ) -> Option<Vec<usize>> {
        let mut limits = Vec::new();
        let burst = raw.burst.as_ref().map(|burst| burst.value.0);
        if let (Some(burst), None) = (&raw.burst, &raw.requests_per_second) {
            let message = "`burst` belongs to `requests_per_second`, which is not given";
            context.error_help(burst.span, message, "add `requests_per_second`");
        }
        let mut delay_max_ms = None;
        let exceed = match raw.exceed.value {
            raw::Exceed::Reject => LimitAction::Reject,
            raw::Exceed::Close => LimitAction::Close,
            raw::Exceed::Delay => {
                let Duration(max_ms) = raw.delay_max.value;
                delay_max_ms = Some(max_ms);
                LimitAction::Delay { max_ms }
            }
        };
        if raw.delay_max.given && delay_max_ms.is_none() {
            let message = "`delay_max` belongs to `exceed: delay`";
            context.error_help(raw.delay_max.span, message, "remove it, or set `exceed: delay`");
        }
        if let Some(per_second) = &raw.requests_per_second {
            let mut rate = rate(per_second.value, burst, per_second.span, context)?;
            if let Some(max_ms) = delay_max_ms {
                rate = match rate.delaying(max_ms * 1_000) {
                    Ok(rate) => rate,
                    Err(error) => {
                        context.error(raw.delay_max.span, error.to_string());
                        return None;
                    }
                };
            }
            let what = (CountedEvents::Requests, KeyMeasure::Rate(rate), exceed);
            limits.push(self.push_limit(name, key, what, raw));
        } else if delay_max_ms.is_some() {
            let message = "`exceed: delay` needs a rate";
            let help = "add `requests_per_second`, or use `exceed: reject`";
            context.error_help(raw.exceed.span, message, help);
        }
        if let Some(max) = &raw.requests {
            let name = format!("{name}.requests");
            let what = (CountedEvents::Requests, KeyMeasure::AtATime(max.value.0), exceed);
            limits.push(self.push_limit(&name, key, what, raw));
        }
        Some(limits)
    }

    fn connection_limits(
        &mut self,
        name: &str,
        key: &LimitKey,
        raw: &Spanned<raw::RateLimit>,
        context: &mut Context,
    ) -> Option<Vec<usize>> {
        let mut limits = Vec::new();
        if let Some(per_second) = &raw.connections_per_second {
            let rate = rate(per_second.value, None, per_second.span, context)?;
            let name = format!("{name}.connections_per_second");
            let what = (CountedEvents::Connections, KeyMeasure::Rate(rate), LimitAction::Close);
            limits.push(self.push_limit(&name, key, what, raw));
        }
        if let Some(max) = &raw.connections {
            let name = format!("{name}.connections");
            let what =
                (CountedEvents::Connections, KeyMeasure::AtATime(max.value.0), LimitAction::Close);
            limits.push(self.push_limit(&name, key, what, raw));
        }
        Some(limits)
    }

    fn push_limit(
        &mut self,
        name: &str,
        key: &LimitKey,
        (counted, measure, exceed): (CountedEvents, KeyMeasure, LimitAction),
        raw: &raw::RateLimit,
    ) -> usize {
        let (name, key) = (name.into(), key.clone());
        let entries_max = raw.entries_max.value.0;
        self.limits.push(Arc::new(KeyLimit { name, key, counted, measure, exceed, entries_max }));
        self.limits.len() - 1
    }
}

fn counts_requests(raw: &raw::RateLimit) -> bool {
    raw.requests_per_second.is_some() || raw.requests.is_some()
}

/// Reports limits on connections with another key: only the address of a new connection is known.
fn refuse_connections_beside_key(raw: &raw::RateLimit, context: &mut Context) {
    if raw.key.is_some() {
        refuse_beside_key(&connection_keys(raw), context);
    }
}

fn refuse_beside_key(keys: &[(&str, Option<Span>)], context: &mut Context) {
    for (key, span) in keys {
        if let Some(span) = span {
            let message = format!("`{key}` does not apply beside `key`");
            context.error_help(*span, message, "remove one of them");
        }
    }
}

/// The keys that limit connections, and their places.
fn connection_keys(raw: &raw::RateLimit) -> [(&'static str, Option<Span>); 2] {
    [
        ("connections_per_second", raw.connections_per_second.as_ref().map(|limit| limit.span)),
        ("connections", raw.connections.as_ref().map(|limit| limit.span)),
    ]
}

/// A rate with its burst.
pub(super) fn rate(
    raw: rate::Rate,
    burst: Option<u32>,
    span: Span,
    context: &mut Context,
) -> Option<Rate> {
    let rate::Rate { count, period_ms } = raw;
    let usual = if period_ms > PER_SECOND_MS { count } else { (count / BURST_SHARE).max(1) };
    match Rate::new(count, period_ms, burst.unwrap_or(usual)) {
        Ok(rate) => Some(rate),
        Err(error) => {
            context.error(span, error.to_string());
            None
        }
    }
}
