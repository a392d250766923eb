//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Runs a worker of the data path on a simulated kernel, seed after seed, and reports findings.
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
    /// Ends after this number of runs.
    #[arg(long)]
    pub runs: Option<u64>,
    /// Starts no run after this number of seconds; 10 unless --runs is given.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Number of simultaneous runs.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Number of exchanges that clients start in each run.
    #[arg(long, default_value_t = 300)]
    pub exchanges: u64,
    /// Ends after this number of seeds with findings.
    #[arg(long, default_value_t = 1)]
    pub findings: usize,
    /// Writes a line for each run to this file: the seed, and a digest of everything sent, logged and counted.
    #[arg(long)]
    pub digests: Option<PathBuf>,
    /// Writes everything that every socket sent and received to this file. Use it only for a few runs.
    #[arg(long)]
    pub story: Option<PathBuf>,
    /// Writes the access log of the runs to this file.
    #[arg(long)]
    pub log: Option<PathBuf>,
}

impl Arguments {
    /// The arguments of this process.
    pub fn read() -> Self {
        Self::parse()
    }

    /// Number of seconds after which no run starts.
    pub fn seconds_max(&self) -> u64 {
        self.seconds.unwrap_or(if self.runs.is_some() { u64::MAX } else { 10 })
    }
}
