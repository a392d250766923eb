//! The demo as lines of text: without a terminal, and for the summary.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use weir_control::member_state::MemberState;

use super::journal::Journal;
use super::picture::{
    Picture, Place, READ_INTERVAL, Reader, clock, grouped, milliseconds, quantile_ms,
};
use super::view::tries;

/// The interval between checks for the end.
const END_POLL: Duration = Duration::from_millis(50);

/// Writes a line per second, and events, until `is_over` or the reader is gone.
pub fn show(
    output: &mut impl Write,
    place: &Place,
    reader: &mut Reader,
    journal: &Journal,
    began: Instant,
    mut is_over: impl FnMut() -> bool,
) -> io::Result<()> {
    write_beginning(output, place)?;
    let mut seen = 0;
    let mut next = began + READ_INTERVAL;
    while !is_over() {
        for entry in journal.since(&mut seen) {
            let at = clock(entry.at);
            writeln!(output, "{at:>5}  {}: {}", entry.level, entry.text)?;
        }
        if Instant::now() >= next {
            let now = began.elapsed();
            reader.read_if_due(now);
            writeln!(output, "{}", line_of(&reader.picture(now)))?;
            next += READ_INTERVAL;
        }
        output.flush()?;
        std::thread::sleep(END_POLL);
    }
    Ok(())
}

fn write_beginning(output: &mut impl Write, place: &Place) -> io::Result<()> {
    writeln!(output, "weir demo serves {}", place.server_url)?;
    if let Some(note) = &place.note {
        writeln!(output, "{note}")?;
    }
    writeln!(output, "Try this in another terminal:")?;
    for (what, why) in tries(place) {
        writeln!(output, "  {what}   # {why}")?;
    }
    writeln!(output, "Ctrl-C ends the demo.")
}

fn line_of(picture: &Picture) -> String {
    let latency = |percent| milliseconds(quantile_ms(&picture.latency, percent));
    let is_up = |state| state == MemberState::Up;
    let others: Vec<String> = picture
        .members
        .iter()
        .filter(|member| !is_up(member.state))
        .map(|member| format!("{} {}", member.name(), member.state.as_str()))
        .collect();
    let up = picture.members.len() - others.len();
    let failed = picture
        .traffic
        .map_or_else(String::new, |seen| format!("failed {}  ", grouped(seen.failed)));
    let mut line = format!(
        "{:>5}  {:>3.0} requests/s  p50 {} ms  p99 {} ms  {failed}members up {up} of {}",
        clock(picture.uptime),
        picture.rate,
        latency(50),
        latency(99),
        picture.members.len(),
    );
    if !others.is_empty() {
        line.push_str(&format!(" ({})", others.join(", ")));
    }
    line
}

/// Writes the summary.
pub fn write_summary(output: &mut impl Write, picture: &Picture) -> io::Result<()> {
    let server = &picture.server;
    writeln!(output, "weir demo ran for {}.", clock(picture.uptime))?;
    if let Some(seen) = picture.traffic {
        writeln!(
            output,
            "  Demo clients     {} requests: {} answered, {} failed",
            grouped(seen.requests),
            grouped(seen.answered),
            grouped(seen.failed),
        )?;
    }
    writeln!(
        output,
        "  Virtual server   {} requests: {} 2xx, {} 4xx, {} 5xx; p50 {} ms, p99 {} ms",
        grouped(server.requests),
        grouped(server.responses_2xx),
        grouped(server.responses_4xx),
        grouped(server.responses_5xx),
        milliseconds(quantile_ms(&server.request_duration, 50)),
        milliseconds(quantile_ms(&server.request_duration, 99)),
    )?;
    writeln!(output, "  Retries          {}", retries_text(picture))?;
    writeln!(
        output,
        "  {:<16} {:>9} {:>8} {:>9} {:>9}",
        "Member", "requests", "failures", "ejections", "at end"
    )?;
    for member in &picture.members {
        let name = member.name();
        writeln!(
            output,
            "  {name:<16} {:>9} {:>8} {:>9} {:>9}",
            grouped(member.totals.requests),
            grouped(member.failures()),
            grouped(member.totals.ejections),
            member.state.as_str(),
        )?;
    }
    Ok(())
}

fn retries_text(picture: &Picture) -> String {
    match picture.retries {
        0 => "none was needed".into(),
        count => {
            format!("{}: weir sent these again when a member broke off or refused", grouped(count))
        }
    }
}
