//! Requested upgrades and their results.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use weir_api::upgrade::{UpgradeReport, UpgradeState};

use super::process::Process;
use super::wire::UpgradeFailure;
use crate::time::{rfc3339, unix_ms};

/// The upgrades of this process and its predecessors.
#[derive(Debug, Default)]
pub struct Upgrades {
    asked: Notify,
    inner: Mutex<Inner>,
    /// The replaced process, until it has ended.
    draining: Mutex<Option<Process>>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Option<Request>,
    last: Option<UpgradeReport>,
}

/// A request for an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The number of the upgrade.
    pub number: u64,
    /// The program to start; `None`: the program of this process.
    pub binary: Option<PathBuf>,
    /// The time for the new process to be ready; `None`: the default.
    pub timeout: Option<Duration>,
}

impl Upgrades {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests an upgrade. Returns its number. `Err`: the number of an upgrade that is in progress.
    pub fn ask(&self, binary: Option<PathBuf>, timeout: Option<Duration>) -> Result<u64, u64> {
        let mut inner = self.inner();
        let last = inner.last.as_ref().map_or(0, |last| last.number);
        if inner.last.as_ref().is_some_and(|last| last.state == UpgradeState::Starting) {
            return Err(last);
        }
        let number = last + 1;
        inner.waiting = Some(Request { number, binary, timeout });
        inner.last = Some(report(number, UpgradeState::Starting));
        drop(inner);
        self.asked.notify_one();
        Ok(number)
    }

    /// Waits for a request.
    pub async fn asked(&self) -> Request {
        loop {
            self.asked.notified().await;
            if let Some(request) = self.inner().waiting.take() {
                return request;
            }
        }
    }

    /// Records that the new process of the current upgrade has started.
    pub(crate) fn started(&self, pid: u32) {
        if let Some(last) = &mut self.inner().last {
            last.pid = Some(pid);
        }
    }

    /// Records that the current upgrade has failed.
    pub(crate) fn fail(&self, failed: UpgradeFailure) {
        if let Some(last) = &mut self.inner().last {
            let UpgradeFailure { reason, diagnostics } = failed;
            let (number, pid) = (last.number, last.pid);
            let state = UpgradeState::Failed;
            *last =
                UpgradeReport { pid, reason: Some(reason), diagnostics, ..report(number, state) };
        }
    }

    /// Records that the new process of this upgrade serves.
    pub(crate) fn succeed(&self, number: u64, pid: u32) {
        self.inner().last =
            Some(UpgradeReport { pid: Some(pid), ..report(number, UpgradeState::Done) });
    }

    /// Records that this process is the new process of an upgrade, and replaces `before`.
    pub(crate) fn begin_with(&self, number: u64, before: Option<Process>) {
        let pid = Some(std::process::id());
        self.inner().last = Some(UpgradeReport { pid, ..report(number, UpgradeState::Starting) });
        *self.draining.lock().unwrap_or_else(PoisonError::into_inner) = before;
    }

    /// The process id of the replaced process while it drains.
    pub fn draining(&self) -> Option<u32> {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        if draining.as_ref().is_some_and(Process::has_ended) {
            *draining = None;
        }
        draining.as_ref().map(Process::pid)
    }

    /// The report of the latest upgrade.
    pub fn last(&self) -> Option<UpgradeReport> {
        self.inner().last.clone()
    }
}

fn report(number: u64, state: UpgradeState) -> UpgradeReport {
    let time = rfc3339(unix_ms());
    UpgradeReport { number, state, time, pid: None, reason: None, diagnostics: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time() {
        let upgrades = Upgrades::default();
        assert_eq!(upgrades.ask(None, None), Ok(1));
        assert_eq!(upgrades.ask(None, None), Err(1));
        assert_eq!(upgrades.asked().await, Request { number: 1, ..Request::default() });
        upgrades.started(7);
        upgrades.fail(UpgradeFailure { reason: "too late".into(), diagnostics: String::new() });
        let last = upgrades.last().unwrap();
        assert_eq!(
            (last.state, last.pid, last.reason.as_deref()),
            (UpgradeState::Failed, Some(7), Some("too late"))
        );
        let binary = Some(PathBuf::from("/usr/bin/weir"));
        assert_eq!(upgrades.ask(binary.clone(), None), Ok(2));
        assert_eq!(upgrades.asked().await, Request { number: 2, binary, timeout: None });
        upgrades.succeed(2, 8);
        let last = upgrades.last().unwrap();
        assert_eq!(
            (last.number, last.state, last.pid, last.reason),
            (2, UpgradeState::Done, Some(8), None)
        );
        // The new process continues the numbering.
        let after = Upgrades::default();
        after.begin_with(2, None);
        assert_eq!(after.draining(), None);
        after.succeed(2, 8);
        assert_eq!(after.ask(None, None), Ok(3));
    }
}
