//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Runs a worker of the data path over a kernel in memory, seed after seed, and reports findings.
#[derive(Debug, Parser)]
#[command(
    name = "weir-simulation",
    after_help = "\
Examples:
  weir-simulation                seeds from 1 on, for 10 seconds
  weir-simulation --seconds 3600 --threads 2 --from 1000000
  weir-simulation --from 4711 --runs 1  one seed again, as a finding names it
  weir-simulation --runs 1000 --digests digests.txt   what each run did, for a comparison with another build"
)]
pub struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Ends after so many runs.
    #[arg(long)]
    pub runs: Option<u64>,
    /// Ends after so many seconds; 10 unless runs are given.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Runs at a time.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Exchanges that clients begin in each run.
    #[arg(long, default_value_t = 300)]
    pub exchanges: u64,
    /// Ends after so many seeds with a finding.
    #[arg(long, default_value_t = 1)]
    pub findings: usize,
    /// Writes a line for each run: the seed, and a digest of all that was sent, logged and counted.
    #[arg(long)]
    pub digests: Option<PathBuf>,
    /// Writes what every socket sent and received here; of a few runs only.
    #[arg(long)]
    pub story: Option<PathBuf>,
    /// Writes the access log of the runs here.
    #[arg(long)]
    pub log: Option<PathBuf>,
}

impl Arguments {
    /// Those of this process.
    pub fn read() -> Self {
        Self::parse()
    }

    /// Seconds after which no run begins.
    pub fn seconds_max(&self) -> u64 {
        self.seconds.unwrap_or(if self.runs.is_some() { u64::MAX } else { 10 })
    }
}
