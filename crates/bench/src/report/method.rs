//! How it was measured and judged, so that a reader can object: one text for the page and the Markdown.

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

/// The method, term by term.
pub fn terms(report: &Report) -> Vec<(&'static str, String)> {
    let mut terms = vec![
        ("Side by side", side_by_side(report)),
        ("Thrown away", thrown_away()),
        ("Placement", placement(report)),
        ("Noise", noise()),
        ("Won and lost", won_and_lost()),
    ];
    terms.extend(what_the_figures_mean());
    terms
}

fn side_by_side(report: &Report) -> String {
    let order = if is_order_rotated(report) {
        "the order changes from round to round, so that what comes of standing first or last falls on each of \
         them"
    } else {
        "in the same order in every round, so that what comes of standing first or last is in no range of \
         noise"
    };
    format!(
        "In every round each product is measured in turn at the same setting, on the same machine, with the \
         same kernel, origin and load; {order}. A ratio is formed within one round only; the median of the \
         rounds' ratios counts. Absolute figures of two runs must not be compared; ratios may be, where the \
         same rate was offered."
    )
}

/// Whether a product that began a round was elsewhere in another one of the same setting, by the order of
/// the points.
fn is_order_rotated(report: &Report) -> bool {
    let is_same_setting = |a: &&Point, b: &Point| key(a.at) == key(b.at);
    let is_rotated = |test: &TestRecord| {
        test.points.iter().enumerate().any(|(index, point)| {
            let mut before =
                test.points[..index].iter().filter(|other| is_same_setting(other, point));
            let begins = before.clone().next();
            // Not the first of its own round, but it began the first round.
            begins.is_some_and(|begins| begins.product == point.product)
                && before.any(|other| other.round == point.round)
        })
    };
    report.run.tests.iter().any(is_rotated)
}

fn thrown_away() -> String {
    let percent = |share: f64| text::number(share * 100.0);
    format!(
        "A measurement is thrown away, with its reason and its product, when the hypervisor took more than \
         {}% of the cores, when the product waited for its core for more than {}% of the time, or when \
         something else had that core for more than {}% of it. Where the rate is one that every product can \
         keep and less than {}% of it came through without an error, it is thrown away only if the load's \
         cores were at least {}% busy or the hypervisor took more than {}%; else it is a result, because a \
         product's own stall is its own. A measurement is made again at once, after a rest, up to \
         {REPEATS_AT_ONCE_MAX} times in a round; then, or when the product's core is more than {}% busy at \
         rest, the whole round is thrown away for all products and made again. What was thrown away is \
         counted by product: one that is spoiled more often than the others has its figures from calmer \
         moments.",
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
        "The product under test has {}, load and origin have {}; all is joined by {}. As many workers as \
         cores, keep-alive to the members, no access log, in every product.{}",
        cores(&bed.product_cores),
        cores(&bed.load_cores),
        bed.kind,
        if bed.idle == "poll" { POLLED } else { HALTED }
    )
}

/// For a run whose cores did not halt.
const POLLED: &str = " Cores without work do not halt but look for it (Linux's CPU latency request of 0), so \
                      that no hypervisor gives them away: what it takes to get a core back is in no figure, \
                      though products that sleep more often pay it more often.";
/// For a run whose cores did.
const HALTED: &str = " Cores without work halt: on a virtual machine, what the hypervisor takes to give one back is in \
                      the latencies.";

fn noise() -> String {
    format!(
        "The range behind a ratio holds the true one in 95% of the cases, as far as the noise is random from \
         round to round: what the order, this machine or one start of a process does to all rounds alike is \
         not in it. From six rounds on it is the interval of the sign test, which assumes nothing about the \
         noise. With fewer rounds no such interval exists (the range of three rounds holds the truth in 75% \
         of the cases only), so the range of the rounds' ratios is widened, for three rounds to 1.35 times \
         its width on either side of the median, which is right for noise that is normal in the logarithm. \
         What is counted and comes out the same again (instructions, and system calls with one connection) \
         can be judged after one round: its noise is taken as ±{}%, or more where several rounds show more. \
         Of twenty comparisons between equals up to one will still be called a win or a loss.",
        text::number(COUNTED_NOISE_SHARE * 100.0)
    )
}

fn won_and_lost() -> String {
    format!(
        "weir is judged against every peer at every figure and setting; the relay is nobody's peer. Against a \
     peer it has won or lost where the whole range of the ratio leaves out 1 and the ratio itself is at least {} \
     away from 1. Else it is even where the whole range stays within about 10% of 1, and undecided where the noise \
     allows more than that, or where a single round says nothing of noise. Undecided is not even: the run could \
     not tell. A comparison is won when it is won against all peers, and lost when it is lost against one; the \
     hardest peer, against which weir stands worst, is shown. Of two products the one that failed requests or \
     fell behind the offered rate at a setting loses its latency there, because what it did not answer is in \
     no percentile.",
        difference_told()
    )
}

fn what_the_figures_mean() -> [(&'static str, String); 4] {
    let core_busy = "Time that passed, less the time in which the product's cores were idle, waited for input \
                     or output, or were taken by the hypervisor (steal), less the share that the core is \
                     busy while the test bed rests. So interrupt work for the product's packets counts as \
                     the product's. Idle time is counted exactly by Linux, all other kinds by sampling, \
                     which is why the rest is taken of the clock and not added up. Own threads is the \
                     scheduler's account of the product's threads alone."
        .to_owned();
    let latency = format!(
        "In an open loop requests have their times beforehand, and latency counts from that intended time to \
         the last byte, whether or not a connection was free: a product that stalls is charged for everyone \
         who waited. In a closed loop (as fast as answered) it counts from the actual send. Percentiles are \
         of an HDR histogram; they are drawn as far out as {SLOWER_COUNT_MIN} transactions of a round were \
         slower."
    );
    let errors = "A transaction is a complete response with the expected status and length, and checksum where \
                  one is asked for. Everything else that was begun (not connected, reset, cut short, timed \
                  out, not HTTP, wrong) is an error: counted, shown, and in no rate. A request of an open \
                  loop that was never sent, because every connection was busy until the end, is no error: it \
                  has no latency either, so it is counted and shown apart, and its product has not kept the \
                  rate."
        .to_owned();
    let knee = format!(
        "The last step of the ramp at which at least {}% of the offered rate was achieved with a P99 below \
         {P99_MAX_MS} ms, by the medians of the rounds, before the first step at which it was not or that was \
         not measured. A knee may lie anywhere between these two, so the range of a ratio of knees holds \
         that, too; a round without any step counts as below the first. Past a knee, latency tells how long \
         the test lasted: there it is not judged, and the knees decide.",
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
