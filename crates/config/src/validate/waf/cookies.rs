//! Protection of the application's cookies.

use std::path::PathBuf;
use std::sync::Arc;

use weir_http::cookie_attributes::CookieAttributes;
use weir_http::cookies::SameSite;
use weir_waf::checks::{Action, Check, CookieNames, CookieTerms, Policy};

use super::super::cookie_attributes::{is_name, is_sent, same_site};
use super::super::persistence;
use crate::decode::Context;
use crate::raw::waf as raw;
use crate::scalar::{Off, WordOr};
use crate::snapshot::Cookies;

/// The cookie settings of a section, and the file with the keys.
pub(super) type WantedCookies = Option<((CookieTerms, CookieAttributes), Option<PathBuf>)>;

/// The terms of a section, if they are valid.
pub(super) fn wanted(
    raw: &raw::Waf,
    directory: &std::path::Path,
    policy: Option<&Policy>,
    context: &mut Context,
) -> Option<WantedCookies> {
    let Some(cookies) = raw.cookies.as_ref().map(|cookies| &cookies.value) else {
        return Some(None);
    };
    let mut is_sound = true;
    let mut sealed = Vec::new();
    for name in cookies.sealed.iter().flat_map(|names| names.iter()) {
        is_sound &= is_name(name, context);
        sealed.push(CookieNames::new(&name.value.0));
    }
    let same_site = cookies.same_site.as_ref().map(|word| same_site(word.value));
    is_sound &= is_sent(cookies.same_site.as_ref(), &cookies.secure, context);
    warn_of_no_effect(raw, cookies, policy, context);
    let terms = CookieTerms { sealed, others: Vec::new() };
    let attributes = CookieAttributes {
        secure: cookies.secure.value,
        http_only: cookies.http_only.value,
        same_site: same_site.map(SameSite::as_str),
        replaces_same_site: false,
    };
    let key_file = cookies.key_file.as_ref().map(|path| directory.join(&path.value.0));
    is_sound.then_some(Some(((terms, attributes), key_file)))
}

fn warn_of_no_effect(
    raw: &raw::Waf,
    cookies: &raw::Cookies,
    policy: Option<&Policy>,
    context: &mut Context,
) {
    if let (Some(sealed), Some(WordOr::Word(Off))) =
        (&cookies.sealed, raw.checks.as_ref().map(|checks| &checks.value))
    {
        let message = "cookies are sealed, but changed cookies are not detected: `checks` is `off`";
        context.warning_help(sealed.span, message, "remove `checks: off`, or `sealed`");
    }
    if let Some(sealed) = &cookies.sealed
        && policy.is_some_and(|policy| policy.action(Check::CookieChanged) == Action::Off)
    {
        let message =
            "cookies are sealed, but changed cookies are not detected: `cookie_changed` is `off`";
        context.warning_help(
            sealed.span,
            message,
            "set it to `block` or `alarm`, or remove `sealed`",
        );
    }
    if let (Some(application), None) = (&cookies.application, &cookies.sealed) {
        let message = "`application` has no effect: no cookie is `sealed`";
        context.warning_help(application.span, message, "name cookies in `sealed`, or remove it");
    }
    if let (Some(key_file), None) = (&cookies.key_file, &cookies.sealed) {
        let message = "`key_file` has no effect: no cookie is `sealed`";
        context.warning_help(key_file.span, message, "name cookies in `sealed`, or remove it");
    }
}

/// The settings with their keys.
pub(super) fn with_keys(
    raw: &raw::Waf,
    (terms, attributes): &(CookieTerms, CookieAttributes),
    directory: &std::path::Path,
    context: &mut Context,
) -> Option<Arc<Cookies>> {
    let key_file = raw.cookies.as_ref().and_then(|cookies| cookies.value.key_file.as_ref());
    let keys = match key_file {
        Some(path) => Some(Arc::new(persistence::keys(path, directory, context)?)),
        None => None,
    };
    let application = raw.cookies.as_ref().and_then(|cookies| cookies.value.application.as_ref());
    if let Some(name) = application.filter(|name| name.value.0.is_empty()) {
        let message = "`application` is empty";
        context.error_help(name.span, message, "give the application a name, or remove it");
        return None;
    }
    let application = application.map(|name| name.value.0.as_str().into());
    let (terms, attributes) = (terms.clone(), attributes.clone());
    Some(Arc::new(Cookies { terms, attributes, application, keys }))
}
