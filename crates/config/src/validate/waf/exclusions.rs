//! Exclusions: values that rules do not inspect.

use weir_waf::exclusion::{self, EXCLUSIONS_MAX, Exclusion, Place};
use weir_waf::plan::RuleSet;

use super::raw;
use crate::decode::Context;
use crate::rule_files::Disk;

/// Returns the exclusions of a section, sorted and without duplicates.
pub(super) fn wanted(raw: &raw::Waf, context: &mut Context) -> Option<Vec<Exclusion>> {
    let Some(section) = &raw.exclusions else { return Some(Vec::new()) };
    if section.value.0.len() > EXCLUSIONS_MAX {
        let message = format!("more than {EXCLUSIONS_MAX} exclusions");
        let help = "exclude a folder instead of its paths, or remove the rule in a file of rules";
        context.error_help(section.span, message, help);
        return None;
    }
    let all: Vec<Option<Exclusion>> =
        section.value.0.iter().map(|item| one(item.value.as_ref()?, context)).collect();
    let mut all = all.into_iter().collect::<Option<Vec<Exclusion>>>()?;
    all.sort();
    all.dedup();
    Some(all)
}

fn one(raw: &raw::Exclusion, context: &mut Context) -> Option<Exclusion> {
    let (rule, variable, path) = (raw.rule.as_ref()?, raw.variable.as_ref()?, raw.path.as_ref()?);
    let place = Place::parse(&path.value.0).map_err(|why| {
        let help = "write the path that the member gets, or `/folder/*` for all paths in it";
        context.error_help(path.span, why, help);
    });
    let exclusion = Exclusion {
        rule: rule.value.0.into(),
        variable: variable.value.0.clone(),
        place: place.ok()?,
    };
    if let Err(why) = exclusion.check() {
        let help = "write the variable as the log of the firewall names it: `ARGS:text`, \
                    `REQUEST_COOKIES:session`, `REQUEST_HEADERS:User-Agent`";
        context.error_help(variable.span, why, help);
        return None;
    }
    Some(exclusion)
}

/// The rule files, preceded by the rules that implement the exclusions, and a disk that contains them all.
pub(super) fn before(exclusions: &[Exclusion], files: Vec<String>) -> (Vec<String>, Disk) {
    if exclusions.is_empty() {
        return (files, Disk::default());
    }
    let files = std::iter::once(exclusion::FILE.to_owned()).chain(files).collect();
    (files, Disk { exclusions: Some(exclusion::rules_of(exclusions)), ..Disk::default() })
}

/// Warns of exclusions for rules that do not exist.
pub(super) fn warn_of_no_effect(raw: &raw::Waf, rules: &RuleSet, context: &mut Context) {
    let items = raw.exclusions.iter().flat_map(|section| &section.value.0);
    for rule in items.filter_map(|item| item.value.as_ref()?.rule.as_ref()) {
        if rules.rule(rule.value.0.into()).is_none() {
            let message =
                format!("no rule has the id {}: the exclusion has no effect", rule.value.0);
            context.warning_help(rule.span, message, "remove it, or correct the id");
        }
    }
}
