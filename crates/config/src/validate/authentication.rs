//! Authentication: reports missing keys, and keys that would be ignored.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use weir_core::expression::Slots;
use weir_core::jwt::{Algorithm, JWKS_BYTES_MAX, Keys, TokenPlace, TokenReader, TokenSettings};
use weir_core::passwords::{USERS_BYTES_MAX, Users, UsersError};
use weir_core::policy::{Action, Authenticator, CredentialsKind, Subrequest};
use weir_http::secret_names::CredentialFields;

use super::dates;
use super::external::external;
use super::files::read;
use super::names::{by_name, find};
use crate::decode::{Context, NamedItem, OneOrMany, Spanned};
use crate::document::Span;
use crate::raw::authentication as raw;
use crate::scalar::{Name, Text};
use crate::snapshot::{AuthenticationNeeds, DatedKind, FetchedKeys};
use crate::variants::keys_fit;

/// The section `authentication` of the file.
pub(super) struct Authentications<'a> {
    by_name: BTreeMap<&'a str, usize>,
    /// The actions that require them; `None`: invalid, which was reported.
    all: Vec<Option<Action>>,
    /// The authentications that virtual servers and rules require.
    required: HashSet<usize>,
    /// Token readers with keys that are fetched by URL.
    pub fetched: Vec<FetchedKeys>,
}

impl<'a> Authentications<'a> {
    /// Compiles all authentications; token readers are added to `slots`. Services are looked up in `pools`.
    pub fn new(
        items: &'a [NamedItem<raw::Authentication>],
        directory: &Path,
        (slots, pools): (&mut Slots, &BTreeMap<&str, usize>),
        context: &mut Context,
    ) -> Self {
        let mut fetched = Vec::new();
        let all = items.iter().map(|item| {
            let raw = item.value.as_ref()?;
            let realm = realm(&item.name, raw.realm.as_ref(), context);
            let kind = raw.kind.as_ref()?.value;
            keys_fit(raw, kind, context);
            let how = match kind {
                raw::AuthenticationType::Jwt => {
                    token(item, raw, directory, (slots, &mut fetched), context)
                }
                raw::AuthenticationType::Basic => {
                    users(item, raw, directory, context).map(CredentialsKind::Password)
                }
                raw::AuthenticationType::External => {
                    let service = external(item, raw, pools, context)?;
                    return Some(Action::Subrequest(Subrequest::Authorise(Arc::new(service))));
                }
            };
            Some(Action::Authenticate(Arc::new(Authenticator {
                name: item.name.as_str().into(),
                realm: realm?,
                forwards: raw.forward_credentials.value,
                how: how?,
            })))
        });
        let all = all.collect();
        Self { by_name: by_name(items), all, required: HashSet::new(), fetched }
    }
}

/// The fields in which requests have credentials: tokens, and what external services decide by.
fn credential_fields(items: &[NamedItem<raw::Authentication>]) -> CredentialFields {
    let items = items.iter().filter_map(|item| item.value.as_ref());
    CredentialFields::new(items.flat_map(|item| {
        let header = item.header.iter().map(|header| header.value.0.as_str());
        let of_service = item.request_headers.iter().flat_map(|headers| &headers.value.0);
        header.chain(of_service.map(|header| header.value.0.as_str()))
    }))
}

impl Authentications<'_> {
    /// What all authentications need. `items`: as in [`Self::new`].
    pub fn needs(&self, items: &[NamedItem<raw::Authentication>]) -> AuthenticationNeeds {
        AuthenticationNeeds {
            checks_passwords: self.checks_passwords(),
            credential_fields: credential_fields(items),
        }
    }

    /// The pools of the external services.
    pub fn pools(&self) -> HashSet<usize> {
        self.all.iter().flatten().filter_map(Action::subrequest).map(Subrequest::pool).collect()
    }

    /// Whether any authentication needs passwords.
    fn checks_passwords(&self) -> bool {
        self.all.iter().flatten().any(|action| match action {
            Action::Authenticate(by) => matches!(by.how, CredentialsKind::Password(_)),
            _ => false,
        })
    }

    /// The authentications used by virtual servers, by rules, and by expressions, which read these `slots`.
    pub fn used(&self, slots: &Slots) -> HashSet<usize> {
        let read = slots.token_names_read().filter_map(|name| self.by_name.get(name));
        read.chain(&self.required).copied().collect()
    }

    /// The action that requires credentials for the authentication with this name.
    pub fn require(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<Action> {
        let found = find("authentication", &self.by_name, name, context)?;
        self.required.insert(found);
        self.all[found].clone()
    }
}

/// The realm for clients, which is safe inside quotes.
fn realm(name: &str, given: Option<&Spanned<Text>>, context: &mut Context) -> Option<Box<str>> {
    let Some(given) = given else { return Some(name.into()) };
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if !given.value.0.bytes().all(is_plain) {
        let message = "`realm` has characters that cannot be in a quoted header value";
        context.error_help(given.span, message, "use ASCII without `\"` and `\\`");
        return None;
    }
    Some(given.value.0.as_str().into())
}

fn users(
    item: &NamedItem<raw::Authentication>,
    raw: &raw::Authentication,
    directory: &Path,
    context: &mut Context,
) -> Option<Arc<Users>> {
    let Some(file) = &raw.users else {
        let message = "an authentication of type basic lacks `users`";
        context.error_help(
            item.name_span,
            message,
            "add `users: FILE`, as `htpasswd -B` writes it",
        );
        return None;
    };
    let text = read(file, directory, USERS_BYTES_MAX as u64, context)?;
    match Users::parse(&text) {
        Ok(users) => Some(Arc::new(users)),
        Err(UsersError { line, what }) => {
            let shown = file.value.0.display();
            let place = if line == 0 { format!("{shown}") } else { format!("{shown}:{line}") };
            context.error_help(file.span, format!("{place}: {what}"), what.help());
            None
        }
    }
}

fn token(
    item: &NamedItem<raw::Authentication>,
    raw: &raw::Authentication,
    directory: &Path,
    (slots, fetched): (&mut Slots, &mut Vec<FetchedKeys>),
    context: &mut Context,
) -> Option<CredentialsKind> {
    let place = place(raw, context);
    let keys = keys(item.name_span, raw, directory, context);
    let algorithms = raw.algorithms.as_ref().map_or(Algorithm::ALL.to_vec(), |given| {
        let algorithm = |it: &Spanned<raw::TokenAlgorithm>| match it.value {
            raw::TokenAlgorithm::Rs256 => Algorithm::Rs256,
            raw::TokenAlgorithm::Es256 => Algorithm::Es256,
            raw::TokenAlgorithm::EdDsa => Algorithm::EdDsa,
        };
        given.value.0.iter().map(algorithm).collect()
    });
    let texts = |given: Option<&Spanned<OneOrMany<Spanned<Text>>>>| {
        let all = given.into_iter().flat_map(|given| &given.value.0);
        all.map(|text| text.value.0.as_str().into()).collect()
    };
    let place = place?;
    let settings = TokenSettings {
        place: place.clone(),
        algorithms,
        issuers: texts(raw.issuer.as_ref()),
        audiences: texts(raw.audience.as_ref()),
        leeway_s: raw.leeway.0 / 1_000,
    };
    let (keys, url) = match keys {
        // A rule that reads the authentication must not cause a second error.
        None => (None, None),
        Some(FoundKeys::File(keys)) => (Some(keys), None),
        Some(FoundKeys::At(url)) => (None, Some(url)),
    };
    let reader = Arc::new(TokenReader::new(settings, keys));
    if let (Some(url), Some(raw)) = (url, raw.keys.as_ref()) {
        if url.is_secure {
            context.system_authorities(raw.span);
        }
        let (name, reader) = (item.name.as_str().into(), Arc::clone(&reader));
        fetched.push(FetchedKeys { name, reader, url, refresh_ms: raw.refresh.0 });
    }
    let reader = slots.add_token_reader(&item.name, reader);
    Some(CredentialsKind::Token {
        reader,
        place,
        user_claim: raw.user_claim.value.0.as_str().into(),
    })
}

fn place(raw: &raw::Authentication, context: &mut Context) -> Option<TokenPlace> {
    match (&raw.header, &raw.cookie) {
        (Some(_), Some(cookie)) => {
            let message = "`header` and `cookie` are both given: a token has one place";
            context.error_help(cookie.span, message, "keep one of them");
            None
        }
        (Some(header), None) if header.value.0.eq_ignore_ascii_case("authorization") => {
            Some(TokenPlace::Authorization)
        }
        (Some(header), None) => {
            Some(TokenPlace::Header(header.value.0.to_ascii_lowercase().into()))
        }
        (None, Some(cookie)) => Some(TokenPlace::Cookie(cookie.value.0.as_str().into())),
        (None, None) => Some(TokenPlace::Authorization),
    }
}

/// The source of keys.
enum FoundKeys {
    File(Keys),
    At(crate::snapshot::HttpUrl),
}

fn keys(
    item: Span,
    raw: &raw::Authentication,
    directory: &Path,
    context: &mut Context,
) -> Option<FoundKeys> {
    let Some(given) = &raw.keys else {
        let message = "an authentication of type jwt lacks `keys`";
        context.error_help(item, message, "add `keys: { file: jwks.json }` or `keys: { url: … }`");
        return None;
    };
    match (&given.file, &given.url) {
        (None, Some(url)) => Some(FoundKeys::At(url.value.0.clone())),
        (Some(file), None) => {
            if given.refresh.given {
                let message =
                    "`refresh` has no effect on a file: it is read with the configuration";
                context.error_help(given.refresh.span, message, "remove it, and reload instead");
            }
            let text = read(file, directory, JWKS_BYTES_MAX as u64, context)?;
            match Keys::parse(&text) {
                Ok(keys) => {
                    let periods = dates::of_token_keys(&text);
                    dates::note(file, (DatedKind::TokenKeys, true), &periods, context);
                    for (number, kind) in keys.skipped() {
                        let shown = file.value.0.display();
                        let message = format!("{shown}: key {number} is not used: {kind}");
                        let help =
                            "weir verifies RS256, ES256 and EdDSA; tokens by this key are refused";
                        context.warning_help(file.span, message, help);
                    }
                    Some(FoundKeys::File(keys))
                }
                Err(error) => {
                    let message = format!("{}: {error}", file.value.0.display());
                    let help = "write a JWK Set: {\"keys\": [ … ]} with public keys (RFC 7517)";
                    context.error_help(file.span, message, help);
                    None
                }
            }
        }
        (Some(_), Some(url)) => {
            context.error_help(url.span, "both `file` and `url` are given", "keep one of them");
            None
        }
        (None, None) => {
            let help = "add `file` or `url`";
            context.error_help(given.span, "`keys` has neither `file` nor `url`", help);
            None
        }
    }
}
