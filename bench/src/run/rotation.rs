//! Rounds of measurements in turn (A B C, A B C), which make products comparable on a noisy machine.
//!
//! In each round, every product is measured once, after a rest. Each round starts with another product, so no product
//! has a fixed place. Ratios are paired within a round, so the state of the machine cancels out. A disturbed
//! measurement is discarded and repeated at once, a few times per round. If it stays disturbed, the whole round is
//! discarded and repeated, so rounds stay paired.
//!
//! The product's own behaviour is never a disturbance: if the generator could offer a rate and the product did not keep
//! it, that is a result.

use super::RunError;
use super::meter::Surroundings;
use super::workload::Workload;
use crate::disturbance::{
    FOREIGN_SHARE_MAX, LOAD_SATURATED_SHARE, REPEATS_AT_ONCE_MAX, RESTING_SHARE_MAX,
    STOLEN_NOTICED_SHARE, STOLEN_SHARE_MAX, WAITED_SHARE_MAX,
};
use crate::load::{KEPT_SHARE_MIN, LoadOutcome};
use crate::record::{Cost, Counts, Discard, Omission, Point, TestRecord};

/// The result of a measurement.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The results of the load.
    pub load: LoadOutcome,
    /// The costs of the product.
    pub cost: Cost,
    /// Disturbances during the measurement.
    pub around: Surroundings,
}

impl Sample {
    /// Busy time of the product's cores per good request; `None` without good requests.
    pub fn busy_s_per_request(&self) -> Option<f64> {
        let window = self.load.completed();
        let requests = window.requests as f64 * self.cost.elapsed_s / window.elapsed_s;
        (requests > 0.0).then(|| self.cost.busy_s / requests)
    }

    /// Applies the disturbances of another measurement that this one depends on: the larger share of each kind.
    pub fn rest_on(&mut self, other: &Surroundings) {
        let around = &mut self.around;
        around.stolen_share = around.stolen_share.max(other.stolen_share);
        around.waited_share = around.waited_share.max(other.waited_share);
        around.foreign_share = around.foreign_share.max(other.foreign_share);
    }
}

/// The reason why a measurement has no result.
#[derive(Debug)]
pub enum Failure {
    /// The product's process ended. It cannot continue this test.
    Dead(String),
    /// The product cannot do this setting.
    Unable(String),
    /// The run cannot continue.
    Stop(Stop),
}

/// The reason why a test ended early.
#[derive(Debug)]
pub enum Stop {
    /// SIGINT or SIGTERM.
    Interrupted,
    /// An error of the bed or of the machine.
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Stop(Stop::Failed(error))
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// The functions that a rotation needs from a test's products and machine.
pub trait Stage {
    /// Waits until the machine is quiet. Returns the busy share of the product's cores at rest.
    fn rest(&mut self) -> Result<f64, Stop>;
    /// Measures one product.
    fn measure(
        &mut self,
        product: &str,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure>;
    /// Whether there is time left to repeat a round.
    fn may_repeat(&self) -> bool;
    /// Whether the product can still be measured.
    fn is_alive(&self, product: &str) -> bool;
    /// Reports that a measurement begins.
    fn begin_step(&mut self, what: &str);
    /// Reports a note for the reader.
    fn note(&mut self, text: &str);
}

/// The rule by which a round at a setting is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// Closed loop, or an offered rate above the capacity: every rate is a result.
    AnyRate,
    /// An offered rate that every product can keep. If the generator or the hypervisor caused a lower rate, the
    /// measurement is discarded.
    OfferedRate,
    /// Smoke run: every result is accepted.
    Anything,
}

/// One value on the test's axis.
#[derive(Debug)]
pub struct Setting {
    /// The value.
    pub at: f64,
    /// The label of the setting in progress messages; may be empty.
    pub label: String,
    /// The rule by which rounds are judged.
    pub judge: Judge,
    /// The products in their order of the first round, each with its workload.
    pub workloads: Vec<(String, Workload)>,
}

/// The number of rounds.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Number of the first round, from 0.
    pub first: u32,
    /// Number of undisturbed rounds to make.
    pub wanted: u32,
    /// Total number of undisturbed rounds of the setting, for progress messages.
    pub of: u32,
    /// Maximum number of discarded rounds that are repeated.
    pub repeats_max: u32,
}

impl Setting {
    /// The progress message before a measurement.
    fn step(&self, round: u32, rounds: Rounds, product: &str) -> String {
        let label = if self.label.is_empty() { String::new() } else { format!("{}, ", self.label) };
        format!("{label}round {} of {}: {product}", round + 1, rounds.of)
    }

    /// A message about an event: where in the test, and what happened.
    fn place(&self, round: u32, product: &str, what: &str) -> String {
        let label = if self.label.is_empty() { String::new() } else { format!("{}, ", self.label) };
        format!("{label}round {}: {product}: {what}", round + 1)
    }

    fn discard(&self, round: u32, spoiled: DisturbedMeasurement) -> Discard {
        let DisturbedMeasurement { product, reason, load } = spoiled;
        Discard {
            round: Some(round),
            at: Some(self.at),
            product: Some(product),
            reason,
            errors: load.as_ref().map(|load| load.errors),
            unsent: load.as_ref().map(|load| load.unsent),
        }
    }
}

/// Measures all products at a setting, round after round, and adds the points to `record`. Without any undisturbed
/// round, the products are recorded as omitted.
pub fn rotate(
    stage: &mut dyn Stage,
    setting: &mut Setting,
    rounds: Rounds,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let (mut done, mut disturbed) = (0, 0);
    let mut last_reason = String::new();
    while done < rounds.wanted {
        leave_out_the_dead(stage, setting);
        if setting.workloads.is_empty() {
            return Ok(());
        }
        let round = rounds.first + done;
        let result = one_round(stage, setting, (round, rounds), record)?;
        match result {
            Ok(points) => {
                record.points.extend(points);
                done += 1;
            }
            Err(spoiled) => {
                let DisturbedMeasurement { product, reason, .. } = &spoiled;
                stage.note(&format!("discarded: {}", setting.place(round, product, reason)));
                last_reason = format!("{product}: {reason}");
                record.discarded.push(setting.discard(round, spoiled));
                disturbed += 1;
                if disturbed > rounds.repeats_max || !stage.may_repeat() {
                    break;
                }
            }
        }
    }
    if done == 0 {
        let reason = format!("no undisturbed round in {disturbed}: {last_reason}");
        for (product, _) in &setting.workloads {
            let has_one = |point: &Point| point.product == *product && point.at == setting.at;
            // If a test makes its rounds one by one, an earlier round may have a point.
            if !record.points.iter().any(has_one) {
                omit(record, product, Some(setting.at), reason.clone());
            }
        }
    } else if done < rounds.wanted {
        stage.note(&format!("{done} good rounds instead of {}", rounds.wanted));
    }
    Ok(())
}

fn leave_out_the_dead(stage: &dyn Stage, setting: &mut Setting) {
    setting.workloads.retain(|(product, _)| stage.is_alive(product));
}

/// A disturbed measurement, or a machine that was too busy before it.
struct DisturbedMeasurement {
    product: String,
    reason: String,
    /// The results of the load, if it was measured.
    load: Option<Box<LoadOutcome>>,
}

/// Makes one round. Returns its points, or the disturbance that makes the round invalid.
fn one_round(
    stage: &mut dyn Stage,
    setting: &mut Setting,
    (round, rounds): (u32, Rounds),
    record: &mut TestRecord,
) -> Result<Result<Vec<Point>, DisturbedMeasurement>, Stop> {
    let mut points = Vec::new();
    let mut unable = Vec::new();
    let mut repeats = 0;
    let count = setting.workloads.len();
    for turn in 0..count {
        let (product, workload) = &setting.workloads[(turn + round as usize) % count];
        stage.begin_step(&setting.step(round, rounds, product));
        let sample = loop {
            let resting_share = stage.rest()?;
            if setting.judge != Judge::Anything && resting_share > RESTING_SHARE_MAX {
                let share = resting_share * 100.0;
                let reason = format!("its core was {share:.0}% busy with something else");
                return Ok(Err(DisturbedMeasurement {
                    product: product.clone(),
                    reason,
                    load: None,
                }));
            }
            let sample = match stage.measure(product, workload, resting_share) {
                Ok(sample) => sample,
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                    stage.note(&format!("{product} is left out: {reason}"));
                    omit(record, product, Some(setting.at), reason);
                    unable.push(product.clone());
                    break None;
                }
            };
            let Some(reason) = disturbance(setting.judge, workload, &sample) else {
                break Some(sample);
            };
            let load = Some(Box::new(sample.load));
            let spoiled = DisturbedMeasurement { product: product.clone(), reason, load };
            if repeats == REPEATS_AT_ONCE_MAX || !stage.may_repeat() {
                return Ok(Err(spoiled));
            }
            repeats += 1;
            let place = setting.place(round, product, &spoiled.reason);
            stage.note(&format!("measured again: {place}"));
            record.discarded.push(setting.discard(round, spoiled));
        };
        let Some(Sample { load, cost, .. }) = sample else { continue };
        let (product, at) = (product.clone(), setting.at);
        points.push(Point { product, round, at, load, cost, counts: Counts::default() });
    }
    setting.workloads.retain(|(product, _)| !unable.contains(product));
    Ok(Ok(points))
}

/// Records that a product did not run the setting `at`, or with `None` the rest of the test. Records it once.
pub fn omit(record: &mut TestRecord, product: &str, at: Option<f64>, reason: String) {
    let is_known = |known: &Omission| {
        known.product == product && at.map_or(known.at.is_none(), |at| known.covers(at))
    };
    if !record.omissions.iter().any(is_known) {
        record.omissions.push(Omission { product: product.into(), at, reason });
    }
}

/// The disturbance of a measurement by the machine, and not by the product; `None` for an undisturbed one.
pub fn disturbance(judge: Judge, workload: &Workload, sample: &Sample) -> Option<String> {
    let Surroundings { stolen_share, load_busy_share, waited_share, foreign_share, .. } =
        sample.around;
    if judge == Judge::Anything {
        return None;
    }
    if stolen_share > STOLEN_SHARE_MAX {
        return Some(format!("the hypervisor took {:.0}% of the cores", stolen_share * 100.0));
    }
    if waited_share > WAITED_SHARE_MAX {
        let share = waited_share * 100.0;
        return Some(format!("it waited for its core for {share:.0}% of the time"));
    }
    if foreign_share > FOREIGN_SHARE_MAX {
        let share = foreign_share * 100.0;
        return Some(format!("something else was on its core for {share:.0}% of the time"));
    }
    let rate = workload.rate.filter(|_| judge == Judge::OfferedRate)?;
    let was_kept = sample.load.kept_share().is_some_and(|share| share >= KEPT_SHARE_MIN);
    let may_be_ours =
        load_busy_share >= LOAD_SATURATED_SHARE || stolen_share > STOLEN_NOTICED_SHARE;
    if was_kept || sample.load.errors > 0 || !may_be_ours {
        return None;
    }
    Some(format!(
        "{:.0} of {rate:.0} requests/s came through while the load's cores were {:.0}% busy and the \
         hypervisor took {:.1}%",
        sample.load.requests_per_second,
        load_busy_share * 100.0,
        stolen_share * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::run::testing;
    use crate::run::workload::PLAIN_PATHS;

    /// The result of one measurement of the fake stage.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        Well,
        Stolen,
        Crowded,
        Foreign,
        Slow,
        Starved,
        Saturated,
        Dies,
        Unable,
        Interrupted,
    }

    #[derive(Default)]
    struct Fake {
        script: VecDeque<Act>,
        measured: Vec<String>,
        notes: Vec<String>,
        dead: Vec<String>,
        resting_shares: VecDeque<f64>,
        is_late: bool,
    }

    impl Stage for Fake {
        fn rest(&mut self) -> Result<f64, Stop> {
            self.measured.push("rest".into());
            Ok(self.resting_shares.pop_front().unwrap_or(0.01))
        }

        fn measure(
            &mut self,
            product: &str,
            workload: &Workload,
            _: f64,
        ) -> Result<Sample, Failure> {
            self.measured.push(product.into());
            let rate = workload.rate.expect("a rate");
            let mut sample = testing::sample(workload, rate, 0.5);
            match self.script.pop_front().unwrap_or(Act::Well) {
                Act::Well => {}
                Act::Stolen => sample.around.stolen_share = 0.2,
                Act::Crowded => sample.around.waited_share = 0.3,
                Act::Foreign => sample.around.foreign_share = 0.4,
                Act::Slow => sample = testing::sample(workload, rate * 0.8, 0.5),
                Act::Starved => {
                    sample = testing::sample(workload, rate * 0.8, 0.5);
                    sample.around.load_busy_share = 0.99;
                }
                Act::Saturated => sample = testing::sample(workload, rate * 0.8, 0.98),
                Act::Dies => {
                    self.dead.push(product.into());
                    return Err(Failure::Dead("it ended".into()));
                }
                Act::Unable => return Err(Failure::Unable("no good response".into())),
                Act::Interrupted => return Err(Stop::Interrupted.into()),
            }
            Ok(sample)
        }

        fn may_repeat(&self) -> bool {
            !self.is_late
        }

        fn is_alive(&self, product: &str) -> bool {
            !self.dead.iter().any(|dead| dead == product)
        }

        fn begin_step(&mut self, _: &str) {}

        fn note(&mut self, text: &str) {
            self.notes.push(text.into());
        }
    }

    fn setting() -> Setting {
        let workload = Workload {
            body_bytes: 128,
            paths: PLAIN_PATHS,
            cookies: Vec::new(),
            connections: 64,
            requests_per_connection: None,
            rate: Some(1_000.0),
            warm_up: Duration::ZERO,
            measure: Duration::from_secs(1),
            count: None,
            tls: None,
            streams: None,
            gzip: None,
            query_bytes: None,
            is_timed: false,
            firewall: None,
            is_observed: false,
        };
        let workloads = ["weir", "nginx"].map(|name| (name.to_owned(), workload.clone()));
        Setting {
            at: 128.0,
            label: "128 B".into(),
            judge: Judge::OfferedRate,
            workloads: workloads.into(),
        }
    }

    const ROUNDS: Rounds = Rounds { first: 0, wanted: 2, of: 2, repeats_max: 2 };

    fn run(script: &[Act], judge: Judge) -> (Fake, TestRecord, Result<(), Stop>) {
        let mut fake = Fake { script: script.iter().copied().collect(), ..Fake::default() };
        let mut record = testing::record("object-sizes");
        let mut setting = Setting { judge, ..setting() };
        let result = rotate(&mut fake, &mut setting, ROUNDS, &mut record);
        (fake, record, result)
    }

    fn kept(record: &TestRecord) -> Vec<(&str, u32)> {
        record.points.iter().map(|point| (point.product.as_str(), point.round)).collect()
    }

    const PAIRED: [(&str, u32); 4] = [("weir", 0), ("nginx", 0), ("nginx", 1), ("weir", 1)];

    #[test]
    fn every_product_stands_at_every_place() {
        let mut fake = Fake::default();
        let mut record = testing::record("object-sizes");
        let mut setting = setting();
        let workload = setting.workloads[0].1.clone();
        setting.workloads = ["a", "b", "c"].map(|name| (name.into(), workload.clone())).into();
        let rounds = Rounds { first: 0, wanted: 3, of: 3, repeats_max: 0 };
        rotate(&mut fake, &mut setting, rounds, &mut record).expect("an end");
        let order: Vec<&str> = record.points.iter().map(|point| point.product.as_str()).collect();
        assert_eq!(order, ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
    }

    #[test]
    fn products_take_turns() {
        let (fake, record, result) = run(&[], Judge::OfferedRate);
        assert!(result.is_ok());
        let first = ["rest", "weir", "rest", "nginx"];
        let second = ["rest", "nginx", "rest", "weir"];
        assert_eq!(fake.measured, [first, second].concat());
        assert_eq!(kept(&record), PAIRED);
        assert!(record.discarded.is_empty() && record.omissions.is_empty());
    }

    #[test]
    fn a_disturbed_measurement_is_made_again_at_once() {
        for disturbed in [Act::Stolen, Act::Crowded, Act::Foreign, Act::Starved] {
            let (fake, record, _) = run(&[Act::Well, disturbed], Judge::OfferedRate);
            let measured: Vec<&str> =
                fake.measured.iter().map(String::as_str).filter(|step| *step != "rest").collect();
            assert_eq!(measured, ["weir", "nginx", "nginx", "nginx", "weir"], "{disturbed:?}");
            assert_eq!(kept(&record), PAIRED, "{disturbed:?}");
            assert_eq!(record.discarded.len(), 1);
            let discard = &record.discarded[0];
            assert_eq!((discard.round, discard.at), (Some(0), Some(128.0)));
            assert_eq!(discard.product.as_deref(), Some("nginx"));
        }
    }

    #[test]
    fn a_round_is_thrown_away_for_all_when_the_machine_does_not_come_to_rest() {
        let script = [&[Act::Well], &[Act::Stolen; 4][..]].concat();
        let (fake, record, _) = run(&script, Judge::OfferedRate);
        assert_eq!(fake.measured.iter().filter(|step| *step == "weir").count(), 3);
        assert_eq!(kept(&record), PAIRED);
        assert_eq!(record.discarded.len(), 4);
    }

    #[test]
    fn nothing_is_measured_while_the_machine_is_busy() {
        let mut fake = Fake { resting_shares: [0.6].into(), ..Fake::default() };
        let mut record = testing::record("object-sizes");
        rotate(&mut fake, &mut setting(), ROUNDS, &mut record).expect("an end");
        assert_eq!(fake.measured[..3], ["rest", "rest", "weir"]);
        assert_eq!(kept(&record), PAIRED);
        assert_eq!(record.discarded[0].product.as_deref(), Some("weir"));
        assert!(record.discarded[0].reason.contains("60% busy"), "{:?}", record.discarded);
    }

    #[test]
    fn what_the_product_cannot_is_a_result() {
        let (_, record, _) = run(&[Act::Well, Act::Saturated], Judge::OfferedRate);
        assert_eq!(kept(&record), PAIRED);
        assert!(record.discarded.is_empty());
        let (_, record, _) = run(&[Act::Slow], Judge::AnyRate);
        assert_eq!(kept(&record), PAIRED);
        // The product itself is slow: the load's cores are free and the hypervisor is quiet.
        let (_, record, _) = run(&[Act::Slow], Judge::OfferedRate);
        assert_eq!(kept(&record), PAIRED);
        assert!(record.discarded.is_empty());
    }

    #[test]
    fn repeats_end() {
        let (_, record, result) = run(&[Act::Starved; 99], Judge::OfferedRate);
        assert!(result.is_ok() && record.points.is_empty());
        let rounds = 1 + ROUNDS.repeats_max;
        assert_eq!(record.discarded.len() as u32, rounds * (1 + REPEATS_AT_ONCE_MAX));
        let omitted: Vec<&str> =
            record.omissions.iter().map(|omission| omission.product.as_str()).collect();
        assert_eq!(omitted, ["weir", "nginx"]);
        assert!(record.omissions[0].reason.contains("no undisturbed round in 3"));
    }

    #[test]
    fn rounds_of_a_setting_may_be_made_one_by_one() {
        let mut record = testing::record("cpu-65");
        for first in 0..2 {
            let rounds = Rounds { first, wanted: 1, ..ROUNDS };
            rotate(&mut Fake::default(), &mut setting(), rounds, &mut record).expect("an end");
        }
        assert_eq!(kept(&record), PAIRED);
    }

    #[test]
    fn who_is_left_out_of_a_test_is_omitted_once() {
        let mut record = testing::record("ramp");
        for at in [Some(1.0), None, None, Some(1.0), Some(2.0)] {
            omit(&mut record, "nginx", at, "it ended".into());
        }
        let ats: Vec<Option<f64>> = record.omissions.iter().map(|omission| omission.at).collect();
        assert_eq!(ats, [Some(1.0), None]);
    }

    #[test]
    fn a_late_run_repeats_nothing() {
        let mut fake = Fake { script: [Act::Stolen].into(), is_late: true, ..Fake::default() };
        let mut record = testing::record("object-sizes");
        rotate(&mut fake, &mut setting(), ROUNDS, &mut record).expect("an end");
        assert_eq!((record.discarded.len(), record.omissions.len()), (1, 2));
    }

    #[test]
    fn one_that_dies_is_left_out_and_the_others_go_on() {
        for act in [Act::Dies, Act::Unable] {
            let (fake, record, _) = run(&[Act::Well, act], Judge::OfferedRate);
            assert_eq!(kept(&record), [("weir", 0), ("weir", 1)]);
            assert_eq!(record.omissions.len(), 1);
            assert_eq!(
                (record.omissions[0].product.as_str(), record.omissions[0].at),
                ("nginx", Some(128.0))
            );
            assert!(fake.notes[0].contains("nginx is left out"), "{:?}", fake.notes);
        }
    }

    #[test]
    fn an_interrupted_round_is_not_kept() {
        let script = [Act::Well, Act::Well, Act::Well, Act::Interrupted];
        let (_, record, result) = run(&script, Judge::OfferedRate);
        assert!(matches!(result, Err(Stop::Interrupted)));
        assert_eq!(kept(&record), PAIRED[..2]);
    }

    #[test]
    fn errors_of_the_product_do_not_throw_a_round_away() {
        let Some((_, workload)) = setting().workloads.pop() else { panic!("two products") };
        let mut sample = testing::sample(&workload, 500.0, 0.5);
        sample.around.load_busy_share = 1.0;
        assert!(disturbance(Judge::OfferedRate, &workload, &sample).is_some());
        assert!(disturbance(Judge::Anything, &workload, &sample).is_none());
        sample.load.unsent = 9;
        assert!(disturbance(Judge::OfferedRate, &workload, &sample).is_some());
        sample.load.errors = 9;
        assert!(disturbance(Judge::OfferedRate, &workload, &sample).is_none());
    }
}
