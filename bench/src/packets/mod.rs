//! The packet generator: a thread sends XDP live frames, and the network devices count them.

mod bpf;
mod frame;

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use rustix::time::{ClockId, clock_gettime};

pub use bpf::AttachedProgram;
use bpf::Program;
pub use frame::{FRAME_BYTES, INTERVAL_NS_MAX, Mac, frame};

use crate::pinning::pin_thread;

/// Frames per call, about half a second at the measurement's rate; between calls the sender checks whether it must end.
/// Each call waits about 30 ms for all cores (RCU) before it returns, so short calls would mostly wait.
const FRAMES_PER_CALL: u32 = 1 << 17;
/// Frames that a call passes to the device at once.
const BATCH: u32 = 64;

/// The packets to send, and the device and core to send from.
#[derive(Debug, Clone)]
pub struct PacketStream {
    /// The packet. Copies differ only by their flow.
    pub frame: [u8; FRAME_BYTES],
    /// Number of flows: a power of two up to a million.
    pub flows: u32,
    /// Time between two packets, up to [`INTERVAL_NS_MAX`]; 0: as fast as possible.
    pub interval_ns: u32,
    /// Index of the sending device.
    pub device: u32,
    /// Core of the sending thread.
    pub core: usize,
}

/// A thread that sends packets. Dropping it ends the thread.
#[derive(Debug)]
pub struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<f64>>>,
}

impl Sender {
    /// Starts a thread that calls `enter`, to enter a network namespace, and then sends.
    pub fn start(
        sending: PacketStream,
        enter: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let work = move || {
            enter()?;
            pin_thread(&[sending.core], 0).map_err(|error| error.source)?;
            let program =
                Program::load(&frame::sender(sending.flows, sending.interval_ns, &sending.frame))?;
            while !told.load(Relaxed) {
                program.send(sending.device, &sending.frame, FRAMES_PER_CALL, BATCH)?;
            }
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
        };
        let thread = std::thread::Builder::new().name("packets".into()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the thread is still sending.
    pub fn is_sending(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the thread. Returns its CPU time in seconds, or the error that stopped it.
    pub fn end(mut self) -> io::Result<f64> {
        self.stop.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| Err(io::Error::other("the sender panicked")))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // Without `end`, the result is not needed.
            drop(thread.join());
        }
    }
}

/// Attaches a program to a device of the calling thread's network namespace that drops all IPv4 packets.
pub fn drop_all(device: u32) -> io::Result<AttachedProgram> {
    Program::load(&frame::sink())?.attach(device)
}

/// Number of packets that a device of the calling thread's network namespace has received since its creation.
pub fn received(device: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    parse_received(&text, device)
        .ok_or_else(|| io::Error::other(format!("/proc/net/dev does not tell of {device}")))
}

fn parse_received(text: &str, device: &str) -> Option<u64> {
    let of_device = |line: &&str| line.split(':').next().is_some_and(|name| name.trim() == device);
    let line = text.lines().find(of_device)?;
    line.split_once(':')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_device() {
        let text =
            "Inter-|   Receive\n face |bytes packets\n    lo: 100 2 0 0 0\nproduct:9 123 0\n";
        assert_eq!(parse_received(text, "product"), Some(123));
        assert_eq!(parse_received(text, "lo"), Some(2));
        assert_eq!(parse_received(text, "prod"), None);
        assert!(received("lo").is_ok());
    }
}
