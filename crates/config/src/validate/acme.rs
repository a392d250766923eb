//! Validation of ACME: the authority, the names, and the reachability of challenges.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use weir_tls::SignatureAlgorithm;
use weir_tls::identity::{Identity, read_authorities};
use weir_tls::managed_certificate::ManagedCertificate;
use weir_tls::period::Period;

use super::dates;
use super::files::{KEYS_BYTES_MAX, PEM_BYTES_MAX, read};
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::raw;
use crate::raw::acme as keys;
use crate::raw::tls::Certificate;
use crate::secret::Secret;
use crate::shapes::OcspSource;
use crate::snapshot::{
    Acme, AcmeChallenge, Address, DatedKind, ExternalAccount, KeyKind, Service, VirtualServer,
};

/// Maximum number of names in a certificate at public authorities.
const NAMES_MAX: usize = 100;
/// The ports that authorities connect to (RFC 8555 section 8.3, RFC 8737 section 3).
const HTTP_PORT: u16 = 80;
const TLS_PORT: u16 = 443;

/// The section, and the certificates that use it.
#[derive(Default)]
pub(super) struct AcmeCertificates {
    /// The kind of key; `None`: the section is absent.
    key: Option<KeyKind>,
    /// Slots, by sorted names and by the initial certificate file, with whether OCSP responses are fetched.
    managed: HashMap<(Vec<String>, Option<String>, bool), Arc<ManagedCertificate>>,
}

impl AcmeCertificates {
    pub fn new(file: &raw::File) -> Self {
        let section = file.acme.as_ref();
        Self { key: section.map(|section| kind(section.value.key.value)), ..Self::default() }
    }

    /// The slot of a certificate for these names. `given`: the initial certificate and its file.
    pub fn managed(
        &mut self,
        raw: &Certificate,
        given: Option<(String, Arc<Identity>)>,
        context: &mut Context,
    ) -> Option<Arc<ManagedCertificate>> {
        let acme = raw.acme.as_ref()?;
        let Some(kind) = self.key else {
            let message = "`acme` without the section of this name: weir knows no authority";
            let help =
                "add `acme: { email: YOU@EXAMPLE, agree_to_terms: true }` at the top of the file";
            context.error_help(acme.span, message, help);
            return None;
        };
        let names = names(acme, context)?;
        let fetches_ocsp = match &raw.ocsp {
            None => false,
            Some(ocsp) if ocsp.value == OcspSource::Fetch => true,
            Some(ocsp) => {
                let message = "a file's OCSP response cannot be for certificates to come";
                context.error_help(ocsp.span, message, "write `ocsp: fetch`, or remove it");
                return None;
            }
        };
        let mut sorted = names.clone();
        sorted.sort_unstable();
        let (file, given) = given.unzip();
        let managed = self.managed.entry((sorted, file, fetches_ocsp)).or_insert_with(|| {
            Arc::new(ManagedCertificate::new(names, algorithm(kind), fetches_ocsp, given))
        });
        Some(Arc::clone(managed))
    }
}

fn names(
    acme: &Spanned<Vec<Spanned<crate::shapes::ServerName>>>,
    context: &mut Context,
) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut is_sound = true;
    for Spanned { value: name, span, .. } in &acme.value {
        let name = &name.0;
        let wrong = if name.starts_with("*.") {
            Some((
                format!(
                    "`{name}`: an authority issues wildcards by the challenge dns-01 alone, which weir does not offer"
                ),
                "list the names, or use `cert` and `key` with files of another ACME client",
            ))
        } else if name.parse::<std::net::IpAddr>().is_ok() {
            Some((format!("`{name}` is an address"), "weir asks for certificates of names"))
        } else if names.contains(name) {
            Some((format!("`{name}` is here twice"), "remove one of them"))
        } else {
            None
        };
        match wrong {
            None => names.push(name.clone()),
            Some((message, help)) => {
                context.error_help(*span, message, help);
                is_sound = false;
            }
        }
    }
    if acme.value.is_empty() {
        return None; // Reported by the decoder, like any invalid item.
    }
    if names.len() > NAMES_MAX {
        let message =
            format!("a certificate has at most {NAMES_MAX} names, and here are {}", names.len());
        context.error_help(acme.span, message, "divide them among several certificates");
        return None;
    }
    is_sound.then_some(names)
}

/// Validates the section; `None`: it is absent, or invalid and reported.
pub(super) fn settings(
    file: &raw::File,
    directory: &Path,
    context: &mut Context,
) -> Option<Arc<Acme>> {
    let section = file.acme.as_ref()?;
    let raw = &section.value;
    let agrees = raw.agree_to_terms.as_ref()?;
    if !agrees.value {
        let message =
            "without your agreement to its terms of service, an authority issues no certificates";
        let help = "read them (their URL is in the authority's directory), and write `agree_to_terms: true`";
        context.error_help(agrees.span, message, help);
        return None;
    }
    let authorities = match &raw.ca {
        None => None,
        Some(ca) => {
            let bytes = read(ca, directory, PEM_BYTES_MAX, context)?;
            let found = read_authorities(&bytes).map_err(|error| {
                context.error(ca.span, format!("{}: {error}", ca.value.0.display()));
            });
            let found = found.ok()?;
            let periods = Period::of_certificates(&found);
            dates::note(ca, (DatedKind::Authority, true), &periods, context);
            Some(found)
        }
    };
    let external = match &raw.external_account {
        None => None,
        Some(external) => Some(external_account(&external.value, directory, context)?),
    };
    Some(Arc::new(Acme {
        directory: raw.directory.value.0.clone(),
        email: raw.email.as_ref().map(|email| email.value.0.clone()),
        authorities,
        challenge: match raw.challenge.value {
            keys::Challenge::Http01 => AcmeChallenge::Http01,
            keys::Challenge::TlsAlpn01 => AcmeChallenge::TlsAlpn01,
        },
        key: kind(raw.key.value),
        profile: raw.profile.as_ref().map(|profile| profile.value.0.clone()),
        external,
    }))
}

fn external_account(
    raw: &keys::ExternalAccount,
    directory: &Path,
    context: &mut Context,
) -> Option<ExternalAccount> {
    let (id, file) = (raw.id.as_ref()?, raw.key_file.as_ref()?);
    let bytes = read(file, directory, KEYS_BYTES_MAX, context)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim().trim_end_matches('=');
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || !text.bytes().all(is_base64) {
        let message = format!("{} is no key in base64url", file.value.0.display());
        context.error_help(file.span, message, "put the HMAC key there as the authority shows it");
        return None;
    }
    Some(ExternalAccount { id: id.value.0.clone(), key: Secret::new(text) })
}

/// Warns of a section without effect, and of challenges that the authority cannot reach.
pub(super) fn warn(acme: &Acme, span: Span, servers: &[VirtualServer], context: &mut Context) {
    let has_managed = |server: &VirtualServer| {
        server.tls.as_ref().is_some_and(|tls| tls.managed().next().is_some())
    };
    if !servers.iter().any(has_managed) {
        let message = "no virtual server has a certificate by `acme`";
        let help = "write `certificates: [ { acme: [ shop.example ] } ]` in its `tls`, or remove the section";
        return context.warning_help(span, message, help);
    }
    let (port, way) = match acme.challenge {
        AcmeChallenge::Http01 => (HTTP_PORT, "without `tls`"),
        AcmeChallenge::TlsAlpn01 => (TLS_PORT, "with a certificate by `acme`"),
    };
    let answers = |server: &&VirtualServer| match acme.challenge {
        AcmeChallenge::Http01 => server.tls.is_none() && matches!(server.service, Service::Http),
        AcmeChallenge::TlsAlpn01 => has_managed(server),
    };
    let addresses = servers.iter().filter(answers).flat_map(|server| &server.listen);
    let has_port = |address: &Address| address.socket().is_some_and(|it| it.port() == port);
    if !addresses.map(|point| &point.address).any(has_port) {
        let challenge = acme.challenge.as_str();
        let message = format!(
            "`challenge: {challenge}`: the authority connects to port {port}, and no virtual server {way} listens there"
        );
        let help = format!("listen on port {port}, or forward it to such a virtual server");
        context.warning_help(span, message, help);
    }
}

fn kind(raw: keys::KeyKind) -> KeyKind {
    match raw {
        keys::KeyKind::EcdsaP256 => KeyKind::EcdsaP256,
        keys::KeyKind::EcdsaP384 => KeyKind::EcdsaP384,
        keys::KeyKind::Rsa2048 => KeyKind::Rsa2048,
        keys::KeyKind::Rsa3072 => KeyKind::Rsa3072,
        keys::KeyKind::Rsa4096 => KeyKind::Rsa4096,
    }
}

fn algorithm(kind: KeyKind) -> SignatureAlgorithm {
    match kind {
        KeyKind::EcdsaP256 | KeyKind::EcdsaP384 => SignatureAlgorithm::ECDSA,
        KeyKind::Rsa2048 | KeyKind::Rsa3072 | KeyKind::Rsa4096 => SignatureAlgorithm::RSA,
    }
}
