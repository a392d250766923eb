//! Checks without rules, and their limits.

use std::path::{Path, PathBuf};

use weir_waf::checks::{FileType, FileTypes, Limits, Policy};

use super::super::files;
use super::openapi;
use crate::decode::{Context, Section as _, Spanned};
use crate::raw::{checks as raw_checks, waf as raw};
use crate::scalar::{Off, Text, WordOr};

/// The check settings of a section; `None`: they are off.
pub(super) type WantedChecks = Option<(Policy, Option<PathBuf>)>;

/// The check policy of a section, if it is valid.
pub(super) fn wanted(
    raw: &raw::Waf,
    directory: &Path,
    context: &mut Context,
) -> Option<WantedChecks> {
    let absent = raw_checks::Checks::absent();
    let checks = match raw.checks.as_ref().map(|checks| &checks.value) {
        Some(WordOr::Word(Off)) => return Some(None),
        Some(WordOr::Value(checks)) => checks,
        None => &absent,
    };
    let mut policy = Policy::default();
    policy.limits = limits(checks);
    policy.file_types = file_types(checks, context)?;
    policy.parameter_limits = parameters(checks)?;
    if let Some(methods) = &checks.methods {
        policy.methods = methods.iter().map(|method| method.value.0.as_str().into()).collect();
    }
    for (check, action) in checks.actions.iter().flat_map(|actions| &actions.value.0) {
        policy.set(*check, *action);
    }
    Some(Some((policy, checks.openapi.as_ref().map(|path| directory.join(&path.value.0)))))
}

fn limits(checks: &raw_checks::Checks) -> Limits {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let count = |count: u32| count as usize;
    Limits {
        decodings_max: checks.decodings_max.value.0,
        url_bytes_max: size(checks.path_size_max.value.0),
        query_bytes_max: size(checks.query_size_max.value.0),
        request_bytes_max: checks.request_size_max.value.0,
        body_bytes_max: checks.body_size_max.value.0,
        header_bytes_max: size(checks.header_size_max.value.0),
        headers_max: count(checks.headers_max.value.0),
        parameter_bytes_max: size(checks.parameter_size_max.value.0),
        parameter_name_bytes_max: size(checks.parameter_name_size_max.value.0),
        parameters_max: count(checks.parameters_max.value.0),
        cookie_bytes_max: size(checks.cookie_size_max.value.0),
        cookies_max: count(checks.cookies_max.value.0),
        graphql_depth_max: count(checks.graphql_depth_max.value.0),
        graphql_batch_max: count(checks.graphql_batch_max.value.0),
    }
}

fn file_types(checks: &raw_checks::Checks, context: &mut Context) -> Option<FileTypes> {
    if let (Some(refused), Some(_)) = (&checks.extensions_refused, &checks.extensions) {
        let message = "both `extensions` and `extensions_refused` are given";
        context.error_help(refused.span, message, "keep one of them");
        return None;
    }
    if let Some(refused) = &checks.extensions_refused {
        let names: Option<Vec<_>> = refused.iter().map(|name| bare(name, context)).collect();
        return Some(FileTypes::AllBut(names?));
    }
    let Some(allowed) = &checks.extensions else { return Some(Policy::default().file_types) };
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let kinds = allowed.iter().map(|kind| {
        Some(FileType {
            extension: kind.name.as_ref()?.value.0.to_ascii_lowercase().into(),
            url_bytes_max: kind.path_size_max.as_ref().map(|it| size(it.value.0)),
            query_bytes_max: kind.query_size_max.as_ref().map(|it| size(it.value.0)),
            body_bytes_max: kind.body_size_max.as_ref().map(|it| it.value.0),
        })
    });
    kinds.collect::<Option<_>>().map(FileTypes::Only)
}

/// An extension without its dot, in lower case.
fn bare(name: &Spanned<Text>, context: &mut Context) -> Option<Box<str>> {
    let text = &name.value.0;
    if text.contains(['.', '/']) {
        let help = "write only the extension: `bak`";
        context.error_help(name.span, format!("`{text}` is not a file extension"), help);
        return None;
    }
    Some(text.to_ascii_lowercase().into())
}

fn parameters(checks: &raw_checks::Checks) -> Option<Vec<(Box<str>, usize)>> {
    let all = checks.parameters.iter().flat_map(|parameters| parameters.iter());
    all.map(|parameter| {
        let name = parameter.name.as_ref()?.value.0.as_str().into();
        let bytes = parameter.size_max.as_ref()?.value.0;
        Some((name, usize::try_from(bytes).unwrap_or(usize::MAX)))
    })
    .collect()
}

/// The description of an application in a section, if it is valid.
pub(super) fn interface(
    raw: &raw::Waf,
    directory: &Path,
    context: &mut Context,
) -> Option<weir_waf::checks::declared::Interface> {
    let Some(WordOr::Value(checks)) = raw.checks.as_ref().map(|checks| &checks.value) else {
        return None;
    };
    let path = checks.openapi.as_ref()?;
    let bytes = files::read(path, directory, openapi::FILE_BYTES_MAX, context)?;
    match openapi::load(&bytes) {
        Ok(interface) => Some(interface),
        Err(reason) => {
            let shown = directory.join(&path.value.0);
            let help = "name a description of the application, OpenAPI 3 as JSON or YAML";
            context.error_help(path.span, format!("{}: {reason}", shown.display()), help);
            None
        }
    }
}
