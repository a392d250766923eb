//! Rules from paths on the command line.

use std::path::PathBuf;

use weir_config::rule_files::{Disk, of_path};
use weir_waf::plan::RuleSet;
use weir_waf::seclang::Problem;

/// Compiles the rules in these paths.
pub fn compile(paths: &[PathBuf]) -> Result<RuleSet, String> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(of_path(path)?);
    }
    RuleSet::compile(&files, &mut Disk::default()).map_err(|problems| told(&problems))
}

/// The problems, one per line.
pub fn told(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let help = problem.help.as_ref().map(|help| format!("\n  {help}"));
            format!("{}: {}{}", problem.place, problem.message, help.unwrap_or_default())
        })
        .collect();
    lines.join("\n")
}
