//! Clients and members as tasks, which are polled after events on their connections, or when their timers expire.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use weir_testing::Random;

/// The timers of all tasks. Connections share them.
#[derive(Debug, Clone, Default)]
pub struct Waits(Rc<RefCell<Vec<Cell<u64>>>>);

/// The value of a task without a timer.
const NEVER: u64 = u64::MAX;

impl Waits {
    /// Sets the timer of a task, unless it expires earlier already.
    pub fn wait(&self, task: u32, until_us: u64) {
        let waits = self.0.borrow();
        let wait = &waits[task as usize];
        wait.set(wait.get().min(until_us));
    }
}

/// The future of a task.
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// All tasks of a run.
pub struct Tasks<'a> {
    works: Vec<Option<Work<'a>>>,
    free: Vec<u32>,
    waits: Waits,
    /// The tasks to poll in the next round. A task may occur twice.
    due: Vec<u32>,
}

impl<'a> Tasks<'a> {
    /// An instance without tasks.
    pub fn new() -> Self {
        Self { works: Vec::new(), free: Vec::new(), waits: Waits::default(), due: Vec::new() }
    }

    /// The timers, for the connections of tasks.
    pub fn waits(&self) -> Waits {
        self.waits.clone()
    }

    /// Adds a task. `work` gets the number of the task.
    pub fn spawn(&mut self, work: impl FnOnce(u32) -> Work<'a>) {
        let task = self.free.pop().unwrap_or_else(|| {
            self.works.push(None);
            self.waits.0.borrow_mut().push(Cell::new(NEVER));
            (self.works.len() - 1) as u32
        });
        self.waits.0.borrow()[task as usize].set(NEVER);
        self.works[task as usize] = Some(work(task));
        self.due.push(task);
    }

    /// The list of tasks to poll, to which woken tasks are added.
    pub fn wake(&mut self) -> &mut Vec<u32> {
        &mut self.due
    }

    /// The earliest expiry of a timer.
    pub fn next_us(&self) -> u64 {
        if !self.due.is_empty() {
            return 0;
        }
        self.waits.0.borrow().iter().map(Cell::get).min().unwrap_or(NEVER)
    }

    /// Polls the woken tasks, beginning with a random one. Returns whether there were any.
    pub fn poll(&mut self, now_us: u64, random: &mut Random) -> bool {
        for (task, wait) in (0..).zip(self.waits.0.borrow().iter()) {
            if wait.get() <= now_us {
                self.due.push(task);
            }
        }
        let mut due = std::mem::take(&mut self.due);
        if due.is_empty() {
            return false;
        }
        due.sort_unstable();
        due.dedup();
        let start = random.below(due.len());
        due.rotate_left(start);
        for task in due.drain(..) {
            let Some(work) = &mut self.works[task as usize] else { continue };
            self.waits.0.borrow()[task as usize].set(NEVER);
            if work.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(()) {
                self.works[task as usize] = None;
                self.free.push(task);
            }
        }
        // The allocation is reused. Tasks that were woken in the meantime are polled in the next round.
        due.append(&mut self.due);
        self.due = due;
        true
    }
}
