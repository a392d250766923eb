//! Instructions per request: of all products, and of weir alone as its configuration grows.
//!
//! Each product runs alone under callgrind, from start to exit, once for a short load and once for a long one. The
//! difference of both counts is the cost of the additional requests.

use super::features::{asking_for, cookies, with};
use super::{all_good, grouped, plain_scene, workload};
use crate::catalogue::{FEATURE_CASES, GROWTH_CASES, is_yardstick};
use crate::record::{Counts, Point, TestRecord, TwoLengths};
use crate::run::counters::Callgrind;
use crate::run::extent::{Budget, Extent};
use crate::run::lineup::Scene;
use crate::run::origin::Origin;
use crate::run::products::{Balance, Feature, InstalledProduct, WEIR, takes_part};
use crate::run::rotation::{Failure, Sample, Stage, Stop, omit};
use crate::run::session::Session;
use crate::run::workload::{Count, Workload};

const BODY_BYTES: u64 = 128;
/// Few connections, so that a product has set all of them up well before the short load ends.
const CONNECTIONS: usize = 8;
/// Number of virtual servers in the smaller case.
const GROWTH_CONNECTIONS: usize = 24;
const VIRTUAL_SERVERS: [usize; 2] = [24, 1_000];
const MEMBERS: [usize; 2] = [2, 1_000];
const RULES: [usize; 2] = [10, 10_000];
/// Replaces the larger size of each kind in a smoke: a debug build needs minutes under callgrind to read a large
/// configuration.
const MANY_SMOKE: usize = 40;
/// Attempts at one count. A product that otherwise works occasionally fails under callgrind.
const LIVES_MAX: u32 = 2;

/// Number of requests in the short and the long load.
fn lengths(extent: Extent) -> [u64; 2] {
    match extent {
        Extent::Smoke => [100, 300],
        Extent::Quick => [500, 2_500],
        Extent::Full => [1_000, 6_000],
    }
}

/// The same for the growth test. Both loads use every member, so the cost of connecting to members cancels out.
fn growth_lengths(extent: Extent) -> [u64; 2] {
    let members = *MEMBERS.iter().max().unwrap_or(&1) as u64;
    match extent {
        Extent::Smoke => [100, 300],
        Extent::Quick => [2 * members, 4 * members],
        Extent::Full => [2 * members, 8 * members],
    }
}

/// Features of the products, in the order of [`FEATURE_CASES`].
const FEATURES: [Feature; 4] = Feature::ALL;
const _: () = assert!(FEATURES.len() == FEATURE_CASES.len());

/// Runs all products, with each of the features in turn.
pub(super) fn features(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let is_wanted = |found: &&InstalledProduct| {
        !is_yardstick(found.name()) && takes_part(found.definition.name, Feature::Plain)
    };
    let products: Vec<InstalledProduct> =
        session.products.iter().filter(is_wanted).cloned().collect();
    let lengths = lengths(session.extent);
    for &at in budget.settings {
        let feature = FEATURES[at as usize];
        let name = format!("{test}-{at}");
        for found in &products {
            let scene = Scene { name: &name, ..plain_scene(test, budget, CONNECTIONS) };
            let scene = with(feature, scene);
            let workload = asking_for(feature, workload(budget, BODY_BYTES, CONNECTIONS));
            let step = Step { test, found, scene, workload, lengths };
            for round in 0..budget.rounds {
                measure(session, &step, (round, at), record)?;
            }
        }
    }
    Ok(())
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let yardstick = plain_scene(test, budget, CONNECTIONS).yardstick;
    let is_wanted = |found: &&InstalledProduct| {
        let name = found.name();
        let is_there = !is_yardstick(name) || yardstick == Some(name);
        is_there && takes_part(found.definition.name, Feature::Plain)
    };
    let products: Vec<InstalledProduct> =
        session.products.iter().filter(is_wanted).cloned().collect();
    let lengths = lengths(session.extent);
    for round in 0..budget.rounds {
        for found in &products {
            let scene = plain_scene(test, budget, CONNECTIONS);
            let workload = workload(budget, BODY_BYTES, CONNECTIONS);
            let step = Step { test, found, scene, workload, lengths };
            for &at in budget.settings {
                measure(session, &step, (round, at), record)?;
            }
        }
    }
    Ok(())
}

/// Runs weir alone, with few and with many objects of each kind.
pub(super) fn growth(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let weir = session.products.iter().find(|found| found.name() == WEIR).cloned();
    let Some(found) = &weir else { return Ok(()) };
    let members_max = many(session.extent, MEMBERS[1]);
    if session.bed.client_namespace().is_some() {
        let reason = "its many addresses are those of the loopback network";
        omit(record, WEIR, None, reason.into());
        return Ok(());
    }
    let origin = Origin::start(&session.laboratory, members_max, &session.bed, &session.store)?;
    for &at in budget.settings {
        let case = at as usize;
        let GrowthCase { virtual_servers, members, balance, rules } =
            growth_case(case, session.extent);
        let scene = Scene {
            name: &format!("{test}-{case}"),
            virtual_servers,
            members: Some(&origin.members[..members]),
            balance,
            feature: rules.map_or(Feature::Plain, Feature::Rules),
            ..plain_scene(test, budget, GROWTH_CONNECTIONS)
        };
        let workload = workload(budget, BODY_BYTES, GROWTH_CONNECTIONS);
        let lengths = growth_lengths(session.extent);
        let step = Step { test, found, scene, workload, lengths };
        for round in 0..budget.rounds {
            measure(session, &step, (round, at), record)?;
        }
    }
    Ok(())
}

/// A case in [`GROWTH_CASES`].
struct GrowthCase {
    virtual_servers: usize,
    members: usize,
    balance: Balance,
    rules: Option<usize>,
}

/// The larger of two sizes, reduced in a smoke.
fn many(extent: Extent, size: usize) -> usize {
    if extent == Extent::Smoke { size.min(MANY_SMOKE) } else { size }
}

fn growth_case(case: usize, extent: Extent) -> GrowthCase {
    let of =
        |[few, large]: [usize; 2]| if case.is_multiple_of(2) { few } else { many(extent, large) };
    let small = GrowthCase {
        virtual_servers: VIRTUAL_SERVERS[0],
        members: MEMBERS[0],
        balance: Balance::RoundRobin,
        rules: None,
    };
    match case / 2 {
        0 => GrowthCase { virtual_servers: of(VIRTUAL_SERVERS), ..small },
        1 => GrowthCase { members: of(MEMBERS), ..small },
        2 => GrowthCase { members: of(MEMBERS), balance: Balance::LeastConnections, ..small },
        _ => GrowthCase { rules: Some(of(RULES)), ..small },
    }
}

/// A product, with the scene and the loads of its count.
struct Step<'a> {
    test: &'static str,
    found: &'a InstalledProduct,
    scene: Scene<'a>,
    workload: Workload,
    lengths: [u64; 2],
}

/// Counts a product once with both loads, and adds the point to `record`.
fn measure(
    session: &mut Session<'_>,
    step: &Step<'_>,
    (round, at): (u32, f64),
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let product = step.found.name();
    if record.omits(product, at) {
        return Ok(());
    }
    let mut samples = Vec::new();
    for length in step.lengths {
        match count_again(session, step, (round, at), length, record) {
            Ok(Some(sample)) => samples.push(sample),
            Ok(None) => return Ok(()),
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                session.note(Some(step.test), &format!("{product} is left out: {reason}"));
                omit(record, product, Some(at), reason);
                return Ok(());
            }
        }
    }
    if let [(short, few), (long, many)] = samples.as_slice() {
        let requests = [short.load.requests, long.load.requests];
        let instructions = Some(TwoLengths { requests, counted: [*few, *many] });
        let counts = Counts { instructions, ..Counts::default() };
        let (load, cost) = (long.load.clone(), long.cost.clone());
        record.points.push(Point { product: product.into(), round, at, load, cost, counts });
    }
    Ok(())
}

/// Repeats a failed count up to [`LIVES_MAX`] attempts. Returns `None` if the product did not start; that is recorded.
fn count_again(
    session: &mut Session<'_>,
    step: &Step<'_>,
    (round, at): (u32, f64),
    length: u64,
    record: &mut TestRecord,
) -> Result<Option<(Sample, u64)>, Failure> {
    let mut life = 1;
    loop {
        let folder = format!("{}-callgrind-{round}-{length}-{life}", step.scene.name);
        match count(session, step, (at, &folder), length, record) {
            Err(Failure::Dead(reason) | Failure::Unable(reason)) if life < LIVES_MAX => {
                let product = step.found.name();
                session.note(Some(step.test), &format!("{product} is counted again: {reason}"));
                life += 1;
            }
            counted => return counted,
        }
    }
}

/// Runs a product once under callgrind. Returns `None` if it did not start; that is recorded.
fn count(
    session: &mut Session<'_>,
    step: &Step<'_>,
    (at, folder): (f64, &str),
    length: u64,
    record: &mut TestRecord,
) -> Result<Option<(Sample, u64)>, Failure> {
    let product = step.found.name();
    // Each run has its own folder, so that it does not find the counts of another run.
    let folder = session.store.working(folder, product)?;
    let callgrind = Callgrind::find(folder).map_err(Failure::Unable)?;
    let under = callgrind.words();
    let scene = Scene { under: &under, ..step.scene };
    let products = std::slice::from_ref(step.found);
    let mut live = session.open_some(step.test, scene, products, Some(at), record)?;
    if live.products().is_empty() {
        return Ok(None);
    }
    let cases = match step.test {
        "growth" => GROWTH_CASES,
        "feature-instructions" => FEATURE_CASES,
        _ => &[],
    };
    let case = cases.get(at as usize).map(|case| format!("{case}, ")).unwrap_or_default();
    let requests = grouped(length as f64);
    live.begin_step(&format!("{case}{requests} requests under callgrind: {product}"));
    let count = Some(Count { requests: length, one_at_a_time: true });
    let mut workload = Workload { count, ..step.workload.clone() };
    if step.scene.feature == Feature::Cookie {
        // Both loads learn cookies equally often, so the cost of learning cancels out.
        workload.cookies = cookies(&mut live, product, &workload)?;
    }
    let sample = all_good(live.measure(product, &workload, 0.0)?)?;
    live.end().map_err(Failure::Unable)?;
    let instructions = callgrind.total().map_err(Failure::Unable)?;
    Ok(Some((sample, instructions)))
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn cases_are_what_their_names_say() {
        for (case, name) in GROWTH_CASES.iter().enumerate() {
            let GrowthCase { virtual_servers, members, balance, rules } =
                growth_case(case, Extent::Full);
            let what = match balance {
                _ if rules.is_some() => format!("{} rules", grouped(rules.unwrap_or(0) as f64)),
                _ if case < 2 => format!("{} virtual servers", grouped(virtual_servers as f64)),
                Balance::RoundRobin => format!("{} members, round robin", grouped(members as f64)),
                Balance::LeastConnections => {
                    format!("{} members, least connections", grouped(members as f64))
                }
            };
            assert_eq!(*name, what);
        }
    }
}
