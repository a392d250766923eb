//! Certificates: complete chains, and a certificate for each host named in rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_config::snapshot::{Snapshot, VirtualServer};
use weir_config::system_authorities;
use weir_tls::identity::{Identity, Issuer};
use weir_tls::managed_certificate::Credential;

use super::case::Case;
use super::clock::identities;
use super::finding::{CheckResult, Finding};

/// Checks chains, hosts in rules, and renewed certificates that the running weir has not loaded.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("certificates");
    let Some(snapshot) = case.snapshot else { return checked };
    let all: Vec<Arc<Identity>> = identities(snapshot).collect();
    checked.fact(format!("{} in the configuration", all.len()));
    let known = authorities(&mut checked);
    for identity in &all {
        checked.findings.extend(incomplete(identity, &known));
    }
    for server in &snapshot.virtual_servers {
        uncovered(snapshot, server, &mut checked);
    }
    renewed(case, &all, &mut checked);
    checked
}

/// The subjects of the authorities that this host trusts. Reports those that cannot be read.
fn authorities(checked: &mut CheckResult) -> BTreeSet<Vec<u8>> {
    let found = system_authorities::read();
    checked.findings.extend(found.problems.into_iter().map(|problem| {
        let mend = "mend or remove the file (`update-ca-certificates` makes it anew on Debian)";
        Finding::warning(problem, "tls.certificates", mend)
    }));
    found.certificates.iter().filter_map(|it| Issuer::subject_of(it)).collect()
}

/// Reports a chain that ends before a trusted authority.
fn incomplete(identity: &Identity, known: &BTreeSet<Vec<u8>>) -> Option<Finding> {
    let last = identity.certified.cert.last()?;
    let issuer = Issuer::of(last)?;
    // Self-signed certificates, and those of most private authorities, have no URL of the issuer's certificate.
    if issuer.is_itself || known.contains(&issuer.name) || !issuer.is_published {
        return None;
    }
    let what = format!(
        "the chain of {} ends before an authority: the certificate of `{}` is missing; browsers may find it, other clients refuse",
        identity.subject, issuer.text
    );
    let mend = format!(
        "append the certificate of `{}` to the file (the certificate's `CA Issuers` says where it is; `fullchain.pem` of ACME clients has it), then `weir reload`",
        issuer.text
    );
    Some(Finding::warning(what, "tls.certificates", mend))
}

/// Reports hosts that rules of a virtual server name and none of its certificates covers.
fn uncovered(snapshot: &Snapshot, server: &VirtualServer, checked: &mut CheckResult) {
    let Some(tls) = &server.tls else { return };
    let covers = |host: &str| {
        tls.credentials.iter().flat_map(Credential::names).any(|name| covers(name, host))
    };
    let policies: BTreeSet<&str> = server.policies.iter().map(|policy| &*policy.name).collect();
    let rules = snapshot.rules.iter().zip(&snapshot.rule_places);
    for (rule, place) in rules.filter(|(rule, _)| policies.contains(&*rule.policy)) {
        let hosts = place.when.as_deref().map(hosts_of).unwrap_or_default();
        for host in hosts.into_iter().filter(|host| !covers(host)) {
            let what = format!(
                "rule {}/{} of virtual server {} is for host {host}, and no certificate there has this name",
                rule.policy, rule.rule, server.name
            );
            let mend = format!(
                "a certificate for {host} in `virtual_servers.{}.tls.certificates`",
                server.name
            );
            checked.find(Finding::warning(what, place.to_string(), mend));
        }
    }
}

/// Whether a certificate name, possibly with a wildcard, covers a host.
fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
        None => name == host,
    }
}

/// The texts that a condition compares with `request.host` or `tls.sni`, by `==` or `in [ … ]`.
fn hosts_of(when: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    for subject in ["request.host", "tls.sni"] {
        for rest in when.split(subject).skip(1) {
            let rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix("==") {
                hosts.extend(quoted(rest.trim_start()).map(|(text, _)| text.to_owned()));
            } else if let Some(list) = rest.strip_prefix("in ") {
                let mut rest = list.trim_start().strip_prefix('[').unwrap_or_default().trim_start();
                while let Some((text, after)) = quoted(rest) {
                    hosts.push(text.to_owned());
                    rest = after.trim_start().strip_prefix(',').unwrap_or_default().trim_start();
                }
            }
        }
    }
    hosts.retain(|host| host.contains('.'));
    hosts
}

/// Splits a leading quoted text from the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
    text[1..].split_once(mark)
}

/// Reports certificates in files whose expiry differs from that of the loaded certificate for the same names.
fn renewed(case: &Case<'_>, all: &[Arc<Identity>], checked: &mut CheckResult) {
    let Some(running) = case.running else { return };
    let shown = running.status.virtual_servers.iter().flat_map(|server| &server.certificates);
    let shown: Vec<_> = shown.collect();
    for identity in all {
        let day = day_of(identity.not_after_unix_s);
        let same = |names: &[String]| !names.is_empty() && names == identity.names;
        let mut alike = shown.iter().filter(|it| same(&it.names)).peekable();
        if alike.peek().is_some() && alike.all(|it| !it.not_after.starts_with(&day)) {
            let what = format!(
                "the file has another certificate for {} than clients are shown: it ends on {day}",
                identity.names.join(", ")
            );
            checked.find(Finding::warning(what, "tls.certificates", "weir reload"));
        }
    }
}

/// `2026-11-21`, from seconds since 1970.
fn day_of(unix_s: i64) -> String {
    let ms = u64::try_from(unix_s).unwrap_or(0).saturating_mul(1_000);
    weir_control::time::rfc3339(ms).split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::case::RunningStatus;
    use super::super::host::Host;
    use super::*;
    use crate::status;

    fn found(when: &str, running: Option<&RunningStatus>) -> Vec<Finding> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls");
        let text = format!(
            "virtual_servers: {{ shop: {{ listen: 127.0.0.1:1, pool: web, policies: [ p ], tls: {{ certificates: [ {{ cert: {folder}/shop-rsa.crt, key: {folder}/shop-rsa.key }} ] }} }} }}\n\
             policies: {{ p: {{ rules: [ {{ name: r, when: '{when}', then: [ {{ pool: web }} ] }} ] }} }}\n\
             pools: {{ web: {{ members: [ 127.0.0.1:2 ] }} }}\n"
        );
        let (snapshot, host) = (super::super::case::tests::snapshot(&text), Host::here());
        check(&Case { host: &host, snapshot: Some(&snapshot), running }).findings
    }

    #[test]
    fn hosts_of_rules_need_a_certificate() {
        assert_eq!(found("request.host == \"shop.example\"", None), []);
        let found = found("request.host == \"other.invalid\"", None);
        assert!(
            found[0].what.contains("rule p/r of virtual server shop is for host other.invalid"),
            "{found:?}"
        );
        assert!(found[0].place.contains("test.yaml:2"), "{found:?}");
    }

    #[test]
    fn hosts_in_conditions() {
        let check = |when: &str, expected: &[&str]| assert_eq!(hosts_of(when), expected, "{when}");
        check("request.host == \"a.example\" && request.path == \"/b.c\"", &["a.example"]);
        check("request.host in [\"a.example\", 'b.example' ]", &["a.example", "b.example"]);
        check("tls.sni == 'a.example' || request.host==\"b.example\"", &["b.example", "a.example"]);
        check("request.host != \"a.example\"", &[]);
        check("request.host.endsWith(\".example\")", &[]);
        check("request.host == \"localhost\" || request.host in [", &[]);
    }

    #[test]
    fn wildcards_cover_one_label() {
        for (name, host, expected) in [
            ("a.example", "a.example", true),
            ("*.example", "a.example", true),
            ("*.example", "b.a.example", false),
            ("*.example", "example", false),
        ] {
            assert_eq!(covers(name, host), expected, "{name} {host}");
        }
    }

    #[test]
    fn a_renewed_certificate_awaits_a_reload() {
        let names = found_names();
        let of = |not_after: &str| RunningStatus {
            is_here: false,
            status: status::tests::status(|status| {
                status["virtual_servers"][0]["certificates"] = serde_json::json!([
                    { "names": names, "subject": "CN=shop", "not_after": not_after, "days_left": 1 },
                ]);
            }),
        };
        let old = found("request.host == \"shop.example\"", Some(&of("2020-01-01T00:00:00.000Z")));
        assert!(old[0].what.contains("has another certificate"), "{old:?}");
        assert_eq!(old[0].mend, "weir reload");
    }

    /// The names of the example certificate.
    fn found_names() -> Vec<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls");
        let text = std::fs::read(format!("{folder}/shop-rsa.crt")).unwrap();
        let chain = weir_tls::identity::read_certificates(&text).unwrap();
        let key =
            weir_tls::identity::read_key(&std::fs::read(format!("{folder}/shop-rsa.key")).unwrap());
        Identity::new(chain, key.unwrap()).unwrap().names
    }

    /// Creates a certificate whose issuer is missing from the chain.
    fn chain_without_authority(is_published: bool) -> Identity {
        // SEQUENCE { SEQUENCE { caIssuers, URI "http://a.invalid" } }
        const CA_ISSUERS: &[u8] =
            b"\x30\x1e\x30\x1c\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x02\x86\x10http://a.invalid";
        const AUTHORITY_INFO_ACCESS: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 1];
        let key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
        authority.distinguished_name.push(rcgen::DnType::CommonName, "Intermediate 7");
        let issuer = rcgen::Issuer::new(authority, &key);
        let own_key = rcgen::KeyPair::generate().unwrap();
        let mut own = rcgen::CertificateParams::new(vec!["shop.example".into()]).unwrap();
        if is_published {
            let content = CA_ISSUERS.to_vec();
            let extension =
                rcgen::CustomExtension::from_oid_content(AUTHORITY_INFO_ACCESS, content);
            own.custom_extensions.push(extension);
        }
        let certificate = own.signed_by(&own_key, &issuer).unwrap();
        let key = weir_tls::identity::read_key(own_key.serialize_pem().as_bytes()).unwrap();
        Identity::new(vec![certificate.der().clone()], key).unwrap()
    }

    #[test]
    fn chains_of_public_authorities_are_whole() {
        let none = BTreeSet::new();
        let found = incomplete(&chain_without_authority(true), &none).expect("a finding");
        assert!(found.what.contains("`CN=Intermediate 7`"), "{found:?}");
        assert_eq!(incomplete(&chain_without_authority(false), &none), None);
        let issuer = Issuer::of(&chain_without_authority(true).certified.cert[0]).unwrap();
        let known = BTreeSet::from([issuer.name]);
        assert_eq!(incomplete(&chain_without_authority(true), &known), None);
    }
}
