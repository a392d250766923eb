//! TLS of connections to other servers.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, RootCertStore};
use weir_config::system_authorities;
use weir_event_loop::error_text::io_error_text;
use weir_tls::client::AnyCertificate;
use weir_tls::explain;

/// TLS clients with and without verification of certificates. They are created on first use.
#[derive(Debug, Default)]
pub struct TlsClients {
    verifying: OnceCell<Arc<ClientConfig>>,
    trusting: OnceCell<Arc<ClientConfig>>,
    /// The trusted roots; `None`: those of the system.
    roots: Option<RootCertStore>,
}

impl TlsClients {
    /// Clients that trust the system's authorities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clients that trust these authorities.
    pub fn with_roots(roots: RootCertStore) -> Self {
        Self { roots: Some(roots), ..Self::default() }
    }

    /// The handshake with the server `name`, which may include a port. The server must select one of `protocols` (ALPN, RFC
    /// 7301), unless the list is empty.
    pub async fn connect<S>(
        &self,
        stream: S,
        name: &str,
        verify: bool,
        protocols: &[&[u8]],
    ) -> Result<TlsStream<S>, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = if verify {
            self.verifying.get_or_try_init(|| async { self.verifying_client() }).await?
        } else {
            self.trusting.get_or_try_init(|| async { trusting_client() }).await?
        };
        let server_name = ServerName::try_from(without_port(name).to_owned())
            .map_err(|_| HandshakeError(format!("{name} is not a host name")))?;
        let protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsConnector::from(Arc::clone(config))
            .with_alpn(protocols)
            .connect(server_name, stream)
            .await
            .map_err(|error| HandshakeError(reason(&error)))
    }

    fn verifying_client(&self) -> Result<Arc<ClientConfig>, HandshakeError> {
        let roots = match &self.roots {
            Some(roots) => roots.clone(),
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| HandshakeError(error.to_string()))?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }
}

/// The reason why TLS could not be set up.
#[derive(Debug)]
pub struct HandshakeError(pub String);

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS: {}", self.0)
    }
}

impl std::error::Error for HandshakeError {}

fn trusting_client() -> Result<Arc<ClientConfig>, HandshakeError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| HandshakeError(error.to_string()))?;
    let verifier = Arc::new(AnyCertificate::new());
    Ok(Arc::new(
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
    ))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The system's trusted certificates. Unreadable ones are skipped unless all are unreadable.
fn system_roots() -> Result<RootCertStore, HandshakeError> {
    let loaded = system_authorities::read();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(loaded.certificates);
    if added > 0 {
        return Ok(roots);
    }
    let reason = loaded.problems.first().map_or_else(String::new, |problem| format!(": {problem}"));
    Err(HandshakeError(format!("this host has no trusted certificates{reason}")))
}

/// `name` of `name:port` and `[address]:port`. Addresses without brackets stay unchanged.
fn without_port(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match name.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => name,
    }
}

/// The error as text. TLS errors have the words of the TLS library.
fn reason(error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    tls.map_or_else(|| io_error_text(error), explain)
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn names_lose_their_port() {
        for (name, expected) in [
            ("shop.example", "shop.example"),
            ("shop.example:8443", "shop.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::1]:8443", "::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(without_port(name), expected);
        }
    }
}
