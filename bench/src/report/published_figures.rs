//! Published figures of other products beside the figures of this run.
//!
//! Figures of another machine are not comparable; they only show what was published. From our
//! figures, the report estimates the capacity of a core behind a physical device, and shows the calculation.

use crate::catalogue::Figure;

use super::model::{Report, TestReport};
use super::text;

/// Gbit/s that F5 published for BIG-IP VE in 2018, and the number of virtual cores.
const F5_2018_GBIT_PER_S: f64 = 108.0;
const F5_2018_CORES: f64 = 24.0;
/// Data bytes per segment at an MTU of 1,500, and packets per segment: the segment, and one acknowledgement per two
/// segments.
const SEGMENT_BYTES: f64 = 1_448.0;
const PACKETS_PER_SEGMENT: f64 = 1.5;
/// Million packets per second on one core, from the XDP paper: Katran, and IPVS on the same kernel.
const KATRAN_MPPS: f64 = 5.2;
const IPVS_MPPS: f64 = 1.2;

/// The published figures for a test, and our estimate, as sentences.
pub fn told(report: &Report, test: &TestReport) -> Vec<String> {
    let mut said: Vec<String> = published(test.test.name).into_iter().collect();
    said.extend(estimate(report, test));
    said
}

fn published(test: &str) -> Option<String> {
    Some(match test {
        "l4-connections" | "l4-throughput" | "l4-envelope" => {
            "Published: F5's report of 2013 has this figure for appliances with hardware for layer 4 (BIG-IP 4200v, \
             VIPRION B2100, Citrix MPX-11500, Cisco ACE 30, Radware Alteon 5224XL); we follow its method, and its \
             numbers are of other machines."
                .to_owned()
        }
        "l4-512k" | "fast-l4" => format!(
            "Published: F5 BIG-IP VE 13.1 (2018) {F5_2018_GBIT_PER_S:.0} Gbit/s on {F5_2018_CORES:.0} virtual cores \
             with SR-IOV and huge pages, one transaction of 512 KB per connection: {F5_2018_GBIT_PER_S:.0} / {F5_2018_CORES:.0} = {:.1} Gbit/s per core.",
            F5_2018_GBIT_PER_S / F5_2018_CORES
        ),
        "l4-packets" => format!(
            "Published, per core with a physical device: Katran {KATRAN_MPPS} and IPVS {IPVS_MPPS} million packets/s \
             (XDP paper and its benchmark 06)."
        ),
        _ => return None,
    })
}

/// The estimated capacity of a whole core, from weir's CPU time per gigabyte or packet.
fn estimate(report: &Report, test: &TestReport) -> Option<String> {
    let own = |wanted: Figure| {
        let figure = test.figures.iter().find(|figure| figure.figure == wanted)?;
        let cell = figure.cells.first()?;
        cell.values[report.weir?].map(|value| value.median).filter(|value| *value > 0.0)
    };
    let network = &report.run.bed.kind;
    match test.test.name {
        "l4-512k" | "l4-throughput" => {
            let ms_per_gb = own(Figure::CpuPerGigabyte)?;
            Some(format!(
                "Estimate for a core behind a physical device: weir takes {} ms of CPU per GB over {network}; a full \
                 core has 1,000 ms a second: 1,000 / {} × 8 bit = {} Gbit/s. It leaves out the driver and the interrupts \
                 of a device, and has packets as large as {network} makes them: an upper bound, not a measurement.",
                text::number(ms_per_gb),
                text::number(ms_per_gb),
                text::number(8_000.0 / ms_per_gb),
            ))
        }
        "l4-packets" => {
            let ns = own(Figure::CpuPerPacket)?;
            let segments_per_s = 1e9 / ns / PACKETS_PER_SEGMENT;
            Some(format!(
                "Estimate for a core behind a physical device, with few flows: 1,000,000,000 ns / {} ns = {} million packets/s. \
                 Segments of {SEGMENT_BYTES:.0} bytes, with an acknowledgement for every second of them: {} million / {PACKETS_PER_SEGMENT} × {SEGMENT_BYTES:.0} × \
                 8 bit = {} Gbit/s, beside the {F5_2018_GBIT_PER_S:.0} / {F5_2018_CORES:.0} = {:.1} Gbit/s per virtual core of BIG-IP VE 13.1 (2018). A device hands \
                 packets over in other ways than the virtual link of this run: not a measurement.",
                text::number(ns),
                text::number(1_000.0 / ns),
                text::number(1_000.0 / ns),
                text::number(segments_per_s * SEGMENT_BYTES * 8.0 / 1e9),
                F5_2018_GBIT_PER_S / F5_2018_CORES,
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn of(run: crate::record::Run, name: &str) -> Vec<String> {
        let report = Report::new(run);
        let test = report.tests.iter().find(|test| test.test.name == name).expect(name);
        told(&report, test)
    }

    #[test]
    fn published_figures_and_estimates_are_told_with_their_arithmetic() {
        let mut run = testing::run();
        let record = run.tests.iter_mut().find(|test| test.name == "l4-512k").expect("a test");
        for point in record.points.iter_mut().filter(|point| point.product == "weir") {
            let window = point.load.completed();
            let seconds = point.cost.elapsed_s / window.elapsed_s;
            // 250 ms per gigabyte.
            point.cost.busy_s = window.bytes as f64 * seconds / 1e9 * 0.25;
        }
        let said = of(run, "l4-512k").join("\n");
        assert!(said.contains("108 / 24 = 4.5 Gbit/s per core"), "{said}");
        assert!(said.contains("1,000 / 250 × 8 bit = 32.0 Gbit/s"), "{said}");
        assert!(said.contains("Estimate"), "{said}");
        assert_eq!(of(testing::run(), "l7-requests"), Vec::<String>::new());
    }
}
