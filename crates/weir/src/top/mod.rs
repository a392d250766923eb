//! `weir top`: a live view of a running weir over its admin listener.

mod histograms;
mod rows;
mod sample;
mod state;
mod view;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use weir_cli::output;
use weir_cli::values::parse_duration;

use self::rows::{Level, Row, SortKey};
use self::sample::SampleResult;
use self::state::{Input, State, ViewNext};
use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::text::{Alignment, Paint, Table, Tone, amount, bytes_amount, grouped, latency};
use crate::admin::{self, Connection, EXIT_UNREACHABLE};
use crate::screen::{self, DRAW_INTERVAL, END_POLL, Palette, Screen};

const COMMAND: &str = "weir top";

/// Minimum interval between two readings.
const INTERVAL_MIN: Duration = Duration::from_millis(200);

/// Show a live view of a running weir
///
/// Shows virtual servers, their pools and members: requests per second, connections, latency of the last readings (P50,
/// P99), errors, and health. When weir restarts, the view connects again.
///
/// Keys: q or Ctrl-C ends; Enter opens the selected row, Esc goes back; Tab, 1, 2 and 3 choose virtual servers, pools or
/// members; / filters; p or space pauses; o, n, r, c, l, e and s sort by configuration order, name, rate, connections,
/// latency, errors and state, and again the other way round.
///
/// Without a terminal it prints tables, like --once, one after the other.
///
/// Exit status: 0 ended by the user, or printed; 2 wrong usage; 3 weir cannot be reached, at the start or with --once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir top\n  \
                        weir top --sort errors --filter shop\n  \
                        weir top --admin https://weir.example:8443 --token-file ann.token\n  \
                        weir top --once --json | jq '.members[] | select(.is_wrong) | .name'\n  \
                        weir top --json --interval 5s >> weir.jsonl    # a line per reading")]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,

    /// Time between two readings (500ms, 2s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,

    /// The order of rows
    #[arg(long, value_enum, default_value = "configuration")]
    sort: SortKey,

    /// Show only rows whose name, state or pool has this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// Print the state once, with rates over one interval, and exit
    #[arg(long)]
    once: bool,

    /// Print JSON on standard output, one document per reading
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let interval = arguments.interval.max(INTERVAL_MIN);
    let client = match arguments.connection.client() {
        Ok(client) => client,
        Err(error) => return admin::refuse(COMMAND, &error),
    };
    if arguments.once || arguments.json || !screen::is_there() {
        return match print(arguments, &client, interval) {
            Ok(status) => status,
            Err(error) => admin::refuse(COMMAND, &error),
        };
    }
    // An unreachable weir is an error at the start. Later the view waits for it.
    if let Err(error) = client.get("/v1/health") {
        return admin::refuse(COMMAND, &error);
    }
    match show(arguments, client, interval) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("{COMMAND}: {error}\n"));
            ExitCode::from(EXIT_UNREACHABLE)
        }
    }
}

/// Prints tables or JSON documents, once or until the reader closes the pipe.
fn print(arguments: &Arguments, client: &Client, interval: Duration) -> Result<ExitCode, Error> {
    let mut state = State::new(arguments.sort, arguments.filter.clone());
    state.take(Ok(Arc::new(sample::take(client)?)));
    loop {
        thread::sleep(interval);
        match sample::take(client) {
            Ok(sample) => state.take(Ok(Arc::new(sample))),
            Err(error) if arguments.once => return Err(error),
            Err(error) => {
                output::tell(format_args!("{COMMAND}: {error}; trying again\n"));
                state.take(Err(error.to_string()));
                continue;
            }
        }
        let text = if arguments.json { document(&state) } else { tables(&mut state) };
        let status = admin::print(COMMAND, &text);
        // A closed pipe ends the output, and is not an error.
        if arguments.once || status != ExitCode::SUCCESS || !is_read() {
            return Ok(status);
        }
    }
}

/// Whether standard output is still open for reading.
fn is_read() -> bool {
    output::print("").is_ok()
}

/// All rows as one line of JSON.
fn document(state: &State) -> String {
    let Some(span) = state.span() else { return String::new() };
    let process = &span.now.status.process;
    let rows = |level| {
        let mut rows = span.rows(level);
        rows.retain(|row| rows::matches(row, &state.filter));
        rows::sort(&mut rows, state.sort, false);
        rows
    };
    let document = json!({
        "version": process.version,
        "started": process.started,
        "uptime_seconds": process.uptime_seconds,
        "problems": process.problems,
        "virtual_servers": rows(Level::Servers),
        "pools": rows(Level::Pools),
        "members": rows(Level::Members),
    });
    format!("{document}\n")
}

/// Formats a table for each kind of object.
fn tables(state: &mut State) -> String {
    let paint = admin::paint_of_stdout();
    let mut text = String::new();
    for problem in state.span().iter().flat_map(|span| &span.now.status.process.problems) {
        text += &paint.line(Tone::Wrong, "", problem);
    }
    for level in [Level::Servers, Level::Pools, Level::Members] {
        state.level = level;
        text += &table(level, &state.rows(), paint);
    }
    text
}

fn table(level: Level, rows: &[Row], paint: Paint) -> String {
    let mut table = Table::new(&[
        ("name", Alignment::Left),
        ("state", Alignment::Left),
        ("req/s", Alignment::Right),
        ("connections", Alignment::Right),
        ("active", Alignment::Right),
        ("p50", Alignment::Right),
        ("p99", Alignment::Right),
        ("errors/s", Alignment::Right),
        ("errors", Alignment::Right),
        ("sent/s", Alignment::Right),
    ]);
    for row in rows {
        let per_second = |value: Option<f64>| value.map_or_else(|| "-".into(), amount);
        let pool = row.of.first().filter(|_| level == Level::Members);
        let pool = pool.map_or_else(String::new, |pool| format!("{pool}/"));
        let tone = if row.is_wrong { Tone::Wrong } else { Tone::Plain };
        let cells = [
            format!("{pool}{}", row.name),
            row.state.clone(),
            per_second(row.rate),
            grouped(row.connections),
            grouped(row.active),
            latency(row.p50_ms),
            latency(row.p99_ms),
            per_second(row.errors),
            grouped(row.errors_total),
            row.bytes.map_or_else(|| "-".into(), bytes_amount),
        ];
        table.row(tone, cells);
    }
    paint.heading(level.title()) + &table.render(paint, "  ") + "\n"
}

/// Shows the live view until the user, a signal or the loss of the terminal ends it.
fn show(arguments: &Arguments, client: Client, interval: Duration) -> io::Result<()> {
    let is_over = Arc::<AtomicBool>::default();
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        flag::register(signal, Arc::clone(&is_over))?;
    }
    let address = arguments.connection.to_string();
    let samples = sample::follow(client, interval)?;
    let mut state = State::new(arguments.sort, arguments.filter.clone());
    // A panic in the sampling thread closes its channel, which ends the view.
    let mut screen = Screen::take(|_| {})?;
    let input = screen::read_input(Input::of)?;
    let palette = Palette::of_environment();
    while !is_over.load(Relaxed) {
        while let Some(read) = next(&samples)? {
            state.take(read);
        }
        match screen.draw(|frame| view::render(frame, &address, &state, palette)) {
            Ok(()) => {}
            // The terminal is gone.
            Err(_) => return Ok(()),
        }
        let until = Instant::now() + DRAW_INTERVAL;
        while !is_over.load(Relaxed) && Instant::now() < until {
            match input.recv_timeout(END_POLL) {
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(input) if state.key(input) == ViewNext::Quit => return Ok(()),
                Ok(_) => break,
            }
        }
    }
    Ok(())
}

/// Returns the next reading, if there is one; an error: the sampling thread has ended.
fn next(samples: &Receiver<SampleResult>) -> io::Result<Option<SampleResult>> {
    use std::sync::mpsc::TryRecvError;
    match samples.try_recv() {
        Ok(read) => Ok(Some(read)),
        Err(TryRecvError::Empty) => Ok(None),
        Err(TryRecvError::Disconnected) => Err(io::Error::other("the reader of weir has ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_for_scripts_and_people() {
        let mut state = state::tests::state();
        let text = tables(&mut state);
        let line = text.lines().find(|line| line.trim_start().starts_with("shop")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[..4], ["shop", "degraded", "100", "12"]);
        assert!(text.contains("! web/127.0.0.1:9003  down"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&document(&state)).unwrap();
        assert_eq!(document["virtual_servers"][0]["rate"], 100.0);
        assert_eq!(document["members"][2]["is_wrong"], true);
    }
}
