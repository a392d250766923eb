//! The findings of the web application firewall in a request.

use weir_api::explanation::{Firewall, ValueTold, WafCheck, WafRule};
use weir_core::policy::WafMode;
use weir_exchange::parts::inspection_report::InspectionOutcome;
use weir_telemetry::redaction::{self, Secrets};
use weir_waf::inspection::{Inspection, Match};

use crate::masks::Masks;

/// Maximum number of listed rules and checks.
const FINDINGS_MAX: usize = 64;

/// Maximum number of listed values per rule.
const VALUES_MAX: usize = 8;

/// Describes an inspection. `status`: 0 if the request continues.
pub fn told(
    inspection: &Inspection,
    mode: WafMode,
    (outcome, status): (InspectionOutcome, u16),
    masks: &Masks,
) -> Firewall {
    let secrets = Secrets::of(inspection, masks.fields());
    let logged = || inspection.matches().iter().filter(|found| found.is_logged);
    let rules: Vec<WafRule> =
        logged().take(FINDINGS_MAX).map(|found| rule(inspection, found, &secrets, masks)).collect();
    let findings = inspection.findings();
    let checks: Vec<WafCheck> = findings
        .iter()
        .take(FINDINGS_MAX)
        .map(|finding| {
            let detail = secrets.of_finding(&finding.place, finding.detail.as_bytes());
            let place = redaction::place(&finding.place);
            WafCheck {
                name: finding.check.name().into(),
                action: finding.action.name().into(),
                found: format!("{} = {}", masks.text(&place), masks.text(&detail)),
            }
        })
        .collect();
    Firewall {
        mode: mode.name().into(),
        outcome: outcome.name().into(),
        status: (status != 0).then_some(status),
        score: inspection.score(),
        threshold: inspection.number("inbound_anomaly_score_threshold"),
        left_out: logged().count() - rules.len() + findings.len() - checks.len(),
        rules,
        checks,
    }
}

fn rule(inspection: &Inspection, found: &Match, secrets: &Secrets<'_>, masks: &Masks) -> WafRule {
    let rules = &inspection.view().rules().rules;
    let rule = rules.iter().find(|rule| rule.id == found.id);
    let shown = secrets.shown(&found.log_data, &found.values);
    let values = found.values.iter().zip(&shown.values).take(VALUES_MAX);
    let values = values.map(|(it, value)| ValueTold {
        name: masks.text(&redaction::variable(&it.variable)),
        value: Some(masks.text(value)),
    });
    WafRule {
        id: found.id,
        message: masks.text(&secrets.shown_text(&found.message)),
        severity: rule.and_then(|rule| rule.severity).map(|it| it.name().to_owned()),
        place: rule.map(|rule| rule.place.to_string()),
        values: values.collect(),
    }
}
