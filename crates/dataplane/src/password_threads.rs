//! Threads that check passwords: a check takes tens of milliseconds of a core.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use weir_exchange::shared::logins::Logins;

/// Most threads: password checks must not take the CPU time of authenticated requests.
const THREADS_MAX: usize = 4;
/// Workers have a higher priority.
const NICENESS: i32 = 10;

/// Starts the threads, unless they run. If none can be started, requests with passwords get 503.
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
    // Only for this thread. If it fails, the thread has the workers' priority.
    let _ = rustix::process::nice(NICENESS);
    loop {
        // The hook logs a panic; the waiting request gets "wrong password".
        let _ = catch_unwind(AssertUnwindSafe(|| logins.check_one()));
    }
}
