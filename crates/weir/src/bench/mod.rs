//! `weir bench`: the comparative performance report and its parts.

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

use clap::{Args, Subcommand};

/// Compare weir with other proxies on this machine
///
/// `run quick` makes a complete report. The other commands are its parts: the load generator, the origin server, the
/// report, a summary of runs, the comparison of two runs.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Report(report::Arguments),
    Summary(summary::Arguments),
    Compare(compare::Arguments),
    Load(Box<load::Arguments>),
    Origin(origin::Arguments),
    Relay(relay::Arguments),
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Summary(arguments) => summary::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Origin(arguments) => origin::run(arguments),
        Command::Relay(arguments) => relay::run(arguments),
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
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut bench = Command::augment_subcommands(clap::Command::new("bench"));
        for command in bench.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Usage:"), "{help}");
            for run in runs_named(&help) {
                let file = root.join(run).join(weir_bench::record::FILE_NAME);
                assert!(file.is_file(), "{} --help names {run}: {help}", command.get_name());
            }
        }
    }
}
