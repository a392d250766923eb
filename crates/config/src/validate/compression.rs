//! Compression of virtual servers' responses.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use weir_compression::{Coding, Level, MediaTypes, Rules};

use super::names::{by_name, find};
use crate::decode::{Context, NamedItem, Spanned};
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::compression as raw;
use crate::scalar::{Off, Text, WordOr};

/// The compression profiles, and the profiles used by virtual servers.
pub(super) struct CompressionProfiles<'a> {
    profiles: &'a [NamedItem<raw::Compression>],
    by_name: BTreeMap<&'a str, usize>,
    pub(super) used: HashSet<usize>,
}

impl<'a> CompressionProfiles<'a> {
    pub fn new(profiles: &'a [NamedItem<raw::Compression>]) -> Self {
        Self { profiles, by_name: by_name(profiles), used: HashSet::new() }
    }

    /// The rules of a virtual server, if they are valid.
    pub fn of(
        &mut self,
        choice: &Spanned<ProfileOr<raw::Compression>>,
        context: &mut Context,
    ) -> Option<Arc<Rules>> {
        match &choice.value {
            ProfileOr::Inline(raw) => {
                warn_of_no_effect(raw, context);
                rules(raw, context).map(Arc::new)
            }
            ProfileOr::Name(name) => {
                let name = Spanned { value: name.clone(), span: choice.span, given: true };
                let index = find("compression profile", &self.by_name, &name, context)?;
                let is_first = self.used.insert(index);
                let raw = self.profiles[index].value.as_ref()?;
                if is_first {
                    warn_of_no_effect(raw, context);
                }
                rules(raw, context).map(Arc::new)
            }
        }
    }
}

/// The rules of a section, if they are valid.
fn rules(raw: &raw::Compression, context: &mut Context) -> Option<Rules> {
    let defaults = Rules::default();
    let offered = offered(raw);
    let types = match &raw.types {
        None => defaults.types,
        Some(types) => given_types(types, context)?,
    };
    let level_min = level_min(raw);
    Some(Rules { offered, min_size_bytes: raw.min_size.value.0, level_min, types })
}

/// The media types in a list, if they are valid.
pub(super) fn given_types(
    types: &Spanned<Vec<Spanned<Text>>>,
    context: &mut Context,
) -> Option<MediaTypes> {
    let patterns = types.iter().map(|pattern| pattern.value.0.as_str());
    let bad = match MediaTypes::parse(patterns) {
        Ok(types) => return Some(types),
        Err(bad) => bad,
    };
    let at = types.iter().find(|pattern| pattern.value.0 == bad.0);
    let span = at.map_or(types.span, |pattern| pattern.span);
    let message = format!("`{}` is not a media type", clip(&bad.0));
    context.error_help(span, message, "write it like text/html, text/* or +json");
    None
}

/// Warns of allowed settings without an effect.
fn warn_of_no_effect(raw: &raw::Compression, context: &mut Context) {
    let Some(highest) = offered(raw).iter().map(|(_, level)| *level).max() else {
        if let Some(gzip) = &raw.gzip {
            let message = "`gzip`, `zstd` and `brotli` are all `off`: nothing is compressed";
            context.warning_help(gzip.span, message, "offer one of them, or remove `compression`");
        }
        return;
    };
    if let (Some(level_min), Some(given)) = (level_min(raw), &raw.level_min)
        && level_min > highest
    {
        let highest = highest.get();
        let message = format!(
            "`level_min` is above every configured level, at most {highest}: no level can fall"
        );
        context.warning_help(given.span, message, format!("set it to {highest} or less"));
    }
}

fn level_min(raw: &raw::Compression) -> Option<Level> {
    match raw.level_min.as_ref().map(|given| &given.value) {
        None | Some(WordOr::Word(Off)) => None,
        Some(WordOr::Value(level)) => Level::new(level.0),
    }
}

/// The offered codings with their levels, the preferred one first.
fn offered(raw: &raw::Compression) -> Vec<(Coding, Level)> {
    let given = |coding| match coding {
        Coding::Gzip => raw.gzip.as_ref(),
        Coding::Zstd => raw.zstd.as_ref(),
        Coding::Brotli => raw.brotli.as_ref(),
    };
    let defaults = Rules::default().offered;
    let offered = defaults.into_iter();
    offered.filter_map(|(coding, default)| Some((coding, level(given(coding), default)?))).collect()
}

/// The level of a coding; `None`: the coding is not offered.
fn level(
    given: Option<&Spanned<WordOr<Off, raw::CodingSettings>>>,
    default: Level,
) -> Option<Level> {
    match given.map(|given| &given.value) {
        None => Some(default),
        Some(WordOr::Word(Off)) => None,
        Some(WordOr::Value(settings)) => {
            let level = settings.level.as_ref().and_then(|level| Level::new(level.value.0));
            Some(level.unwrap_or(default))
        }
    }
}
