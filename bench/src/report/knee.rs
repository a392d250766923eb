//! The knee: the rate up to which a product keeps up with a rising load.

use crate::catalogue::Figure;
use crate::record::{Point, Product};

use super::points::{Points, kept, value_of};
use super::stats::{Ratio, Spread};
use super::text;
use crate::load::KEPT_SHARE_MIN;

/// A step counts as kept only with a P99 below this.
pub const P99_MAX_MS: f64 = 10.0;

/// A round that did not even keep the first step has its knee below that step. For the median, this share of the step
/// counts; the interval is open at its lower end.
const BELOW_FIRST_STEP_SHARE: f64 = 0.5;

/// The knees of all products, by index.
#[derive(Debug)]
pub struct Knees {
    /// The knee of each product; `None` if it did not keep the first step or was not measured.
    pub of: Vec<Option<Knee>>,
    /// Weir's knee divided by this product's knee, paired by round. The interval includes the distance between the
    /// steps. It is open (0 or infinity) if the ramp ends on that side.
    pub ratios: Vec<Option<Ratio>>,
}

/// The last step of the ramp that a product kept, with a P99 below [`P99_MAX_MS`], before the first step that it did
/// not keep. A later step that was kept is noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// The knee by the medians over the rounds.
    pub at: f64,
    /// The reason why the knee is not higher.
    pub end: End,
    /// The knees of the single rounds; 0 for a round that kept no step.
    pub rounds: Spread,
}

/// The reason why a knee is not higher.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The step at this rate was not kept.
    Failed(f64),
    /// The step at this rate was not measured.
    NotMeasured(f64),
    /// The step was the last one.
    OfRamp,
}

/// The result of one climb of the ramp.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Climb {
    /// The last kept step; `None` if the first step was not kept.
    kept: Option<f64>,
    end: End,
}

/// Climbs the steps in order; each is kept, not kept, or not measured (`None`).
fn climb(steps: impl IntoIterator<Item = (f64, Option<bool>)>) -> Climb {
    let mut kept = None;
    for (at, is_kept) in steps {
        match is_kept {
            Some(true) => kept = Some(at),
            Some(false) => return Climb { kept, end: End::Failed(at) },
            None => return Climb { kept, end: End::NotMeasured(at) },
        }
    }
    Climb { kept, end: End::OfRamp }
}

impl Climb {
    /// The bounds of the knee; 0 or infinity if the ramp does not show them.
    fn bounds(self) -> (f64, f64) {
        let high = match self.end {
            End::Failed(at) => at,
            End::NotMeasured(_) | End::OfRamp => f64::INFINITY,
        };
        (self.kept.unwrap_or(0.0), high)
    }
}

impl Knees {
    pub(super) fn new(
        settings: &[f64],
        points: &Points<'_>,
        products: &[Product],
        weir: Option<usize>,
    ) -> Self {
        let by_round: Vec<Vec<(u32, Climb)>> = products
            .iter()
            .map(|product| climbs_by_round(settings, points, &product.name))
            .collect();
        let of = products
            .iter()
            .zip(&by_round)
            .map(|(product, rounds)| {
                let steps = settings.iter().map(|&at| (at, is_kept(points.of(at, &product.name))));
                let Climb { kept, end } = climb(steps);
                let rounds = rounds.iter().map(|(_, climb)| climb.kept.unwrap_or(0.0));
                Some(Knee { at: kept?, end, rounds: Spread::of(rounds)? })
            })
            .collect();
        let first = settings.first().copied().unwrap_or(0.0);
        let ratios = (0..products.len())
            .map(|index| {
                let weir = weir.filter(|weir| *weir != index)?;
                ratio(first, &by_round[weir], &by_round[index])
            })
            .collect();
        Self { of, ratios }
    }

    /// [`Knees::told`], shortened for a chart: `10,000/s kept, 15,000/s not`.
    pub fn told_short(&self, product: usize) -> Option<String> {
        let knee = self.of.get(product).copied().flatten()?;
        let at = text::number(knee.at);
        Some(match knee.end {
            End::Failed(next) => format!("{at}/s kept, {}/s not", text::number(next)),
            End::NotMeasured(next) => {
                format!("{at}/s kept, {}/s not measured", text::number(next))
            }
            End::OfRamp => format!("beyond {at}/s, the end of the ramp"),
        })
    }

    /// A knee as text, with the kept step and the next one, because the knee lies between them. `None` if no rate was
    /// kept.
    pub fn told(&self, product: usize) -> Option<String> {
        let knee = self.of.get(product).copied().flatten()?;
        let at = text::number(knee.at);
        Some(match knee.end {
            End::Failed(next) => {
                format!(
                    "at least {at}/s, less than {}/s (the first step not kept)",
                    text::number(next)
                )
            }
            End::NotMeasured(next) => {
                format!(
                    "at least {at}/s (the next step, {}/s, was not measured)",
                    text::number(next)
                )
            }
            End::OfRamp => format!("at least {at}/s (the end of the ramp)"),
        })
    }

    /// Whether the product kept this rate.
    pub fn holds(&self, product: usize, at: f64) -> bool {
        self.of.get(product).copied().flatten().is_some_and(|knee| at <= knee.at)
    }
}

/// Whether the rate was kept, by the medians of these points; `None` without points.
fn is_kept(points: &[&Point]) -> Option<bool> {
    if points.is_empty() {
        return None;
    }
    let p99 = Spread::of(points.iter().filter_map(|p| value_of(Figure::LatencyP99, p)));
    let (Some(share), Some(p99)) = (kept(points), p99) else { return Some(false) };
    Some(share >= KEPT_SHARE_MIN && p99.median < P99_MAX_MS)
}

/// The climb of a product in each of its rounds.
fn climbs_by_round(settings: &[f64], points: &Points<'_>, product: &str) -> Vec<(u32, Climb)> {
    let of = |at: f64| points.of(at, product).iter();
    let mut rounds: Vec<u32> =
        settings.iter().flat_map(|&at| of(at).map(|point| point.round)).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let steps = |round: u32| {
        settings.iter().map(move |&at| {
            let point = of(at).find(|point| point.round == round);
            (at, point.and_then(|point| is_kept(&[point])))
        })
    };
    rounds.into_iter().map(|round| (round, climb(steps(round)))).collect()
}

/// Weir's knee divided by a peer's knee. The median uses the kept steps. The interval reaches from weir's kept step
/// divided by the peer's next step, to weir's next step divided by the peer's kept step, because a knee lies anywhere
/// between its steps. Both ends include the noise of the rounds.
fn ratio(first: f64, weir: &[(u32, Climb)], peer: &[(u32, Climb)]) -> Option<Ratio> {
    let pairs: Vec<(Climb, Climb)> = weir
        .iter()
        .filter_map(|(round, own)| {
            let (_, other) = peer.iter().find(|(other, _)| other == round)?;
            Some((*own, *other))
        })
        .collect();
    let counted = |climb: Climb| climb.kept.unwrap_or(first * BELOW_FIRST_STEP_SHARE);
    let kept = Ratio::paired(pairs.iter().map(|&(own, by)| (counted(own), counted(by))))?;
    let end = |of: fn(Climb, Climb) -> (f64, f64)| {
        let ratio = Ratio::paired(pairs.iter().map(|&(own, by)| of(own, by)))?;
        // If the end is open in one round, it is open in the result.
        (ratio.rounds == kept.rounds).then_some(ratio.interval)?
    };
    let low = end(|own, by| (own.bounds().0, by.bounds().1)).map_or(0.0, |(low, _)| low);
    let high =
        end(|own, by| (own.bounds().1, by.bounds().0)).map_or(f64::INFINITY, |(_, high)| high);
    let interval =
        kept.interval.map(|(kept_low, kept_high)| (low.min(kept_low), high.max(kept_high)));
    Some(Ratio { interval, ..kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Run;
    use crate::report::model::Report;
    use crate::report::testing;

    #[test]
    fn a_knee_is_told_with_the_next_step() {
        let mut run: Run = testing::run();
        run.tests.retain(|test| test.name == "ramp");
        for point in &mut run.tests[0].points {
            let is_kept = match point.product.as_str() {
                "weir" => true,
                "nginx" => point.at <= 10_000.0,
                _ => false,
            };
            point.load.latency_us.p99 = if is_kept { 1_000 } else { 20_000 };
            testing::keep_share(point, 1.0);
        }
        let report = Report::new(run);
        let knees = report.tests[0].knees.as_ref().expect("knees");
        let told = |name: &str| {
            let product = report.run.products.iter().position(|product| product.name == name);
            knees.told(product.expect("a product"))
        };
        let expected = "at least 10,000/s, less than 15,000/s (the first step not kept)";
        assert_eq!(told("nginx").as_deref(), Some(expected));
        assert!(told("weir").is_some_and(|told| told.ends_with("/s (the end of the ramp)")));
        assert_eq!(told("haproxy"), None);
    }

    /// weir's knee for these P99 latencies and shares of the offered rate, by round and step.
    fn knee_of(p99_ms: &[[u64; 4]; 3], kept: &[[f64; 4]; 3]) -> Option<(f64, f64, f64, End)> {
        let mut run: Run = testing::run();
        run.tests.retain(|test| test.name == "ramp");
        let record = &mut run.tests[0];
        record.points.retain(|point| point.at <= 20_000.0 && point.product == "weir");
        for point in &mut record.points {
            let step = if point.at < 1_000.0 { 0 } else { (point.at / 5_000.0) as usize - 1 };
            let round = point.round as usize;
            point.load.latency_us.p99 = p99_ms[round][step] * 1_000;
            testing::keep_share(point, kept[round][step]);
        }
        let report = Report::new(run);
        let knees = report.tests[0].knees.as_ref()?;
        let weir = report.weir?;
        let knee = knees.of[weir]?;
        Some((knee.at, knee.rounds.min, knee.rounds.max, knee.end))
    }

    #[test]
    fn knees() {
        // Steps: 500, 10,000, 15,000 and 20,000 requests per second.
        let check = |p99_ms, kept, expected| {
            assert_eq!(knee_of(&p99_ms, &kept), expected, "{p99_ms:?} {kept:?}");
        };
        let all = [[1.0; 4]; 3];
        let failed = End::Failed;
        check([[1, 2, 3, 4]; 3], all, Some((20e3, 20e3, 20e3, End::OfRamp)));
        check([[1, 2, 3, 10]; 3], all, Some((15e3, 15e3, 15e3, failed(20e3))));
        // A failed step ends the ramp, even if a later one succeeds.
        check([[1, 2, 30, 9]; 3], all, Some((10e3, 10e3, 10e3, failed(15e3))));
        check(
            [[1, 2, 30, 40], [1, 2, 3, 40], [1, 2, 3, 4]],
            all,
            Some((15e3, 10e3, 20e3, failed(20e3))),
        );
        // A round that sustained no step is the lowest and is not dropped.
        check(
            [[30, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]],
            all,
            Some((20e3, 0.0, 20e3, End::OfRamp)),
        );
        check([[1; 4]; 3], [[1.0, 1.0, 0.99, 0.98]; 3], Some((15e3, 15e3, 15e3, failed(20e3))));
        check([[10; 4]; 3], all, None);
    }

    #[test]
    fn a_step_that_was_not_measured_ends_the_ramp() {
        let check = |steps: &[Option<bool>], kept: Option<f64>, end: End| {
            let steps = steps.iter().enumerate().map(|(step, kept)| (step as f64, *kept));
            assert_eq!(climb(steps), Climb { kept, end });
        };
        check(&[], None, End::OfRamp);
        check(&[Some(true), None, Some(true)], Some(0.0), End::NotMeasured(1.0));
        check(&[None, Some(true)], None, End::NotMeasured(0.0));
        check(&[Some(false), Some(true)], None, End::Failed(0.0));
        check(&[Some(true), Some(true)], Some(1.0), End::OfRamp);
    }

    #[test]
    fn ratios_are_as_wide_as_the_steps() {
        let climb = |kept: f64, next: f64| {
            let end = if next.is_finite() { End::Failed(next) } else { End::OfRamp };
            Climb { kept: (kept > 0.0).then_some(kept), end }
        };
        let check =
            |weir: [(f64, f64); 3], peer: [(f64, f64); 3], median: f64, ends: (f64, f64)| {
                let rounds = |climbs: [(f64, f64); 3]| {
                    let climbs = climbs.map(|(kept, next)| climb(kept, next));
                    (0..3).zip(climbs).collect::<Vec<(u32, Climb)>>()
                };
                let ratio = ratio(1e3, &rounds(weir), &rounds(peer)).expect("a ratio");
                let (low, high) = ratio.interval.expect("an interval");
                let is_close = |found: f64, expected: f64| {
                    found == expected || (found / expected - 1.0).abs() < 1e-9
                };
                assert!(is_close(ratio.median, median), "{ratio:?}");
                assert!(is_close(low, ends.0) && is_close(high, ends.1), "{ratio:?}");
            };
        const END: f64 = f64::INFINITY;
        check([(20e3, 30e3); 3], [(20e3, 30e3); 3], 1.0, (2.0 / 3.0, 1.5));
        check([(30e3, 40e3); 3], [(10e3, 20e3); 3], 3.0, (1.5, 4.0));
        check([(30e3, END); 3], [(10e3, 20e3); 3], 3.0, (1.5, END));
        check([(30e3, END); 3], [(30e3, END); 3], 1.0, (0.0, END));
        // Below the first step, the knee may be anywhere.
        check([(0.0, 1e3); 3], [(2e3, 4e3); 3], 0.25, (0.0, 0.5));
        let ratio = ratio(1e3, &[(0, climb(1e3, 2e3))], &[(0, climb(1e3, 2e3))]).expect("a ratio");
        assert_eq!(ratio.interval, None, "one round says nothing about noise");
    }
}
