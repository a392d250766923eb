//! Time of a pick by key, and of building its table. Run `cargo bench -p weir-core`; with the tests it runs briefly.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weir_core::balance::{Balancer, MaglevTable, Method, NamedMember, View};
use weir_core::keyed_hash::KeyedHash;

/// All members are idle and available.
struct Idle;

impl View for Idle {
    fn occupancy(&self, _: usize) -> u32 {
        0
    }
    fn admits(&self, _: usize) -> bool {
        true
    }
}

/// The median time of `rounds` runs of `count` times `work`, in nanoseconds.
fn time_ns(rounds: usize, count: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut times_ns: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            (0..count).for_each(&mut work);
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    times_ns.sort_by(f64::total_cmp);
    times_ns[rounds / 2]
}

fn main() {
    // `cargo bench` passes this argument. Under `cargo test`, one round only shows that it works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, count) = if is_bench { (9, 1_000_000) } else { (1, 1) };
    let address = [192, 0, 2, 1];
    let hash = time_ns(rounds, count, |key| {
        let hash = KeyedHash::new((u128::from(key) | 1 << 64).to_le_bytes());
        black_box(hash.bytes(black_box(&address)));
    });
    println!("hash of 4 bytes                     {hash:10.1} ns");
    for members in [10, 1_000, 10_000] {
        let names: Vec<String> = (0..members).map(|member| format!("member-{member}:80")).collect();
        let named: Vec<NamedMember> =
            names.iter().map(|name| NamedMember { name, weight: 1 }).collect();
        let build = time_ns(rounds, 1, |_| {
            black_box(MaglevTable::new(&named));
        });
        println!("table of {members:5} members              {:10.1} ms", build / 1e6);
        let table = Arc::new(MaglevTable::new(&named));
        let everyone: Vec<u32> = (0..members).collect();
        let pick = |method: &str, mut balancer: Balancer| {
            let time = time_ns(rounds, count, |key| {
                black_box(balancer.pick(&Idle, black_box(key)));
            });
            println!("{method:20} {members:5} members    {time:10.1} ns");
        };
        let weights = vec![1; members as usize];
        pick("by key", Balancer::by_key(Arc::clone(&table), &everyone));
        pick("random_two", Balancer::new(Method::RandomTwo, &weights, 1));
        pick("least_response_time", Balancer::new(Method::LeastResponseTime, &weights, 1));
    }
}
