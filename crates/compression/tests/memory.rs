//! Encoders use no more memory than they declare. Each measurement runs in a process of its own, because memory freed by one
//! could be reused by another.

mod support;

use std::process::Command;

use weir_compression::{
    Coding, Encoder, Flush, Level, Pool, WHOLE_BYTES_MAX, WHOLE_MEMORY_BYTES_MAX, memory_bytes_max,
};
use weir_testing::{Random, bodies};

/// The environment variable with the case that a process must measure.
const CASE: &str = "WEIR_MEMORY_CASE";

/// Number of encoders that are measured together.
const COUNT: usize = 8;

/// Size of writable private memory, used or not.
fn data_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_ascii_whitespace().nth(5).expect("the sixth number is data");
    pages.parse::<usize>().expect("a number") * rustix::param::page_size()
}

/// Memory of a stream encoder of this coding and level.
fn stream_bytes(coding: Coding, level: Level) -> usize {
    let mut content = bodies::html(3, 300_000);
    content.extend(bodies::noise(&mut Random::new(1), 150_000));
    let mut out = Vec::with_capacity(4 << 20);
    let before = data_bytes();
    let mut encoders: Vec<Encoder> = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let mut encoder = Encoder::new(coding, level).expect("memory");
        for slice in content.chunks(60_000) {
            encoder.encode(slice, Flush::None, &mut out).expect("it goes on");
            out.clear();
        }
        encoders.push(encoder);
    }
    (data_bytes() - before) / COUNT
}

/// Total memory for whole bodies.
fn whole_bytes() -> usize {
    let content = bodies::html(3, WHOLE_BYTES_MAX);
    let mut out = Vec::with_capacity(4 << 20);
    let before = data_bytes();
    let mut pool = Pool::default();
    for level in Level::all() {
        pool.encode_whole(Coding::Gzip, level, &content, &mut out).expect("memory");
        out.clear();
    }
    data_bytes() - before
}

#[test]
fn a_case_in_a_process_of_its_own() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    let found = match case.split_once(' ') {
        None => whole_bytes(),
        Some((coding, level)) => {
            let coding = Coding::named(coding.as_bytes()).expect("a coding");
            stream_bytes(coding, Level::new(level.parse().expect("a number")).expect("a level"))
        }
    };
    println!("measured {found} bytes");
}

/// Runs [`a_case_in_a_process_of_its_own`].
fn measure(case: &str) -> usize {
    let program = std::env::current_exe().expect("this test");
    let output = Command::new(program)
        .args(["--exact", "a_case_in_a_process_of_its_own", "--nocapture"])
        .env(CASE, case)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found =
        text.split("measured ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::parse);
    found.unwrap_or_else(|| panic!("{case}: {text}")).expect("a number")
}

#[test]
fn encoders_take_no_more_than_they_say() {
    let mut above = Vec::new();
    let mut check = |case: &str, stated: usize| {
        let found = measure(case);
        println!("{case:6}: {:5} of {:5} KiB", found / 1024, stated / 1024);
        if found > stated {
            above.push(format!("{case}: {found}"));
        }
    };
    for coding in Coding::ALL {
        for level in Level::all() {
            check(&format!("{} {}", coding.name(), level.get()), memory_bytes_max(coding, level));
        }
    }
    check("whole", WHOLE_MEMORY_BYTES_MAX);
    assert!(above.is_empty(), "more than stated: {above:?}");
}
