//! What encoders take is no more than they say, measured as data of this process. A test alone in its process, so
//! that nobody else allocates.

mod support;

use support::bodies::{self, Random};
use weir_compression::{
    Coding, Encoder, Flush, Level, Pool, WHOLE_BYTES_MAX, WHOLE_MEMORY_BYTES_MAX, memory_bytes_max,
};

/// Bytes of writable private memory, touched or not.
fn data_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_ascii_whitespace().nth(5).expect("the sixth number is data");
    pages.parse::<usize>().expect("a number") * rustix::param::page_size()
}

/// Encoders that are measured together.
const COUNT: usize = 24;

#[test]
fn encoders_take_no_more_than_they_say() {
    let mut content = bodies::html(3, 700_000);
    content.extend(bodies::noise(&mut Random::new(1), 300_000));
    let mut out = Vec::with_capacity(4 << 20);
    let mut above = Vec::new();
    for coding in Coding::ALL {
        for level in Level::all() {
            let before = data_bytes();
            let mut encoders: Vec<Encoder> = Vec::with_capacity(COUNT);
            for _ in 0..COUNT {
                encoders.push(Encoder::new(coding, level).unwrap());
            }
            for encoder in &mut encoders {
                for slice in content.chunks(60_000) {
                    encoder.encode(slice, Flush::None, &mut out).unwrap();
                    out.clear();
                }
            }
            let found = data_bytes().saturating_sub(before) / COUNT;
            let stated = memory_bytes_max(coding, level);
            println!("{coding:?} {}: {found} of {stated} bytes", level.get());
            if found > stated {
                above.push((coding, level, found));
            }
        }
    }
    assert!(above.is_empty(), "more than stated: {above:?}");
    let before = data_bytes();
    let mut pool = Pool::default();
    for level in Level::all() {
        pool.encode_whole(Coding::Gzip, level, &content[..WHOLE_BYTES_MAX], &mut out).unwrap();
        out.clear();
    }
    let found = data_bytes().saturating_sub(before);
    println!("whole bodies: {found} of {WHOLE_MEMORY_BYTES_MAX} bytes");
    assert!(found <= WHOLE_MEMORY_BYTES_MAX, "{found}");
}
