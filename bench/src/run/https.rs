//! TLS of a workload: the same settings for every product, checked after the load.

use super::certificates::{Key, SERVER_NAME};
use crate::load::{LoadOutcome, TlsOptions, TlsPlan};

/// The only key exchange group that clients offer.
const CURVE: &str = "X25519";

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// TLS settings of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsLoad {
    /// The only version that clients offer.
    pub version: Version,
    /// The key of the product's certificate.
    pub key: Key,
    /// Whether clients resume sessions on all connections except the first. Otherwise no connection resumes a session.
    pub resume: bool,
}

impl TlsLoad {
    /// TLS of keep-alive connections: TLS 1.3 with a P-256 certificate.
    pub const KEPT: Self = Self { version: Version::Tls13, key: Key::P256, resume: false };

    /// OpenSSL's name of the only offered cipher suite.
    fn cipher(self) -> &'static str {
        match (self.version, self.key) {
            (Version::Tls13, _) => "TLS_AES_256_GCM_SHA384",
            (Version::Tls12, Key::Rsa2048) => "ECDHE-RSA-AES256-GCM-SHA384",
            (Version::Tls12, Key::P256) => "ECDHE-ECDSA-AES256-GCM-SHA384",
        }
    }

    /// The load generator's TLS plan.
    pub fn plan(self, is_http2: bool) -> TlsPlan {
        let version = match self.version {
            Version::Tls12 => "1.2",
            Version::Tls13 => "1.3",
        };
        let options = TlsOptions {
            version: Some(version.into()),
            cipher: Some(self.cipher().into()),
            curve: Some(CURVE.into()),
            protocol: is_http2.then_some("h2"),
            authorities: None,
        };
        let name = SERVER_NAME.try_into();
        let plan =
            name.map_err(|_| "no name".to_owned()).and_then(|name| options.plan(name, self.resume));
        // All inputs are constant; see the test.
        plan.unwrap_or_else(|error| unreachable!("constant options: {error}"))
    }

    /// The reason why a load is invalid: clients resumed sessions unexpectedly, or did not resume them.
    pub fn contradicted(self, load: &LoadOutcome) -> Option<String> {
        let made = load.handshakes.unwrap_or_default();
        let all = made.full + made.resumed;
        match self.resume {
            true if made.full > 0 => Some(format!(
                "invalid: {} of {all} handshakes were full, and all were to resume a session",
                made.full
            )),
            false if made.resumed > 0 => Some(format!(
                "invalid: {} of {all} handshakes resumed a session, and all were to be full",
                made.resumed
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Handshakes;

    #[test]
    fn every_plan_can_be_made() {
        for version in [Version::Tls12, Version::Tls13] {
            for key in [Key::Rsa2048, Key::P256] {
                for (resume, is_http2) in [(false, false), (true, true)] {
                    let plan = TlsLoad { version, key, resume }.plan(is_http2);
                    assert_eq!(plan.resume, resume);
                    assert_eq!(plan.expect.protocol.is_some(), is_http2);
                    assert!(plan.expect.version.is_some() && plan.expect.suite.is_some());
                    let provider = plan.config.crypto_provider();
                    let exchanges = provider.kx_groups.iter().filter(|group| group.start().is_ok());
                    assert_eq!((provider.cipher_suites.len(), exchanges.count()), (1, 1));
                }
            }
        }
    }

    #[test]
    fn a_load_of_the_wrong_handshakes_is_invalid() {
        let check = |resume, full, resumed, is_good: bool| {
            let load = LoadOutcome {
                handshakes: Some(Handshakes { full, resumed }),
                ..LoadOutcome::default()
            };
            let told = TlsLoad { resume, ..TlsLoad::KEPT }.contradicted(&load);
            assert_eq!(told.is_none(), is_good, "{told:?}");
        };
        check(false, 9, 0, true);
        check(false, 9, 1, false);
        check(true, 0, 9, true);
        check(true, 1, 9, false);
        check(true, 0, 0, true);
        assert!(TlsLoad::KEPT.contradicted(&LoadOutcome::default()).is_none());
    }
}
