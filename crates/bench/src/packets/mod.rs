//! Packets as fast as the kernel can make them: XDP live frames, sent by a thread, counted by the devices.

mod bpf;
mod frame;

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use rustix::time::{ClockId, clock_gettime};

pub use bpf::Attached;
use bpf::Program;
pub use frame::{FRAME_BYTES, INTERVAL_NS_MAX, Mac, frame};

use crate::pinning::pin_thread;

/// Frames of one call, half a second of them where they are paced, after which the sender looks whether it shall end.
/// Before a call returns, the kernel waits for all cores (RCU), which takes 30 ms: with few frames the sender would do
/// little else.
const FRAMES_PER_CALL: u32 = 1 << 17;
/// Frames that a call hands over at once.
const BATCH: u32 = 64;

/// The packets, and their sender.
#[derive(Debug, Clone)]
pub struct Sending {
    /// Every packet is a copy of it, but for its flow.
    pub frame: [u8; FRAME_BYTES],
    /// Flows, a power of two up to a million.
    pub flows: u32,
    /// Time between two packets, up to [`INTERVAL_NS_MAX`]; 0: as fast as they can be made.
    pub interval_ns: u32,
    /// Number of the device that they leave by.
    pub device: u32,
    /// Core of the thread.
    pub core: usize,
}

/// A thread that sends; dropping it ends it.
#[derive(Debug)]
pub struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<f64>>>,
}

impl Sender {
    /// Starts sending, after the thread has called `enter`: it enters a network namespace.
    pub fn start(
        sending: Sending,
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

    /// Whether it still sends.
    pub fn is_sending(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it; the CPU time that it took, or why it could not send.
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
            // A caller that drops it does not need the result.
            drop(thread.join());
        }
    }
}

/// Puts a program on a device of the calling thread's network namespace that drops all packets of IPv4.
pub fn drop_all(device: u32) -> io::Result<Attached> {
    Program::load(&frame::sink())?.attach(device)
}

/// Packets that a device of the calling thread's network namespace received since it was made.
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
