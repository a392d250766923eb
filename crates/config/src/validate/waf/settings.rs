//! Settings of rules: `TX` variables with keys of their own, and variables set by name.

use std::collections::BTreeMap;

use weir_waf::plan::RuleSet;

use super::{Variables, raw};
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::hints::nearest;
use crate::quote::clip;

/// Variables with keys: names in CRS 4, then in CRS 3.
const PARANOIA: &[&str] = &["blocking_paranoia_level", "paranoia_level"];
const DETECTION_PARANOIA: &[&str] = &["detection_paranoia_level", "executing_paranoia_level"];
const THRESHOLD: &[&str] = &["inbound_anomaly_score_threshold"];
const EARLY_BLOCKING: &[&str] = &["early_blocking"];

/// A key and its variables.
struct Key {
    name: &'static str,
    sets: &'static [&'static str],
    /// The value; `None`: not set, so the rules' own value applies.
    value: Option<String>,
    /// The place of the key.
    span: Option<Span>,
}

fn keys(raw: &raw::Waf) -> [Key; 4] {
    let paranoia = raw.paranoia.as_ref();
    let detection = raw.detection_paranoia.as_ref();
    let level = |level: &Spanned<raw::Level>| level.value.0.to_string();
    let threshold = raw.threshold.as_ref();
    let early = raw.early_blocking.as_ref();
    [
        Key {
            name: "paranoia",
            sets: PARANOIA,
            value: paranoia.map(level),
            span: paranoia.map(|it| it.span),
        },
        Key {
            name: "detection_paranoia",
            sets: DETECTION_PARANOIA,
            // The value in the files could be below the scoring level.
            value: detection.or(paranoia).map(level),
            span: detection.map(|it| it.span),
        },
        Key {
            name: "threshold",
            sets: THRESHOLD,
            value: threshold.map(|it| it.value.0.to_string()),
            span: threshold.map(|it| it.span),
        },
        Key {
            name: "early_blocking",
            sets: EARLY_BLOCKING,
            value: early.map(|it| u8::from(it.value).to_string()),
            span: early.map(|it| it.span),
        },
    ]
}

/// The variables of a section, sorted by name, if they are consistent.
pub(super) fn variables(raw: &raw::Waf, context: &mut Context) -> Option<Variables> {
    let mut is_sound = levels_fit(raw, context);
    let keys = keys(raw);
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for key in &keys {
        let values = key.sets.iter().zip(std::iter::repeat(&key.value));
        found.extend(values.filter_map(|(name, value)| Some((*name, value.clone()?))));
    }
    for (name, value) in raw.variables.iter().flat_map(|all| &all.value.0) {
        if found.insert(&name.value, value.value.0.clone()).is_none() {
            continue;
        }
        let shown = clip(&name.value);
        let (message, help) = match keys.iter().find(|key| key.sets.contains(&&*name.value)) {
            Some(key) => (format!("`{shown}` is what `{}` sets", key.name), "keep one of them"),
            None => (format!("`{shown}` is listed twice"), "names are the same in either case"),
        };
        context.error_help(name.span, message, help);
        is_sound = false;
    }
    let owned = found.into_iter().map(|(name, value)| (name.to_owned(), value));
    is_sound.then(|| owned.collect())
}

/// Checks the paranoia levels: a rule that scores must also be evaluated.
fn levels_fit(raw: &raw::Waf, context: &mut Context) -> bool {
    let (Some(paranoia), Some(detection)) = (&raw.paranoia, &raw.detection_paranoia) else {
        return true;
    };
    let least = paranoia.value.0;
    if detection.value.0 >= least {
        return true;
    }
    let message = format!(
        "`detection_paranoia` is below `paranoia`, {least}: rules that score are always evaluated"
    );
    context.error_help(detection.span, message, format!("set it to {least} or more"));
    false
}

/// Warns of settings that no rule uses.
pub(super) fn warn_of_no_effect(raw: &raw::Waf, rules: &RuleSet, context: &mut Context) {
    for key in keys(raw) {
        if let Some(span) = key.span
            && !key.sets.iter().any(|name| rules.has_variable(name))
        {
            let names: Vec<String> = key.sets.iter().map(|name| format!("`{name}`")).collect();
            let (name, names) = (key.name, names.join(" or "));
            let message = format!("`{name}` has no effect: no rule names {names}");
            context.warning_help(span, message, "remove it");
        }
    }
    for (name, _) in raw.variables.iter().flat_map(|all| &all.value.0) {
        if rules.has_variable(&name.value) {
            continue;
        }
        let help = match nearest(&name.value, rules.variables()) {
            Some(near) => format!("did you mean `{}`?", clip(near)),
            None => "remove it".to_owned(),
        };
        let message = format!("no rule names the variable `{}`", clip(&name.value));
        context.warning_help(name.span, message, help);
    }
}
