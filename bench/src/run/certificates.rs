//! Certificates of the products. Each run makes new ones and removes them at its end.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use super::RunError;

/// The server name that clients request.
pub const SERVER_NAME: &str = "bench.example";

/// The key of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// RSA of 2,048 bits.
    Rsa2048,
    /// ECDSA on P-256.
    P256,
}

impl Key {
    /// The name of the key's folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa-2048",
            Self::P256 => "p-256",
        }
    }
}

/// Paths of a certificate; all are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate, in PEM.
    pub chain: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
    /// Certificate and key in one file.
    pub both: PathBuf,
}

/// A certificate of each kind of key.
#[derive(Debug, Clone)]
pub struct Certificates {
    rsa_2048: Certificate,
    p_256: Certificate,
}

impl Certificates {
    /// Makes the certificates in that folder, which must exist.
    pub fn make(folder: &Path) -> Result<Self, RunError> {
        let failed = |error: rcgen::Error| RunError::Bed(format!("no certificate: {error}"));
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(failed)?;
        let p_256 = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let write = |kind: Key, key: &KeyPair| {
            let params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).map_err(failed)?;
            let chain = params.self_signed(key).map_err(failed)?.pem();
            let key = key.serialize_pem();
            let file = |ending: &str, text: String| {
                let path = folder.join(format!("{}.{ending}", kind.name()));
                fs::write(&path, text).map_err(RunError::io("write", &path)).map(|()| path)
            };
            Ok(Certificate {
                both: file("pem", format!("{chain}{key}"))?,
                chain: file("crt", chain)?,
                key: file("key", key)?,
            })
        };
        Ok(Self { rsa_2048: write(Key::Rsa2048, &rsa)?, p_256: write(Key::P256, &p_256)? })
    }

    /// The certificate for a kind of key.
    pub fn of(&self, key: Key) -> &Certificate {
        match key {
            Key::Rsa2048 => &self.rsa_2048,
            Key::P256 => &self.p_256,
        }
    }
}
