//! `weir bench relay`: the cost of a proxy that parses nothing.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;

use crate::output;

/// Relay bytes without parsing them, for comparison
///
/// One thread, one connection to the member per client. It does not parse HTTP, so its costs are the kernel's costs of
/// any proxy on this machine.
///
/// Exit status: 1 could not serve, 2 wrong usage; it ends by signal.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weir bench relay 127.0.0.1:8080 127.0.0.1:9001")]
pub struct Arguments {
    /// Address for clients
    listen: SocketAddr,
    /// Address of the member that gets their bytes
    member: SocketAddr,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match weir_bench::relay::relay(arguments.listen, arguments.member) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("weir bench relay: {}: {error}\n", arguments.listen));
            ExitCode::FAILURE
        }
    }
}
