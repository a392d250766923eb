//! Text output: tables, colours, numbers.

use std::fmt::Write as _;
use std::time::Duration;

use weir_api::health::Health;

pub use weir_control::printable::printable;

/// The importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Normal.
    Plain,
    /// Intended by an operator, or temporary.
    Unusual,
    /// A problem.
    Wrong,
}

/// The tone of something with this health.
pub fn tone_of(health: &Health) -> Tone {
    if health.is_bad() {
        Tone::Wrong
    } else if health.is_degraded() {
        Tone::Unusual
    } else {
        Tone::Plain
    }
}

/// Whether to use colours. Problems are marked without colours, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Colourful,
    Plain,
}

impl Paint {
    /// A line in the colour of its tone. `!` marks problems.
    pub fn line(self, tone: Tone, indent: &str, text: &str) -> String {
        let mark = if tone == Tone::Wrong { "! " } else { "" };
        let indent = match mark {
            "" => indent,
            mark => indent.get(mark.len()..).unwrap_or_default(),
        };
        let (on, off) = match (self, tone) {
            (Self::Plain, _) | (_, Tone::Plain) => ("", ""),
            (Self::Colourful, Tone::Unusual) => ("\x1b[33m", "\x1b[0m"),
            (Self::Colourful, Tone::Wrong) => ("\x1b[1;31m", "\x1b[0m"),
        };
        let text = printable(text);
        format!("{on}{mark}{indent}{}{off}\n", text.trim_end())
    }

    /// A heading of something with this tone. `!` marks problems.
    pub fn heading_of(self, tone: Tone, text: &str) -> String {
        let (mark, colour) = match tone {
            Tone::Plain => return self.heading(text),
            Tone::Unusual => ("", "33"),
            Tone::Wrong => ("! ", "31"),
        };
        let text = printable(text);
        match self {
            Self::Colourful => format!("\x1b[1;{colour}m{mark}{text}\x1b[0m\n"),
            Self::Plain => format!("{mark}{text}\n"),
        }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        let text = printable(text);
        match self {
            Self::Colourful => format!("\x1b[1m{text}\x1b[0m\n"),
            Self::Plain => format!("{text}\n"),
        }
    }
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    Left,
    Right,
}

/// A table with a heading; each column is as wide as its widest cell.
pub struct Table {
    columns: Vec<(&'static str, Alignment)>,
    rows: Vec<Row>,
}

struct Row {
    tone: Tone,
    cells: Vec<String>,
    /// Lines below the rows, across the columns.
    notes: Vec<(Tone, String)>,
}

/// The gap between two columns.
const GAP: &str = "  ";

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&'static str, Alignment)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, tone: Tone, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row { tone, cells: cells.into_iter().collect(), notes: Vec::new() });
    }

    /// Adds a line below the last row.
    pub fn note(&mut self, tone: Tone, text: String) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push((tone, text));
        }
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as indented text.
    pub fn render(&self, paint: Paint, indent: &str) -> String {
        let widths = self.widths();
        let names = self.columns.iter().map(|&(name, _)| name);
        let mut text = paint.line(Tone::Plain, indent, &self.joined(names, &widths));
        for row in &self.rows {
            let cells = row.cells.iter().map(String::as_str);
            text += &paint.line(row.tone, indent, &self.joined(cells, &widths));
            for (tone, note) in &row.notes {
                text += &paint.line(*tone, &format!("{indent}{GAP}"), note);
            }
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let of_column = |(index, &(name, _)): (usize, &(&str, Alignment))| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(index));
            cells.map(|cell| width(cell)).chain([width(name)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(of_column).collect()
    }

    fn joined<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, ((cell, &(_, side)), &column)) in
            cells.zip(&self.columns).zip(widths).enumerate()
        {
            let padding = " ".repeat(column - width(cell).min(column));
            let gap = if index == 0 { "" } else { GAP };
            // Writing to a string cannot fail.
            let _ = match side {
                Alignment::Left => write!(line, "{gap}{cell}{padding}"),
                Alignment::Right => write!(line, "{gap}{padding}{cell}"),
            };
        }
        line
    }
}

/// The width in terminal columns; names and addresses consist of narrow characters.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// A number with its noun, such as `1 request` or `1,204 requests`.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// A number with thousands separators, such as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount of bytes, such as `900 B` or `1.2 MB`.
pub fn bytes_amount(value: f64) -> String {
    let text = amount(value);
    let gap = if text.ends_with(char::is_alphabetic) { "" } else { " " };
    format!("{text}{gap}B")
}

/// An amount, such as `0`, `0.3`, `2,411` or `1.2 M`.
pub fn amount(value: f64) -> String {
    match value {
        value if value <= 0.0 => "0".into(),
        value if value < 9.95 => format!("{value:.1}"),
        value if value < 100_000.0 => grouped(value.round() as u64),
        value if value < 1e6 => format!("{:.0} k", value / 1e3),
        value if value < 1e9 => format!("{:.1} M", value / 1e6),
        value => format!("{:.1} G", value / 1e9),
    }
}

/// A latency; `-` without a value.
pub fn latency(milliseconds: Option<f64>) -> String {
    match milliseconds {
        None => "-".into(),
        Some(value) if value < 1.0 => format!("{value:.2} ms"),
        Some(value) if value < 10.0 => format!("{value:.1} ms"),
        Some(value) => format!("{value:.0} ms"),
    }
}

/// A duration, such as `42 s`, `3 min`, `5 h 12 min` or `8 days 3 h`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} {} h", counted(days, "day"), hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(&[
            ("member", Alignment::Left),
            ("requests", Alignment::Right),
            ("note", Alignment::Left),
        ]);
        table.row(Tone::Plain, ["127.0.0.1:9001".into(), "1,204".into(), String::new()]);
        table.row(Tone::Wrong, ["ü".into(), "1,234,567,890".into(), "x".into()]);
        table.note(Tone::Wrong, "down:\nforged \x1b[2J".into());
        table.note(Tone::Plain, "else".into());
        assert_eq!(
            table.render(Paint::Plain, "  "),
            concat!(
                "  member               requests  note\n",
                "  127.0.0.1:9001          1,204\n",
                "! ü               1,234,567,890  x\n",
                "!   down:\u{fffd}forged \u{fffd}[2J\n",
                "    else\n",
            )
        );
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        for (tone, colourful, plain) in [
            (Tone::Plain, "  x\n", "  x\n"),
            (Tone::Unusual, "\x1b[33m  x\x1b[0m\n", "  x\n"),
            (Tone::Wrong, "\x1b[1;31m! x\x1b[0m\n", "! x\n"),
        ] {
            assert_eq!(Paint::Colourful.line(tone, "  ", "x"), colourful);
            assert_eq!(Paint::Plain.line(tone, "  ", "x"), plain);
        }
        assert_eq!(Paint::Plain.line(Tone::Wrong, "", "x"), "! x\n");
        assert_eq!(Paint::Plain.heading("pool\tweb"), "pool\u{fffd}web\n");
        assert_eq!(Paint::Plain.heading_of(Tone::Wrong, "pool web"), "! pool web\n");
        assert_eq!(Paint::Plain.heading_of(Tone::Unusual, "pool web"), "pool web\n");
        let red = Paint::Colourful.heading_of(Tone::Wrong, "x");
        assert_eq!(red, "\x1b[1;31m! x\x1b[0m\n");
    }

    #[test]
    fn quantities() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(1_000, "request"), "1,000 requests");
        for (value, expected) in [
            (0.0, "0"),
            (0.34, "0.3"),
            (9.96, "10"),
            (2_411.2, "2,411"),
            (123_456.0, "123 k"),
            (1_234_567.8, "1.2 M"),
            (12e9, "12.0 G"),
        ] {
            assert_eq!(amount(value), expected);
        }
        assert_eq!(bytes_amount(900.0), "900 B");
        assert_eq!(bytes_amount(1_234_567.8), "1.2 MB");
        for (value, expected) in
            [(None, "-"), (Some(0.256), "0.26 ms"), (Some(1.24), "1.2 ms"), (Some(123.4), "123 ms")]
        {
            assert_eq!(latency(value), expected);
        }
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_600, "1 h 0 min"),
            (86_399, "23 h 59 min"),
            (86_400, "1 day 0 h"),
            (180_000, "2 days 2 h"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
    }
}
