//! `weir pool`: the pools of a running weir, and the state of their members.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use weir_api::member::{Member, MemberCounts, Monitor, RUNTIME, UP};
use weir_api::page::Page;
use weir_api::pool::Pool;
use weir_api::responses::Latency;

use crate::admin::client::segment;
use crate::admin::error::Error;
use crate::admin::text::{
    Alignment, Paint, Table, Tone, counted, grouped, latency, printable, span, tone_of,
};
use crate::admin::{self, Connection};

const COMMAND: &str = "weir pool";

/// Show the pools of a running weir, or one of them in detail
///
/// With POOL, shows each member with its monitors and their last results. `!` marks a problem.
///
/// Exit status: 0 shown; 1 unknown pool; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir pool\n  \
                        weir pool web\n  \
                        weir pool web --json | jq '.members[] | {address, state, administrative}'")]
pub struct Arguments {
    /// The pool to show in detail
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pool: Option<String>,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match answer(arguments, admin::paint_of_stdout()) {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn answer(arguments: &Arguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let (document, text) = match &arguments.pool {
        None => {
            let document = client.list("/v1/pools")?;
            let text = overview(&client.read::<Page<Pool>>(&document)?.items, paint);
            (document, text)
        }
        Some(pool) => {
            let document = client.get(&format!("/v1/pools/{}", segment(pool)))?;
            let text = detail(&client.read(&document)?, paint);
            (document, text)
        }
    };
    Ok(if arguments.json { String::from_utf8_lossy(&document).into_owned() } else { text })
}

/// One row per pool.
fn overview(pools: &[Pool], paint: Paint) -> String {
    if pools.is_empty() {
        return "The configuration has no pool.\n".to_owned();
    }
    let mut table = Table::new(&[
        ("pool", Alignment::Left),
        ("balance", Alignment::Left),
        ("members", Alignment::Right),
        ("in service", Alignment::Right),
        ("active", Alignment::Right),
        ("retries", Alignment::Right),
        ("no member", Alignment::Right),
    ]);
    for pool in pools {
        let active = pool.members.iter().map(|member| u64::from(member.occupancy)).sum();
        table.row(
            tone_of_pool(pool),
            [
                pool.name.clone(),
                pool.balance.clone(),
                pool.members.len().to_string(),
                pool.members_in_service.to_string(),
                grouped(active),
                grouped(pool.retries),
                grouped(pool.no_member),
            ],
        );
    }
    table.render(paint, "  ")
}

/// A pool as a heading and one row per member.
pub fn table_of(pool: &Pool, paint: Paint) -> String {
    let mut columns = vec![
        ("member", Alignment::Left),
        ("state", Alignment::Left),
        ("administrative", Alignment::Left),
        ("requests", Alignment::Right),
        ("active", Alignment::Right),
        ("errors", Alignment::Right),
    ];
    let has_latency = pool.members.iter().any(|member| member.response_duration.is_some());
    columns.extend(has_latency.then_some(("p50", Alignment::Right)));
    let mut table = Table::new(&columns);
    for member in &pool.members {
        let mut cells = vec![
            member.address.clone(),
            member.state.clone(),
            administrative_text(member),
            grouped(member.counts.requests),
            grouped(u64::from(member.occupancy)),
            grouped(member.errors()),
        ];
        let p50 = member.response_duration.as_ref().and_then(|it| it.p50_ms);
        cells.extend(has_latency.then(|| latency(p50)));
        table.row(tone_of_member(member), cells);
        for reason in reasons(member) {
            table.note(Tone::Wrong, reason);
        }
    }
    let mut text = heading(pool, paint);
    if !pool.members.is_empty() {
        text += &table.render(paint, "  ");
    }
    text
}

fn heading(pool: &Pool, paint: Paint) -> String {
    let text = format!(
        "pool {}: {}, {} of {} in service",
        pool.name,
        pool.balance,
        pool.members_in_service,
        counted(pool.members.len() as u64, "member"),
    );
    let mut text = paint.heading_of(tone_of(&pool.health), &text);
    if let Some(why) = &pool.health.why {
        text += &paint.line(
            tone_of(&pool.health),
            "  ",
            &format!("{}: {why}", pool.health.state.as_str()),
        );
    }
    if pool.response_duration.p50_ms.is_some() {
        let found = quantiles(&pool.response_duration);
        text += &paint.line(Tone::Plain, "  ", &format!("latency {found}"));
    }
    text
}

fn quantiles(found: &Latency) -> String {
    format!("p50 {}, p99 {}", latency(found.p50_ms), latency(found.p99_ms))
}

/// All members with all details.
fn detail(pool: &Pool, paint: Paint) -> String {
    let mut text = heading(pool, paint);
    text += &paint.line(
        Tone::Plain,
        "  ",
        &format!(
            "retries {}, requests that found no member {}",
            grouped(pool.retries),
            grouped(pool.no_member),
        ),
    );
    for member in &pool.members {
        text.push('\n');
        text += &detail_of_member(member, paint);
    }
    text
}

fn detail_of_member(member: &Member, paint: Paint) -> String {
    let name = member.name.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
    let mut text =
        paint.line(tone_of_member(member), "  ", &format!("member {}{name}", member.address));
    let mut line = |tone, name: &str, value: String| {
        text += &paint.line(tone, "    ", &format!("{name:<14}  {value}"));
    };
    let wrong = |is_wrong| if is_wrong { Tone::Wrong } else { Tone::Plain };
    let ejected = ejected_text(member).map_or_else(String::new, |text| format!(", {text}"));
    line(wrong(is_wrong(member)), "state", format!("{}{ejected}", member.state));
    let under_way = member.draining_requests.map_or_else(String::new, |count| {
        format!(": gets nothing new, {} under way", counted(u64::from(count), "request"))
    });
    let tone = if member.is_enabled() { Tone::Plain } else { Tone::Unusual };
    line(tone, "administrative", format!("{}{under_way}", administrative_text(member)));
    line(Tone::Plain, "weight", member.weight.to_string());
    let limit = member.connections_max.map(u64::from);
    let of = limit.map_or_else(String::new, |limit| format!(" of at most {}", grouped(limit)));
    let active = u64::from(member.occupancy);
    line(
        wrong(limit.is_some_and(|limit| active >= limit)),
        "requests",
        format!("{}; {} under way{of}", grouped(member.counts.requests), grouped(active)),
    );
    let counts = &member.counts;
    let (open, idle) = (grouped(counts.connections_open), grouped(counts.connections_idle));
    line(Tone::Plain, "connections", format!("{open} open, {idle} of them idle"));
    line(Tone::Plain, "errors", errors_text(member));
    if let Some(found) = &member.response_duration {
        line(Tone::Plain, "latency", quantiles(found));
    }
    for monitor in &member.monitors {
        let name = format!("{} monitor", monitor.r#type);
        line(wrong(monitor.state == "down"), &name, monitor_text(monitor));
    }
    text
}

/// The administrative state as text, and whether it was set at run time: `drain (run time)`.
fn administrative_text(member: &Member) -> String {
    match member.administrative_source.as_str() {
        RUNTIME => format!("{} (run time)", member.administrative),
        _ => member.administrative.clone(),
    }
}

fn errors_text(member: &Member) -> String {
    let MemberCounts { connect_failures, response_failures, ejections, .. } = member.counts;
    format!(
        "{}: {} not connected, {} cut short, late or malformed, {} answered 5xx; ejected {}",
        grouped(member.errors()),
        grouped(connect_failures),
        grouped(response_failures),
        grouped(member.responses.server_error),
        counted(ejections, "time"),
    )
}

fn monitor_text(monitor: &Monitor) -> String {
    let (passes, failures) = (grouped(monitor.passes), grouped(monitor.failures));
    let mut text = format!("{}; {passes} passed, {failures} failed", monitor.state);
    if let Some(at) = &monitor.last_probe {
        text += &format!("; last at {at}");
    }
    if let Some(failure) = &monitor.last_failure {
        text += &format!(": {failure}");
    }
    if let Some(held_up) = held_up_text(monitor) {
        text += &format!(": {held_up}");
    }
    text
}

fn held_up_text(monitor: &Monitor) -> Option<String> {
    let time = Duration::from_millis(monitor.held_up_for_ms?);
    Some(format!("passes, up in {} if it goes on (up_delay)", span(time)))
}

/// The known reasons why a member is not up.
fn reasons(member: &Member) -> Vec<String> {
    if !is_wrong(member) {
        return Vec::new();
    }
    let failed = member.monitors.iter().filter_map(|monitor| {
        let why = monitor.last_failure.clone().or_else(|| held_up_text(monitor))?;
        Some(format!("{} monitor: {why}", monitor.r#type))
    });
    failed.chain(ejected_text(member)).collect()
}

fn ejected_text(member: &Member) -> Option<String> {
    let time = Duration::from_millis(member.ejected_for_ms?);
    let why = member.ejected_why.as_deref().unwrap_or("its requests failed");
    Some(printable(&format!("{why}: gets none for another {}", span(time))))
}

/// Whether monitors or traffic have found a problem.
fn is_wrong(member: &Member) -> bool {
    member.state != UP && member.state != "pending"
}

fn tone_of_member(member: &Member) -> Tone {
    if is_wrong(member) {
        Tone::Wrong
    } else if member.is_in_service() {
        Tone::Plain
    } else {
        Tone::Unusual
    }
}

fn tone_of_pool(pool: &Pool) -> Tone {
    if pool.health.is_bad() || pool.members.iter().any(is_wrong) {
        Tone::Wrong
    } else if pool.members.iter().all(Member::is_in_service) {
        Tone::Plain
    } else {
        Tone::Unusual
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
pub mod tests;
