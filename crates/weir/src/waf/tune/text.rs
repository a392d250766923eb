//! The output: a file with exclusions, and the summary.

use std::fmt::Write as _;

use weir_control::firewall::evidence::Evidence;
use weir_control::firewall::exclusions::{Exclusions, ProposedExclusion};
use weir_control::firewall::proposal::Effect;
use weir_control::printable::printable;
use weir_waf::crs::KnownFalsePositive;

use crate::waf::log::Count;

/// Describes the findings and the effect of the exclusions.
pub fn summary(
    exclusions: &Exclusions,
    evidence: &Evidence,
    (effect, count): (&Effect, Count),
) -> String {
    let Effect { blocked, pass } = effect;
    let mut text = format!(
        "{} lines of requests{}\n{} exclusions\n{pass} of {blocked} requests would no longer be blocked, by their scores\n",
        count.lines,
        count.told_skipped(),
        exclusions.all.len(),
    );
    for (number, what) in [
        (
            exclusions.suspicious,
            "places have no exclusion: most requests there contain other attacks, too",
        ),
        (evidence.unnamed, "findings are in nothing that an exclusion can name"),
        (evidence.left_out, "findings were left out: there are too many different ones"),
    ] {
        if number > 0 {
            let _ = writeln!(text, "{number} {what}");
        }
    }
    text + "The logs must not contain attacks: exclusions would let them pass. Read each exclusion before you use it.\n"
}

/// The rule file.
pub fn rules(exclusions: &Exclusions, first_id: u64, summary: &str) -> String {
    let mut text = String::from(
        "# Exclusions that `weir waf tune` proposes. Name this file before the other rules.\n#\n",
    );
    for line in summary.lines() {
        let _ = writeln!(text, "# {line}");
    }
    for (exclusion, id) in exclusions.all.iter().zip(first_id..) {
        text += &one(exclusion, id);
    }
    text
}

fn one(ProposedExclusion { exclusion, group, names }: &ProposedExclusion, id: u64) -> String {
    // No line may end with text of a client: a backslash at its end would continue the comment in the next line.
    let message = match group.message.as_str() {
        "" => String::new(),
        message => format!(": {}.", printable(message)),
    };
    let example = match &group.example {
        Some(example) => format!(", such as `{}`", printable(example)),
        None => String::new(),
    };
    let place = &exclusion.place;
    let everywhere = if place.path == "/" && place.is_prefix { " ALL PATHS." } else { "" };
    let of_names = match names {
        0 | 1 => String::new(),
        names => format!(" in {names} fields"),
    };
    let (requests, clients, score) = (group.requests, group.clients.told(), group.score);
    let hint = KnownFalsePositive::of(exclusion.rule).map(|known| format!("# {}.\n", known.hint()));
    let hint = hint.unwrap_or_default();
    format!(
        "\n# Rule {}{message}{everywhere}\n\
         # {requests} requests of {clients}{of_names}{example}; each scored {score} for it.\n{hint}{}",
        exclusion.rule,
        exclusion.rule_text(id),
    )
}
