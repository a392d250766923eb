//! The layout of `weir top`, for screens of 72 x 8 characters or more; narrow screens show fewer columns.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table, TableState};
use weir_api::process::ProcessHealth;

use super::rows::{self, Level};
use super::state::{Scope, State};
use crate::admin::text::{amount, bytes_amount, grouped, latency, printable, span};
use crate::screen::Palette;

/// Narrower terminals show only an error message.
const WIDTH_MIN: u16 = 72;

/// Minimum width to show all columns.
const WIDTH_OF_ALL: u16 = 100;
/// Lower terminals show only an error message.
const HEIGHT_MIN: u16 = 8;

/// Minimum height to show the chart.
const HEIGHT_OF_CURVE: u16 = 20;

/// Height of the chart, including borders.
const CURVE_HEIGHT: u16 = 5;

/// Maximum number of displayed problems of the process.
const PROBLEMS_MAX: usize = 3;

/// Width of the borders of a box.
const BORDERS: u16 = 2;

/// Draws the state. `address`: the address of the admin listener.
pub fn render(frame: &mut Frame<'_>, address: &str, state: &State, palette: Palette) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!("weir top needs {WIDTH_MIN} x {HEIGHT_MIN} characters.\nq ends it.");
        return frame.render_widget(Paragraph::new(text), area);
    }
    let notices = notices(state, palette);
    let curve = if area.height >= HEIGHT_OF_CURVE { CURVE_HEIGHT } else { 0 };
    let lines = u16::try_from(notices.len()).unwrap_or(0);
    let [header, notice_area, curve_area, table, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines),
        Constraint::Length(curve),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(heading(address, state, palette), header);
    frame.render_widget(Paragraph::new(notices), notice_area);
    if curve > 0 {
        render_curve(frame, curve_area, state, palette);
    }
    render_rows(frame, table, state, palette);
    frame.render_widget(keys(state, palette), footer);
}

fn heading(address: &str, state: &State, palette: Palette) -> Line<'static> {
    let mut spans =
        vec![Span::styled(" weir top ", palette.title()), Span::raw(format!("{address}  "))];
    if let Some(found) = state.span() {
        let process = &found.now.status.process;
        let up = span(Duration::from_secs(process.uptime_seconds));
        let version = printable(&process.version);
        if process.health != ProcessHealth::Unknown {
            let style = match process.health {
                ProcessHealth::Serving => Style::new(),
                ProcessHealth::Down => palette.trouble(),
                _ => palette.colour(Color::Yellow),
            };
            spans.push(Span::styled(format!("{}  ", process.health.as_str()), style));
        }
        spans.push(Span::raw(format!("weir {version}, up {up}, {} workers", process.workers)));
    }
    if state.is_paused {
        spans.push(Span::styled("  paused", palette.title()));
    }
    Line::from(spans)
}

/// Lines about weir itself: an error, an event, and its problems.
fn notices(state: &State, palette: Palette) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(failure) = &state.failure {
        let text = format!(" ! {}; trying again", printable(failure));
        lines.push(Line::styled(text, palette.trouble()));
    } else if let Some(event) = &state.event {
        lines.push(Line::styled(format!(" {}", printable(event)), palette.colour(Color::Yellow)));
    }
    let problems = state.span().map(|span| &span.now.status.process.problems);
    for problem in problems.into_iter().flatten().take(PROBLEMS_MAX) {
        lines.push(Line::styled(format!(" ! {}", printable(problem)), palette.trouble()));
    }
    lines
}

fn render_curve(frame: &mut Frame<'_>, area: Rect, state: &State, palette: Palette) {
    let width = usize::from(area.width.saturating_sub(BORDERS));
    let rates = state.curve();
    let shown = &rates[rates.len().saturating_sub(width)..];
    let (now, highest) =
        (shown.last().copied().unwrap_or(0), shown.iter().max().copied().unwrap_or(0));
    let title = format!("Requests/s: {}, highest {}", grouped(now), grouped(highest));
    // The newest reading is always at the right edge.
    let mut data = vec![0; width - shown.len()];
    data.extend_from_slice(shown);
    let curve = Sparkline::default()
        .block(palette.frame(title))
        .data(data)
        .max(highest.max(1))
        .style(palette.colour(Color::Cyan));
    frame.render_widget(curve, area);
}

/// Name, width, alignment, and whether narrow screens show the column.
type Column = (&'static str, Constraint, Alignment, bool);

const COLUMNS: [Column; 9] = [
    (" name", Constraint::Fill(5), Alignment::Left, true),
    ("state", Constraint::Fill(3), Alignment::Left, true),
    ("req/s", Constraint::Length(6), Alignment::Right, true),
    ("conns", Constraint::Length(6), Alignment::Right, true),
    ("active", Constraint::Length(6), Alignment::Right, false),
    ("p50", Constraint::Length(7), Alignment::Right, true),
    ("p99", Constraint::Length(7), Alignment::Right, true),
    ("errors/s", Constraint::Length(8), Alignment::Right, true),
    ("sent/s", Constraint::Length(8), Alignment::Right, false),
];

fn render_rows(frame: &mut Frame<'_>, area: Rect, state: &State, palette: Palette) {
    let rows = state.rows();
    let mut title = state.level.title().to_owned();
    for scope in &state.scopes {
        let (Scope::Server(name) | Scope::Pool(name)) = scope;
        title += &format!(" of {}", printable(name));
    }
    title += &format!(": {}", grouped(rows.len() as u64));
    if !state.filter.is_empty() || state.is_typing {
        let cursor = if state.is_typing { "_" } else { "" };
        title += &format!(", with `{}{cursor}`", printable(&state.filter));
    }
    let is_wide = area.width >= WIDTH_OF_ALL;
    let columns: Vec<Column> = COLUMNS.into_iter().filter(|column| is_wide || column.3).collect();
    let header = columns
        .iter()
        .map(|&(name, _, alignment, _)| Cell::from(Line::from(name).alignment(alignment)));
    let table = Table::new(
        rows.iter().map(|row| render_row(row, state.level, is_wide, palette)),
        columns.iter().map(|&(_, width, ..)| width),
    )
    .header(Row::new(header).style(palette.faint()))
    .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
    .block(palette.frame(title));
    let selected = state.selected.min(rows.len().saturating_sub(1));
    let mut position = TableState::default().with_selected(Some(selected));
    frame.render_stateful_widget(table, area, &mut position);
}

fn render_row(row: &rows::Row, level: Level, is_wide: bool, palette: Palette) -> Row<'static> {
    let per_second = |value: Option<f64>| value.map_or_else(|| "-".into(), amount);
    let pool = match (level, row.of.first()) {
        (Level::Members, Some(pool)) => format!("{pool}/"),
        _ => String::new(),
    };
    let sign = if row.is_wrong { '○' } else { '●' };
    let cells = [
        format!(" {pool}{}", row.name),
        format!("{sign} {}", row.state),
        per_second(row.rate),
        grouped(row.connections),
        grouped(row.active),
        latency(row.p50_ms),
        latency(row.p99_ms),
        per_second(row.errors),
        row.bytes.map_or_else(|| "-".into(), bytes_amount),
    ];
    let style = if row.is_wrong { palette.trouble() } else { Style::new() };
    let shown = cells.into_iter().zip(COLUMNS).filter(|(_, column)| is_wide || column.3);
    Row::new(shown.map(|(text, (_, _, alignment, _))| {
        Cell::from(Line::from(printable(&text)).alignment(alignment))
    }))
    .style(style)
}

fn keys(state: &State, palette: Palette) -> Line<'static> {
    let text = match state.is_typing {
        true => " type a name, state or pool; Enter keeps it, Esc ends it",
        false => " q quit Enter open Esc back Tab kind / filter p pause sort:o n r c l e s",
    };
    Line::styled(text, palette.faint())
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::Input;
    use super::super::state::tests::state;
    use super::*;

    fn screen_of(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| render(frame, "unix:/run/weir/admin.sock", state, Palette::COLOURFUL))
            .unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
        (0..height).map(row).collect()
    }

    #[test]
    fn a_screen_shows_objects_and_rates() {
        let mut state = state();
        let screen = screen_of(&state, 100, 24);
        for expected in [
            "weir top unix:/run/weir/admin.sock  degraded  weir 0.1.0, up 3 h 12 min, 4 workers",
            "Requests/s: 100, highest 100",
            "Virtual servers: 1",
            " shop ",
            "● degraded",
            "q quit",
        ] {
            assert!(screen.contains(expected), "{expected:?} in\n{screen}");
        }
        state.key(Input::Key(ratatui::crossterm::event::KeyCode::Char('3')));
        let screen = screen_of(&state, 100, 24);
        assert!(screen.contains("web/127.0.0.1:9003") && screen.contains("○ down"), "{screen}");
    }

    #[test]
    fn a_silent_weir_and_its_problems_are_shown() {
        let mut state = state();
        state.take(Err("cannot reach weir at unix:/x".into()));
        let screen = screen_of(&state, 100, 24);
        assert!(screen.contains("! cannot reach weir at unix:/x; trying again"), "{screen}");
        assert!(screen.contains(" shop "), "{screen}");
    }

    #[test]
    fn small_screens() {
        let state = state();
        assert!(screen_of(&state, 71, 24).contains("needs 72 x 8"));
        let low = screen_of(&state, 72, 8);
        assert!(low.contains("● degraded") && !low.contains("Requests/s"), "{low}");
    }
}
