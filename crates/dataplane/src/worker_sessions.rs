//! The way of requests about sessions to all workers, and of their answers.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::sessions::{AskedSessions, SessionFilter, SessionsAnswer, SessionsDeed};
use crate::thread::Link;
use crate::worker::Command;

/// The way to the sessions of all workers. By default there are no workers.
#[derive(Debug, Clone, Default)]
pub struct WorkerSessions {
    workers: Arc<[Arc<Link>]>,
}

impl WorkerSessions {
    pub(crate) fn of(workers: impl Iterator<Item = Arc<Link>>) -> Self {
        Self { workers: workers.collect() }
    }

    /// Lists or ends the selected sessions of all workers. Blocks until all have answered; the error says which has not
    /// within this time. Sessions that the others have ended by then stay ended.
    pub fn ask(
        &self,
        filter: SessionFilter,
        deed: SessionsDeed,
        within: Duration,
    ) -> Result<SessionsAnswer, String> {
        let filter = Arc::new(filter);
        let until = Instant::now() + within;
        let answers: Vec<_> = self
            .workers
            .iter()
            .map(|worker| {
                let (answer, answered) = sync_channel(1);
                let filter = Arc::clone(&filter);
                // A worker that has ended has no sessions.
                let is_there =
                    worker.tell(Command::Sessions(AskedSessions { filter, deed, answer }));
                is_there.then_some(answered)
            })
            .collect();
        let mut all = SessionsAnswer::default();
        for (worker, answered) in answers.into_iter().enumerate() {
            let Some(answered) = answered else { continue };
            match answered.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(answer) => {
                    all.listed.extend(answer.listed);
                    all.more |= answer.more;
                    all.ended += answer.ended;
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("worker {worker} has not answered within {within:?}"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!(
                        "worker {worker} did not take the request: it ends, or has too many"
                    ));
                }
            }
        }
        if let SessionsDeed::List(max) = deed {
            all.more |= all.listed.len() > max;
            all.listed.truncate(max);
        }
        Ok(all)
    }
}
