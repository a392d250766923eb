//! `weir bench relay`: the cost of a proxy that parses nothing.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use weir_cli::output;

/// Wrong usage.
const EXIT_USAGE: u8 = 2;

/// Relay bytes or datagrams without parsing them, for comparison
///
/// One thread, one connection to the member per client. It does not parse HTTP, so its costs are the kernel's costs of
/// any proxy on this machine.
///
/// With --udp it relays UDP: each query and its one answer, 256 at a time, through sockets that are connected to the
/// members. It has no sessions. A query without an answer is given up when all sockets are in use. It is for measurements
/// only: a second answer to a query can reach another client.
///
/// Exit status: 1 could not serve, 2 wrong usage; it ends by signal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench relay 127.0.0.1:8080 127.0.0.1:9001\n  \
    weir bench relay 127.0.0.1:9080 127.0.0.1:9053 --udp")]
pub struct Arguments {
    /// Address for clients
    listen: SocketAddr,
    /// Address of the member that gets their bytes; with --udp, there may be several
    #[arg(value_name = "MEMBER", required = true)]
    members: Vec<SocketAddr>,
    /// Relay UDP datagrams instead of TCP connections
    #[arg(long)]
    udp: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let listen = arguments.listen;
    let relayed = match &arguments.members[..] {
        members if arguments.udp => weir_bench::relay::datagrams::relay(listen, members),
        [member] => weir_bench::relay::relay(listen, *member),
        _ => {
            output::tell(format_args!(
                "weir bench relay: connections are relayed to one member: name one, or add --udp\n"
            ));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match relayed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("weir bench relay: {listen}: {error}\n"));
            ExitCode::FAILURE
        }
    }
}
