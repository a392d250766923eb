//! `weir waf`: rules of the web application firewall, and their findings in requests.

mod diff;
mod files;
mod judge;
mod log;
mod recorded_requests;
mod request;
mod response;
mod rules;
mod test;
mod tune;
mod wire;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Check, test and tune rules of the web application firewall
///
/// Exit status: 0 done, and the request passes; 1 the request is blocked, decisions differ, or the rules have problems;
/// 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf rules                       # list the rule sets\n  \
                        weir waf test --url 'https://shop.example/?id=1+or+1=1'\n  \
                        weir waf test --rules ./coreruleset --paranoia 2 --request upload.http\n  \
                        weir waf tune waf.log > tuned.conf   # exclusions for false positives\n  \
                        weir waf diff builtin tuned.conf,builtin waf.log")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Rules(rules::Arguments),
    Test(Box<test::Arguments>),
    Tune(tune::Arguments),
    Diff(diff::Arguments),
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.action {
        Action::Rules(arguments) => rules::run(arguments),
        Action::Test(arguments) => test::run(arguments),
        Action::Tune(arguments) => tune::run(arguments),
        Action::Diff(arguments) => diff::run(arguments),
    }
}
