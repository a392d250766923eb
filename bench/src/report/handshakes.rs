//! Handshake rates as a share of the bare signature rate.

use crate::catalogue::{Figure, SIGNATURES};

use super::model::{Report, TestReport, WEIR, is_peer};
use super::text;

/// One sentence per setting: the library's bare signature rate, and the share of it that products reach with complete
/// handshakes.
pub fn told(report: &Report, test: &TestReport) -> Vec<String> {
    let place = report.run.products.iter().position(|product| product.name == SIGNATURES);
    let figure = test.figures.iter().find(|figure| figure.figure == Figure::HandshakesPerCpuSecond);
    let (Some(place), Some(figure)) = (place, figure) else { return Vec::new() };
    let told = |cell: &super::model::Cell| {
        let bare = cell.values[place]?.median;
        let shares: Vec<String> = (0..report.run.products.len())
            .filter(|&product| {
                let name = report.product(product);
                name == WEIR || is_peer(name)
            })
            .filter_map(|product| {
                let share = cell.values[product]?.median / bare;
                Some(format!("{} {:.0}%", report.label(product), share * 100.0))
            })
            .collect();
        let setting = text::setting(test.test.axis, cell.at);
        let reached = if shares.is_empty() {
            "no product was measured at this setting".to_owned()
        } else {
            format!("of these, whole handshakes reach: {}", text::list(&shares))
        };
        Some(format!(
            "{setting}: {} bare signatures per CPU second; {reached}.",
            text::number(bare)
        ))
    };
    figure.cells.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Product;
    use crate::report::testing;

    #[test]
    fn the_distance_to_the_limit_is_told() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "ssl-tps");
        let without = Report::new(run.clone());
        assert_eq!(told(&without, &without.tests[0]), [""; 0]);
        run.products.push(Product {
            name: SIGNATURES.into(),
            version: "0.1.0".into(),
            ..Product::default()
        });
        let points = &mut run.tests[0].points;
        points.retain(|point| point.at == 0.0 && ["weir", "nginx"].contains(&&*point.product));
        for point in points.iter_mut() {
            let busy_s = if point.product == "weir" { 1.0 } else { 2.0 };
            (point.load.requests, point.load.elapsed_s) = (1_700, 5.0);
            (point.cost.busy_s, point.cost.elapsed_s) = (busy_s, 5.0);
        }
        let mut bare = points.iter().find(|point| point.product == "weir").expect("one").clone();
        (bare.product, bare.load.requests) = (SIGNATURES.into(), 2_000);
        points.push(bare);
        let report = Report::new(run);
        assert_eq!(
            told(&report, &report.tests[0]),
            [
                "TLS 1.3, RSA-2048: 2,000 bare signatures per CPU second; of these, whole handshakes reach: weir 85% and nginx 42%."
            ]
        );
    }
}
