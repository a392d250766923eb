//! The method of measurement and judgement. The page and the Markdown share this text.

use crate::catalogue::COUNTED_NOISE_SHARE;
use crate::disturbance::{
    FOREIGN_SHARE_MAX, LOAD_SATURATED_SHARE, REPEATS_AT_ONCE_MAX, RESTING_SHARE_MAX,
    STOLEN_NOTICED_SHARE, STOLEN_SHARE_MAX, WAITED_SHARE_MAX,
};
use crate::load::KEPT_SHARE_MIN;
use crate::record::{Point, TestRecord};

use super::knee::P99_MAX_MS;
use super::model::Report;
use super::percentiles::SLOWER_COUNT_MIN;
use super::source::key;
use super::text;
use super::verdict::difference_told;

/// The method as pairs of term and text.
pub fn terms(report: &Report) -> Vec<(&'static str, String)> {
    let mut terms = vec![
        ("Side by side", side_by_side(report)),
        ("Discarded", discarded()),
        ("Placement", placement(report)),
        ("Noise", noise()),
        ("Won and lost", won_and_lost()),
    ];
    terms.extend(what_the_figures_mean());
    terms
}

fn side_by_side(report: &Report) -> String {
    let order = if is_order_rotated(report) {
        "the order changes from round to round, so that every product is measured first and last at times"
    } else {
        "the order is the same in every round, so an effect of the position in that order is in no range of \
         noise"
    };
    format!(
        "In every round the products are measured one after another at the same setting, on the same machine, \
         with the same kernel, origin and load; {order}. A ratio is always computed within one round; the \
         median of the rounds' ratios counts. Do not compare absolute figures of two runs. Ratios of two \
         runs can be compared if the offered rate was the same."
    )
}

/// Whether the product that began a round was not the first in another round of the same setting, by the order of the
/// points.
fn is_order_rotated(report: &Report) -> bool {
    let is_same_setting = |a: &&Point, b: &Point| key(a.at) == key(b.at);
    let is_rotated = |test: &TestRecord| {
        test.points.iter().enumerate().any(|(index, point)| {
            let mut before =
                test.points[..index].iter().filter(|other| is_same_setting(other, point));
            let begins = before.clone().next();
            // The product of this point began the first round, but not its own round.
            begins.is_some_and(|begins| begins.product == point.product)
                && before.any(|other| other.round == point.round)
        })
    };
    report.run.tests.iter().any(is_rotated)
}

fn discarded() -> String {
    let percent = |share: f64| text::number(share * 100.0);
    format!(
        "A measurement is discarded, and its reason and product are recorded, when the hypervisor took more \
         than {}% of the cores, when the product waited for its core for more than {}% of the time, or when \
         another program used that core for more than {}% of the time. At a rate that every product can \
         keep, a measurement in which less than {}% of the rate succeeded is discarded only if the load's \
         cores were at least {}% busy or the hypervisor took more than {}%. Otherwise it counts, because the \
         product itself caused the stall. After a rest, a discarded measurement is repeated, up to \
         {REPEATS_AT_ONCE_MAX} times in a round. If that does not help, or if the product's core is more than {}% busy at \
         rest, the whole round is discarded for all products and repeated. Discarded measurements are \
         counted by product: a product with more of them than others was measured in calmer moments.",
        percent(STOLEN_SHARE_MAX),
        percent(WAITED_SHARE_MAX),
        percent(FOREIGN_SHARE_MAX),
        percent(KEPT_SHARE_MIN),
        percent(LOAD_SATURATED_SHARE),
        percent(STOLEN_NOTICED_SHARE),
        percent(RESTING_SHARE_MAX),
    )
}

fn placement(report: &Report) -> String {
    let cores = |cores: &[usize]| {
        let list: Vec<String> = cores.iter().map(usize::to_string).collect();
        match list.as_slice() {
            [] => "no core of their own".to_owned(),
            [one] => format!("core {one}"),
            list => format!("cores {}", text::list(list)),
        }
    };
    let bed = &report.run.bed;
    format!(
        "The product under test has {}, load and origin have {}; the network between them is {}. Every product \
         runs one worker per core, keeps connections to the members open, and writes no access log.{}",
        cores(&bed.product_cores),
        cores(&bed.load_cores),
        bed.kind,
        if bed.idle == "poll" { POLLED } else { HALTED }
    )
}

/// For a run whose idle cores polled.
const POLLED: &str = " Idle cores poll and do not halt (Linux's CPU latency request of 0), so that the hypervisor \
                      does not take them away. So no figure contains the time to get a core back, which \
                      costs products more that sleep more often.";
/// For a run whose idle cores halted.
const HALTED: &str = " Idle cores halt: on a virtual machine, the latencies contain the time that the hypervisor needs \
                      to give a core back.";

fn noise() -> String {
    format!(
        "The range after a ratio contains the true ratio in 95% of cases, as far as the noise is random from \
         round to round. It does not contain effects that are the same in all rounds: of the order, of this \
         machine, of one start of a process. From six rounds on, it is the interval of the sign test, which \
         assumes nothing about the noise. With fewer rounds that interval does not exist (the range of three \
         rounds contains the true ratio in only 75% of cases). So the range of the rounds' ratios is widened: \
         for three rounds to 1.35 times its width on either side of the median, which is right for noise \
         that is normal in the logarithm. Counts that repeat exactly (instructions, and system calls with one \
         connection) can be judged after one round: their noise is taken as ±{}%, or more if several rounds \
         show more. Of twenty comparisons between equal products, up to one is still called a win or a loss.",
        text::number(COUNTED_NOISE_SHARE * 100.0)
    )
}

fn won_and_lost() -> String {
    format!(
        "weir is judged against every peer at every figure and setting. The relay is not a peer. weir has won \
     or lost against a peer if the whole range of the ratio excludes 1 and the ratio is at least {} away from 1. \
     It is even if the whole range is within about 10% of 1. Otherwise it is undecided: the noise is too large, or \
     there was only one round. Undecided does not mean even: the run could not decide. A comparison is won if it is \
     won against all peers, and lost if it is lost against one; the report shows the peer with the worst result \
     for weir. If one of two products failed requests or fell behind the offered rate at a setting, it \
     loses the latency there, because percentiles do not contain requests without an answer.",
        difference_told()
    )
}

fn what_the_figures_mean() -> [(&'static str, String); 4] {
    let core_busy = "The elapsed time, minus the time in which the product's cores were idle, waited for input \
                     or output, or were taken by the hypervisor (steal), minus the share that the core is \
                     busy while the test bed rests. So interrupt work for the product's packets counts as \
                     the product's. Linux counts idle time exactly and samples all other kinds, so busy time \
                     is computed from the clock and not by adding up samples. Own threads: the \
                     scheduler's account of only the product's threads."
        .to_owned();
    let latency = format!(
        "In an open loop the send times are fixed beforehand. Latency counts from that time to the last byte, \
         whether or not a connection was free: a stall counts for every request that it delayed. In a closed \
         loop (the next request follows the answer) latency counts from the actual send. Percentiles come \
         from an HDR histogram; they are drawn up to the percentile that at least {SLOWER_COUNT_MIN} \
         transactions of a round exceeded."
    );
    let errors = "A transaction is a complete response with the expected status and length, and checksum if \
                  the test asks for one. Everything else that was begun (not connected, reset, cut short, timed \
                  out, not HTTP, wrong) is an error: it is counted and shown, and is in no rate. A request of an \
                  open loop that was never sent, because every connection was busy until the end, is not an \
                  error and has no latency. It is counted and shown separately, and its product has not kept the \
                  rate."
        .to_owned();
    let knee = format!(
        "The last step of the ramp at which at least {}% of the offered rate was achieved with a P99 below \
         {P99_MAX_MS} ms, by the medians of the rounds, before the first step that failed this or was not \
         measured. The true knee may be anywhere between these two steps, so the range of a ratio of knees \
         contains this uncertainty. A round without any good step counts as below the first. Beyond a knee, latency \
         depends on the length of the test, so it is not judged there; the knees decide.",
        text::number(KEPT_SHARE_MIN * 100.0)
    );
    [("Core busy", core_busy), ("Latency", latency), ("Errors", errors), ("Knee", knee)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn the_order_is_told_as_it_was() {
        let told = |run| terms(&Report::new(run))[0].1.contains("changes from round to round");
        let mut run = testing::run();
        assert!(!told(run.clone()));
        let record = run.tests.iter_mut().find(|test| test.name == "l7-requests").expect("a test");
        let products = record.points.iter().filter(|point| point.round == 0).count();
        for round in record.points.chunks_mut(products) {
            let by = round[0].round as usize;
            round.rotate_left(by);
        }
        assert!(told(run));
    }
}
