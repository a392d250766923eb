//! Memory of idle connections, and memory that is not released after many requests.

use std::time::Duration;

use super::{CONNECTIONS, all_good, grouped, plain_scene, workload};
use crate::record::{Counts, MemorySteps, Point, TestRecord};
use crate::run::accounting::resident_bytes;
use crate::run::extent::{Budget, Extent};
use crate::run::rotation::{Failure, Sample, Stage, Stop, omit};
use crate::run::session::{Live, Session};
use crate::run::workload::{Count, Workload};

const BODY_BYTES: u64 = 128;
/// The amount of load on a product.
#[derive(Debug, Clone, Copy)]
struct Amount {
    /// Number of idle connections.
    connections: usize,
    /// Number of requests after which the memory is compared.
    requests: u64,
    /// Number of warm-up requests, after which the product has allocated its permanent memory.
    warming: u64,
    /// Time after which a product has released the memory of closed connections.
    settling: Duration,
}

impl Amount {
    fn of(extent: Extent) -> Self {
        let of = |connections, requests| Self {
            connections,
            requests,
            warming: 2_000,
            settling: Duration::from_secs(1),
        };
        match extent {
            Extent::Smoke => {
                Self { warming: 200, settling: Duration::from_millis(100), ..of(100, 1_000) }
            }
            Extent::Quick => of(10_000, 100_000),
            Extent::Full => of(10_000, 1_000_000),
        }
    }
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let amount = Amount::of(session.extent);
    let base = workload(budget, BODY_BYTES, CONNECTIONS);
    for round in 0..budget.rounds {
        // Every round starts the products, so that it does not depend on the round before.
        let scene = plain_scene(test, budget, amount.connections);
        let mut live = session.open(test, scene, None, record)?;
        for product in live.products() {
            let [connections, requests] =
                [amount.connections as f64, amount.requests as f64].map(grouped);
            live.begin_step(&format!(
                "{connections} connections, {requests} requests, round {} of {}: {product}",
                round + 1,
                budget.rounds
            ));
            match measure(&mut live, &product, &base, amount) {
                Ok((Sample { load, cost, .. }, memory)) => {
                    let counts = Counts { memory: Some(memory), ..Counts::default() };
                    record.points.push(Point { product, round, at: 0.0, load, cost, counts });
                }
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                    live.note(&format!("{product} is left out: {reason}"));
                    omit(record, &product, None, reason);
                }
            }
        }
    }
    Ok(())
}

fn measure(
    live: &mut Live<'_, '_>,
    product: &str,
    base: &Workload,
    amount: Amount,
) -> Result<(Sample, MemorySteps), Failure> {
    let process = live.process(product);
    let ask = |live: &mut Live<'_, '_>, connections, requests, one_at_a_time| {
        let count = Some(Count { requests, one_at_a_time });
        all_good(live.measure(product, &Workload { connections, count, ..base.clone() }, 0.0)?)
    };
    // Called after the product's connections have ended.
    let resident = || {
        std::thread::sleep(amount.settling);
        process.map_or(0, resident_bytes)
    };
    ask(live, CONNECTIONS, amount.warming, false)?;
    let before_bytes = resident();
    // Each connection sends its one request when all are open. The meter reads the memory before they are closed.
    let held = ask(live, amount.connections, amount.connections as u64, true)?;
    ask(live, CONNECTIONS, amount.requests / 10, false)?;
    let warm_bytes = resident();
    let sample = ask(live, CONNECTIONS, amount.requests, false)?;
    let memory = MemorySteps {
        connections: amount.connections as u64,
        before_bytes,
        holding_bytes: held.cost.resident_bytes,
        requests: amount.requests,
        warm_bytes,
        worn_bytes: resident(),
    };
    Ok((sample, memory))
}
