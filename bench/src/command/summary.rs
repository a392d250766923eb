//! `weir bench summary`: the figures of stored runs, for a document.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use weir_bench::report::readme::{self, ReadmeError};
use weir_cli::output;

/// Exit status if the summary could not be made or written.
const EXIT_FAILED: u8 = 1;

/// Print the main figures of kept runs as Markdown
///
/// Each run gets a table of its main figures, with the ratio to the hardest peer, and lists of wins, losses and missed
/// goals. A run that is named later replaces the tests that an earlier run has as well.
///
/// --into writes the figures into a file, between the lines <!-- bench:summary --> and <!-- /bench:summary -->. The
/// first line keeps the names of the runs: without RUN, the figures are made again from the same runs. Between the
/// lines <!-- bench:brief --> and <!-- /bench:brief --> the file gets a short table instead.
///
/// Exit status: 0 success, 1 failure, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench run full --output trial\n  \
    weir bench summary trial                    # print the figures\n  \
    weir bench summary trial --into README.md   # write them into a file\n  \
    weir bench summary --into README.md         # make it again from the same runs")]
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
