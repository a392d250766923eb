//! Checks the clock: certificates, tokens and logs depend on it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_config::snapshot::Snapshot;
use weir_control::clock_state::{self, ClockState};
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::Credential;

use super::case::Case;
use super::finding::{CheckResult, Finding};

/// A clock error above this limit breaks tokens and one-time passwords.
const ERROR_MAX_MS: u64 = 5_000;

const PLACE: &str = "the clock of this host";

const MEND: &str = "timedatectl set-ntp true, or install chrony; `timedatectl timesync-status` or `chronyc tracking` shows its state";

/// Checks the kernel's clock state, and certificates that are not yet valid.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("clock");
    match clock_state::look() {
        Ok(state) => judge(state, &mut checked),
        Err(error) => checked.fact(format!("unknown: {error}")),
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let now_unix_s = i64::try_from(now).unwrap_or(i64::MAX);
    for identity in case.snapshot.iter().flat_map(|snapshot| identities(snapshot)) {
        checked.findings.extend(from_the_future(&identity, now_unix_s));
    }
    checked
}

fn judge(state: ClockState, checked: &mut CheckResult) {
    match state {
        ClockState::Yes { error_max_ms } => {
            checked.fact(format!("synchronised, wrong by at most {error_max_ms} ms"));
            if error_max_ms > ERROR_MAX_MS {
                let what = format!("the clock may be wrong by {} s", error_max_ms / 1_000);
                checked.find(Finding::warning(what, PLACE, MEND));
            }
        }
        ClockState::No => {
            checked.fact("not synchronised");
            let what =
                "no time service keeps the clock right: certificates, tokens and logs depend on it";
            checked.find(Finding::warning(what.into(), PLACE, MEND));
        }
    }
}

/// All certificates for clients that are loaded from files.
pub fn identities(snapshot: &Snapshot) -> impl Iterator<Item = Arc<Identity>> {
    let servers = snapshot.virtual_servers.iter().flat_map(|server| &server.tls);
    let admin = snapshot.admin.tls.iter().flat_map(|tls| &tls.identities);
    let shown = servers.flat_map(|tls| &tls.credentials).filter_map(Credential::current);
    shown.chain(admin.map(Arc::clone))
}

/// Reports a certificate that is not yet valid: the certificate or the clock is wrong.
fn from_the_future(identity: &Identity, now_unix_s: i64) -> Option<Finding> {
    let seconds = identity.not_before_unix_s.checked_sub(now_unix_s).filter(|left| *left > 0)?;
    let what = format!(
        "the certificate {} becomes valid only in {seconds} s: it is too early for it, or the clock is slow",
        identity.subject
    );
    Some(Finding::error(
        what,
        PLACE,
        "compare `date -u` with another host, and the certificate with `openssl x509 -startdate`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: ClockState, expected: &[&str]) {
        let mut checked = CheckResult::new("clock");
        judge(state, &mut checked);
        let found: Vec<&str> = checked.findings.iter().map(|finding| &*finding.what).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{found:?}");
    }

    #[test]
    fn clocks() {
        check(ClockState::Yes { error_max_ms: 20 }, &[]);
        check(ClockState::Yes { error_max_ms: 6_000 }, &["wrong by 6 s"]);
        check(ClockState::No, &["no time service"]);
    }
}
