//! The live view, for screens from 80 x 24 characters; lower screens show less.
//!
//! Colours are never the only mark.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table};
use weir_control::member_state::MemberState;
use weir_exchange::shared::counters::HistogramTotals;

use super::picture::{
    Member, Picture, Place, bucket_label, clock, grouped, milliseconds, quantile_ms,
};
use crate::screen::Palette;

/// Minimum width; smaller terminals show a message.
const WIDTH_MIN: u16 = 80;
/// Minimum height.
const HEIGHT_MIN: u16 = 14;

/// Minimum width for the latency histogram.
const WIDTH_OF_HISTOGRAM: u16 = 110;

/// Default height of the upper boxes, including borders.
const TOP_HEIGHT: u16 = 6;
/// Maximum height of the upper boxes.
const TOP_HEIGHT_MAX: u16 = 16;

/// The curve's highest point leaves one part in this many free above it.
const CURVE_HEADROOM: u64 = 4;

/// Width of the box with the virtual server's figures.
const NUMBERS_WIDTH: u16 = 42;

/// Width of the histogram's box.
const HISTOGRAM_WIDTH: u16 = 36;
/// Width of a bar in the histogram.
const BAR_WIDTH: u64 = 16;

/// Height of the box with the latest events, including borders, if there is room.
const EVENTS_HEIGHT: u16 = 5;

/// Columns for the left and right border.
const BORDERS: u16 = 2;

/// Draws a picture.
pub fn render(frame: &mut Frame<'_>, place: &Place, picture: &Picture, palette: Palette) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!(
            "weir demo at {}\nThe view needs {WIDTH_MIN} x {HEIGHT_MIN} characters.\nq ends the demo.",
            place.server_url
        );
        return frame.render_widget(Paragraph::new(text), area);
    }
    let heights = Heights::of(area.height, picture.members.len(), tries(place).len());
    let [header, top, members, events, try_this] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(heights.top),
        Constraint::Length(heights.members),
        Constraint::Length(heights.events),
        Constraint::Length(heights.try_this),
    ])
    .areas(area);
    render_header(frame, header, place, picture, palette);
    render_top(frame, top, picture, palette);
    render_members(frame, members, picture, palette);
    if heights.events > 0 {
        render_events(frame, events, picture, palette);
    }
    if heights.try_this > 0 {
        render_tries(frame, try_this, place, palette);
    }
}

/// The heights of the parts below the header.
#[derive(Debug, PartialEq, Eq)]
struct Heights {
    top: u16,
    members: u16,
    events: u16,
    try_this: u16,
}

impl Heights {
    /// Members have priority, then events, then suggestions; the curve and the events get the rest.
    fn of(height: u16, members: usize, tries: usize) -> Self {
        let mut left = height.saturating_sub(1 + TOP_HEIGHT);
        let mut take = |wanted: u16, min: u16| {
            let taken = if left >= min { wanted.min(left) } else { 0 };
            left -= taken;
            taken
        };
        let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let members = take(lines(members).saturating_add(3), 0);
        let some_events = take(EVENTS_HEIGHT, 3);
        let try_this = take(lines(tries) + 2, 3);
        let more_top = take(left_for_top(height).min(TOP_HEIGHT_MAX - TOP_HEIGHT), 0);
        // Lines that are not enough for a box of events go to the upper boxes.
        let (events, rest) = match some_events {
            0 => (0, left),
            some => (some + left, 0),
        };
        Self { top: TOP_HEIGHT + more_top + rest, members, events, try_this }
    }
}

/// On a screen with more than 24 lines, every second additional line goes to the curve.
fn left_for_top(height: u16) -> u16 {
    height.saturating_sub(24) / 2
}

fn render_header(
    frame: &mut Frame<'_>,
    area: Rect,
    place: &Place,
    picture: &Picture,
    palette: Palette,
) {
    let mut left = vec![
        Span::styled(" weir demo ", palette.title()),
        Span::raw("serves "),
        Span::styled(place.server_url.clone(), palette.colour(Color::Cyan)),
        Span::raw(format!("  up {}", clock(picture.uptime))),
    ];
    let keys = match picture.traffic {
        None => "q quit ",
        Some(seen) => {
            if !seen.on {
                left.push(Span::styled("  paused", palette.title()));
            }
            "q quit  t traffic "
        }
    };
    let keys_width = u16::try_from(keys.len()).unwrap_or(0).min(area.width);
    let [left_area, keys_area] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(keys_width)]).areas(area);
    frame.render_widget(Line::from(left), left_area);
    frame.render_widget(Line::from(keys), keys_area);
}

fn render_top(frame: &mut Frame<'_>, area: Rect, picture: &Picture, palette: Palette) {
    if area.width < WIDTH_OF_HISTOGRAM {
        let [curve, numbers] =
            Layout::horizontal([Constraint::Min(0), Constraint::Length(NUMBERS_WIDTH)]).areas(area);
        render_curve(frame, curve, picture, palette);
        return render_numbers(frame, numbers, picture, palette);
    }
    let [curve, numbers, histogram] = Layout::horizontal([
        Constraint::Min(0),
        Constraint::Length(NUMBERS_WIDTH),
        Constraint::Length(HISTOGRAM_WIDTH),
    ])
    .areas(area);
    render_curve(frame, curve, picture, palette);
    render_numbers(frame, numbers, picture, palette);
    render_histogram(frame, histogram, &picture.latency, palette);
}

fn render_curve(frame: &mut Frame<'_>, area: Rect, picture: &Picture, palette: Palette) {
    let width = usize::from(area.width.saturating_sub(BORDERS));
    let shown = &picture.rates[picture.rates.len().saturating_sub(width)..];
    let highest = shown.iter().max().copied().unwrap_or(0);
    let title = format!("Requests/s: {:.0}, highest {highest}", picture.rate);
    // The newest second is at the right end.
    let mut data = vec![0; width - shown.len()];
    data.extend_from_slice(shown);
    let curve = Sparkline::default()
        .block(palette.frame(title))
        .data(data)
        .max(highest + highest / CURVE_HEADROOM + 1)
        .style(palette.colour(Color::Cyan));
    frame.render_widget(curve, area);
}

fn render_numbers(frame: &mut Frame<'_>, area: Rect, picture: &Picture, palette: Palette) {
    let server = &picture.server;
    let latency = |percent| milliseconds(quantile_ms(&picture.latency, percent));
    let failures = match picture.traffic {
        None => Span::raw("only yours"),
        Some(seen) if seen.failed == 0 => Span::styled("0 failed", palette.title()),
        Some(seen) => Span::styled(format!("{} failed", grouped(seen.failed)), palette.trouble()),
    };
    let mut lines = vec![
        Line::from(format!(
            "{}2xx {}  4xx {}  5xx {}",
            name("responses"),
            grouped(server.responses_2xx),
            grouped(server.responses_4xx),
            grouped(server.responses_5xx)
        )),
        Line::from(format!(
            "{}p50 {}  p90 {}  p99 {}",
            name("latency ms"),
            latency(50),
            latency(90),
            latency(99)
        )),
        Line::from(vec![
            Span::raw(name("traffic")),
            failures,
            Span::raw(format!(", {} retries", grouped(picture.retries))),
        ]),
        Line::from(format!(
            "{}{} connections, {} active",
            name("clients"),
            server.connections_open,
            server.requests_active
        )),
        Line::from(format!(
            "{}{} requests found no member",
            name("pools"),
            grouped(picture.no_member)
        )),
        Line::from(format!("{}{} bytes", name("sent"), grouped(server.bytes_sent))),
    ];
    lines.truncate(usize::from(area.height.saturating_sub(BORDERS)));
    let numbers = Paragraph::new(lines).block(palette.frame("Virtual server".into()));
    frame.render_widget(numbers, area);
}

/// A label, padded to the width of its column.
fn name(text: &str) -> String {
    format!(" {text:<11}")
}

fn render_histogram(
    frame: &mut Frame<'_>,
    area: Rect,
    latency: &HistogramTotals,
    palette: Palette,
) {
    let rows = usize::from(area.height.saturating_sub(BORDERS));
    let highest = latency.buckets.iter().max().copied().unwrap_or(0).max(1);
    let lines: Vec<Line<'_>> = shown_buckets(latency, rows)
        .map(|index| {
            let count = latency.buckets[index];
            let length = usize::try_from((count * BAR_WIDTH).div_ceil(highest)).unwrap_or(0);
            Line::from(vec![
                Span::raw(format!(" {:>9} ", bucket_label(index))),
                Span::styled("█".repeat(length), palette.colour(Color::Cyan)),
                Span::raw(format!(" {}", grouped(count))),
            ])
        })
        .collect();
    let histogram = Paragraph::new(lines).block(palette.frame("Latency, last 10 s".into()));
    frame.render_widget(histogram, area);
}

/// The buckets between the first and the last non-empty one; only the slowest ones if there are too many.
fn shown_buckets(latency: &HistogramTotals, rows: usize) -> std::ops::Range<usize> {
    let filled = |&index: &usize| latency.buckets[index] > 0;
    let mut all = 0..latency.buckets.len();
    let first = all.clone().find(filled);
    let last = all.rfind(filled);
    match (first, last) {
        (Some(first), Some(last)) => first.max((last + 1).saturating_sub(rows))..last + 1,
        _ => 0..0,
    }
}

/// The name of the coloured column.
const STATE: &str = "state";

const MEMBER_COLUMNS: [(&str, Constraint, Alignment); 9] = [
    (" member", Constraint::Min(10), Alignment::Left),
    ("address", Constraint::Min(15), Alignment::Left),
    (STATE, Constraint::Min(9), Alignment::Left),
    ("weight", Constraint::Min(6), Alignment::Right),
    ("req/s", Constraint::Min(6), Alignment::Right),
    ("active", Constraint::Min(6), Alignment::Right),
    ("p50 ms", Constraint::Min(6), Alignment::Right),
    ("p99 ms", Constraint::Min(6), Alignment::Right),
    ("fails ", Constraint::Min(6), Alignment::Right),
];

fn render_members(frame: &mut Frame<'_>, area: Rect, picture: &Picture, palette: Palette) {
    let up = picture.members.iter().filter(|member| member.state == MemberState::Up).count();
    let title = format!("{}: {up} of {} members up", picture.pools, picture.members.len());
    let header = MEMBER_COLUMNS
        .iter()
        .map(|&(name, _, alignment)| Cell::from(Line::from(name).alignment(alignment)));
    let rows = picture.members.iter().map(|member| member_row(member, palette));
    let widths = MEMBER_COLUMNS.iter().map(|&(_, width, _)| width);
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(palette.faint()))
        .block(palette.frame(title));
    frame.render_widget(table, area);
}

fn member_row(member: &Member, palette: Palette) -> Row<'static> {
    let latency = |percent| milliseconds(quantile_ms(&member.latency, percent));
    let cells = [
        format!(" {}", member.role),
        member.label.clone(),
        state_text(member.state),
        member.weight.to_string(),
        format!("{:.0}", member.rate),
        member.totals.requests_active.to_string(),
        latency(50),
        latency(99),
        format!("{} ", grouped(member.failures())),
    ];
    let state = match member.state {
        MemberState::Up => palette.colour(Color::Green),
        MemberState::Pending | MemberState::Draining => palette.faint(),
        MemberState::Down | MemberState::Ejected => palette.trouble(),
    };
    let columns = cells.into_iter().zip(MEMBER_COLUMNS);
    Row::new(columns.map(|(text, (name, _, alignment))| {
        let style = if name == STATE { state } else { Style::new() };
        Cell::from(Line::from(Span::styled(text, style)).alignment(alignment))
    }))
}

/// The word for a state, with a symbol of distinct shape.
fn state_text(state: MemberState) -> String {
    let sign = match state {
        MemberState::Up => '●',
        MemberState::Pending => '◌',
        MemberState::Down => '○',
        MemberState::Draining => '◑',
        MemberState::Ejected => '◐',
    };
    format!("{sign} {}", state.as_str())
}

fn render_events(frame: &mut Frame<'_>, area: Rect, picture: &Picture, palette: Palette) {
    let rows = usize::from(area.height.saturating_sub(BORDERS));
    let shown = &picture.events[picture.events.len().saturating_sub(rows)..];
    let lines: Vec<Line<'_>> = shown
        .iter()
        .map(|entry| {
            let style = match entry.level.as_str() {
                "info" => Style::new(),
                "warning" => palette.colour(Color::Yellow),
                _ => palette.trouble(),
            };
            Line::from(vec![
                Span::styled(format!(" {:>5} ", clock(entry.at)), palette.faint()),
                Span::styled(format!("{:<8}", entry.level), style),
                Span::raw(entry.text.clone()),
            ])
        })
        .collect();
    let events = Paragraph::new(lines).block(palette.frame("Events".into()));
    frame.render_widget(events, area);
}

fn render_tries(frame: &mut Frame<'_>, area: Rect, place: &Place, palette: Palette) {
    let tries = tries(place);
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let whats = longest(&mut tries.iter().map(|(what, _)| what.chars().count()));
    let whys = longest(&mut tries.iter().map(|(_, why)| why.chars().count()));
    // Two columns if they fit; otherwise each remark follows its command.
    let room = usize::from(area.width.saturating_sub(BORDERS));
    let width = if 1 + whats + 2 + whys <= room { whats } else { 0 };
    let lines: Vec<Line<'_>> = tries
        .into_iter()
        .map(|(what, why)| {
            Line::from(vec![
                Span::styled(format!(" {what:<width$}"), palette.colour(Color::Cyan)),
                Span::styled(format!("  {why}"), palette.faint()),
            ])
        })
        .collect();
    let block = palette.frame("Try this in another terminal".into());
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Suggested commands and their effects; only the first ones if there is little room.
pub fn tries(place: &Place) -> Vec<(String, &'static str)> {
    let Place { server_url, admin_url, file, command, process_id, .. } = place;
    vec![
        (format!("curl {server_url}/"), "also /headers /slow /bytes/9"),
        (format!("curl {admin_url}/v1/status"), "also /metrics for Prometheus"),
        (format!("{command} check {file}"), "is it sound?"),
        (format!("kill -HUP {process_id}"), "reloads that file: edit it first"),
        (format!("{command} demo --config > weir.yaml"), "a start for your own"),
    ]
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
