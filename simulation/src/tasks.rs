//! Clients and members as tasks: polled when something has happened at their ends, or when their
//! timers expire.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use weir_testing::Random;

/// Until when each task waits; shared with the streams of tasks.
#[derive(Debug, Clone, Default)]
pub struct Waits(Rc<RefCell<Vec<Cell<u64>>>>);

/// The task waits for no time.
const NEVER: u64 = u64::MAX;

impl Waits {
    /// This task has to be polled at this time.
    pub fn wait(&self, task: u32, until_us: u64) {
        let waits = self.0.borrow();
        let wait = &waits[task as usize];
        wait.set(wait.get().min(until_us));
    }
}

/// Work done over time.
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// All tasks of a run.
pub struct Tasks<'a> {
    works: Vec<Option<Work<'a>>>,
    free: Vec<u32>,
    waits: Waits,
    /// Tasks to poll in this round; a task may occur twice.
    due: Vec<u32>,
}

impl<'a> Tasks<'a> {
    /// None.
    pub fn new() -> Self {
        Self { works: Vec::new(), free: Vec::new(), waits: Waits::default(), due: Vec::new() }
    }

    /// The part with which streams of tasks report their timers.
    pub fn waits(&self) -> Waits {
        self.waits.clone()
    }

    /// Adds a task, which is created with its number.
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

    /// Wakes these tasks.
    pub fn wake(&mut self) -> &mut Vec<u32> {
        &mut self.due
    }

    /// The earliest timer of all tasks.
    pub fn next_us(&self) -> u64 {
        if !self.due.is_empty() {
            return 0;
        }
        self.waits.0.borrow().iter().map(Cell::get).min().unwrap_or(NEVER)
    }

    /// Polls the woken tasks, in any order. Returns whether there were any.
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
        // The allocation is kept; tasks woken meanwhile follow.
        due.append(&mut self.due);
        self.due = due;
        true
    }
}
