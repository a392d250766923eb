//! `weir waf tune`.

mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use weir_cli::output;
use weir_control::firewall::evidence::Evidence;
use weir_control::firewall::exclusions::Exclusions;
use weir_control::firewall::group;
use weir_control::firewall::proposal::{self, Effect};
use weir_control::firewall::{ProposalThresholds, ROUNDS_MAX};

use super::log;

/// Propose exclusions for false positives
///
/// Reads WAF logs, written with `mode: detect` or `block`, and prints a rule file. Each of its rules excludes one
/// argument, cookie or header of some paths from one rule. List the file before the other rules. The logs must not
/// contain attacks, because the exclusions would let them pass. No exclusions are proposed for values that occur
/// together with other attacks; still read the file before you use it.
///
/// Exit status: 0 done; 2 wrong usage, or a log that cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf tune waf.log > tuned.conf\n  \
                        weir waf tune --min 3 --clients 1 waf.log waf.log.1 > tuned.conf\n  \
                        weir waf diff builtin tuned.conf,builtin waf.log")]
pub struct Arguments {
    /// Logs
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// Least number of requests with the finding
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    min: u64,

    /// Least number of clients that sent them; an IPv6 /64 counts as one
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=group::CLIENTS_MAX as u64))]
    clients: u64,

    /// Number of the first exclusion
    #[arg(long, value_name = "ID", default_value_t = 9_990_000)]
    first_id: u64,
}

/// Exit status for wrong usage, as in clap.
const EXIT_UNUSABLE: u8 = 2;

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let told = propose(arguments).and_then(|(rules, summary)| {
        output::print(rules).map_err(|error| error.to_string())?;
        Ok(summary)
    });
    match told {
        Ok(summary) => {
            output::tell(summary);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            output::tell(format_args!("weir waf tune: {reason}\n"));
            ExitCode::from(EXIT_UNUSABLE)
        }
    }
}

/// The rules, and the summary. The logs are read several times: findings that an exclusion removes must not make other
/// findings of the same request suspicious, and the effect of the exclusions is known only when all of them are known.
fn propose(arguments: &Arguments) -> Result<(String, String), String> {
    let wanted =
        ProposalThresholds { requests: arguments.min, clients: arguments.clients as usize };
    let mut exclusions = Exclusions::default();
    let mut evidence = Evidence::default();
    for _ in 0..ROUNDS_MAX {
        evidence = Evidence::default();
        log::each(&arguments.logs, |line| {
            evidence.add(line, &exclusions);
            Ok(())
        })?;
        let more = proposal::exclusions(&evidence, wanted);
        let is_done = more.all.len() == exclusions.all.len();
        exclusions = more;
        if is_done {
            break;
        }
    }
    let mut effect = Effect::default();
    let count = log::each(&arguments.logs, |line| {
        effect.add(line, &exclusions);
        Ok(())
    })?;
    let summary = text::summary(&exclusions, &evidence, (&effect, count));
    Ok((text::rules(&exclusions, arguments.first_id, &summary), summary))
}

#[cfg(test)]
mod tests;
