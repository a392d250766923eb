#![no_main]
//! A whole worker on the simulated kernel, and a client that sends any bytes, split anywhere. The members are well-behaved.

#[path = "../src/bed.rs"]
mod bed;

use bed::{Bed, ConnectionEnd, SERVERS, Script, frames_of};
use weir_testing::frame::{Frame, PREFACE};

/// Flags in the second byte: the input follows the HTTP/2 preface; the input contains frames in a short form; the client
/// does not read; the network is bad. The two lowest bits select the end of the connection.
const HTTP2: u8 = 4;
const FRAMES: u8 = 8;
const READS_NOT: u8 = 16;
const FOUL: u8 = 32;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [server, how, cut, seed, bytes @ ..] = input else { return };
    let mut says = Vec::new();
    if how & HTTP2 != 0 {
        says.extend_from_slice(PREFACE);
        Frame::settings(&[]).write(&mut says);
    }
    match how & FRAMES != 0 {
        true => says.extend(frames_of(bytes)),
        false => says.extend_from_slice(bytes),
    }
    let cut = if *cut == 0 { usize::MAX } else { usize::from(*cut) };
    let (ending, reads) = (ConnectionEnd::of(*how), how & READS_NOT == 0);
    let mut bed = Bed::new(*seed, how & FOUL != 0, None);
    bed.connect(usize::from(*server) % SERVERS, Script { says, cut, ending, reads, waits: false });
    bed.finish();
});
