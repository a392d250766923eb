//! `weir bench compare`: the differences between two runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use weir_bench::compare;
use weir_cli::output;

/// Exit status if a ratio became worse beyond the noise.
const EXIT_WORSE: u8 = 1;
/// Exit status if the runs cannot be compared.
const EXIT_FAILED: u8 = 2;
/// Exit status if the output cannot be written.
const EXIT_OUTPUT: u8 = 3;

/// Show the ratios that changed between two runs by more than the noise
///
/// Absolute figures of two runs cannot be compared, because machines change from hour to hour. This command compares
/// the ratios of weir to each peer, which were measured side by side within each run.
///
/// Exit status: 0 nothing became worse, 1 something did, 2 wrong usage or runs that cannot be compared, 3 the output
/// could not be written.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    weir bench run full --output before\n  \
    weir bench run full --output after   # with another weir, or another configuration\n  \
    weir bench compare before after")]
pub struct Arguments {
    /// Folder of the earlier run
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// Folder of the later run
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let comparison = match compare::compare(&arguments.before, &arguments.after) {
        Ok(comparison) => comparison,
        Err(error) => {
            output::tell(format_args!("weir bench compare: {error}\n"));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let text = if arguments.json {
        serde_json::to_string_pretty(&comparison).unwrap_or_else(|error| error.to_string()) + "\n"
    } else {
        comparison.to_string()
    };
    match output::print(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            output::tell(format_args!("weir bench compare: cannot write the answer: {error}\n"));
            ExitCode::from(EXIT_OUTPUT)
        }
        _ if comparison.worsened() => ExitCode::from(EXIT_WORSE),
        _ => ExitCode::SUCCESS,
    }
}
