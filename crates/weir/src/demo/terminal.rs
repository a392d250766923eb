//! The terminal while the live view has it, and the view's loop.

use std::io::{self, Stdout};
use std::panic;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::journal::Journal;
use super::picture::{Place, Reader};
use super::traffic::Traffic;
use super::view::{self, Palette};

/// From one drawing to the next, unless a key is pressed.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// How soon the view sees that it is to end.
const END_POLL: Duration = Duration::from_millis(50);

/// The screen in raw mode; given back when this is dropped, however that comes.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn take(journal: &Journal) -> io::Result<Self> {
        give_back_on_panic(journal.clone());
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        // The hook belongs to the view; the default one is in force again.
        if !thread::panicking() {
            drop(panic::take_hook());
        }
    }
}

/// Makes the terminal what it was. What fails here fails because the terminal is gone.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
}

/// A panic of this thread is told on a terminal that shows it; one of another thread must not write
/// over the view.
fn give_back_on_panic(journal: Journal) {
    let view = thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().id() == view {
            give_back();
            before(panic);
        } else {
            journal.push("error", &panic.to_string());
        }
    }));
}

/// Shows the live view until the user, `is_over` or a lost terminal ends it.
pub fn show(
    place: &Place,
    reader: &mut Reader,
    journal: &Journal,
    traffic: Option<&Traffic>,
    began: Instant,
    mut is_over: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut screen = Screen::take(journal)?;
    let palette = Palette::of_environment();
    while !is_over() {
        let now = began.elapsed();
        reader.read_if_due(now);
        let picture = reader.picture(now);
        screen
            .terminal
            .draw(|frame| view::render(frame, place, &picture, palette))?;
        let next = Instant::now() + DRAW_INTERVAL;
        while !is_over() && Instant::now() < next {
            if !event::poll(END_POLL)? {
                continue;
            }
            match event::read()? {
                Event::Key(key) => match action_of(key) {
                    Some(Action::Quit) => return Ok(()),
                    Some(Action::Traffic) => {
                        if let Some(traffic) = traffic {
                            traffic.paused.fetch_xor(true, Relaxed);
                        }
                    }
                    None => continue,
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            break;
        }
    }
    Ok(())
}

/// What a key does.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Quit,
    /// Pause the demo's traffic, or let it go on.
    Traffic,
}

fn action_of(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Some(Action::Quit),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Action::Quit),
        KeyCode::Char('t' | 'T') => Some(Action::Traffic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let check = |code, modifiers, expected| {
            assert_eq!(action_of(KeyEvent::new(code, modifiers)), expected);
        };
        let none = KeyModifiers::NONE;
        check(KeyCode::Char('q'), none, Some(Action::Quit));
        check(
            KeyCode::Char('c'),
            KeyModifiers::CONTROL,
            Some(Action::Quit),
        );
        check(KeyCode::Char('c'), none, None);
        check(KeyCode::Char('t'), none, Some(Action::Traffic));
        check(KeyCode::Enter, none, None);
    }
}
