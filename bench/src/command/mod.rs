//! The subcommands; each is a module with `Arguments` and `run`.

mod compare;
mod load;
mod origin;
mod relay;
mod report;
mod run;
mod show;
mod signals;
mod summary;

use std::process::ExitCode;

use clap::Subcommand;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<run::Arguments>),
    Report(report::Arguments),
    Summary(summary::Arguments),
    Compare(compare::Arguments),
    Load(Box<load::Arguments>),
    Origin(origin::Arguments),
    Relay(relay::Arguments),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> ExitCode {
        match self {
            Self::Run(arguments) => run::run(arguments),
            Self::Report(arguments) => report::run(arguments),
            Self::Summary(arguments) => summary::run(arguments),
            Self::Compare(arguments) => compare::run(arguments),
            Self::Load(arguments) => load::run(arguments),
            Self::Origin(arguments) => origin::run(arguments),
            Self::Relay(arguments) => relay::run(arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The stored runs that a text names, without placeholders in `<…>`.
    fn runs_named(text: &str) -> Vec<&str> {
        let words = text
            .split(|character: char| character.is_whitespace() || "()[],;'`".contains(character));
        let runs = words.filter(|word| word.starts_with("bench/runs/") && !word.contains('<'));
        runs.map(|run| run.trim_end_matches('.')).collect()
    }

    #[test]
    fn runs_are_found_in_a_text() {
        let text = "Reads (bench/runs/a-vm), bench/runs/b.\n  weir bench/runs/c x [bench/runs/<date>-<host>]";
        assert_eq!(runs_named(text), ["bench/runs/a-vm", "bench/runs/b", "bench/runs/c"]);
    }

    /// Examples in the help must work as written.
    #[test]
    fn every_run_that_a_help_names_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut bench = Command::augment_subcommands(clap::Command::new("bench"));
        for command in bench.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Usage:"), "{help}");
            for run in runs_named(&help) {
                let file = root.join(run).join(weir_bench::run_files::FILE_NAME);
                assert!(file.is_file(), "{} --help names {run}: {help}", command.get_name());
            }
        }
    }
}
