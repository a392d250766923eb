//! Panics of workers, and their messages.

use std::any::Any;
use std::cell::Cell;
use std::panic;
use std::sync::Once;

/// The text and the place of a panic of the current worker.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    match PLACE.take() {
        Some(place) => format!("{text} ({place})"),
        None => text.to_owned(),
    }
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    /// The place of this worker's last panic.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// The current thread is a worker.
pub fn note_worker() {
    IS_WORKER.set(true);
}

/// Installs a panic hook that records the place of a worker's panic for the event, and does not write to standard error:
/// that may be a full pipe, and workers never wait. With `RUST_BACKTRACE` the panic is also written there. Panics of other
/// threads are reported by the previous hook.
pub fn note() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        let is_traced = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        panic::set_hook(Box::new(move |panic| {
            if IS_WORKER.get() {
                PLACE.set(panic.location().map(ToString::to_string));
            }
            if is_traced || !IS_WORKER.get() {
                others(panic);
            }
        }));
    });
}
