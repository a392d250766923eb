//! CPU time and size of 128 KiB of HTML by coding and level, as a stream in slices of 16 KiB and as a whole.
//! `cargo bench -p weir-compression`; with the tests it runs small.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weir_compression::{Coding, Encoder, Flush, Level, Pool, slice_bytes_max};
use weir_testing::bodies;

const BODY_BYTES: usize = 128 * 1024;
const SLICE_BYTES: usize = 16 * 1024;

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn stream(encoder: &mut Encoder, body: &[u8], slice_bytes: usize, out: &mut Vec<u8>) -> f64 {
    let mut longest_us: f64 = 0.0;
    encoder.reset().expect("memory");
    let count = body.len().div_ceil(slice_bytes);
    for (number, slice) in body.chunks(slice_bytes).enumerate() {
        let flush = if number + 1 == count { Flush::Finish } else { Flush::None };
        let start_us = cpu_us();
        encoder.encode(slice, flush, out).expect("a content that goes on");
        longest_us = longest_us.max(cpu_us() - start_us);
    }
    longest_us
}

/// The shortest times of a case: for the whole body, and for the longest call with slices of [`slice_bytes_max`].
struct Case {
    coding: Coding,
    level: Level,
    is_whole: bool,
    encoder: Encoder,
    size: usize,
    best_us: f64,
    call_us: f64,
}

impl Case {
    fn new(coding: Coding, level: Level, is_whole: bool) -> Self {
        let encoder = Encoder::new(coding, level).expect("memory");
        let (best_us, call_us) = (f64::INFINITY, f64::INFINITY);
        Self { coding, level, is_whole, encoder, size: 0, best_us, call_us }
    }

    fn run(&mut self, pool: &mut Pool, body: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let start_us = cpu_us();
        if self.is_whole {
            pool.encode_whole(self.coding, self.level, body, out).expect("memory");
        } else {
            stream(&mut self.encoder, body, SLICE_BYTES, out);
        }
        self.best_us = self.best_us.min(cpu_us() - start_us);
        self.size = black_box(&*out).len();
        if !self.is_whole {
            let slice_bytes = slice_bytes_max(self.coding, self.level);
            out.clear();
            self.call_us = self.call_us.min(stream(&mut self.encoder, body, slice_bytes, out));
        }
    }
}

fn main() {
    // `cargo bench` passes this argument. Under `cargo test`, one round only shows that it works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, bytes) = if is_bench { (15, BODY_BYTES) } else { (1, 4096) };
    let mut cases: Vec<Case> = Vec::new();
    for coding in Coding::ALL {
        for is_whole in [false, true] {
            if !is_whole || coding == Coding::Gzip {
                cases.extend(Level::all().map(|level| Case::new(coding, level, is_whole)));
            }
        }
    }
    let mut pool = Pool::default();
    let mut out = Vec::new();
    for (name, body) in [("page", bodies::html(7, bytes)), ("rows", bodies::rows(7, bytes))] {
        for case in &mut cases {
            (case.best_us, case.call_us) = (f64::INFINITY, f64::INFINITY);
        }
        // The encoders take turns, so that noise affects all of them alike.
        for _ in 0..rounds {
            for case in &mut cases {
                case.run(&mut pool, &body, &mut out);
            }
        }
        for Case { coding, level, is_whole, size, best_us, call_us, .. } in &cases {
            let (how, call_us) = if *is_whole { ("whole", *best_us) } else { ("stream", *call_us) };
            println!(
                "{name}  {:4} {how:6} {}  {best_us:8.1} us  {size:6} bytes  longest call {call_us:6.1} us",
                coding.name(),
                level.get()
            );
        }
    }
}
