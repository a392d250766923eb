//! Certificates, with their validity and renewal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A certificate for clients.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// The names that the certificate is valid for.
    pub names: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The earliest expiry of a certificate in its chain.
    pub not_after: String,
    /// The number of whole days until `not_after`; negative: expired.
    pub days_left: i64,
    /// The renewal, if the certificate is issued by ACME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acme: Option<Acme>,
}

impl Certificate {
    /// Whether it stands in for a certificate that the authority has not issued yet.
    pub fn is_stand_in(&self) -> bool {
        self.acme.as_ref().is_some_and(|acme| acme.renews_at.is_none())
    }
}

/// The renewal of a certificate by ACME.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Acme {
    /// The host of the authority.
    pub authority: String,
    /// The state of orders: `ready`, `ordering`, `failing` or `waiting`.
    pub state: String,
    /// The time of the next renewal; `null`: the authority has not issued a certificate yet.
    pub renews_at: Option<String>,
    /// The reason for this time: `authority` (its renewal window, RFC 9773) or `lifetime` (two thirds of it have passed).
    pub renews_by: Option<String>,
    /// The authority's renewal window (RFC 9773), if it offers one.
    pub window: Option<AcmeWindow>,
    /// The number of consecutive failed orders.
    pub failures: u32,
    /// The reason for the last failure.
    pub reason: Option<String>,
    /// The earliest time of the next order, if one is due.
    pub next_try: Option<String>,
}

/// The authority's renewal window for a certificate.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcmeWindow {
    /// The beginning.
    pub start: String,
    /// The end.
    pub end: String,
}

/// A certificate and its use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShownCertificate {
    /// The identifier in the list.
    pub id: String,
    /// The virtual server that uses it; `null`: the admin listeners.
    pub virtual_server: Option<String>,
    /// The certificate.
    #[serde(flatten)]
    pub certificate: Certificate,
}
