//! TLS settings of a load, from names to a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};

/// Cipher suites that can be asked for: OpenSSL's name and the registry's.
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

/// What a user may ask for.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// `1.2` or `1.3`; `None`: both.
    pub version: Option<String>,
    /// A name of [`CIPHERS`]; `None`: all.
    pub cipher: Option<String>,
    /// Certificate authorities that the server must be vouched for by; `None`: anybody is believed, as
    /// load generators do.
    pub authorities: Option<PathBuf>,
}

impl TlsOptions {
    /// The configuration, or what is wrong with the options.
    pub fn build(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(self.provider()?);
        let versions: &[&SupportedProtocolVersion] = match self.version.as_deref() {
            None => &[&version::TLS12, &version::TLS13],
            Some("1.2") => &[&version::TLS12],
            Some("1.3") => &[&version::TLS13],
            Some(other) => return Err(format!("TLS version {other}: not one of 1.2 and 1.3")),
        };
        // A suite belongs to one version; with the other alone nothing would be left.
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
        let config = match &self.authorities {
            Some(path) => {
                let roots = read_authorities(path)?;
                builder.with_root_certificates(roots).with_no_client_auth()
            }
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Believing(provider)))
                .with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }

    fn provider(&self) -> Result<CryptoProvider, String> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(name) = &self.cipher {
            let found = CIPHERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let Some((_, wanted)) = found else {
                let names: Vec<_> = CIPHERS.iter().map(|(name, _)| *name).collect();
                return Err(format!("cipher suite {name}: not one of {}", names.join(", ")));
            };
            provider.cipher_suites.retain(|suite| suite.suite() == *wanted);
        }
        Ok(provider)
    }
}

fn read_authorities(path: &PathBuf) -> Result<RootCertStore, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() { Err(failed(&"no certificate in it")) } else { Ok(roots) }
}

/// Believes every certificate; that the server has its key is still verified, as it costs what it costs
/// every client.
#[derive(Debug)]
struct Believing(Arc<CryptoProvider>);

impl ServerCertVerifier for Believing {
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
                authorities: None,
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
    fn authorities_must_be_certificates() {
        let options =
            |path: &str| TlsOptions { authorities: Some(path.into()), ..TlsOptions::default() };
        assert!(options("/nonexistent.pem").build().unwrap_err().contains("/nonexistent.pem"));
        let error =
            options(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).build().unwrap_err();
        assert!(error.contains("no certificate"), "{error}");
    }
}
