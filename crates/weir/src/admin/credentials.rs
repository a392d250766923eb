//! Credentials for the admin listener: a token or a client certificate; and trusted authorities.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use weir_config::system_authorities;
use weir_tls::client::{ClientSettings, client_config};
use weir_tls::identity::{Identity, read_authorities, read_certificates, read_key};
use weir_tls::{CertificateDer, ClientConfig};

use super::error::Error;

/// Maximum size of a file with a token, a certificate or authorities.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Credentials for an admin listener over TCP.
#[derive(Debug, Clone, Args)]
pub struct CredentialArguments {
    /// A file with your token, as made by `weir token new`
    #[arg(long, value_name = "FILE", env = "WEIR_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,

    /// For https://: trusted authorities, in PEM [default: those of the system]
    #[arg(long, value_name = "FILE", env = "WEIR_ADMIN_CA", hide_env_values = true)]
    admin_ca: Option<PathBuf>,

    /// For https://: a file with your client certificate and its key, in PEM
    #[arg(long, value_name = "FILE", env = "WEIR_ADMIN_CERTIFICATE", hide_env_values = true)]
    admin_certificate: Option<PathBuf>,
}

/// The credentials of a command.
#[derive(Default)]
pub struct Credentials {
    /// The token.
    pub token: Option<String>,
    /// The user who called sudo.
    pub sudo_user: Option<String>,
    settings: Settings,
}

/// Settings for TLS; their files are read when TLS is used.
#[derive(Default)]
struct Settings {
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
}

impl CredentialArguments {
    /// Reads the token and keeps the settings for TLS.
    pub fn read(&self) -> Result<Credentials, Error> {
        let token = self.token_file.as_deref().map(token).transpose()?;
        let (authorities, certificate) = (self.admin_ca.clone(), self.admin_certificate.clone());
        let settings = Settings { authorities, certificate };
        Ok(Credentials { token, sudo_user: sudo_user(), settings })
    }
}

/// The authorities that this system trusts; an error only if none can be read.
fn system_authorities() -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = system_authorities::read();
    match found.problems.first() {
        Some(problem) if found.certificates.is_empty() => {
            Err(Error::Credentials(format!("TLS: {problem}")))
        }
        _ => Ok(found.certificates),
    }
}

/// The user who called sudo, if the name can stand in a header.
fn sudo_user() -> Option<String> {
    let user = std::env::var("SUDO_USER").ok()?;
    user.bytes().all(|byte| byte.is_ascii_graphic()).then_some(user)
}

impl Credentials {
    /// Reads the files, and returns the TLS configuration.
    pub fn tls(&self) -> Result<Arc<ClientConfig>, Error> {
        let authorities = match &self.settings.authorities {
            Some(path) => read_authorities(&read(path)?).map_err(|error| wrong(path, error))?,
            None => system_authorities()?,
        };
        let identity = self.settings.certificate.as_deref().map(identity).transpose()?;
        let settings = ClientSettings {
            authorities: Some(authorities),
            identity,
            alpn: vec![b"http/1.1".to_vec()],
        };
        client_config(&settings).map_err(|error| Error::Credentials(format!("TLS: {error}")))
    }
}

fn token(path: &Path) -> Result<String, Error> {
    let bytes = read(path)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let token = text.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    match is_token {
        true => Ok(token.to_owned()),
        false => Err(wrong(path, "there is no token in it, or more than one")),
    }
}

fn identity(path: &Path) -> Result<Arc<Identity>, Error> {
    let bytes = read(path)?;
    let chain = read_certificates(&bytes).map_err(|error| wrong(path, error))?;
    let key = read_key(&bytes).map_err(|error| wrong(path, error))?;
    Identity::new(chain, key).map(Arc::new).map_err(|error| wrong(path, error))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let length = fs::metadata(path).map_err(|error| wrong(path, error))?.len();
    if length > FILE_BYTES_MAX {
        return Err(wrong(path, "it is too large"));
    }
    fs::read(path).map_err(|error| wrong(path, error))
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Credentials(format!("{}: {why}", path.display()))
}
