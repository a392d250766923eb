//! `weir check`: reports all errors in a configuration, with their places.

mod explain;
mod ports;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_cli::output;
use weir_config::snapshot::Snapshot;
use weir_config::{Colour, Diagnostic, LoadResult, Resolutions, Severity, Summary};
use weir_dataplane::handle;

use crate::doctor::host::Host;
use crate::input::Input;

/// Exit status for an invalid configuration.
const EXIT_INVALID: u8 = 1;

/// Exit status if the output cannot be written.
const EXIT_OUTPUT: u8 = 3;

/// Check a configuration file without serving it
///
/// Reports all errors and warnings with file, line, column and a fix. It reads the files named in the configuration. It
/// opens no sockets, so it is safe to run anywhere. It also warns of what a start by this user on this host would report:
/// addresses, network interfaces, folders of sockets and logs that this host does not have, ports that another process than a
/// weir has, ports and folders that this user may not use, virtual servers of type fast_l4 that nothing would serve, monitors of type icmp without permission and of type
/// script without their program. A file in the place of a unix socket is an error. Run it as weir's user.
///
/// Exit status: 0 valid (warnings are possible), 1 invalid, 2 wrong usage, 3 the output could not be written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir check weir.yaml\n  \
                        weir save | weir check -                      # what a running weir has, with its changes\n  \
                        weir check --json weir.yaml | jq '.diagnostics[].message'\n  \
                        sudo -u weir weir check --explain weir.yaml   # does this host support packets?\n  \
                        weir check --schema > weir.schema.json        # for completion in an editor")]
pub struct Arguments {
    /// The configuration file; `-` for standard input, with relative paths from this folder
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,

    /// Print the diagnostics as JSON on standard output
    #[arg(long)]
    json: bool,

    /// Also show how this user on this host would serve each virtual server
    ///
    /// For type fast_l4: by packets, by sockets, or not at all, with the consequences. This depends on the capabilities
    /// of the process, so run it as weir's user. With `waf`: its mode, the number of evaluated rules, and whether
    /// checks, cookies and responses are on.
    #[arg(long, conflicts_with = "json")]
    explain: bool,

    /// Print the JSON Schema of configuration files and check nothing
    #[arg(long, conflicts_with_all = ["file", "json", "explain"])]
    schema: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let (verdict, written) = match &arguments.file {
        Some(file) => check(file, arguments),
        None => {
            let schema = format_args!("{:#}\n", weir_config::json_schema());
            (ExitCode::SUCCESS, output::print(schema))
        }
    };
    match written {
        Ok(()) => verdict,
        // The reader has closed the pipe (`weir check … | head`); this does not affect the result.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => verdict,
        Err(error) => {
            output::tell(format_args!("weir check: cannot write the answer: {error}\n"));
            ExitCode::from(EXIT_OUTPUT)
        }
    }
}

/// Checks a file. Returns the exit status for it, and whether the output could be written.
fn check(file: &Path, arguments: &Arguments) -> (ExitCode, io::Result<()>) {
    let name = Input::of(file).name();
    let mut loaded = match Input::of(file) {
        Input::File(path) => weir_sources::load(&path),
        input @ Input::Standard => match input.read() {
            Ok(bytes) => weir_sources::parse_bytes(&input.name(), bytes),
            Err(why) => LoadResult {
                diagnostics: vec![Diagnostic::of_file(Severity::Error, why, &input.name())],
                config: None,
                introduced: Vec::new(),
            },
        },
    };
    let file = Path::new(&name);
    // The configuration crate does not know the limits of the kernel's tables.
    let wrong = loaded.config.as_ref().and_then(|it| weir_control::packets::check(it, file));
    if let Some(wrong) = wrong {
        loaded.diagnostics.push(wrong);
        loaded.config = None;
    }
    if let Some(config) = &loaded.config {
        let snapshot = config.snapshot(&Resolutions::default());
        loaded.diagnostics.extend(missing_interfaces(&snapshot, file));
        loaded.diagnostics.extend(weir_control::foretold::findings(config, file));
        loaded.diagnostics.extend(ports::in_use(&snapshot, &Host::here(), file));
        if loaded.diagnostics.iter().any(|it| it.severity == Severity::Error) {
            loaded.config = None;
        }
    }
    let verdict = match loaded.config {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(EXIT_INVALID),
    };
    let written = if arguments.json {
        let findings = weir_config::render_json(&loaded.diagnostics);
        output::print(format_args!("{findings}\n"))
    } else {
        let explained = loaded.config.as_ref().filter(|_| arguments.explain);
        let explained = explained.map_or_else(String::new, explain::explain);
        report(file, &loaded).and_then(|()| output::print(&explained))
    };
    (verdict, written)
}

/// Warns about interfaces in `listen` and in `packet_path` that this host does not have; the target host may have them.
fn missing_interfaces(snapshot: &Snapshot, file: &Path) -> Vec<Diagnostic> {
    let file = file.display().to_string();
    let missing = handle::missing_interfaces(snapshot).into_iter();
    let of_listeners = missing.map(|(server, interface)| {
        format!(
            "virtual server `{server}`: this host has no network interface `{interface}` now: \
             without it a start or a reload is refused"
        )
    });
    let packets = snapshot.packets.iter();
    let missing = packets.flat_map(|packets| handle::missing_packet_interfaces(&packets.path));
    let of_packets = missing.map(|interface| {
        format!(
            "`packet_path.interfaces`: this host has no network interface `{interface}` now: \
             a start goes on without its packets"
        )
    });
    let warning = |message| Diagnostic::of_file(Severity::Warning, message, &file);
    of_listeners.chain(of_packets).map(warning).collect()
}

/// Writes findings to standard error, and the summary of a valid configuration to standard output.
fn report(file: &Path, loaded: &LoadResult) -> io::Result<()> {
    let colour = if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Colour::Always
    } else {
        Colour::Never
    };
    let text = weir_config::render_text(&loaded.diagnostics, colour);
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes())?;
    let of = |severity| {
        let findings = loaded.diagnostics.iter();
        findings.filter(|finding| finding.severity == severity).count()
    };
    let warnings = counted(of(Severity::Warning), "warning");
    match &loaded.config {
        Some(config) => {
            let Summary { virtual_servers, disabled, pools, members } = config.summary();
            let disabled = match disabled {
                0 => String::new(),
                count => format!(" ({count} more disabled)"),
            };
            output::print(format_args!(
                "{}: fine: {}{disabled}, {}, {}; {warnings}\n",
                file.display(),
                counted(virtual_servers, "virtual server"),
                counted(pools, "pool"),
                counted(members, "member"),
            ))
        }
        None => writeln!(
            stderr,
            "{}: {}, {warnings}",
            file.display(),
            counted(of(Severity::Error), "error"),
        ),
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
