//! `path` of the HTTP profile.

use weir_http::path::{
    Backslash, EncodedSlashes, Nul, Parameters, PathForm, RawBytes, Slashes, Spellings, TargetForm,
};

use super::policies::Policies;
use crate::decode::{Context, Spanned};
use crate::raw::VirtualServer;
use crate::raw::path::{self as raw, PathOr};
use crate::scalar::WordOr;
use crate::snapshot::PersistenceKind;

/// The treatment of targets by the profile.
pub(super) fn form(path: Option<&Spanned<PathOr>>, is_strict: bool) -> TargetForm {
    let path = match path.map(|path| &path.value) {
        None => PathForm::default(),
        Some(WordOr::Word(raw::Keep)) => PathForm::Keep,
        Some(WordOr::Value(path)) => PathForm::Canonical(spellings(path)),
    };
    TargetForm { path, raw_bytes: if is_strict { RawBytes::Refuse } else { RawBytes::Encode } }
}

/// Warns of persistence by a path parameter that the profile removes.
pub(super) fn warn_of_persistence(
    persistence: Option<usize>,
    form: PathForm,
    server: &VirtualServer,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) {
    let is_without_parameters = matches!(
        form,
        PathForm::Canonical(Spellings { parameters: Parameters::Remove | Parameters::Refuse, .. })
    );
    let found = persistence.and_then(|index| policies.persistence[index].as_ref());
    let kind = found.map(|found| &found.kind);
    if let (true, Some(PersistenceKind::PathParameter { .. }), Some(given)) =
        (is_without_parameters, kind, &server.persistence)
    {
        let message =
            "persistence by a path parameter, which `http.path.parameters` removes or refuses";
        context.warning_help(
            given.span,
            message,
            "set `parameters: keep`, or use another persistence",
        );
    }
}

fn spellings(raw: &raw::Path) -> Spellings {
    Spellings {
        slashes: match raw.repeated_slashes.value {
            raw::RepeatedSlashes::Merge => Slashes::Merge,
            raw::RepeatedSlashes::Keep => Slashes::Keep,
        },
        // Without a value, they may be kept in the end: see `encoded_slashes::settled`.
        encoded_slashes: match raw.encoded_slashes.as_ref().map(|given| given.value) {
            None | Some(raw::EncodedSlashes::Refuse) => EncodedSlashes::Refuse,
            Some(raw::EncodedSlashes::Decode) => EncodedSlashes::Decode,
            Some(raw::EncodedSlashes::Keep) => EncodedSlashes::Keep,
        },
        backslash: match raw.backslashes.value {
            raw::Backslashes::Refuse => Backslash::Refuse,
            raw::Backslashes::Slash => Backslash::Slash,
            raw::Backslashes::Keep => Backslash::Keep,
        },
        parameters: match raw.parameters.value {
            raw::Parameters::Keep => Parameters::Keep,
            raw::Parameters::Remove => Parameters::Remove,
            raw::Parameters::Refuse => Parameters::Refuse,
        },
        nul: match raw.nul.value {
            raw::Nul::Refuse => Nul::Refuse,
            raw::Nul::Keep => Nul::Keep,
        },
    }
}
