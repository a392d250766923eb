//! The files of the configuration in effect.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use super::ask::Ask;
use super::route::{Handled, Route};
use crate::file_digests::{self, FileDigest};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/configuration/files",
            "configurationFiles",
            "The files of the configuration in effect, with digests of their texts",
            files,
        )
        .answers::<ConfigurationFiles>(),
    ]
}

/// The files of the configuration in effect.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfigurationFiles {
    /// The main file first.
    items: Vec<FileDigest>,
}

fn files(ask: &Ask) -> Handled {
    Answer::json(&ConfigurationFiles { items: file_digests::of(&ask.context.observed.files()) })
}
