//! The program `weir-bench`: the comparative performance report and its parts. `weir bench` starts it.
#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::Parser;

/// Compare weir with other proxies on this machine
///
/// `run quick` makes a complete report. The other commands are its parts: the load generator, the origin server, the
/// report, a summary of runs, the comparison of two runs. `weir bench` and `weir-bench` are the same.
#[derive(Debug, Parser)]
#[command(
    name = "weir-bench",
    bin_name = "weir bench",
    version,
    long_version = weir_cli::LONG_VERSION,
    arg_required_else_help = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    // clap exits with 0 for `--help` and `--version`, and with 2 for wrong usage.
    CommandLine::parse().command.run()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_of_all_commands_are_sound() {
        CommandLine::command().debug_assert();
    }
}
