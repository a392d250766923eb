//! The files of the configuration in effect.

use weir_api::files::ConfigurationFiles;

use super::answer::Answer;
use super::ask::Ask;
use super::route::{HandlerResult, Route};
use crate::file_digests;

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

fn files(ask: &Ask) -> HandlerResult {
    Answer::json(&ConfigurationFiles { items: file_digests::of(&ask.context.observed.files()) })
}
