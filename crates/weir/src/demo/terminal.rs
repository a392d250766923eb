//! The live view's loop.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::journal::Journal;
use super::picture::{Place, Reader};
use super::traffic::Traffic;
use super::view;
use crate::screen::{self, DRAW_INTERVAL, END_POLL, Palette, Screen};

/// Shows the live view until the user or `is_over` ends it, or the terminal is gone.
pub fn show(
    place: &Place,
    reader: &mut Reader,
    journal: &Journal,
    traffic: Option<&Traffic>,
    began: Instant,
    mut is_over: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut screen = Screen::take({
        let journal = journal.clone();
        move |panic| journal.push("error", panic)
    })?;
    let input = screen::read_input(input_of_event)?;
    let palette = Palette::of_environment();
    while !is_over() {
        let now = began.elapsed();
        reader.read_if_due(now);
        let picture = reader.picture(now);
        screen.draw(|frame| view::render(frame, place, &picture, palette))?;
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

fn input_of_event(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) => input_of(key),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
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
