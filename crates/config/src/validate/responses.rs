//! Actions of rules on responses.

use std::sync::Arc;

use weir_core::body_edit::{
    BodyEdit, EditKind, PatternEdit, PatternError, StringEdit, StringError,
};
use weir_core::expression::{Purpose, ReplacementError};
use weir_core::policy::{Action, FieldAction, FieldChange, NamedCookies};
use weir_http::cookie_attributes::{CookieAttributes, NamePattern};
use weir_http::media_types::MediaTypes;

use super::compiler::{Compiler, explain};
use super::compression::given_types;
use super::cookie_attributes::{is_name, is_sent, same_site};
use super::header_names::remove;
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::raw::policy as raw;
use crate::shapes::Replacements;

/// Default content types for the replacement of text: types that browsers display as text.
const TYPES: [&str; 5] =
    ["text/html", "application/xhtml+xml", "text/css", "text/javascript", "application/javascript"];

/// The actions for a response action of the file, if it is valid.
pub(super) fn action(
    compiler: &mut Compiler<'_>,
    raw: &raw::Action,
    context: &mut Context,
) -> Option<Vec<Action>> {
    let fields = match raw {
        raw::Action::SetResponseHeader(fields) => {
            compiler.fields(fields, FieldChange::Set, context)?
        }
        raw::Action::AddResponseHeader(fields) => {
            compiler.fields(fields, FieldChange::Add, context)?
        }
        raw::Action::RemoveResponseHeader(names) => remove(&names.value.0, context)?,
        raw::Action::ReplaceResponseHeader(fields) => compiler.patterns(fields, context)?,
        raw::Action::RewriteLocation(how) => {
            let change = FieldChange::Rewrite(compiler.rewrite(how, Purpose::Uri, context)?);
            vec![FieldAction { name: "Location".into(), change }]
        }
        raw::Action::SetCookie(cookie) => {
            let cookie = compiler.cookie(&cookie.value, context)?;
            return Some(vec![Action::SetCookie(Arc::new(cookie))]);
        }
        raw::Action::SetCookieAttributes(raw) => {
            let cookies = cookie_attributes(raw, context)?;
            return Some(vec![Action::CookieAttributes(Arc::new(cookies))]);
        }
        raw::Action::ReplaceResponseBody(edit) => {
            return body_edit(edit, context).map(|edit| vec![Action::ReplaceBody(Arc::new(edit))]);
        }
        other => {
            debug_assert!(false, "`{}` is about requests", other.key());
            return None;
        }
    };
    Some(fields.into_iter().map(Action::ResponseField).collect())
}

/// The attributes to add to cookies, if they are valid.
fn cookie_attributes(
    raw: &Spanned<raw::SetCookieAttributes>,
    context: &mut Context,
) -> Option<NamedCookies> {
    let mut is_sound = true;
    let mut names = Vec::new();
    for name in raw.names.iter().flat_map(|names| &names.value.0) {
        is_sound &= is_name(name, context);
        names.push(NamePattern::new(&name.value.0));
    }
    let attributes = CookieAttributes {
        secure: raw.secure.value,
        http_only: raw.http_only.value,
        same_site: raw.same_site.as_ref().map(|word| same_site(word.value).as_str()),
        replaces_same_site: true,
    };
    is_sound &= is_sent(raw.same_site.as_ref(), &raw.secure, context);
    if !attributes.secure && !attributes.http_only && attributes.same_site.is_none() {
        let help = "add `secure: true`, `http_only: true` or `same_site`";
        context.error_help(raw.span, "no attribute is set", help);
        is_sound = false;
    }
    is_sound.then_some(NamedCookies { names, attributes })
}

/// Compiles replacements in bodies.
fn body_edit(raw: &Spanned<raw::ReplaceBody>, context: &mut Context) -> Option<BodyEdit> {
    let types = match &raw.types {
        None => MediaTypes::parse(TYPES).ok(),
        Some(types) => given_types(types, context),
    };
    let what = match (&raw.strings, &raw.regex, &raw.to) {
        (Some(strings), None, None) => {
            let given = raw.match_size_max.given;
            if given {
                let message = "`match_size_max` has no effect without `regex`";
                context.error_help(raw.match_size_max.span, message, "remove it");
            }
            strings_edit(strings, context).filter(|_| !given).map(EditKind::Strings)
        }
        (None, Some(_), Some(_)) => pattern_edit(raw, context),
        (None, Some(regex), None) => {
            let help = "add `to: \"\"` to remove matches";
            context.error_help(regex.span, "`regex` without `to`", help);
            None
        }
        (Some(_), _, _) => {
            let message = "`strings` cannot be used with `regex` or `to`";
            context.error_help(raw.span, message, "use an action for each");
            None
        }
        (None, None, _) => {
            let message = "the text to replace is missing";
            context.error_help(raw.span, message, "add `strings`, or `regex` and `to`");
            None
        }
    };
    Some(BodyEdit { what: what?, types: types?, size_bytes_max: raw.size_max.value.0 })
}

fn strings_edit(raw: &Spanned<Replacements>, context: &mut Context) -> Option<StringEdit> {
    let pairs = &raw.value.0;
    if pairs.is_empty() {
        return None;
    }
    let bytes: Vec<(&[u8], &[u8])> =
        pairs.iter().map(|(from, to)| (from.value.as_bytes(), to.value.0.as_bytes())).collect();
    match StringEdit::new(&bytes) {
        Ok(edit) => Some(edit),
        Err(error) => {
            let span = match error {
                StringError::Empty(at) | StringError::Length(at) => pairs[at].0.span,
                StringError::Count | StringError::Search => raw.span,
            };
            context.error(span, error.to_string());
            None
        }
    }
}

fn pattern_edit(raw: &raw::ReplaceBody, context: &mut Context) -> Option<EditKind> {
    let (regex, to) = (raw.regex.as_ref()?, raw.to.as_ref()?);
    let refuse = |span: Span, message: String, help: &str, context: &mut Context| {
        context.error_help(span, message, help);
        None
    };
    match PatternEdit::new(&regex.value.0, &to.value.0, raw.match_size_max.value.0 as usize) {
        Ok(pattern) => Some(EditKind::Pattern(Box::new(pattern))),
        Err(PatternError::Text(ReplacementError::Regex(error))) => {
            explain(&error, regex.span, &regex.value.0, context);
            None
        }
        Err(PatternError::Text(ReplacementError::To(error))) => {
            explain(&error, to.span, &to.value.0, context);
            None
        }
        Err(error @ PatternError::Empty) => {
            let help = "write `+` in place of `*`, or name the required text";
            refuse(regex.span, error.to_string(), help, context)
        }
        Err(error @ PatternError::Around) => {
            let help = "name the text around what you mean: `>price<` in place of `\\bprice\\b`";
            refuse(regex.span, error.to_string(), help, context)
        }
    }
}
