//! Settings for TLS connections to servers: trusted authorities, and weir's own certificate.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::identity::Identity;
use crate::server::SettingsError;

/// Maximum number of servers whose sessions are stored.
const SESSIONS_MAX: usize = 1_024;

/// Settings for connections to servers.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// The trusted authorities; `None`: any server certificate is accepted.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
    /// The certificate for servers that request one.
    pub identity: Option<Arc<Identity>>,
    /// The application protocols in order of preference.
    pub alpn: Vec<Vec<u8>>,
}

/// The rustls configuration for these settings, with its own session cache.
pub fn client_config(settings: &ClientSettings) -> Result<Arc<ClientConfig>, SettingsError> {
    let failed = |error: Error| SettingsError(error.to_string());
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let builder = match &settings.authorities {
        None => {
            let verifier = Arc::new(AnyCertificate::new());
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            // The system's list may contain unreadable certificates, which are skipped.
            let (added, _) = roots.add_parsable_certificates(authorities.iter().cloned());
            if added == 0 {
                return Err(SettingsError("there is no trusted authority".into()));
            }
            builder.with_root_certificates(roots)
        }
    };
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let shown = SingleCertAndKey::from((*identity.certified).clone());
            builder.with_client_cert_resolver(Arc::new(shown))
        }
    };
    config.alpn_protocols.clone_from(&settings.alpn);
    config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
    // A connection's session encrypts and decrypts its records itself.
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Accepts any certificate whose key has signed the handshake.
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl AnyCertificate {
    /// A verifier that checks neither authorities nor names.
    pub fn new() -> Self {
        Self(provider())
    }
}

impl Default for AnyCertificate {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
