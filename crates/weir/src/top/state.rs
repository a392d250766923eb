//! The state of the view: the displayed rows, their order, and the effect of keys.

use std::collections::VecDeque;
use std::sync::Arc;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::histograms::Histograms;
use super::rows::{self, Level, Row, SortKey, Span};
use super::sample::{Sample, SampleResult};

/// Maximum number of points of the chart.
const POINTS_MAX: usize = 120;

/// Latencies cover this many readings.
const WINDOW_SAMPLES: usize = 10;

/// Maximum length of a filter.
const FILTER_LENGTH_MAX: usize = 64;

/// Input from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A key press.
    Key(KeyCode),
    /// Ctrl+C.
    Quit,
    /// The terminal was resized.
    Resized,
}

impl Input {
    /// Translates a terminal event; `None`: it is ignored.
    pub fn of(event: Event) -> Option<Self> {
        match event {
            Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => None,
            Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                (key.code == KeyCode::Char('c')).then_some(Self::Quit)
            }
            Event::Key(key) => Some(Self::Key(key.code)),
            Event::Resize(..) => Some(Self::Resized),
            _ => None,
        }
    }
}

/// Whether the view continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewNext {
    /// The view continues.
    Continue,
    /// The user ended the view.
    Quit,
}

/// A drill-down: only the rows that belong to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The pools of a virtual server.
    Server(String),
    /// The members of a pool.
    Pool(String),
}

/// The complete state of the view.
#[derive(Debug)]
pub struct State {
    now: Option<Arc<Sample>>,
    last: Option<Arc<Sample>>,
    /// Histograms of the readings before `now`, oldest first. A whole reading of a large configuration has many MiB.
    earlier: VecDeque<Arc<Histograms>>,
    /// Requests per second of all virtual servers, oldest first.
    curve: VecDeque<u64>,
    /// The kind of the rows.
    pub level: Level,
    /// Opened objects, outermost first.
    pub scopes: Vec<Scope>,
    /// The sort key.
    pub sort: SortKey,
    /// The order is reversed.
    pub is_reversed: bool,
    /// Only rows that contain this text are displayed.
    pub filter: String,
    /// Keys edit the filter.
    pub is_typing: bool,
    /// New readings are ignored.
    pub is_paused: bool,
    /// The index of the selected row.
    pub selected: usize,
    /// The error of the last reading.
    pub failure: Option<String>,
    /// The latest event to display.
    pub event: Option<String>,
}

impl State {
    /// Creates a state without readings.
    pub fn new(sort: SortKey, filter: String) -> Self {
        Self {
            now: None,
            last: None,
            earlier: VecDeque::new(),
            curve: VecDeque::new(),
            level: Level::Servers,
            scopes: Vec::new(),
            sort,
            is_reversed: false,
            filter,
            is_typing: false,
            is_paused: false,
            selected: 0,
            failure: None,
            event: None,
        }
    }

    /// Adds a reading, or notes its failure.
    pub fn take(&mut self, read: SampleResult) {
        let sample = match read {
            Ok(sample) => sample,
            Err(error) => {
                self.failure = Some(error.lines().next().unwrap_or_default().to_owned());
                return;
            }
        };
        if self.failure.take().is_some() {
            self.event = Some("weir answers again".into());
        }
        if self.is_paused {
            return;
        }
        let begun =
            |sample: &Sample| (sample.status.process.started.clone(), sample.status.process.pid);
        if self.now.as_ref().is_some_and(|last| begun(last) != begun(&sample)) {
            // A new process starts its counters at zero.
            self.event = Some(format!(
                "weir was restarted at {}: counters begin anew",
                sample.status.process.started
            ));
            self.now = None;
            self.earlier.clear();
            self.curve.clear();
        }
        self.last = self.now.replace(sample);
        if let Some(last) = &self.last {
            keep(&mut self.earlier, Arc::clone(&last.histograms), WINDOW_SAMPLES);
        }
        if let Some(total) = self.total() {
            keep(&mut self.curve, total, POINTS_MAX);
        }
    }

    /// Requests per second of all virtual servers between the last two readings.
    fn total(&self) -> Option<u64> {
        let span =
            Span { now: self.now.as_deref()?, last: Some(self.last.as_deref()?), first: None };
        let rows = span.rows(Level::Servers);
        Some(rows.iter().filter_map(|row| row.rate).sum::<f64>().round() as u64)
    }

    /// The newest reading, with earlier ones for comparison.
    pub fn span(&self) -> Option<Span<'_>> {
        let first = self.earlier.front().map(|first| &**first);
        Some(Span { now: self.now.as_deref()?, last: self.last.as_deref(), first })
    }

    /// The displayed rows.
    pub fn rows(&self) -> Vec<Row> {
        let Some(span) = self.span() else { return Vec::new() };
        let mut rows = span.rows(self.level);
        match self.scopes.last() {
            Some(Scope::Server(name)) => {
                let servers = span.rows(Level::Servers);
                let of = servers.into_iter().find(|row| row.name == *name).map(|row| row.of);
                let pools = of.unwrap_or_default();
                rows.retain(|row| pools.contains(&row.name));
            }
            Some(Scope::Pool(name)) => rows.retain(|row| row.of.contains(name)),
            None => {}
        }
        rows.retain(|row| rows::matches(row, &self.filter));
        rows::sort(&mut rows, self.sort, self.is_reversed);
        rows
    }

    /// Requests per second of all virtual servers, oldest first.
    pub fn curve(&self) -> Vec<u64> {
        self.curve.iter().copied().collect()
    }

    /// Handles a key.
    pub fn key(&mut self, input: Input) -> ViewNext {
        let code = match input {
            Input::Quit => return ViewNext::Quit,
            Input::Resized => return ViewNext::Continue,
            Input::Key(code) => code,
        };
        if self.is_typing {
            self.type_filter(code);
            return ViewNext::Continue;
        }
        match code {
            KeyCode::Char('q') => return ViewNext::Quit,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char(digit @ '1'..='3') => self.show(match digit {
                '1' => Level::Servers,
                '2' => Level::Pools,
                _ => Level::Members,
            }),
            KeyCode::Tab => self.show(self.level.next()),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected.saturating_add(1)),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.select(usize::MAX),
            KeyCode::Enter | KeyCode::Right => self.open(),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.close(),
            KeyCode::Char(letter) => self.sort_by(letter),
            _ => {}
        }
        ViewNext::Continue
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_LENGTH_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
        self.selected = 0;
    }

    fn show(&mut self, level: Level) {
        self.level = level;
        self.scopes.clear();
        self.selected = 0;
    }

    fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows().len().saturating_sub(1));
    }

    /// Opens the selected row: displays its parts.
    fn open(&mut self) {
        let rows = self.rows();
        let Some(row) = rows.get(self.selected.min(rows.len().saturating_sub(1))) else { return };
        let (scope, level) = match self.level {
            Level::Servers => (Scope::Server(row.name.clone()), Level::Pools),
            Level::Pools => (Scope::Pool(row.name.clone()), Level::Members),
            Level::Members => return,
        };
        self.scopes.push(scope);
        self.level = level;
        self.filter.clear();
        self.selected = 0;
    }

    /// Returns to the enclosing list.
    fn close(&mut self) {
        match self.scopes.pop() {
            Some(Scope::Server(_)) => self.level = Level::Servers,
            Some(Scope::Pool(_)) => self.level = Level::Pools,
            None => self.filter.clear(),
        }
        self.selected = 0;
    }

    fn sort_by(&mut self, letter: char) {
        let key = match letter {
            'o' => SortKey::Configuration,
            'n' => SortKey::Name,
            'r' => SortKey::Rate,
            'c' => SortKey::Connections,
            'l' => SortKey::Latency,
            'e' => SortKey::Errors,
            's' => SortKey::State,
            _ => return,
        };
        self.is_reversed = self.sort == key && !self.is_reversed;
        self.sort = key;
    }
}

/// Adds an entry, and drops the oldest one if there are too many.
fn keep<T>(all: &mut VecDeque<T>, entry: T, max: usize) {
    if all.len() >= max {
        all.pop_front();
    }
    all.push_back(entry);
}

#[cfg(test)]
pub mod tests {
    use std::time::Instant;

    use super::super::rows::tests::sample;
    use super::*;

    /// A state with two readings.
    pub fn state() -> State {
        let began = Instant::now();
        let mut state = State::new(SortKey::Configuration, String::new());
        state.take(Ok(Arc::new(sample(began, 0, |_| {}))));
        state.take(Ok(Arc::new(sample(began, 1, |status| {
            status["virtual_servers"][0]["requests"] = 24_212.into();
        }))));
        state
    }

    fn press(state: &mut State, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '<' => KeyCode::Esc,
                'v' => KeyCode::Down,
                other => KeyCode::Char(other),
            };
            assert_eq!(state.key(Input::Key(code)), ViewNext::Continue);
        }
    }

    fn names(state: &State) -> Vec<String> {
        state.rows().into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn objects_are_opened_and_closed() {
        let mut state = state();
        assert_eq!(names(&state), ["shop"]);
        press(&mut state, "\n");
        assert_eq!((state.level, names(&state)), (Level::Pools, vec!["web".to_owned()]));
        press(&mut state, "\n");
        assert_eq!((state.level, names(&state).len()), (Level::Members, 3));
        press(&mut state, "\n<");
        assert_eq!((state.level, names(&state).len()), (Level::Pools, 1));
        press(&mut state, "<<");
        assert_eq!(state.level, Level::Servers);
        press(&mut state, "\t\t");
        assert_eq!((state.level, names(&state).len()), (Level::Members, 3));
    }

    #[test]
    fn rows_are_filtered_and_sorted_by_keys() {
        let mut state = state();
        press(&mut state, "3/9002\n");
        assert_eq!(names(&state), ["127.0.0.1:9002"]);
        press(&mut state, "<");
        assert_eq!(names(&state).len(), 3);
        press(&mut state, "s");
        assert_eq!(names(&state)[0], "127.0.0.1:9003");
        press(&mut state, "s");
        assert_eq!(names(&state)[2], "127.0.0.1:9003");
        press(&mut state, "vvvv");
        assert_eq!(state.selected, 2);
        // Letters typed into the filter are not commands.
        press(&mut state, "/q");
        assert_eq!(state.filter, "q");
        assert_eq!(state.key(Input::Quit), ViewNext::Quit);
    }

    #[test]
    fn a_pause_keeps_the_picture() {
        let mut state = state();
        assert_eq!(state.curve(), [100]);
        press(&mut state, "p");
        let later = sample(Instant::now(), 5, |_| {});
        state.take(Ok(Arc::new(later)));
        assert_eq!(state.curve(), [100]);
        press(&mut state, "p");
        assert!(!state.is_paused);
    }

    #[test]
    fn the_chart_and_the_window_are_bounded() {
        let began = Instant::now();
        let mut state = State::new(SortKey::Configuration, String::new());
        for second in 0..2 * POINTS_MAX as u64 {
            state.take(Ok(Arc::new(sample(began, second, |status| {
                status["virtual_servers"][0]["requests"] = (24_000 + second * second).into();
            }))));
        }
        let curve = state.curve();
        assert_eq!((curve.len(), state.earlier.len()), (POINTS_MAX, WINDOW_SAMPLES));
        let last = 2 * (2 * POINTS_MAX as u64) - 3;
        assert_eq!(curve.last(), Some(&last), "the newest point is the last one");
        assert_eq!(curve[0], last - 2 * (POINTS_MAX as u64 - 1));
    }

    #[test]
    fn a_restart_is_told() {
        let mut state = state();
        state.take(Err("cannot reach weir\nhelp: is it running?".into()));
        assert_eq!(state.failure.as_deref(), Some("cannot reach weir"));
        assert_eq!(names(&state), ["shop"]);
        let restarted = sample(Instant::now(), 9, |status| {
            status["started"] = "2026-11-22T00:00:00.000Z".into();
            status["virtual_servers"][0]["requests"] = 1.into();
        });
        state.take(Ok(Arc::new(restarted)));
        assert_eq!(state.failure, None);
        assert!(state.event.as_deref().unwrap().contains("restarted at 2026-11-22T00:00:00.000Z"));
        assert_eq!(state.rows()[0].rate, None);
    }
}
