//! `weir bench`: starts `weir-bench`, which compares weir with other proxies. It is a program of its own.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use weir_cli::output;

const PROGRAM: &str = "weir-bench";

/// The variable that tells `weir-bench` which weir to measure, unless `--weir` does.
const WEIR_BENCH_WEIR: &str = "WEIR_BENCH_WEIR";

/// Exit status if `weir-bench` could not be started.
const EXIT_FAILED: u8 = 2;

/// Compare weir with other proxies on this machine
///
/// Starts the program weir-bench, which is built separately from the sources of weir:
///
///   cargo build --release --manifest-path bench/Cargo.toml --target-dir target
///
/// It is looked for beside the program weir, then in PATH. `weir bench --help` shows its commands.
///
/// Exit status: 2 weir-bench could not be started; otherwise that of weir-bench.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  \
                        weir bench run quick   # a report within five minutes\n  \
                        weir bench load http://127.0.0.1:8080/ --connections 64 --duration 5s\n  \
                        weir bench --help"
)]
pub struct Arguments {
    /// Arguments of weir-bench
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Replaces this process by `weir-bench`. Returns only if that fails.
pub fn run(arguments: &Arguments) -> ExitCode {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let mut command = Command::new(&program);
    command.args(&arguments.arguments);
    if let Some(own) = own {
        command.env(WEIR_BENCH_WEIR, own);
    }
    let error = command.exec();
    match error.kind() {
        ErrorKind::NotFound => output::tell(format_args!(
            "weir bench: there is no program {PROGRAM} beside weir or in PATH. Build it from the sources of weir:\n  \
             cargo build --release --manifest-path bench/Cargo.toml --target-dir target\n"
        )),
        _ => output::tell(format_args!("weir bench: {}: {error}\n", program.display())),
    }
    ExitCode::from(EXIT_FAILED)
}
