//! `weir bench`: the comparative performance report and its parts.

mod compare;
mod load;
mod origin;
mod relay;
mod report;
mod run;
mod show;
mod signals;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Compare weir with other proxies on this machine
///
/// The whole report in one command (`run quick`), and its parts for use on their own: the load
/// generator, the origin server, the report, the comparison of two runs.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Report(report::Arguments),
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
        Command::Compare(arguments) => compare::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Origin(arguments) => origin::run(arguments),
        Command::Relay(arguments) => relay::run(arguments),
    }
}
