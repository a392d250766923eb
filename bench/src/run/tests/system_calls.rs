//! System calls per request: on one connection, and over many connections at once.

use super::{all_good, grouped, plain_scene, workload};
use crate::record::{Counts, Point, TestRecord, TwoLengths};
use crate::run::accounting::family;
use crate::run::counters::SystemCalls;
use crate::run::extent::{Budget, Extent};
use crate::run::rotation::{Failure, Sample, Stage, Stop, omit};
use crate::run::session::{Live, Session};
use crate::run::workload::{Count, Workload};

const BODY_BYTES: u64 = 128;

/// Number of requests in the warm-up, which opens the connections to members, and in the short and the long load.
fn lengths(extent: Extent) -> [u64; 3] {
    match extent {
        Extent::Smoke => [200, 200, 700],
        Extent::Quick | Extent::Full => [2_000, 2_000, 12_000],
    }
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let most = budget.settings.iter().fold(1.0_f64, |most, at| most.max(*at)) as usize;
    let lengths = lengths(session.extent);
    let mut live = session.open(test, plain_scene(test, budget, most), None, record)?;
    for &at in budget.settings {
        let workload = workload(budget, BODY_BYTES, at as usize);
        for round in 0..budget.rounds {
            for product in live.products() {
                if record.omits(&product, at) {
                    continue;
                }
                let plural = if at == 1.0 { "" } else { "s" };
                let place = format!("{} connection{plural}, round {}", grouped(at), round + 1);
                live.begin_step(&format!("{place} of {}: {product}", budget.rounds));
                match measure(&mut live, &product, &workload, lengths) {
                    Ok((Sample { load, cost, .. }, system_calls)) => {
                        let counts =
                            Counts { system_calls: Some(system_calls), ..Counts::default() };
                        record.points.push(Point { product, round, at, load, cost, counts });
                    }
                    Err(Failure::Stop(stop)) => return Err(stop),
                    Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                        live.note(&format!("{product} is left out: {reason}"));
                        omit(record, &product, Some(at), reason);
                    }
                }
            }
        }
    }
    Ok(())
}

fn measure(
    live: &mut Live<'_, '_>,
    product: &str,
    workload: &Workload,
    [warming, few, many]: [u64; 3],
) -> Result<(Sample, TwoLengths), Failure> {
    let of = |requests| Workload {
        count: Some(Count { requests, one_at_a_time: false }),
        ..workload.clone()
    };
    live.measure(product, &of(warming), 0.0)?;
    let processes = live.process(product).map(family).unwrap_or_default();
    let counted = |live: &mut Live<'_, '_>, length| {
        let counting = SystemCalls::begin(&processes).map_err(Failure::Unable)?;
        let sample = all_good(live.measure(product, &of(length), 0.0)?)?;
        let count = counting.end().map_err(Failure::Unable)?;
        Ok::<_, Failure>((sample, count))
    };
    let (short, of_short) = counted(live, few)?;
    let (long, of_long) = counted(live, many)?;
    let requests = [short.load.requests, long.load.requests];
    Ok((long, TwoLengths { requests, counted: [of_short, of_long] }))
}
