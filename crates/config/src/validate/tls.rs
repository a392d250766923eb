//! TLS of virtual servers: reading and checking of certificates, merging of settings.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use weir_core::persistence::keys::Keys;
use weir_tls::client::{ClientSettings, client_config};
use weir_tls::identity::{
    Identity, IdentityError, leaves, newest, read_authorities, read_certificates, read_key,
    read_revocations,
};
use weir_tls::managed_certificate::Credential;
use weir_tls::ocsp::{self, Staple, Validity, must_be_stapled, responder_url, verify};
use weir_tls::period::Period;
use weir_tls::server::{
    Certificates, ClientCertificates, GROUPS, Offer, SUITES, Settings, Trust, Version,
    server_config,
};

use super::acme::AcmeCertificates;
use super::certificate_folder;
use super::dates;
use super::files::{KEYS_BYTES_MAX, PEM_BYTES_MAX, read, read_text};
use super::names::{by_name, find};
use crate::decode::{Context, NamedItem, Spanned};
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::{File, tls as raw};
use crate::scalar::Name;
use crate::shapes::{FilePath, OcspSource};
use crate::snapshot::{DatedKind, Expiry, NameTls, PoolTls, ServerTls, SessionsOf};

/// A certificate that expires within this many days causes a warning.
const EXPIRY_WARNING_DAYS: i64 = 30;
const DAY_S: i64 = 24 * 60 * 60;

/// TLS profiles, and the certificates read so far.
pub(super) struct TlsProfiles<'a> {
    profiles: &'a [NamedItem<raw::Tls>],
    by_name: BTreeMap<&'a str, usize>,
    pub used: HashSet<usize>,
    directory: &'a Path,
    /// The identities, by the paths of certificate, key and OCSP response. `None`: invalid, which was reported.
    identities: HashMap<[String; 3], Option<Arc<Identity>>>,
    acme: AcmeCertificates,
    now_unix_s: i64,
}

impl<'a> TlsProfiles<'a> {
    pub fn new(profiles: &'a [NamedItem<raw::Tls>], directory: &'a Path) -> Self {
        Self {
            profiles,
            by_name: by_name(profiles),
            used: HashSet::new(),
            directory,
            identities: HashMap::new(),
            acme: AcmeCertificates::default(),
            now_unix_s: dates::now_unix_s(),
        }
    }

    /// Adds the ACME certificates of the file.
    pub fn with_acme(self, file: &File) -> Self {
        Self { acme: AcmeCertificates::new(file), ..self }
    }

    /// The TLS settings of a virtual server with these `protocols` for ALPN, in order of preference; `None`: they are
    /// invalid.
    pub fn of(
        &mut self,
        choice: &Spanned<ProfileOr<raw::Tls>>,
        protocols: &[&[u8]],
        context: &mut Context,
    ) -> Option<ServerTls> {
        match &choice.value {
            ProfileOr::Inline(raw) => self.server(raw, protocols, choice.span, context),
            ProfileOr::Name(name) => {
                let name = Spanned { value: name.clone(), span: choice.span, given: true };
                let raw = self.profile(&name, context)?;
                self.server(raw, protocols, choice.span, context)
            }
        }
    }

    fn profile(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<&'a raw::Tls> {
        let index = find("TLS profile", &self.by_name, name, context)?;
        self.used.insert(index);
        self.profiles[index].value.as_ref()
    }

    fn server(
        &mut self,
        raw: &raw::Tls,
        protocols: &[&[u8]],
        span: Span,
        context: &mut Context,
    ) -> Option<ServerTls> {
        if raw.early_data.value && protocols.is_empty() {
            let message =
                "`early_data` with `type: tcp`: weir cannot know which data is safe to repeat";
            context.error_help(raw.early_data.span, message, "remove it");
            return None;
        }
        let credentials = self.certificates(raw, context)?;
        if credentials.is_empty() {
            let help = "add `certificates: [ { cert: FILE, key: FILE } ]`";
            context.error_help(span, "`tls` has no certificate to show", help);
            return None;
        }
        let certificates = Arc::new(Certificates::new(&credentials, raw.strict_sni.value));
        let settings = self.settings(raw, protocols, context)?;
        let default = self.join(&settings, Arc::clone(&certificates), span, context)?;
        let mut lets_in = settings.client_certificates.digest().to_vec();
        let mut names = Vec::new();
        let mut all = credentials;
        for item in raw.by_name.iter().flat_map(|items| items.iter()) {
            let found = self.for_names(&item.value, &certificates, protocols, context)?;
            all.extend(found.1);
            lets_in.extend_from_slice(&found.2);
            names.push(found.0);
        }
        Some(ServerTls {
            default,
            names,
            sessions: self.sessions(raw, context)?,
            lets_in,
            credentials: all,
            handshake_timeout_ms: raw.handshake_timeout.0,
            handshakes_max: raw.handshakes_max.as_ref().map(|max| max.value.0),
        })
    }

    /// TLS settings for some server names.
    fn for_names(
        &mut self,
        raw: &raw::ByName,
        certificates: &Arc<Certificates>,
        protocols: &[&[u8]],
        context: &mut Context,
    ) -> Option<(NameTls, Vec<Credential>, [u8; 32])> {
        let profile = raw.profile.as_ref()?;
        let raw_tls = self.profile(profile, context)?;
        if raw_tls.by_name.is_some() {
            let message = "a profile used for some names cannot have names itself";
            context.error_help(profile.span, message, "name a profile without `by_name`");
            return None;
        }
        let own = self.certificates(raw_tls, context)?;
        let certificates = if own.is_empty() {
            Arc::clone(certificates)
        } else {
            Arc::new(Certificates::new(&own, raw_tls.strict_sni.value))
        };
        let settings = self.settings(raw_tls, protocols, context)?;
        let offer = self.join(&settings, certificates, profile.span, context)?;
        let names = raw.names.iter().flat_map(|names| names.iter());
        let names = names.map(|name| name.value.0.as_str().into()).collect();
        Some((NameTls { names, offer }, own, settings.client_certificates.digest()))
    }

    fn join(
        &self,
        settings: &Settings,
        certificates: Arc<Certificates>,
        span: Span,
        context: &mut Context,
    ) -> Option<Offer> {
        match server_config(settings, Arc::clone(&certificates)) {
            Ok(config) => Some(Offer { config, certificates }),
            Err(error) => {
                context.error(span, format!("`tls`: {error}"));
                None
            }
        }
    }

    fn settings(
        &self,
        raw: &raw::Tls,
        protocols: &[&[u8]],
        context: &mut Context,
    ) -> Option<Settings> {
        let (min, max) = (raw.min_version.value.version(), raw.max_version.value.version());
        if min > max {
            let message = "`min_version` is above `max_version`: no version is left";
            let span =
                if raw.min_version.given { raw.min_version.span } else { raw.max_version.span };
            context.error_help(span, message, "change one of them");
            return None;
        }
        let alpn = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let mut settings =
            Settings { version_min: min, version_max: max, alpn, ..Settings::default() };
        if let Some(ciphers) = &raw.ciphers {
            let suites = ciphers.iter().map(|cipher| *SUITES[cipher.value.0].2);
            settings.suites = suites.collect();
            let is_12 = |suite: &weir_tls::SupportedCipherSuite| suite.tls13().is_none();
            let fits = |suite: &weir_tls::SupportedCipherSuite| {
                use weir_tls::server::Version::{Tls12, Tls13};
                (min..=max).contains(&if is_12(suite) { Tls12 } else { Tls13 })
            };
            if settings.suites.is_empty() {
                return None; // The error was reported.
            }
            if !settings.suites.iter().any(fits) {
                let message = "`ciphers` has no suite for the enabled TLS versions";
                context.error_help(ciphers.span, message, "add one, or change the versions");
                return None;
            }
        }
        if let Some(curves) = &raw.curves {
            settings.groups = curves.iter().map(|curve| GROUPS[curve.value.0].1).collect();
            if settings.groups.is_empty() {
                return None;
            }
        }
        settings.client_certificates = match &raw.client_certificates {
            None => ClientCertificates::Off,
            Some(raw) => self.client_certificates(&raw.value, context)?,
        };
        Some(settings)
    }

    fn client_certificates(
        &self,
        raw: &raw::ClientCertificates,
        context: &mut Context,
    ) -> Option<ClientCertificates> {
        let ca = raw.ca.as_ref()?;
        let authorities = self.authorities(ca, context)?;
        let periods = Period::of_certificates(&authorities);
        dates::note(ca, (DatedKind::Authority, true), &periods, context);
        let revocations = match &raw.crl {
            Some(crl) => self.revocations(crl, context)?,
            None => Vec::new(),
        };
        let trust = Trust { authorities, revocations };
        Some(match raw.mode.value {
            raw::ClientCertificateMode::Require => ClientCertificates::Require(trust),
            raw::ClientCertificateMode::Request => ClientCertificates::Request(trust),
        })
    }

    /// The lists of revoked certificates, of which one of each issuer is used: the newest.
    fn revocations(
        &self,
        crl: &Spanned<FilePath>,
        context: &mut Context,
    ) -> Option<Vec<CertificateRevocationListDer<'static>>> {
        let lists = self.pem(crl, read_revocations, context)?;
        let (used, older) = newest(lists);
        let periods = Period::of_revocations(&used);
        dates::note(crl, (DatedKind::RevocationList, true), &periods, context);
        for list in Period::of_revocations(&older) {
            let message = format!(
                "{}: there are several revocation lists (CRL) of {}; only the newest is used",
                shown(crl),
                list.name
            );
            context.warning_help(crl.span, message, "remove the older ones");
        }
        Some(used)
    }

    fn sessions(&self, raw: &raw::Tls, context: &mut Context) -> Option<SessionsOf> {
        let is_tickets = raw.resumption.value == raw::Resumption::Tickets;
        let is_stateful = raw.resumption.value == raw::Resumption::Stateful;
        let key_file = raw.ticket_key_file.as_ref();
        let useless = [
            ("ticket_key_file", key_file.map(|file| file.span).filter(|_| !is_tickets), "tickets"),
            (
                "cache_size",
                raw.cache_size.given.then_some(raw.cache_size.span).filter(|_| !is_stateful),
                "stateful",
            ),
        ];
        for (key, span, of) in useless {
            if let Some(span) = span {
                let message = format!("`{key}` is of `resumption: {of}`");
                context.error_help(span, message, format!("set `resumption: {of}`, or remove it"));
                return None;
            }
        }
        let early_data = raw.early_data.value;
        if early_data && !is_stateful {
            let message = "`early_data` without `resumption: stateful`: early data of a client could be \
                           recorded, and sent again by anybody";
            let help = "set `resumption: stateful`, where each session serves once, or remove it";
            context.error_help(raw.early_data.span, message, help);
            return None;
        }
        if early_data && raw.max_version.value.version() < Version::Tls13 {
            let message = "`early_data` is of TLS 1.3, which `max_version` excludes";
            context.error_help(raw.early_data.span, message, "remove one of them");
            return None;
        }
        Some(match raw.resumption.value {
            raw::Resumption::Off => SessionsOf::Off,
            raw::Resumption::Stateful => {
                SessionsOf::Stateful { bytes_max: raw.cache_size.value.0, early_data }
            }
            raw::Resumption::Tickets => SessionsOf::Tickets {
                keys: match key_file {
                    None => None,
                    Some(file) => Some(Arc::new(self.keys(file, context)?)),
                },
            },
        })
    }

    fn keys(&self, file: &Spanned<FilePath>, context: &mut Context) -> Option<Keys> {
        let text = read_text(file, self.directory, KEYS_BYTES_MAX, context)?;
        let keys = Keys::parse(&text);
        keys.map_err(|error| context.error(file.span, format!("{}: {error}", shown(file)))).ok()
    }

    /// The TLS settings of a pool. `to_unix`: a member has no name of its own; `http2`: members must agree to HTTP/2.
    pub fn of_pool(
        &mut self,
        raw: &Spanned<raw::PoolTls>,
        (to_unix, http2): (bool, bool),
        context: &mut Context,
    ) -> Option<PoolTls> {
        let mut made_from = Vec::new();
        let authorities = match (&raw.ca, raw.verify.value) {
            (Some(ca), false) => {
                let message = "`ca` with `verify: false`: it would not be used";
                context.error_help(ca.span, message, "remove one of them");
                return None;
            }
            (None, false) => None,
            (Some(ca), true) => {
                let found = self.authorities(ca, context)?;
                let periods = Period::of_certificates(&found);
                dates::note(ca, (DatedKind::Authority, true), &periods, context);
                Some(found)
            }
            (None, true) => Some(system(raw.span, context)?),
        };
        if raw.verify.value && to_unix && raw.server_name.is_none() {
            let message = "a member on a unix socket has no name that a certificate could be for";
            context.error_help(raw.span, message, "add `server_name: NAME`");
            return None;
        }
        let identity = match &raw.certificate {
            None => None,
            Some(certificate) => {
                if let Some(ocsp) = &certificate.value.ocsp {
                    let message = "a client's certificate is shown without an OCSP response";
                    context.error_help(ocsp.span, message, "remove `ocsp`");
                    return None;
                }
                refuse_acme(&certificate.value, "a member is not shown", context)?;
                let identity = self.certificate(&certificate.value, context)?;
                if let Some(file) = &certificate.value.cert {
                    let periods = Period::of_certificates(&identity.certified.cert);
                    // The warning was made when it was read.
                    dates::note(file, (DatedKind::Certificate, false), &periods, context);
                }
                Some(identity)
            }
        };
        made_from.extend(authorities.iter().flatten().map(|it| it.to_vec()));
        made_from.push(Vec::new());
        made_from.extend(identity.iter().flat_map(|it| &it.certified.cert).map(|it| it.to_vec()));
        let alpn = if http2 { vec![b"h2".to_vec()] } else { Vec::new() };
        let settings = ClientSettings { authorities, identity, alpn };
        let config = client_config(&settings);
        let config =
            config.map_err(|error| context.error(raw.span, format!("`tls`: {error}"))).ok()?;
        let server_name = raw.server_name.as_ref().map(|name| name.value.0.as_str().into());
        Some(PoolTls { config, server_name, made_from })
    }

    /// The contents of a file, parsed by `parse`.
    fn pem<T>(
        &self,
        file: &Spanned<FilePath>,
        parse: impl FnOnce(&[u8]) -> Result<T, IdentityError>,
        context: &mut Context,
    ) -> Option<T> {
        let bytes = read(file, self.directory, PEM_BYTES_MAX, context)?;
        parse(&bytes)
            .map_err(|error| context.error(file.span, format!("{}: {error}", shown(file))))
            .ok()
    }

    /// The authorities of a file, and warnings of those that are none.
    fn authorities(
        &self,
        ca: &Spanned<FilePath>,
        context: &mut Context,
    ) -> Option<Vec<CertificateDer<'static>>> {
        let read = |text: &[u8]| Ok((read_authorities(text)?, leaves(text)));
        let (authorities, leaves) = self.pem(ca, read, context)?;
        for (line, subject) in leaves {
            let subject = clip(&subject);
            let message = format!(
                "{}: line {line}: the certificate of \"{subject}\" is no authority, so nothing is verified by it",
                shown(ca)
            );
            context.warning_help(ca.span, message, "put the certificate of its issuer here");
        }
        Some(authorities)
    }

    /// All certificates of a section.
    fn certificates(&mut self, raw: &raw::Tls, context: &mut Context) -> Option<Vec<Credential>> {
        let items = raw.certificates.iter().flat_map(|items| items.iter());
        let mut found: Vec<Option<Credential>> =
            items.map(|item| self.credential(item, context)).collect();
        if let Some(folder) = &raw.certificate_folder {
            let items = certificate_folder::certificates(folder, self.directory, context)?;
            let fixed = items.iter().map(|item| self.certificate(item, context));
            found.extend(fixed.map(|identity| identity.map(Credential::Fixed)));
        }
        found.into_iter().collect()
    }

    /// A certificate from files, or from an authority by ACME.
    fn credential(
        &mut self,
        raw: &Spanned<raw::Certificate>,
        context: &mut Context,
    ) -> Option<Credential> {
        let Some(acme) = &raw.value.acme else {
            return self.certificate(&raw.value, context).map(Credential::Fixed);
        };
        let given = match (&raw.value.cert, &raw.value.key) {
            (None, None) => None,
            (Some(cert), Some(_)) => {
                let plain = raw::Certificate { ocsp: None, ..raw.value.clone() };
                Some((shown(cert), self.certificate(&plain, context)?))
            }
            _ => {
                let message = "beside `acme`, `cert` and `key` are needed both, or neither";
                context.error_help(acme.span, message, "add the other, or remove it");
                return None;
            }
        };
        self.acme.managed(&raw.value, given, context).map(Credential::Managed)
    }

    fn certificate(
        &mut self,
        raw: &raw::Certificate,
        context: &mut Context,
    ) -> Option<Arc<Identity>> {
        let (cert, key) = (raw.cert.as_ref()?, raw.key.as_ref()?);
        let ocsp = raw.ocsp.as_ref();
        let shown_ocsp = match ocsp.map(|ocsp| &ocsp.value) {
            None => String::new(),
            Some(OcspSource::Fetch) => "fetch".into(),
            Some(OcspSource::File(path)) => format!("file {}", path.0.display()),
        };
        let paths = [shown(cert), shown(key), shown_ocsp];
        if let Some(known) = self.identities.get(&paths) {
            return known.clone();
        }
        let identity = self.load(cert, key, ocsp, context).map(Arc::new);
        self.identities.insert(paths, identity.clone());
        identity
    }

    fn load(
        &self,
        cert: &Spanned<FilePath>,
        key: &Spanned<FilePath>,
        ocsp: Option<&Spanned<OcspSource>>,
        context: &mut Context,
    ) -> Option<Identity> {
        let (chain, private) = self.pair(cert, key, context)?;
        let mut identity = match Identity::new(chain, private) {
            Ok(identity) => identity,
            Err(error) => {
                let at = if error.is_of_key() { key } else { cert };
                let message = format!("{} and {}: {error}", shown(cert), shown(key));
                context.error(at.span, message);
                return None;
            }
        };
        for oddity in &identity.oddities {
            let message = format!("{}: {oddity}", shown(cert));
            context.warning_help(cert.span, message, "clients may refuse it");
        }
        self.warn_of_time(&identity, cert, context);
        self.staple(&mut identity, cert, ocsp, context)?;
        Some(identity)
    }

    /// The chain and the key, from two files or from one.
    fn pair(
        &self,
        cert: &Spanned<FilePath>,
        key: &Spanned<FilePath>,
        context: &mut Context,
    ) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        if cert.value != key.value {
            let chain = self.pem(cert, read_certificates, context);
            let private = self.pem(key, read_key, context);
            return Some((chain?, private?));
        }
        // A mistake in the one file is told once.
        let bytes = read(cert, self.directory, PEM_BYTES_MAX, context)?;
        let mut told = |file: &Spanned<FilePath>, error: &IdentityError| {
            context.error(file.span, format!("{}: {error}", shown(file)));
        };
        let chain = read_certificates(&bytes).inspect_err(|error| told(cert, error));
        if matches!(chain, Err(IdentityError::Pem(_))) {
            return None;
        }
        let private = read_key(&bytes).inspect_err(|error| told(key, error));
        Some((chain.ok()?, private.ok()?))
    }

    /// The OCSP response of a certificate, from a file or, later, from its authority.
    fn staple(
        &self,
        identity: &mut Identity,
        cert: &Spanned<FilePath>,
        ocsp: Option<&Spanned<OcspSource>>,
        context: &mut Context,
    ) -> Option<()> {
        let certificate = identity.certified.cert.first()?.clone();
        let issuer = identity.certified.cert.get(1).cloned();
        let Some(ocsp) = ocsp else {
            if must_be_stapled(&certificate) {
                let message = format!(
                    "{}: the certificate requires an OCSP response (must-staple), but has no `ocsp`",
                    shown(cert)
                );
                let help =
                    "add `ocsp: fetch`; browsers that know the demand refuse the certificate";
                context.warning_help(cert.span, message, help);
            }
            return Some(());
        };
        let staple = Arc::new(Staple::new(&identity.certified));
        match &ocsp.value {
            OcspSource::Fetch => {
                if issuer.is_none() {
                    let message = format!("{} has no certificate of the issuer in it", shown(cert));
                    let help =
                        "append it: a responder is asked about both, and its answer verified by it";
                    context.error_help(ocsp.span, message, help);
                    return None;
                }
                if !responder_url(&certificate).is_some_and(|url| url.starts_with("http://")) {
                    let message =
                        format!("{}: the certificate names no OCSP responder", shown(cert));
                    let help = "nothing is fetched; remove `ocsp`, since its authority has no OCSP";
                    context.warning_help(ocsp.span, message, help);
                    return Some(());
                }
                identity.fetches_ocsp = true;
            }
            OcspSource::File(path) => {
                let file = Spanned { value: path.clone(), span: ocsp.span, given: true };
                let response = read(&file, self.directory, KEYS_BYTES_MAX, context)?;
                // Without the issuer, the signature cannot be verified here.
                let found = match issuer {
                    Some(issuer) => verify(&response, &certificate, &issuer, self.now_unix_s),
                    None => ocsp::read(&response, &certificate, self.now_unix_s),
                };
                if let Some(validity) = ocsp::period(&response, &certificate) {
                    let name = identity.subject.clone();
                    let Validity { from_unix_s, until_unix_s } = validity;
                    let period = Period { name, from_unix_s, until_unix_s: Some(until_unix_s) };
                    // What cannot be used is told below.
                    let kind = (DatedKind::OcspResponse, found.is_ok());
                    dates::note(&file, kind, &[period], context);
                }
                match found {
                    Ok(validity) => staple.set(&response, validity),
                    Err(error) => {
                        let message = format!("{}: {error}", shown(&file));
                        let help = "it is not sent along; get a new one, or set `ocsp: fetch`";
                        context.warning_help(ocsp.span, message, help);
                    }
                }
            }
        }
        identity.staple = Some(staple);
        Some(())
    }

    fn warn_of_time(&self, identity: &Identity, cert: &Spanned<FilePath>, context: &mut Context) {
        let until = identity.not_after_unix_s;
        let days_left = (until - self.now_unix_s).div_euclid(DAY_S);
        let message = if until <= self.now_unix_s || days_left < EXPIRY_WARNING_DAYS {
            Expiry::of(until, self.now_unix_s).0
        } else if identity.not_before_unix_s > self.now_unix_s {
            "is not valid yet".to_owned()
        } else {
            return;
        };
        let message = format!("{}: the certificate or its chain {message}", shown(cert));
        context.warning_help(cert.span, message, "renew it; a reload takes the new one");
    }
}

/// Rejects an ACME certificate where it is not supported.
pub(super) fn refuse_acme(raw: &raw::Certificate, why: &str, context: &mut Context) -> Option<()> {
    let Some(acme) = &raw.acme else { return Some(()) };
    let message = format!("`acme`: {why} certificates by ACME");
    context.error_help(acme.span, message, "write `cert: FILE, key: FILE`");
    None
}

fn shown(file: &Spanned<FilePath>) -> String {
    file.value.0.display().to_string()
}

/// The authorities of this system.
fn system(span: Span, context: &mut Context) -> Option<Vec<CertificateDer<'static>>> {
    let system = context.system_authorities(span).certificates.clone();
    if system.is_empty() {
        let message = "this host has no trusted authorities";
        context.error_help(span, message, "install ca-certificates, or name a file by `ca`");
        return None;
    }
    Some(system)
}
