//! Pending challenges of certificate authorities (ACME, RFC 8555), with the answers that prove control of a name.
//!
//! The control plane adds a challenge before it asks the authority to validate it, and removes it afterwards. All workers
//! read the same table without a lock. While no challenge is pending, a lookup is a single load.
//!
//! | challenge | answer | source |
//! |---|---|---|
//! | `http-01` | a text, for a request for its token | RFC 8555 section 8.3 |
//! | `tls-alpn-01` | a certificate, for a handshake with `acme-tls/1` and the name | RFC 8737 |

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::client_hello::ClientHello;

/// The protocol of handshakes that verify a challenge (RFC 8737 section 6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The path prefix of requests that verify a challenge; the token follows (RFC 8555 section 8.3).
pub const HTTP_PATH: &[u8] = b"/.well-known/acme-challenge/";

/// The pending challenges.
#[derive(Default)]
pub struct Challenges {
    /// `None`: no challenge is pending.
    pending: ArcSwapOption<ChallengeAnswers>,
    /// Whether pending challenges are never removed.
    is_kept: AtomicBool,
}

#[derive(Default, Clone)]
struct ChallengeAnswers {
    /// The answers to `http-01` challenges, by token.
    texts: HashMap<Arc<str>, Arc<str>>,
    /// The TLS settings for `tls-alpn-01` challenges, by name in lower case.
    handshakes: HashMap<Arc<str>, Arc<ServerConfig>>,
}

/// A pending challenge. It is answered until this value is dropped.
pub struct PendingChallenge {
    challenges: Arc<Challenges>,
    kind: Kind,
}

/// The key in the table, and the value. A later challenge may have replaced that value.
enum Kind {
    Text(Arc<str>, Arc<str>),
    Handshake(Arc<str>, Arc<ServerConfig>),
}

impl Challenges {
    /// The answer to an HTTP request with this path.
    pub fn text(&self, path: &[u8]) -> Option<Arc<str>> {
        let pending = self.pending.load();
        let token = path.strip_prefix(HTTP_PATH)?;
        let token = std::str::from_utf8(token).ok()?;
        pending.as_ref()?.texts.get(token).map(Arc::clone)
    }

    /// The TLS settings for a handshake that verifies a challenge.
    pub fn handshake(&self, hello: &ClientHello) -> Option<Arc<ServerConfig>> {
        let pending: Guard<Option<Arc<ChallengeAnswers>>> = self.pending.load();
        let pending = pending.as_ref()?;
        let mut protocols = hello.protocols();
        // The authority offers only this protocol (RFC 8737 section 3).
        if protocols.next() != Some(ACME_TLS) || protocols.next().is_some() {
            return None;
        }
        pending.handshakes.get(&*hello.server_name).map(Arc::clone)
    }

    /// Starts to answer requests for this token.
    pub fn add_text(self: &Arc<Self>, token: &str, text: &str) -> PendingChallenge {
        let (token, text): (Arc<str>, Arc<str>) = (token.into(), text.into());
        self.change(|pending| {
            pending.texts.insert(Arc::clone(&token), Arc::clone(&text));
        });
        PendingChallenge { challenges: Arc::clone(self), kind: Kind::Text(token, text) }
    }

    /// Starts to answer handshakes for this name, which is in lower case.
    pub fn add_handshake(
        self: &Arc<Self>,
        name: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<PendingChallenge, rustls::Error> {
        // `Identity` would reject the certificate, because chain verification does not support its critical extension.
        let certified = CertifiedKey::new(vec![certificate], any_supported_type(&key)?);
        let config = handshake_config(certified)?;
        let name: Arc<str> = name.into();
        self.change(|pending| {
            pending.handshakes.insert(Arc::clone(&name), Arc::clone(&config));
        });
        Ok(PendingChallenge { challenges: Arc::clone(self), kind: Kind::Handshake(name, config) })
    }

    /// Makes pending challenges stay until the process ends. It is called when this process hands over to another one,
    /// because validation requests may still arrive on connections that this process has accepted.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    fn change(&self, change: impl Fn(&mut ChallengeAnswers)) {
        self.pending.rcu(|before| {
            let mut pending = before.as_deref().cloned().unwrap_or_default();
            change(&mut pending);
            let is_empty = pending.texts.is_empty() && pending.handshakes.is_empty();
            (!is_empty).then(|| Arc::new(pending))
        });
    }
}

impl Drop for PendingChallenge {
    fn drop(&mut self) {
        if self.challenges.is_kept.load(Ordering::Acquire) {
            return;
        }
        self.challenges.change(|pending| match &self.kind {
            Kind::Text(token, text) => {
                if pending.texts.get(token).is_some_and(|it| Arc::ptr_eq(it, text)) {
                    pending.texts.remove(token);
                }
            }
            Kind::Handshake(name, config) => {
                if pending.handshakes.get(name).is_some_and(|it| Arc::ptr_eq(it, config)) {
                    pending.handshakes.remove(name);
                }
            }
        });
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending.load();
        let pending = pending.as_ref().map(|it| (it.texts.len(), it.handshakes.len()));
        f.debug_struct("Challenges").field("pending", &pending).finish()
    }
}

/// Uses one certificate for all handshakes.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn handshake_config(certificate: CertifiedKey) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let resolver = Arc::new(Always(Arc::new(certificate)));
    let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
    config.alpn_protocols = vec![ACME_TLS.to_vec()];
    config.enable_secret_extraction = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;
