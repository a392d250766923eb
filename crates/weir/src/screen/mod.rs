//! The terminal during a live view, shared by `weir demo` and `weir top`.

mod palette;

use std::io::{self, IsTerminal as _, Stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

pub use palette::Palette;

/// The interval between drawings, unless a key is pressed.
pub const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// The interval between checks whether the view ends.
pub const END_POLL: Duration = Duration::from_millis(50);

/// Maximum number of queued input events.
const INPUT_WAITING_MAX: usize = 64;

/// Whether a terminal is available for a live view.
pub fn is_there() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb
}

/// The screen in raw mode; restored when this is dropped.
pub struct Screen {
    /// Not dropped: if the terminal is gone, the drop would report on standard error that it cannot show the cursor, and
    /// panic because standard error is gone, too. [`give_back`] shows the cursor.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes over the terminal. `others` gets the messages of panics in other threads.
    pub fn take(others: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        give_back_on_panic(others);
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

    /// Draws a frame.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(|_| ())
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
fn give_back_on_panic(others: impl Fn(&str) + Send + Sync + 'static) {
    let view = thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().id() == view {
            give_back();
            before(panic);
        } else {
            others(&panic.to_string());
        }
    }));
}

/// Reads the terminal in a separate thread, which ends only with the process: if the terminal is gone, the library's read
/// neither returns nor fails. The view's next drawing fails, however.
pub fn read_input<T: Send + 'static>(
    translate: impl Fn(Event) -> Option<T> + Send + 'static,
) -> io::Result<Receiver<T>> {
    let (to_view, input) = sync_channel(INPUT_WAITING_MAX);
    thread::Builder::new().name("weir-view-input".into()).spawn(move || {
        while let Ok(event) = event::read() {
            if translate(event).is_some_and(|input| to_view.send(input).is_err()) {
                return;
            }
        }
    })?;
    Ok(input)
}
