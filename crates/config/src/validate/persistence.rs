//! Persistence: its settings; missing keys are reported, and keys that would be ignored.

use std::sync::Arc;

use weir_core::datagram::quic::CONNECTION_ID_BYTES_MAX;
use weir_core::expression::{Purpose, Template};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::persistence::keys::Keys;
use weir_http::cookies::SetCookie;

use super::compiler::{Compiler, varying};
use super::cookie_attributes::{same_site, secure};
use super::files::{KEYS_BYTES_MAX, field_value, read_text};
use crate::decode::{Context, NamedItem, Spanned, if_given};
use crate::document::Span;
use crate::raw::persistence as raw;
use crate::shapes::{AutoOr, FilePath};
use crate::snapshot::{
    AddressOf, ConnectionIdSettings, InsertedCookie, LearnedPersistence, Persistence,
    PersistenceKind, RememberedAddress, ServerIdPlace, TableSettings,
};
use crate::variants::{PresentKey, Takers, Variants as _, keys_fit};

/// Default name of an inserted cookie.
const COOKIE_NAME_DEFAULT: &str = "WEIR";
/// The path parameter with the session id in Java application servers.
const PARAMETER_DEFAULT: &str = "jsessionid";

impl Compiler<'_> {
    /// A persistence of the file, if it is valid.
    pub fn persistence_item(
        &mut self,
        item: &NamedItem<raw::Persistence>,
        context: &mut Context,
    ) -> Option<Persistence> {
        let raw = item.value.as_ref()?;
        let found = self.persistence_of(&item.name, raw, context);
        let fallback = self.fallback(raw, context)?;
        found.map(|found| Persistence { fallback, ..found })
    }

    /// A persistence without its fallback, if it is valid.
    pub fn persistence_of(
        &mut self,
        name: &str,
        raw: &raw::Persistence,
        context: &mut Context,
    ) -> Option<Persistence> {
        let kind = raw.kind.as_ref()?;
        keys_fit(raw, kind.value, context);
        let kind = match kind.value {
            raw::PersistenceType::Cookie => self.cookie_kind(raw, context)?,
            raw::PersistenceType::SourceAddress => address(raw, AddressOf::Client),
            raw::PersistenceType::DestinationAddress => {
                // Listeners on all addresses must determine the destination address.
                self.slots.note_server();
                address(raw, AddressOf::Server)
            }
            raw::PersistenceType::Learned => {
                PersistenceKind::Learned(learned(self, raw, kind.span, context)?)
            }
            raw::PersistenceType::Quic => {
                PersistenceKind::ConnectionIds(connection_ids(raw, context)?)
            }
            raw::PersistenceType::Hash => {
                let example = "${request.headers['x-user']}";
                PersistenceKind::Hash(of(self, raw, (kind.span, "hash", example), context)?)
            }
            raw::PersistenceType::PathParameter => {
                let name = raw.name.as_ref().map_or(PARAMETER_DEFAULT, |name| &name.value.0);
                PersistenceKind::PathParameter {
                    name: name.into(),
                    cookie: name.to_ascii_uppercase().into(),
                }
            }
        };
        Some(Persistence { name: name.into(), kind, fallback: None })
    }

    /// The fallback of a persistence. The outer `None`: it does not exist.
    pub fn fallback(
        &mut self,
        raw: &raw::Persistence,
        context: &mut Context,
    ) -> Option<Option<usize>> {
        match &raw.fallback {
            None => Some(None),
            Some(name) => self.persistence(name, context).map(Some),
        }
    }

    fn cookie_kind(
        &mut self,
        raw: &raw::Persistence,
        context: &mut Context,
    ) -> Option<PersistenceKind> {
        let name = raw.name.as_ref().map_or(COOKIE_NAME_DEFAULT, |name| &name.value.0);
        if raw.mode.value == raw::CookieMode::Passive {
            refuse_keys_of_insertion(raw, context);
            return Some(PersistenceKind::Passive { name: name.into() });
        }
        let domain = if_given(raw.domain.as_ref(), |domain| field_value(domain, context));
        let keys = if_given(raw.key_file.as_ref(), |path| keys(path, self.directory, context));
        let cookie = SetCookie {
            name: name.to_owned(),
            path: Some(raw.path.value.0.clone()),
            domain: domain?,
            max_age_s: raw.max_age.as_ref().map(|max_age| max_age.value.0 / 1_000),
            secure: raw.secure.value != AutoOr::Always(false),
            http_only: raw.http_only.value,
            same_site: raw.same_site.as_ref().map(|raw| same_site(raw.value)),
        };
        if let Err(error) = cookie.check() {
            let span = raw.name.as_ref().map_or(raw.path.span, |name| name.span);
            context.error(span, error.to_string());
            return None;
        }
        Some(PersistenceKind::Insert(InsertedCookie {
            cookie,
            secure: secure(raw.secure.value),
            to_member: raw.to_member.value,
            keys: keys?.map(Arc::new),
        }))
    }
}

/// The identifying text, which this type requires, with an example for the message.
fn of(
    compiler: &mut Compiler<'_>,
    raw: &raw::Persistence,
    (span, kind, example): (Span, &str, &str),
    context: &mut Context,
) -> Option<Template> {
    let Some(of) = &raw.of else {
        let message = format!("a persistence of type {kind} lacks `of`");
        context.error_help(span, message, format!("add `of: \"{example}\"` or the like"));
        return None;
    };
    let template = compiler.member_key(&of.value.0, of.span, context)?;
    varying(template, "of", of, context)
}

fn learned(
    compiler: &mut Compiler<'_>,
    raw: &raw::Persistence,
    span: Span,
    context: &mut Context,
) -> Option<LearnedPersistence> {
    let example = "${request.cookies['SESSION']}";
    let of = of(compiler, raw, (span, "learned", example), context);
    let learn = if_given(raw.learn.as_ref(), |learn| {
        let text = &learn.value.0;
        let template = compiler.template(text, learn.span, Purpose::Plain, context)?;
        if template.reads_response() {
            return Some(template);
        }
        let message = "`learn` reads nothing of the response";
        let help = "write `${response.cookies['SESSION']}` or the like, or remove it: then the value of `of` is remembered";
        context.error_help(learn.span, message, help);
        None
    });
    Some(LearnedPersistence { of: of?, learn: learn?, table: table(raw) })
}

fn address(raw: &raw::Persistence, of: AddressOf) -> PersistenceKind {
    let prefix = PrefixLengths { v4: raw.prefix_v4.0, v6: raw.prefix_v6.0 };
    PersistenceKind::Address(RememberedAddress { of, prefix, table: table(raw) })
}

fn table(raw: &raw::Persistence) -> TableSettings {
    TableSettings {
        timeout_ms: raw.timeout.0,
        entries_max: raw.entries_max.0,
        across_virtual_servers: raw.across_virtual_servers.value,
    }
}

/// The QUIC settings. The position of the server ID must be within a connection ID.
fn connection_ids(raw: &raw::Persistence, context: &mut Context) -> Option<ConnectionIdSettings> {
    let server_id = match &raw.server_id {
        None => None,
        Some(place) => {
            let length = place.value.length.as_ref()?.value.0;
            let offset = place.value.offset.0;
            if usize::from(offset) + usize::from(length) > CONNECTION_ID_BYTES_MAX {
                let message =
                    format!("a connection ID has at most {CONNECTION_ID_BYTES_MAX} bytes");
                context.error_help(place.span, message, "lower `offset` or `length`");
                return None;
            }
            Some(ServerIdPlace { offset, length })
        }
    };
    Some(ConnectionIdSettings {
        timeout_ms: raw.timeout.0,
        entries_max: raw.entries_max.0,
        server_id,
    })
}

/// The keys from a file, if they are valid.
pub(super) fn keys(
    path: &Spanned<FilePath>,
    directory: &std::path::Path,
    context: &mut Context,
) -> Option<Keys> {
    let text = read_text(path, directory, KEYS_BYTES_MAX, context)?;
    match Keys::parse(&text) {
        Ok(keys) => Some(keys),
        Err(error) => {
            let message = format!("{}: {error}", path.value.0.display());
            let help = "one key in each line: 32 random bytes in base64 or hexadecimal digits";
            context.error_help(path.span, message, help);
            None
        }
    }
}

/// Reports keys of an inserted cookie for one that members set.
fn refuse_keys_of_insertion(raw: &raw::Persistence, context: &mut Context) {
    // Whatever cookies alone have is about insertion.
    let of_cookies = Takers::Only(&[raw::PersistenceType::Cookie]);
    for PresentKey { key, span, .. } in raw.given().filter(|given| given.takers == of_cookies) {
        if key != "mode" {
            let message = format!("`{key}` does not apply to a cookie with `mode: passive`");
            context.error_help(span, message, "remove it, or use `mode: insert`");
        }
    }
}
