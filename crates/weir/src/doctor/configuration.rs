//! The configuration: findings of `weir check`, and the versions of its rule sets.

use weir_config::{Diagnostic, Severity};

use super::case::Case;
use super::finding::{CheckResult, Finding};

/// The oldest major version of OWASP CRS that still gets fixes.
const CRS_MAJOR_MIN: u32 = 4;

/// Findings of the files, with their positions.
pub fn check(case: &Case<'_>, diagnostics: &[Diagnostic], file: &str) -> CheckResult {
    let mut checked = CheckResult::new("configuration");
    checked.fact(file);
    for diagnostic in diagnostics {
        let place = match diagnostic.position {
            Some(position) => format!("{}:{}:{}", diagnostic.file, position.line, position.column),
            None => diagnostic.file.clone(),
        };
        let mend = diagnostic.suggestion.clone().unwrap_or_else(|| format!("weir check {file}"));
        let what = diagnostic.message.clone();
        checked.find(match diagnostic.severity {
            Severity::Error => Finding::error(what, place, mend),
            _ => Finding::warning(what, place, mend),
        });
    }
    rule_sets(case, &mut checked);
    checked
}

fn rule_sets(case: &Case<'_>, checked: &mut CheckResult) {
    let servers = case.snapshot.iter().flat_map(|snapshot| &snapshot.virtual_servers);
    let mut signatures: Vec<&str> = servers
        .filter_map(|server| server.waf.as_ref())
        .flat_map(|waf| &waf.common.view().rules().signatures)
        .map(|signature| &**signature)
        .collect();
    signatures.sort_unstable();
    signatures.dedup();
    for signature in signatures {
        checked.fact(format!("rules {signature}"));
        if let Some(major) = core_rule_set(signature).filter(|major| *major < CRS_MAJOR_MIN) {
            let what = format!("the rule set is {signature}: version {major} gets no new rules");
            let mend = "install OWASP CRS 4 (coreruleset.org), and set its folder as `waf.rules`";
            checked.find(Finding::warning(what, "waf.rules", mend));
        }
    }
}

/// The major version of an OWASP Core Rule Set: `OWASP_CRS/4.7.0`.
fn core_rule_set(signature: &str) -> Option<u32> {
    signature.strip_prefix("OWASP_CRS/")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::host::Host;
    use super::*;

    fn found(text: &str) -> CheckResult {
        let loaded = weir_config::parse("test.yaml", text);
        let host = Host::here();
        let snapshot = loaded.config.map(|config| config.snapshot(&Default::default()));
        let case = Case { host: &host, snapshot: snapshot.as_ref(), running: None };
        check(&case, &loaded.diagnostics, "test.yaml")
    }

    #[test]
    fn errors_and_warnings_have_their_places() {
        let found = found("pools: { web: { membres: [ 127.0.0.1:1 ] } }\n");
        let unknown = found.findings.iter().find(|it| it.what.contains("membres")).unwrap();
        assert_eq!(unknown.severity, super::super::finding::Severity::Error);
        assert!(unknown.place.starts_with("test.yaml:1:"), "{unknown:?}");
    }

    #[test]
    fn old_rule_sets() {
        assert_eq!(core_rule_set("OWASP_CRS/3.3.7"), Some(3));
        assert_eq!(core_rule_set("OWASP_CRS/4.20.0-dev"), Some(4));
        assert_eq!(core_rule_set("own rules"), None);
        let rules = std::env::temp_dir().join(format!("weir-doctor-{}.conf", std::process::id()));
        let found = |version: &str| {
            std::fs::write(&rules, format!("SecComponentSignature \"OWASP_CRS/{version}\"\nSecAction \"id:1,phase:1,pass,nolog\"\n")).unwrap();
            let shown = rules.display();
            found(&format!(
                "virtual_servers: {{ shop: {{ listen: 127.0.0.1:1, pool: web, waf: {{ mode: detect, rules: [ {shown} ] }} }} }}\npools: {{ web: {{ members: [ 127.0.0.1:2 ] }} }}\n"
            ))
        };
        let old = found("3.3.7");
        assert!(old.findings.iter().any(|it| it.what.contains("OWASP_CRS/3.3.7")), "{old:?}");
        let new = found("4.20.0");
        assert!(new.findings.iter().all(|it| !it.what.contains("rule set")), "{new:?}");
        assert!(new.facts.contains(&"rules OWASP_CRS/4.20.0".to_owned()), "{new:?}");
        std::fs::remove_file(rules).unwrap();
    }
}
