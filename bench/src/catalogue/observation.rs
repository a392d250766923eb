//! The test of what observation costs.

use super::Figure::{
    CoreBusy, CpuPerRequest, LatencyP99, OthersCpuPerRequest, OwnCpuPerRequest,
    WorkersCpuPerRequest,
};
use super::{Axis, Chapter, Measure, PLAIN_WEIR, Picture, Test, goal};

/// Name of the test.
pub const OBSERVED: &str = "observed";

/// The cases of the test [`OBSERVED`].
pub const OBSERVED_CASES: &[&str] =
    &["metrics, dashboard and access log", "these and records of recent requests"];

/// The cost of observation may be this share of the data path's CPU without it.
const RATIO_MAX: f64 = 1.05;

pub(super) const TEST: Test = Test {
    name: OBSERVED,
    chapter: Chapter::Layer7,
    title: "What observation costs",
    summary: "weir with an access log in JSON, metrics scraped each second and an open dashboard (three event streams), \
              beside weir without a log that nobody observes: 128 B, 64 kept connections, one rate for both, 65% of what \
              the observed one sustains. In the second case all requests are recorded, too (recent_requests with its \
              defaults). Worker threads are the data path; other threads answer observers and write the log.",
    after: "our own",
    axis: Axis::Cases(OBSERVED_CASES),
    picture: Picture::Bars,
    figures: &[
        WorkersCpuPerRequest,
        OthersCpuPerRequest,
        OwnCpuPerRequest,
        CpuPerRequest,
        LatencyP99,
        CoreBusy,
    ],
    judged: &[],
    goals: &[goal(WorkersCpuPerRequest, 0.0, Measure::RatioTo(PLAIN_WEIR), RATIO_MAX)],
};
