//! `weir bench report`: the report of a run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use weir_bench::report;
use weir_cli::output;

/// Write the report of a run again
///
/// Reads RUN/run.json, RUN/tests and RUN/configurations. Writes RUN/report.html (one page that needs nothing else) and
/// RUN/report.md.
///
/// Exit status: 0 success, 1 failure, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    weir bench run quick --output trial   # writes a report, too\n  \
    weir bench report trial               # writes it again, with this version of weir")]
pub struct Arguments {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match report::write(&arguments.run) {
        Ok(written) => {
            output::tell(format_args!(
                "{}\n{}\n",
                written.html.display(),
                written.markdown.display()
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            output::tell(format_args!("weir bench report: {error}\n"));
            ExitCode::FAILURE
        }
    }
}
