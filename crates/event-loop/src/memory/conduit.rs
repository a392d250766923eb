//! Pipes between sockets, as splice(2) uses them.

use std::cell::RefCell;
use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Network;
use super::end::End;
use super::pipe::Bytes;
use crate::bounds::Bulk;

/// One in this many attempts to open a pipe finds no descriptor or memory.
const NO_PIPE_ONE_IN: usize = 16;

/// A pipe. Its content stays until it is drained.
#[derive(Debug)]
pub struct Conduit {
    network: Network,
    bytes: RefCell<Bytes>,
}

impl Network {
    /// Thresholds for bulk data. They are small, so that short tunnels are spliced, too.
    pub fn bulk(&self) -> Bulk {
        const READS: [usize; 4] = [40, 200, 1_000, 8_000];
        const FILLS: [usize; 4] = [60, 500, 4_000, 20_000];
        let mut state = self.0.borrow_mut();
        let read_bytes = READS[state.random.below(READS.len())];
        let fill_bytes_max = FILLS[state.random.below(FILLS.len())];
        Bulk { read_bytes, fill_bytes_max, short_bytes: read_bytes.min(fill_bytes_max) / 4 }
    }

    /// Opens an empty pipe.
    pub fn conduit(&self) -> Result<Conduit, Errno> {
        if self.0.borrow_mut().random.below(NO_PIPE_ONE_IN) == 0 {
            return Err(Errno::MFILE);
        }
        Ok(Conduit { network: self.clone(), bytes: RefCell::default() })
    }

    /// The number of bytes that a call moves if it could move `bytes`: all of them, or fewer.
    fn splices(&self, bytes: usize) -> usize {
        let mut state = self.0.borrow_mut();
        let shorts = state.weather.short_sends_percent;
        match bytes > 1 && state.random.percent(shorts) {
            true => 1 + state.random.below(bytes),
            false => bytes,
        }
    }
}

impl Conduit {
    /// Moves received data of an end into the pipe.
    pub fn fill(&self, from: &End, bytes_max: usize) -> Result<usize, Errno> {
        let mut room = vec![0; self.network.splices(bytes_max)];
        let count = from.receive(&mut room, RecvFlags::empty())?;
        self.bytes.borrow_mut().push(&room[..count]);
        Ok(count)
    }

    /// Moves bytes of the pipe to an end.
    pub fn drain(&self, to: &End, bytes: usize) -> Result<usize, Errno> {
        let mut held = self.bytes.borrow_mut();
        let count = self.network.splices(bytes.min(held.len()));
        let sent = to.send(&[IoSlice::new(&held.as_slice()[..count])])?;
        held.take(sent);
        Ok(sent)
    }
}
