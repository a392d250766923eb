//! Parses the TLS options of a load into a plan.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ActiveKeyExchange, CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, NamedGroup, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};

use super::plan::{NegotiatedTls, TlsPlan};

/// The available cipher suites: OpenSSL's name and the IANA suite.
pub const CIPHERS: &[(&str, CipherSuite)] = &[
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The available key exchange groups.
pub const CURVES: &[(&str, NamedGroup)] = &[
    ("X25519MLKEM768", NamedGroup::X25519MLKEM768),
    ("X25519", NamedGroup::X25519),
    ("P-256", NamedGroup::secp256r1),
    ("P-384", NamedGroup::secp384r1),
];

/// Groups of certificates' keys. A TLS 1.2 client must list them among its groups (RFC 8422 section 5.1), even if it
/// wants another group for the key exchange.
static OF_CERTIFICATES: [OfCertificates; 2] =
    [OfCertificates(NamedGroup::secp256r1), OfCertificates(NamedGroup::secp384r1)];

/// A group that is offered, but never used for the key exchange.
#[derive(Debug)]
struct OfCertificates(NamedGroup);

impl SupportedKxGroup for OfCertificates {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        let text = format!(
            "the server wants a key exchange with {:?}, not the one that was asked for",
            self.0
        );
        Err(rustls::Error::General(text))
    }

    fn name(&self) -> NamedGroup {
        self.0
    }
}

/// Options from the command line.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// `1.2` or `1.3`; `None`: both versions.
    pub version: Option<String>,
    /// A name from [`CIPHERS`]; `None`: all cipher suites.
    pub cipher: Option<String>,
    /// A name from [`CURVES`]; `None`: all groups.
    pub curve: Option<String>,
    /// The application protocol (ALPN) that the server must select; `None`: ALPN is not offered.
    pub protocol: Option<&'static str>,
    /// A PEM file of certificate authorities that must have issued the server's certificate. `None`: any certificate is
    /// accepted, as usual for load generators.
    pub authorities: Option<PathBuf>,
}

impl TlsOptions {
    /// Builds the plan. The error names the invalid option.
    pub fn plan(&self, server_name: ServerName<'static>, resume: bool) -> Result<TlsPlan, String> {
        let config = self.build()?;
        let version = self.version.as_deref().map(|version| match version {
            "1.2" => rustls::ProtocolVersion::TLSv1_2,
            _ => rustls::ProtocolVersion::TLSv1_3,
        });
        let suite = self.cipher.as_deref().and_then(suite_named);
        let protocol = self.protocol.map(|name| name.as_bytes().to_vec());
        let expect = NegotiatedTls { version, suite, protocol };
        Ok(TlsPlan { config, resume, server_name, expect })
    }

    fn build(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(self.provider()?);
        let versions: &[&SupportedProtocolVersion] = match self.version.as_deref() {
            None => &[&version::TLS12, &version::TLS13],
            Some("1.2") => &[&version::TLS12],
            Some("1.3") => &[&version::TLS13],
            Some(other) => return Err(format!("TLS version {other}: not one of 1.2 and 1.3")),
        };
        // A suite belongs to one TLS version; the other version alone would have no suite.
        let usable: Vec<_> = versions
            .iter()
            .filter(|version| {
                provider
                    .cipher_suites
                    .iter()
                    .any(|suite| suite.version().version == version.version)
            })
            .copied()
            .collect();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&usable)
            .map_err(|error| format!("that version has no such cipher suite: {error}"))?;
        let mut config = match &self.authorities {
            Some(path) => {
                let roots = read_authorities(path)?;
                builder.with_root_certificates(roots).with_no_client_auth()
            }
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
                .with_no_client_auth(),
        };
        config.alpn_protocols = self.protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
        // The event loop encrypts and decrypts the records, so it needs the secrets.
        config.enable_secret_extraction = true;
        Ok(Arc::new(config))
    }

    fn provider(&self) -> Result<CryptoProvider, String> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(name) = &self.cipher {
            let wanted = suite_named(name).ok_or_else(|| unknown("cipher suite", name, CIPHERS))?;
            provider.cipher_suites.retain(|suite| suite.suite() == wanted);
        }
        if let Some(name) = &self.curve {
            let wanted = named(CURVES, name).ok_or_else(|| unknown("curve", name, CURVES))?;
            provider.kx_groups.retain(|group| group.name() == wanted);
            let others = OF_CERTIFICATES.iter().filter(|group| group.0 != wanted);
            provider.kx_groups.extend(others.map(|group| group as &dyn SupportedKxGroup));
        }
        Ok(provider)
    }
}

fn suite_named(name: &str) -> Option<CipherSuite> {
    named(CIPHERS, name)
}

fn named<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    list.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

fn unknown<T>(what: &str, name: &str, list: &[(&str, T)]) -> String {
    let names: Vec<_> = list.iter().map(|(name, _)| *name).collect();
    format!("{what} {name}: not one of {}", names.join(", "))
}

fn read_authorities(path: &PathBuf) -> Result<RootCertStore, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    let text = std::fs::read(path).map_err(|error| failed(&error))?;
    let found = weir_tls::identity::read_authorities(&text);
    for certificate in found.map_err(|error| failed(&error))? {
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    Ok(roots)
}

/// Accepts every certificate. Signatures are still verified, so that the load has a client's usual CPU cost.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let check = |version: Option<&str>, cipher: Option<&str>, is_good: bool| {
            let options = TlsOptions {
                version: version.map(str::to_owned),
                cipher: cipher.map(str::to_owned),
                ..TlsOptions::default()
            };
            assert_eq!(options.build().is_ok(), is_good, "{options:?}");
        };
        check(None, None, true);
        check(Some("1.2"), None, true);
        check(Some("1.1"), None, false);
        check(Some("1.3"), Some("tls_aes_256_gcm_sha384"), true);
        check(Some("1.2"), Some("TLS_AES_256_GCM_SHA384"), false);
        check(None, Some("ECDHE-RSA-AES256-GCM-SHA384"), true);
        check(None, Some("RC4-MD5"), false);
        for (name, _) in CIPHERS {
            check(None, Some(name), true);
        }
    }

    #[test]
    fn what_is_asked_for_is_what_must_be_agreed_on() {
        let options = TlsOptions {
            version: Some("1.3".into()),
            cipher: Some("TLS_AES_256_GCM_SHA384".into()),
            curve: Some("X25519".into()),
            protocol: Some("h2"),
            authorities: None,
        };
        let name = ServerName::try_from("bench.example").expect("a name");
        let plan = options.plan(name.clone(), false).expect("a plan");
        let expect = NegotiatedTls {
            version: Some(rustls::ProtocolVersion::TLSv1_3),
            suite: Some(CipherSuite::TLS13_AES_256_GCM_SHA384),
            protocol: Some(b"h2".to_vec()),
        };
        assert_eq!(plan.expect, expect);
        let groups = &plan.config.crypto_provider().kx_groups;
        assert_eq!(groups.first().map(|group| group.name()), Some(NamedGroup::X25519));
        assert!(groups[0].start().is_ok());
        assert!(groups[1..].iter().all(|group| group.start().is_err()));
        for (curve, _) in CURVES {
            let options = TlsOptions { curve: Some((*curve).into()), ..TlsOptions::default() };
            let plan = options.plan(name.clone(), true).expect("a plan");
            let groups = &plan.config.crypto_provider().kx_groups;
            assert_eq!(groups.iter().filter(|group| group.start().is_ok()).count(), 1, "{curve}");
        }
        let unknown = TlsOptions { curve: Some("B-233".into()), ..TlsOptions::default() };
        assert!(unknown.plan(name, true).unwrap_err().contains("not one of X25519MLKEM768"));
    }

    #[test]
    fn authorities_must_be_certificates() {
        let options =
            |path: &str| TlsOptions { authorities: Some(path.into()), ..TlsOptions::default() };
        assert!(options("/nonexistent.pem").build().unwrap_err().contains("/nonexistent.pem"));
        let error =
            options(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).build().unwrap_err();
        assert!(error.contains("no certificate"), "{error}");
    }
}
