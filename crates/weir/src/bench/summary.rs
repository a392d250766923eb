//! `weir bench summary`: the figures of a README.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use weir_bench::report::readme::{self, ReadmeError};

use crate::output;

/// Exit status when there is no summary, or it could not be written.
const EXIT_FAILED: u8 = 1;

/// Tell what kept runs show, as a block for a README
///
/// A table of the main figures for each run, with the ratio to the hardest peer, what was won and lost, and which goals
/// were missed. Where two runs have a test, the one that is named later tells of it.
///
/// With --into the block is written between the lines <!-- bench:summary --> and <!-- /bench:summary -->, and the first
/// of them keeps the names of the runs: without RUN the block is made again from those.
///
/// Exit status: 0 written, 1 not, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench run full --output trial\n  \
    weir bench summary trial                       print it\n  \
    weir bench summary trial --into README.md      put it there\n  \
    weir bench summary --into README.md            make it again from the same runs")]
pub struct Arguments {
    /// Folders of the runs
    #[arg(value_name = "RUN", required_unless_present = "into")]
    runs: Vec<PathBuf>,

    /// Write into this file instead of printing
    #[arg(long, value_name = "README")]
    into: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match tell(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("weir bench summary: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn tell(arguments: &Arguments) -> Result<(), ReadmeError> {
    if let Some(readme) = &arguments.into {
        return readme::write(readme, &arguments.runs);
    }
    match output::print(readme::print(&arguments.runs)?) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(ReadmeError::File("standard output".into(), error))
        }
        _ => Ok(()),
    }
}
