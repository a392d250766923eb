//! The certificates of a virtual server, and how long they are good.

use schemars::JsonSchema;
use serde::Serialize;
use weir_config::snapshot::VirtualServer;
use weir_tls::identity::Identity;

use crate::time::{rfc3339, unix_ms};

const DAY_S: i64 = 86_400;

/// A certificate that clients are shown.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Certificate")]
pub struct CertificateStatus {
    /// The names that it is for.
    pub(crate) names: Vec<String>,
    subject: String,
    /// When the first of its chain is over.
    not_after: String,
    /// Whole days until then; negative: it is over.
    pub(crate) days_left: i64,
}

/// The certificates of a virtual server.
pub fn of(server: &VirtualServer) -> Vec<CertificateStatus> {
    let identities = server.tls.iter().flat_map(|tls| &tls.identities);
    identities.map(|identity| status(identity)).collect()
}

/// A certificate now.
pub fn status(identity: &Identity) -> CertificateStatus {
    let now_ms = unix_ms();
    let not_after_s = identity.not_after_unix_s;
    let now_s = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
    CertificateStatus {
        names: identity.names.clone(),
        subject: identity.subject.clone(),
        not_after: rfc3339(u64::try_from(not_after_s).unwrap_or(0).saturating_mul(1_000)),
        days_left: not_after_s.saturating_sub(now_s).div_euclid(DAY_S),
    }
}
