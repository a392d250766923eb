//! The built-in rule set: `waf: { mode: block }` needs no download.
//!
//! The rules are in `rules/*.conf` and are embedded in the program. They have the scores and settings of CRS: see
//! `docs/waf-rules.md`.

use crate::plan::{Files, RuleSet};
use crate::seclang::Problem;

/// The names and texts of the files, in reading order.
const FILES: [(&str, &str); 14] = [
    ("builtin/settings.conf", include_str!("../rules/settings.conf")),
    ("builtin/protocol.conf", include_str!("../rules/protocol.conf")),
    ("builtin/scanners.conf", include_str!("../rules/scanners.conf")),
    ("builtin/files.conf", include_str!("../rules/files.conf")),
    ("builtin/sql.conf", include_str!("../rules/sql.conf")),
    ("builtin/script.conf", include_str!("../rules/script.conf")),
    ("builtin/commands.conf", include_str!("../rules/commands.conf")),
    ("builtin/code.conf", include_str!("../rules/code.conf")),
    ("builtin/queries.conf", include_str!("../rules/queries.conf")),
    ("builtin/remote.conf", include_str!("../rules/remote.conf")),
    ("builtin/headers.conf", include_str!("../rules/headers.conf")),
    ("builtin/exploits.conf", include_str!("../rules/exploits.conf")),
    ("builtin/verdict.conf", include_str!("../rules/verdict.conf")),
    ("builtin/leaks.conf", include_str!("../rules/leaks.conf")),
];

/// The embedded files, by the names that [`paths`] lists. Rule files on disk can include them by these names.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbeddedFiles;

impl Files for EmbeddedFiles {
    fn find(&mut self, _beside: &str, pattern: &str) -> Vec<String> {
        let (before, behind) = pattern.split_once('*').unwrap_or((pattern, ""));
        let is_meant = |name: &str| match pattern.contains('*') {
            true => {
                name.len() >= before.len() + behind.len()
                    && name.starts_with(before)
                    && name.ends_with(behind)
            }
            false => name == pattern,
        };
        FILES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| is_meant(name))
            .map(str::to_owned)
            .collect()
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let found = FILES.iter().find(|(name, _)| *name == path);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| "there is no such built-in file".to_owned())
    }
}

/// The embedded files.
pub fn files() -> EmbeddedFiles {
    EmbeddedFiles
}

/// The names of the embedded files, in reading order.
pub fn paths() -> Vec<String> {
    FILES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Compiles the built-in rules. A test ensures that they have no problems.
pub fn rules() -> Result<RuleSet, Vec<Problem>> {
    RuleSet::compile(&paths(), &mut files())
}

#[cfg(test)]
mod tests;
