//! Threads that check passwords. A check takes tens of milliseconds of CPU time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use weir_exchange::shared::logins::Logins;

/// Maximum number of threads: password checks must leave CPU time for authenticated requests.
const THREADS_MAX: usize = 4;
/// The nice value of the threads, which gives workers priority.
const NICENESS: i32 = 10;

/// Starts the threads, unless they are running. If no thread can be started, requests with passwords get 503.
pub fn start(logins: &Arc<Logins>, cores: usize) {
    if logins.threads() > 0 {
        return;
    }
    let started = (0..(cores / 2).clamp(1, THREADS_MAX)).filter(|_| {
        let logins = Arc::clone(logins);
        let builder = std::thread::Builder::new().name("passwords".into());
        builder.spawn(move || run(&logins)).is_ok()
    });
    logins.set_threads(started.count());
}

fn run(logins: &Logins) {
    // This applies to the current thread only. If it fails, the thread has the same priority as the workers.
    let _ = rustix::process::nice(NICENESS);
    loop {
        // The panic hook logs a panic. The waiting request gets the result "wrong password".
        let _ = catch_unwind(AssertUnwindSafe(|| logins.check_one()));
    }
}
