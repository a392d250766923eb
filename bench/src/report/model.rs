//! The model of a run: figures by product and setting, and ratios of weir to its peers.

use crate::catalogue::{self, Axis, COUNTED_NOISE_SHARE, Figure, Test, is_yardstick, maker};
use crate::load::KEPT_SHARE_MIN;
use crate::record::{Point, Product, Run, TestRecord};

use super::knee::Knees;
use super::points::{Points, is_judgeable, kept, value_of};
use super::source::key;
use super::stats::{Ratio, Spread};
use super::text;

/// The product that the report judges.
pub const WEIR: &str = "weir";

/// A run and everything calculated from it.
#[derive(Debug)]
pub struct Report {
    /// The record.
    pub run: Run,
    /// Index of weir among the products.
    pub weir: Option<usize>,
    /// The tests of the run, in the order of the catalogue.
    pub tests: Vec<TestReport>,
    /// Tests in the run that this version does not know.
    pub unknown_tests: Vec<String>,
    /// Tests of the catalogue that the run does not have.
    pub tests_not_run: Vec<&'static Test>,
    /// The label of each product, see [`Report::label`].
    labels: Vec<String>,
}

/// One test of the run.
#[derive(Debug)]
pub struct TestReport {
    /// The test.
    pub test: &'static Test,
    /// The index of its record in the run.
    pub record: usize,
    /// Indexes of the products that took part or were omitted.
    pub takers: Vec<usize>,
    /// The settings, ascending.
    pub settings: Vec<f64>,
    /// The figures, in the order of the catalogue, without figures that have no value.
    pub figures: Vec<FigureReport>,
    /// The knees, in the test that finds them.
    pub knees: Option<Knees>,
    /// The kept share of the offered rate, the lowest median, by setting and product; `None` in a closed loop.
    pub kept: Vec<Vec<Option<f64>>>,
    /// Number of failed requests in all rounds, by setting and product.
    pub errors: Vec<Vec<u64>>,
}

/// One figure of a test.
#[derive(Debug)]
pub struct FigureReport {
    /// The figure.
    pub figure: Figure,
    /// Whether products are judged by the figure.
    pub is_judged: bool,
    /// One cell per setting of the test.
    pub cells: Vec<Cell>,
}

/// One figure at one setting.
#[derive(Debug)]
pub struct Cell {
    /// The setting.
    pub at: f64,
    /// The values by product.
    pub values: Vec<Option<Spread>>,
    /// Weir's value divided by the product's value, paired by round; `None` for weir itself.
    pub ratios: Vec<Option<Ratio>>,
}

impl Report {
    /// Calculates everything from a checked run.
    pub fn new(run: Run) -> Self {
        let weir = run.products.iter().position(|product| product.name == WEIR);
        let mut tests = Vec::new();
        let mut tests_not_run = Vec::new();
        for test in catalogue::TESTS {
            match run.tests.iter().position(|record| record.name == test.name) {
                Some(record) => tests.push(TestReport::new(test, record, &run, weir)),
                None => tests_not_run.push(test),
            }
        }
        let is_unknown = |record: &&TestRecord| catalogue::test(&record.name).is_none();
        let unknown_tests = run.tests.iter().filter(is_unknown).map(|r| r.name.clone()).collect();
        let labels = labels(&run.products);
        Self { run, weir, tests, unknown_tests, tests_not_run, labels }
    }

    /// The record of a test.
    pub fn record(&self, test: &TestReport) -> &TestRecord {
        &self.run.tests[test.record]
    }

    /// Whether the test at this index is the first of its chapter.
    pub fn begins_chapter(&self, place: usize) -> bool {
        let chapter = |test: &TestReport| test.test.chapter;
        place == 0 || chapter(&self.tests[place - 1]) != chapter(&self.tests[place])
    }

    /// The name of a product by its index.
    pub fn product(&self, index: usize) -> &str {
        &self.run.products[index].name
    }

    /// The label of a product: the name as its makers write it, with the version if the product has two rows.
    pub fn label(&self, index: usize) -> &str {
        &self.labels[index]
    }

    /// The label of the product with this name; for an absent product, the name as its makers write it.
    pub fn called<'a>(&'a self, name: &'a str) -> &'a str {
        let place = self.run.products.iter().position(|product| product.name == name);
        place.map_or_else(|| text::maker(name), |place| self.label(place))
    }

    /// Indexes of weir's peers.
    pub fn peers(&self) -> impl Iterator<Item = usize> {
        (0..self.run.products.len()).filter(|&index| is_peer(&self.run.products[index].name))
    }
}

/// See [`Report::label`].
fn labels(products: &[Product]) -> Vec<String> {
    let is_of = |product: &Product, other: &Product| maker(&product.name) == maker(&other.name);
    let mut labels: Vec<String> = Vec::new();
    for product in products {
        let name = text::maker(&product.name);
        let is_alone = products.iter().filter(|other| is_of(product, other)).count() == 1;
        let number = text::short_version_number(&product.version).filter(|_| !is_alone);
        let label = number.map_or_else(|| name.to_owned(), |number| format!("{name} {number}"));
        // Both rows have the same version, or an unknown one.
        let is_taken = labels.contains(&label);
        labels.push(if is_taken { format!("{label} (second)") } else { label });
    }
    labels
}

/// Whether the product is a peer, against which weir wins or loses.
pub fn is_peer(name: &str) -> bool {
    name != WEIR && !is_yardstick(name)
}

impl TestReport {
    fn new(test: &'static Test, record_index: usize, run: &Run, weir: Option<usize>) -> Self {
        let record = &run.tests[record_index];
        let points = Points::new(record);
        let settings = settings(record);
        let takes_part = |name: &str| {
            record.points.iter().any(|point| point.product == name)
                || record.omissions.iter().any(|omission| omission.product == name)
        };
        let takers = (0..run.products.len())
            .filter(|&index| takes_part(&run.products[index].name))
            .collect();
        let figures = test
            .figures
            .iter()
            .map(|&figure| FigureReport::new(test, figure, &settings, &points, run, weir))
            .filter(FigureReport::has_values)
            .collect();
        let kept = settings
            .iter()
            .map(|&at| run.products.iter().map(|p| kept(points.of(at, &p.name))).collect())
            .collect();
        let errors_of = |points: &[&Point]| {
            points.iter().map(|point| point.load.errors).fold(0, u64::saturating_add)
        };
        let errors = settings
            .iter()
            .map(|&at| run.products.iter().map(|p| errors_of(points.of(at, &p.name))).collect())
            .collect();
        let knees = (test.axis == Axis::OfferedRate)
            .then(|| Knees::new(&settings, &points, &run.products, weir));
        Self { test, record: record_index, takers, settings, figures, knees, kept, errors }
    }

    /// Whether a product did not keep the offered rate at a setting.
    pub fn fell_behind(&self, setting: usize, product: usize) -> bool {
        let kept = self.kept.get(setting).and_then(|products| *products.get(product)?);
        kept.is_some_and(|share| share < KEPT_SHARE_MIN)
    }

    /// Whether a product failed requests or did not keep the offered rate at a setting.
    pub fn has_failed(&self, setting: usize, product: usize) -> bool {
        let errors = self.errors.get(setting).and_then(|products| products.get(product));
        errors.is_some_and(|errors| *errors > 0) || self.fell_behind(setting, product)
    }
}

fn settings(record: &TestRecord) -> Vec<f64> {
    let points = record.points.iter().map(|point| point.at);
    let mut settings: Vec<f64> =
        points.chain(record.omissions.iter().filter_map(|omission| omission.at)).collect();
    settings.sort_by(f64::total_cmp);
    settings.dedup_by_key(|at| key(*at));
    settings
}

impl FigureReport {
    fn new(
        test: &Test,
        figure: Figure,
        settings: &[f64],
        points: &Points<'_>,
        run: &Run,
        weir: Option<usize>,
    ) -> Self {
        let value = |point: &Point| value_of(figure, point);
        let judged = |point: &Point| value(point).filter(|_| is_judgeable(figure, point));
        let weir = weir.map(|index| run.products[index].name.as_str());
        let cell = |&at: &f64| Cell {
            at,
            values: run
                .products
                .iter()
                .map(|p| Spread::of(points.of(at, &p.name).iter().filter_map(|p| value(p))))
                .collect(),
            ratios: run
                .products
                .iter()
                .map(|p| {
                    let weir = weir.filter(|weir| *weir != p.name)?;
                    let ratio = points.ratio(at, weir, &p.name, judged)?;
                    let repeatable = || ratio.with_noise_of_at_least(COUNTED_NOISE_SHARE);
                    let is_repeatable = figure.is_repeatable(test.axis, at);
                    Some(if is_repeatable { repeatable() } else { ratio })
                })
                .collect(),
        };
        Self {
            figure,
            is_judged: test.judged.contains(&figure),
            cells: settings.iter().map(cell).collect(),
        }
    }

    fn has_values(&self) -> bool {
        self.cells.iter().any(|cell| cell.values.iter().any(Option::is_some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn the_p99_of_few_requests_is_shown_and_not_judged() {
        for (count, is_judged) in [(100, false), (499, false), (500, true)] {
            let mut run = testing::run();
            run.tests.retain(|test| test.name == "p99-idle");
            for point in &mut run.tests[0].points {
                point.load.latency_us.count = count;
            }
            let report = Report::new(run);
            for figure in &report.tests[0].figures {
                let cell = &figure.cells[0];
                assert!(cell.values.iter().all(Option::is_some));
                let expected = is_judged || figure.figure != Figure::LatencyP99;
                assert_eq!(cell.ratios[1].is_some(), expected, "{count} {:?}", figure.figure);
            }
            let told = crate::report::story::few_requests(&report, &report.tests[0]);
            assert_eq!(told.is_some(), !is_judged, "{told:?}");
        }
    }

    #[test]
    fn what_is_repeatable_is_judged_after_one_round() {
        let mut run = testing::run();
        run.tests.iter_mut().for_each(|test| test.points.retain(|point| point.round == 0));
        let report = Report::new(run);
        let check = |test: &str, at: f64, figure: Figure, expected: bool| {
            let test = report.tests.iter().find(|report| report.test.name == test).expect("a test");
            let figure = test.figures.iter().find(|report| report.figure == figure).expect("one");
            let cell = figure.cells.iter().find(|cell| cell.at == at).expect("a setting");
            let has_noise = cell.ratios[1].expect("a ratio").interval.is_some();
            assert_eq!(has_noise, expected, "{} {at} {:?}", test.test.name, figure.figure);
        };
        check("instructions", 0.0, Figure::InstructionsPerRequest, true);
        check("system-calls", 1.0, Figure::SystemCallsPerRequest, true);
        check("system-calls", 64.0, Figure::SystemCallsPerRequest, false);
        check("idle-memory", 0.0, Figure::MemoryPerConnection, false);
        check("l7-requests", 0.0, Figure::Rate, false);
    }

    #[test]
    fn two_rows_of_one_maker_are_told_apart() {
        let check = |second: &str, expected: &[&str], versioned: &str| {
            let mut run = testing::run();
            let version = second.to_owned();
            let row = Product { name: "haproxy-2".to_owned(), version, ..run.products[2].clone() };
            run.products.insert(3, row);
            let report = Report::new(run);
            let labels: Vec<&str> = (0..4).map(|index| report.label(index)).collect();
            assert_eq!(labels, expected);
            assert_eq!(crate::report::story::versioned(&report, 3), versioned);
            assert_eq!(report.called("haproxy-2"), expected[3]);
            assert_eq!(report.called("pingora"), "pingora");
            assert!(report.peers().any(|peer| peer == 3));
        };
        let old = "HAProxy 2.6.12";
        check("3.4.0 2026/06/03", &["weir", "nginx", old, "HAProxy 3.4.0"], "HAProxy 3.4.0");
        let again = "2.6.12-9 2026/10/17";
        let second = "HAProxy 2.6.12 (second)";
        check(again, &["weir", "nginx", old, second], "HAProxy 2.6.12-9 (second)");
        check("", &["weir", "nginx", old, "HAProxy"], "HAProxy");
    }

    #[test]
    fn no_cpu_time_is_no_figure() {
        let mut point = testing::run().tests[0].points[0].clone();
        for (busy_s, is_told) in [(-0.1, false), (0.0, false), (0.1, true)] {
            (point.cost.busy_s, point.cost.process_s) = (busy_s, busy_s);
            for figure in [
                Figure::CpuPerRequest,
                Figure::CpuPerGigabyte,
                Figure::CoreBusy,
                Figure::RequestsPerCpuSecond,
                Figure::OwnCpuPerRequest,
            ] {
                let value = value_of(figure, &point);
                assert_eq!(value.is_some(), is_told, "{figure:?} of {busy_s} s: {value:?}");
            }
        }
    }
}
