//! The inspector: it returns inspections at any time, also those of transactions that have ended.

use weir_exchange::parts::phase::Begun;
use weir_exchange::transaction::verdict_waits;

use super::cells::On;
use super::router::Router;

/// The inspector finishes the inspection at this place among those it has.
pub fn answers(router: &mut Router, at: usize) {
    if at >= router.world.jobs.len() {
        return;
    }
    let mut job = router.world.jobs.remove(at);
    job.run();
    assert!(!job.is_lost(), "no inspection panics");
    let left = router.world.tools.offloaded.end(&job);
    let of_response = router.http().is_some_and(|it| it.ends.phase.begun() == Some(Begun::Judging));
    let whose = if left.is_some() { 2 } else { usize::from(of_response) };
    router.world.came_back[whose] += 1;
    match left {
        Some(left) => verdict_waits::unawaited_inspection_returned(&mut router.world, left, job),
        None => {
            let is_its = router.ends().is_some_and(|ends| ends.key == job.exchange);
            assert!(is_its, "a transaction that has ended has left something for it");
            router.with(Some(On::Inspected), |it, at| it.inspection_returned(at, job));
        }
    }
}

/// All inspections come back, after the last transaction.
pub fn answers_all(router: &mut Router) {
    while !router.world.jobs.is_empty() {
        answers(router, 0);
    }
    assert_eq!(router.world.tools.offloaded.left(), 0, "nothing is left for inspections");
}
