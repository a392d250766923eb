//! The certificates of a virtual server, with their validity and renewal.

use std::collections::HashSet;
use std::sync::Arc;

use weir_acme::board::{Board, Report};
use weir_acme::{Basis, Window};
use weir_api::certificate::{Acme, AcmeWindow, Certificate};
use weir_config::snapshot::{DatedKind, Expiry, Snapshot, VirtualServer};
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::Credential;

use crate::time::{rfc3339, unix_ms};
use crate::wording::CountText;

const DAY_S: i64 = 86_400;

fn window(window: Window) -> AcmeWindow {
    AcmeWindow { start: date(window.start_unix_s), end: date(window.end_unix_s) }
}

fn acme(report: Report) -> Acme {
    let (renews_at, renews_by) = report.renewal.unzip();
    Acme {
        authority: report.authority,
        state: report.state.as_str().to_owned(),
        renews_at: renews_at.map(date),
        renews_by: renews_by.map(|basis| Basis::as_str(basis).to_owned()),
        window: report.window.map(window),
        failures: report.failures,
        reason: report.reason,
        next_try: report.next_try_unix_s.map(date),
    }
}

pub(super) fn now_unix_s() -> i64 {
    i64::try_from(unix_ms() / 1_000).unwrap_or(i64::MAX)
}

pub(super) fn date(unix_s: i64) -> String {
    rfc3339(u64::try_from(unix_s).unwrap_or(0).saturating_mul(1_000))
}

/// The certificates of a virtual server.
pub fn of(server: &VirtualServer, board: &Board) -> Vec<Certificate> {
    let credentials = server.tls.iter().flat_map(|tls| &tls.credentials);
    let shown = credentials.filter_map(|it| Some(status(&*it.current()?, report_of(it, board))));
    shown.collect()
}

/// Maximum number of expired certificates that are told one by one.
const EXPIRED_TOLD_MAX: usize = 3;

/// The certificates for clients that have expired, in words with a remedy: each once, with the first virtual server that has it.
pub(crate) fn expired_for_clients(snapshot: &Snapshot, board: &Board) -> Vec<String> {
    let now_s = now_unix_s();
    let mut seen = HashSet::new();
    let (mut told, mut more) = (Vec::new(), 0);
    for server in &snapshot.virtual_servers {
        for credential in server.tls.iter().flat_map(|tls| &tls.credentials) {
            let Some(identity) = credential.current() else { continue };
            if identity.not_after_unix_s > now_s
                || !seen.insert(Arc::as_ptr(&identity))
                || status(&identity, report_of(credential, board)).is_stand_in()
            {
                continue;
            }
            if told.len() == EXPIRED_TOLD_MAX {
                more += 1;
                continue;
            }
            let (name, subject) = (&server.name, &identity.subject);
            let expiry = Expiry::of(identity.not_after_unix_s, now_s);
            let help = DatedKind::Certificate.help();
            told.push(format!("virtual server {name}: the certificate {subject} {expiry}: {help}"));
        }
    }
    if more > 0 {
        told.push(format!("{} for clients expired too", CountText(more, "certificate")));
    }
    told
}

/// The report on the renewal of a certificate, if weir renews it.
pub fn report_of(credential: &Credential, board: &Board) -> Option<Report> {
    match credential {
        Credential::Fixed(_) => None,
        Credential::Managed(managed) => board.report(managed.names()),
    }
}

/// The current status of a certificate.
pub fn status(identity: &Identity, report: Option<Report>) -> Certificate {
    let now_s = now_unix_s();
    Certificate {
        names: identity.names.clone(),
        subject: identity.subject.clone(),
        not_after: date(identity.not_after_unix_s),
        days_left: identity.not_after_unix_s.saturating_sub(now_s).div_euclid(DAY_S),
        acme: report.map(acme),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_certificates_are_told_once() {
        const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test.yaml");
        let tls = "tls: { certificates: [ { cert: tls/shop-ec.crt, key: tls/shop-ec.key } ] }";
        let text = format!(
            "virtual_servers:\n  a: {{ listen: \"127.0.0.1:0\", pool: p, {tls} }}\n  b: {{ listen: \"127.0.0.2:0\", pool: p, {tls} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:1 ] }} }}\n"
        );
        let config = weir_config::parse(FILE, &text).config.expect("a good configuration");
        let mut snapshot = config.snapshot(&Default::default());
        assert_eq!(expired_for_clients(&snapshot, &Board::default()), Vec::<String>::new());
        let first = snapshot.virtual_servers[0].tls.as_ref().expect("it has TLS").credentials[0]
            .current()
            .expect("it has a certificate");
        let two_days = 2 * DAY_S + 60;
        let old = Identity { not_after_unix_s: now_unix_s() - two_days, ..(*first).clone() };
        let old = Arc::new(old);
        for server in &mut snapshot.virtual_servers {
            let tls = Arc::make_mut(server.tls.as_mut().expect("it has TLS"));
            tls.credentials[0] = Credential::Fixed(Arc::clone(&old));
        }
        let told = expired_for_clients(&snapshot, &Board::default());
        let subject = &old.subject;
        assert_eq!(
            told,
            [format!(
                "virtual server a: the certificate {subject} has expired 2 days ago: renew it; a reload takes the new one"
            )]
        );
    }
}
