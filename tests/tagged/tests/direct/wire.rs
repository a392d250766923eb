//! In-memory connections with simulated time, which advances when nothing else happens.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use weir_tagged::clock::{Clock, Moment};
use weir_tagged::link::Stream;

/// A running session.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Polls sessions and advances the time.
#[derive(Debug, Clone)]
pub struct Driver {
    now: Arc<AtomicU64>,
    /// The earliest timer of a waiting session.
    next: Rc<Cell<Moment>>,
    /// The number of transfers through wires.
    moves: Rc<Cell<u64>>,
}

impl Driver {
    /// A driver at time zero.
    pub fn new() -> Self {
        let (next, moves) = (Rc::new(Cell::new(Moment(u64::MAX))), Rc::default());
        Self { now: Arc::default(), next, moves }
    }

    /// The clock of this driver.
    pub fn clock(&self) -> Clock {
        let now = Arc::clone(&self.now);
        Clock::new(move || Moment(now.load(Ordering::Relaxed)))
    }

    fn now(&self) -> Moment {
        Moment(self.now.load(Ordering::Relaxed))
    }

    /// Polls all sessions until they have ended.
    pub fn run(&self, mut tasks: Vec<Task<'_>>) {
        let context = &mut Context::from_waker(Waker::noop());
        while !tasks.is_empty() {
            let (moves, count) = (self.moves.get(), tasks.len());
            self.next.set(Moment(u64::MAX));
            tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            if self.moves.get() == moves && tasks.len() == count {
                assert_ne!(self.next.get(), Moment(u64::MAX), "nobody waits for any time");
                self.now.store(self.next.get().0, Ordering::Relaxed);
            }
        }
    }

    /// Both ends of a connection with this capacity in bytes per direction.
    pub fn wire(&self, capacity: usize) -> [End; 2] {
        let halves = [(); 2].map(|()| Rc::new(RefCell::new(Half::new(capacity))));
        self.ends(&halves, [0, 1])
    }

    /// Two connections whose return directions are swapped.
    pub fn crossed(&self) -> [End; 4] {
        let halves = [(); 4].map(|()| Rc::new(RefCell::new(Half::new(1 << 16))));
        let [client, mut member] = self.ends(&halves, [0, 1]);
        let [other_client, mut other_member] = self.ends(&halves, [2, 3]);
        std::mem::swap(&mut member.down, &mut other_member.down);
        [client, member, other_client, other_member]
    }

    fn ends(&self, halves: &[Rc<RefCell<Half>>], [one, other]: [usize; 2]) -> [End; 2] {
        [(one, other), (other, one)].map(|(up, down)| End {
            driver: self.clone(),
            up: Rc::clone(&halves[up]),
            down: Rc::clone(&halves[down]),
            resets: false,
            foul: None,
        })
    }
}

/// One direction of a connection.
#[derive(Debug)]
struct Half {
    bytes: VecDeque<u8>,
    capacity: usize,
    is_finished: bool,
    is_reset: bool,
    /// Whether the reading end was dropped.
    is_left: bool,
}

impl Half {
    fn new(capacity: usize) -> Self {
        let bytes = VecDeque::new();
        Self { bytes, capacity, is_finished: false, is_reset: false, is_left: false }
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct End {
    driver: Driver,
    up: Rc<RefCell<Half>>,
    down: Rc<RefCell<Half>>,
    resets: bool,
    /// Changes one byte of the received data.
    pub foul: Option<Foul>,
}

/// Changes one digit within a block, after `digits_left` further digits.
#[derive(Debug)]
pub struct Foul {
    /// The number of digits before the change.
    pub digits_left: usize,
    /// The number of consecutive digits so far.
    pub row: usize,
    /// Whether the change is done.
    pub is_done: Rc<Cell<bool>>,
}

impl Foul {
    fn heed(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if !matches!(byte, b'0'..=b'9' | b'a'..=b'f') {
                self.row = 0;
                continue;
            }
            self.row += 1;
            self.digits_left = self.digits_left.saturating_sub(1);
            if self.row > 8 && self.digits_left == 0 && !self.is_done.replace(true) {
                *byte = if *byte == b'0' { b'1' } else { b'0' };
            }
        }
    }
}

impl End {
    fn moved(&self) {
        self.driver.moves.set(self.driver.moves.get() + 1);
    }
}

impl Stream for End {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut up = self.up.borrow_mut();
        // As on Linux, bytes that arrived before a reset can still be read.
        if up.bytes.is_empty() && up.is_reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if up.bytes.is_empty() && !up.is_finished {
            return Err(ErrorKind::WouldBlock.into());
        }
        let length = io::Read::read(&mut up.bytes, into)?;
        self.moved();
        if let Some(foul) = &mut self.foul {
            foul.heed(&mut into[..length]);
        }
        Ok(length)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut down = self.down.borrow_mut();
        if down.is_left {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let length = bytes.len().min(down.capacity - down.bytes.len());
        if length == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        down.bytes.extend(&bytes[..length]);
        self.moved();
        Ok(length)
    }

    fn finish(&mut self) {
        self.down.borrow_mut().is_finished = true;
        self.moved();
    }

    fn reset_on_close(&mut self) {
        self.resets = true;
    }

    fn poll_wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) -> Poll<()> {
        let (up, down) = (self.up.borrow(), self.down.borrow());
        let is_readable = !up.bytes.is_empty() || up.is_finished || up.is_reset;
        let is_writable = down.bytes.len() < down.capacity || down.is_left;
        if (wants_read && is_readable) || (wants_write && is_writable) || until <= self.driver.now()
        {
            return Poll::Ready(());
        }
        self.driver.next.set(self.driver.next.get().min(until));
        Poll::Pending
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.up.borrow_mut().is_left = true;
        let mut down = self.down.borrow_mut();
        (down.is_finished, down.is_reset) = (true, self.resets);
        self.moved();
    }
}
