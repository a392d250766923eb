//! The `weir` command.
#![forbid(unsafe_code)]

mod admin;
mod bench;
mod change;
mod check;
mod completion;
mod demo;
mod diff;
mod doctor;
mod explain;
mod input;
mod l4;
mod logs;
mod man;
mod member;
mod pool;
mod reload;
mod requests;
mod run;
mod save;
mod screen;
mod sessions;
mod status;
mod token;
mod top;
mod upgrade;
mod versions;
mod vs;
mod waf;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Weirgate, an Application Delivery Controller: load balancer, TLS and web application firewall in one program.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    long_version = weir_cli::LONG_VERSION,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
                  weir run weir.yaml     # serve a configuration file\n  \
                  weir check weir.yaml   # report every mistake in a configuration file\n  \
                  weir status            # show state and problems of a running weir\n  \
                  weir top               # a live view of it\n  \
                  weir set /pools/web/members/10.0.0.11:80/weight 5   # change the configuration\n  \
                  weir diff              # show such changes beside the configuration file\n  \
                  weir explain URL       # show why a request goes where it goes\n  \
                  weir doctor            # find common troubles and how to mend them\n  \
                  weir demo              # demonstrate weir with its own members and traffic\n  \
                  weir bench run quick   # compare weir with HAProxy, nginx and Envoy on this machine\n  \
                  weir help check        # show the help of a subcommand"
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands; each has a module with `Arguments` and `run`.
#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Check(check::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    Vs(vs::Arguments),
    Pool(pool::Arguments),
    Member(member::Arguments),
    Sessions(sessions::Arguments),
    Explain(explain::Arguments),
    Requests(requests::Arguments),
    Logs(logs::Arguments),
    Set(change::set::Arguments),
    Unset(change::unset::Arguments),
    Apply(change::apply::Arguments),
    Confirm(change::confirm::Arguments),
    Revert(change::revert::Arguments),
    Rollback(change::rollback::Arguments),
    Versions(versions::Arguments),
    Diff(diff::Arguments),
    Save(save::Arguments),
    Reload(reload::Arguments),
    Token(token::Arguments),
    Upgrade(upgrade::Arguments),
    L4(l4::Arguments),
    Waf(waf::Arguments),
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    Completion(completion::Arguments),
    Man(man::Arguments),
}

fn main() -> ExitCode {
    // clap exits with 0 for `--help` and `--version`, and with 2 for wrong usage.
    let command_line = CommandLine::parse();
    match command_line.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Vs(arguments) => vs::run(&arguments),
        Command::Pool(arguments) => pool::run(&arguments),
        Command::Member(arguments) => member::run(&arguments),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Requests(arguments) => requests::run(&arguments),
        Command::Logs(arguments) => logs::run(&arguments),
        Command::Set(arguments) => change::set::run(&arguments),
        Command::Unset(arguments) => change::unset::run(&arguments),
        Command::Apply(arguments) => change::apply::run(&arguments),
        Command::Confirm(arguments) => change::confirm::run(&arguments),
        Command::Revert(arguments) => change::revert::run(&arguments),
        Command::Rollback(arguments) => change::rollback::run(&arguments),
        Command::Versions(arguments) => versions::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Save(arguments) => save::run(&arguments),
        Command::Reload(arguments) => reload::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Upgrade(arguments) => upgrade::run(&arguments),
        Command::L4(arguments) => l4::run(&arguments),
        Command::Waf(arguments) => waf::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completion(arguments) => completion::run(&arguments, CommandLine::command()),
        Command::Man(arguments) => man::run(&arguments, CommandLine::command()),
    }
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
