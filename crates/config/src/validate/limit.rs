//! Limits: rates, and what they are counted by.

use std::sync::Arc;

use weir_core::expression::Purpose;
use weir_core::keyed_hash::PrefixLengths;
use weir_core::limit::Rate;

use super::policy::Compiler;
use crate::decode::{Context, Spanned, or_absent};
use crate::raw::limit as raw;
use crate::scalar::{Duration, Whole};
use crate::snapshot::{Exceed, KeyLimit, LimitKey, Limits};
use crate::tree::Span;

/// A burst that the file does not give is what comes in within this part of a second.
const BURST_SHARE: u32 = 10;

/// The limits per key of a file: of virtual servers, and of rules.
#[derive(Debug, Default)]
pub(super) struct KeyLimits(pub Vec<Arc<KeyLimit>>);

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
        let per_second = |limit: &Option<Spanned<Whole<u32, 1, { raw::RATE_MAX }>>>| {
            limit.as_ref().map(|limit| (limit.value.0, limit.span))
        };
        let burst = per_second(&raw.burst).map(|(burst, _)| burst);
        let requests = match per_second(&raw.requests_per_second) {
            Some((limit, span)) => Some(rate(limit, burst, span, context)?),
            None => None,
        };
        let connections = match per_second(&raw.connections_per_second) {
            Some((limit, span)) => Some(rate(limit, None, span, context)?),
            None => None,
        };
        let mut per_key = Vec::new();
        for (index, limit) in raw.per_key.iter().flat_map(|limits| limits.iter()).enumerate() {
            let name = format!("virtual_servers.{owner}.limits[{index}]");
            per_key.push(self.key_limit(&name, limit, context)? as usize);
        }
        Some(Limits {
            connections_max: raw.connections.map(|limit| limit.0),
            connections,
            requests,
            per_key,
        })
    }

    /// A limit per key; its index in the snapshot.
    pub fn key_limit(
        &mut self,
        name: &str,
        raw: &Spanned<raw::RateLimit>,
        context: &mut Context,
    ) -> Option<u32> {
        let key = match &raw.key {
            None => LimitKey::Address(PrefixLengths { v4: raw.prefix_v4.0, v6: raw.prefix_v6.0 }),
            Some(text) => {
                for (key, prefix) in [
                    ("prefix_v4", raw.prefix_v4.given.then_some(raw.prefix_v4.span)),
                    ("prefix_v6", raw.prefix_v6.given.then_some(raw.prefix_v6.span)),
                ] {
                    if let Some(span) = prefix {
                        let message = format!("`{key}` does not apply beside `key`");
                        context.error_help(span, message, "remove one of them");
                    }
                }
                LimitKey::Text(self.template(&text.value.0, text.span, Purpose::Plain, context)?)
            }
        };
        let per_second = raw.requests_per_second.as_ref()?;
        let burst = raw.burst.as_ref().map(|burst| burst.value.0);
        let mut rate = rate(per_second.value.0, burst, per_second.span, context)?;
        let exceed = match raw.exceed.value {
            raw::Exceed::Reject => Exceed::Reject,
            raw::Exceed::Close => Exceed::Close,
            raw::Exceed::Delay => {
                let Duration(max_ms) = raw.delay_max.value;
                rate = match rate.delaying(max_ms * 1_000) {
                    Ok(rate) => rate,
                    Err(error) => {
                        context.error(raw.delay_max.span, error.to_string());
                        return None;
                    }
                };
                Exceed::Delay { max_ms }
            }
        };
        if raw.delay_max.given && raw.exceed.value != raw::Exceed::Delay {
            let message = "`delay_max` belongs to `exceed: delay`";
            context.error_help(raw.delay_max.span, message, "remove it, or set `exceed: delay`");
        }
        let limit =
            KeyLimit { name: name.into(), key, rate, exceed, entries_max: raw.entries_max.value.0 };
        self.limits.0.push(Arc::new(limit));
        Some(self.limits.0.len() as u32 - 1)
    }
}

/// So many per second, of which some may come at once.
pub(super) fn rate(
    per_second: u32,
    burst: Option<u32>,
    span: Span,
    context: &mut Context,
) -> Option<Rate> {
    let burst = burst.unwrap_or((per_second / BURST_SHARE).max(1));
    match Rate::new(per_second, 1_000, burst) {
        Ok(rate) => Some(rate),
        Err(error) => {
            context.error(span, error.to_string());
            None
        }
    }
}
