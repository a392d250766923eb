//! Where a product stops keeping up with a rising load.

use crate::catalogue::Figure;
use crate::record::{Point, Product};

use super::model::{Points, kept, value_of};
use super::stats::{Ratio, Spread};
use super::text;
use crate::load::KEPT_SHARE_MIN;

/// The P99 below which a rate counts as served.
pub const P99_MAX_MS: f64 = 10.0;

/// The knees of all products, by their place.
#[derive(Debug)]
pub struct Knees {
    /// Per product; `None` where it kept no rate at all or was not measured.
    pub of: Vec<Option<Knee>>,
    /// weir's knee over this product's, paired by round.
    pub ratios: Vec<Option<Ratio>>,
    /// The rates that were offered, ascending.
    pub offered: Vec<f64>,
}

/// The highest offered rate that a product kept with a P99 below [`P99_MAX_MS`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// By the medians over the rounds.
    pub at: f64,
    /// Lowest and highest of single rounds.
    pub rounds: Spread,
}

impl Knees {
    pub(super) fn new(
        settings: &[f64],
        points: &Points<'_>,
        products: &[Product],
        weir: Option<usize>,
    ) -> Self {
        let by_round: Vec<Vec<(u32, f64)>> = products
            .iter()
            .map(|product| knees_by_round(settings, points, &product.name))
            .collect();
        let of = products
            .iter()
            .zip(&by_round)
            .map(|(product, rounds)| {
                let kept =
                    settings.iter().rev().find(|&&at| is_kept(points.of(at, &product.name)))?;
                let rounds = Spread::of(rounds.iter().map(|(_, at)| *at))?;
                Some(Knee { at: *kept, rounds })
            })
            .collect();
        let ratios = (0..products.len())
            .map(|index| {
                let weir = weir.filter(|weir| *weir != index)?;
                let peer = &by_round[index];
                Ratio::paired(by_round[weir].iter().filter_map(|(round, at)| {
                    let (_, by) = peer.iter().find(|(other, _)| other == round)?;
                    Some((*at, *by))
                }))
            })
            .collect();
        Self { of, ratios, offered: settings.to_vec() }
    }

    /// The next higher rate that was offered.
    fn next_offered(&self, at: f64) -> Option<f64> {
        self.offered.iter().copied().find(|offered| *offered > at)
    }

    /// [`Knees::told`] in the room of a chart: `10,000/s kept, 15,000/s not`.
    pub fn told_short(&self, product: usize) -> Option<String> {
        let knee = self.of.get(product).copied().flatten()?;
        let at = text::number(knee.at);
        Some(match self.next_offered(knee.at) {
            Some(next) => format!("{at}/s kept, {}/s not", text::number(next)),
            None => format!("beyond {at}/s, the end of the ramp"),
        })
    }

    /// A knee with what is known of it: it lies somewhere between a step that was kept and the next one,
    /// and steps may be far apart. `None` where no rate was kept.
    pub fn told(&self, product: usize) -> Option<String> {
        let knee = self.of.get(product).copied().flatten()?;
        let at = text::number(knee.at);
        Some(match self.next_offered(knee.at) {
            Some(next) => {
                format!("at least {at}/s, less than {}/s (the next step)", text::number(next))
            }
            None => format!("at least {at}/s (the end of the ramp)"),
        })
    }

    /// Whether this rate is within what the product kept.
    pub fn holds(&self, product: usize, at: f64) -> bool {
        self.of.get(product).copied().flatten().is_some_and(|knee| at <= knee.at)
    }
}

/// Whether the rate was kept, by the medians over the rounds.
fn is_kept(points: &[&Point]) -> bool {
    let p99 = Spread::of(points.iter().filter_map(|p| value_of(Figure::LatencyP99, p)));
    let (Some(share), Some(p99)) = (kept(points), p99) else { return false };
    share >= KEPT_SHARE_MIN && p99.median < P99_MAX_MS
}

fn knees_by_round(settings: &[f64], points: &Points<'_>, product: &str) -> Vec<(u32, f64)> {
    let mut knees: Vec<(u32, f64)> = Vec::new();
    for &at in settings {
        for point in points.of(at, product) {
            if !is_kept(&[point]) {
                continue;
            }
            match knees.iter_mut().find(|(round, _)| *round == point.round) {
                Some(knee) => knee.1 = at,
                None => knees.push((point.round, at)),
            }
        }
    }
    knees
}

#[cfg(test)]
mod tests {
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
        let expected = "at least 10,000/s, less than 15,000/s (the next step)";
        assert_eq!(told("nginx").as_deref(), Some(expected));
        assert!(told("weir").is_some_and(|told| told.ends_with("/s (the end of the ramp)")));
        assert_eq!(told("haproxy"), None);
    }

    /// weir's knee where its P99 and its share of the offered rate are these, by round and step.
    fn knee_of(p99_ms: &[[u64; 4]; 3], kept: &[[f64; 4]; 3]) -> Option<(f64, f64, f64, bool)> {
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
        let is_beyond_ramp = knees.next_offered(knee.at).is_none();
        Some((knee.at, knee.rounds.min, knee.rounds.max, is_beyond_ramp))
    }

    #[test]
    fn knees() {
        // Steps: 500, 10,000, 15,000 and 20,000 requests per second.
        let check = |p99_ms, kept, expected| {
            assert_eq!(knee_of(&p99_ms, &kept), expected, "{p99_ms:?} {kept:?}");
        };
        let all = [[1.0; 4]; 3];
        check([[1, 2, 3, 4]; 3], all, Some((20e3, 20e3, 20e3, true)));
        check([[1, 2, 3, 10]; 3], all, Some((15e3, 15e3, 15e3, false)));
        check([[1, 2, 30, 9]; 3], all, Some((20e3, 20e3, 20e3, true)));
        check([[1, 2, 30, 40], [1, 2, 3, 40], [1, 2, 3, 4]], all, Some((15e3, 10e3, 20e3, false)));
        check([[1; 4]; 3], [[1.0, 1.0, 0.99, 0.98]; 3], Some((15e3, 15e3, 15e3, false)));
        check([[10; 4]; 3], all, None);
    }
}
