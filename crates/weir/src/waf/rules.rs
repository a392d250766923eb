//! `weir waf rules`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use weir_cli::output;
use weir_config::rule_files::{self, BUILTIN};
use weir_waf::crs::{self, EXCLUSIONS_FILE, KnownFalsePositive};
use weir_waf::plan::{RuleSet, Settings, View};

use super::files;

/// List the rule sets of this host, or check one
///
/// weir downloads nothing. To get OWASP CRS, use `apt install modsecurity-crs` (CRS 3), or a checkout of its repository
/// (CRS 4).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf rules\n  \
                        weir waf rules ./coreruleset\n  \
                        weir waf rules crs-setup.conf my-rules.conf")]
pub struct Arguments {
    /// Rule files, CRS folders, or `builtin`, in order [default: all rule sets found]
    paths: Vec<PathBuf>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let result = if arguments.paths.is_empty() { list() } else { one(&arguments.paths) };
    match result {
        Ok(text) => match output::print(text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(reason) => {
            output::tell(format_args!("weir waf rules: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<String, String> {
    let found = rule_files::found();
    let mut text = format!("{}\n{}", BUILTIN, one(&[BUILTIN.into()])?);
    if found.is_empty() {
        text += "\nNo rule set of OWASP CRS was found on this host.\n\
                 CRS 3: apt install modsecurity-crs\n\
                 CRS 4: git clone https://github.com/coreruleset/coreruleset, then `weir waf rules ./coreruleset`\n";
    }
    for folder in found {
        let described = one(std::slice::from_ref(&folder))?;
        let _ = write!(text, "{}\n{described}", folder.display());
    }
    Ok(text)
}

fn one(paths: &[PathBuf]) -> Result<String, String> {
    let rules = Arc::new(files::compile(paths)?);
    describe(&rules)
}

fn describe(rules: &Arc<RuleSet>) -> Result<String, String> {
    let mut text = String::new();
    for signature in &rules.signatures {
        let _ = writeln!(text, "  {signature}");
    }
    let _ = writeln!(text, "  {} rules", rules.rules.len());
    let mut warnings = Vec::new();
    for level in 1..=4 {
        let pair = |name: &str| (name.to_owned(), level.to_string());
        let variables = vec![
            pair("blocking_paranoia_level"),
            pair("detection_paranoia_level"),
            pair("paranoia_level"),
        ];
        let view = View::new(Arc::clone(rules), &Settings { variables })
            .map_err(|problems| files::told(&problems))?;
        let _ = writeln!(
            text,
            "  paranoia level {level}: {} of them are evaluated",
            view.rules_count()
        );
        warnings = view.warnings;
    }
    let open = crs::open(rules);
    if !open.is_empty() {
        let _ = writeln!(
            text,
            "  CRS denies legitimate requests of most applications; list {EXCLUSIONS_FILE} after it:"
        );
    }
    for KnownFalsePositive { rule, denies } in open {
        let _ = writeln!(text, "    {rule}: {denies}");
    }
    for warning in &warnings {
        let _ = writeln!(text, "  warning: {}", files::told(std::slice::from_ref(warning)));
    }
    Ok(text)
}
