//! The terminal during the live view, and the loop of the view.

use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
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

/// The interval between drawings, unless a key is pressed.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of queued input events.
const INPUT_WAITING_MAX: usize = 64;

/// The interval between checks for the end.
const END_POLL: Duration = Duration::from_millis(50);

/// The screen in raw mode; restored when this is dropped.
struct Screen {
    /// Not dropped: if the terminal is gone, its drop would report on standard error that it cannot show the cursor,
    /// and panic because standard error is gone too. [`give_back`] shows the cursor.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    fn take(journal: &Journal) -> io::Result<Self> {
        give_back_on_panic(journal.clone());
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
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
        // During a panic, the hook has restored the terminal; otherwise the default hook is set again.
        if !thread::panicking() {
            drop(panic::take_hook());
        }
    }
}

/// Restores the terminal. Errors mean that the terminal is gone.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
}

/// After a panic of this thread, the message appears on the restored terminal; panics of other threads must not
/// overwrite the view.
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

/// Shows the live view until the user or `is_over` ends it, or the terminal is gone.
pub fn show(
    place: &Place,
    reader: &mut Reader,
    journal: &Journal,
    traffic: Option<&Traffic>,
    began: Instant,
    mut is_over: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut screen = Screen::take(journal)?;
    let input = read_input()?;
    let palette = Palette::of_environment();
    while !is_over() {
        let now = began.elapsed();
        reader.read_if_due(now);
        let picture = reader.picture(now);
        screen.terminal.draw(|frame| view::render(frame, place, &picture, palette))?;
        let next = Instant::now() + DRAW_INTERVAL;
        while !is_over() && Instant::now() < next {
            match input.recv_timeout(END_POLL) {
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) | Ok(Input::Quit) => return Ok(()),
                Ok(Input::Resized) => {}
                Ok(Input::Traffic) => {
                    if let Some(traffic) = traffic {
                        traffic.paused.fetch_xor(true, Relaxed);
                    }
                }
            }
            break;
        }
    }
    Ok(())
}

/// Input for the view.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    Quit,
    /// Pauses or resumes the demo's traffic.
    Traffic,
    Resized,
}

/// Reads the terminal in its own thread, which ends with the process: if the terminal is gone, the library's read
/// neither returns nor fails, but the next drawing fails.
fn read_input() -> io::Result<Receiver<Input>> {
    let (to_view, input) = sync_channel(INPUT_WAITING_MAX);
    thread::Builder::new().name("weir-demo-input".into()).spawn(move || {
        while let Ok(event) = event::read() {
            let input = match event {
                Event::Key(key) => input_of(key),
                Event::Resize(..) => Some(Input::Resized),
                _ => None,
            };
            if input.is_some_and(|input| to_view.send(input).is_err()) {
                return;
            }
        }
    })?;
    Ok(input)
}

fn input_of(key: KeyEvent) -> Option<Input> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Some(Input::Quit),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Input::Quit),
        KeyCode::Char('t' | 'T') => Some(Input::Traffic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let check = |code, modifiers, expected| {
            assert_eq!(input_of(KeyEvent::new(code, modifiers)), expected);
        };
        let none = KeyModifiers::NONE;
        check(KeyCode::Char('q'), none, Some(Input::Quit));
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Input::Quit));
        check(KeyCode::Char('c'), none, None);
        check(KeyCode::Char('t'), none, Some(Input::Traffic));
        check(KeyCode::Enter, none, None);
    }
}
