//! Explains how a request would be processed in the current state.
//!
//! Nothing changes, and secrets of the request are masked. It needs the role admin: an explanation shows the conditions
//! of rules, and whether a password is correct. Explanations are made one at a time.

use weir_api::asked::{Asked, BODY_BYTES_MAX};
use weir_api::explanation::{Explanation, PoolHealth};
use weir_config::snapshot::Role;
use weir_explain::explain;

use super::answer::Answer;
use super::ask::Ask;
use super::problem::Problem;
use super::route::{HandlerResult, Route};
use crate::explanations;
use crate::health::Judge;

/// Maximum size of the document: a body, each of whose bytes may be escaped, and a head.
const BODY_SIZE_MAX: usize = 6 * BODY_BYTES_MAX + 64 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/explain", "explain", "Why a request would go where it goes", answer)
            .post()
            .role(Role::Admin)
            .takes::<Asked>()
            .at_most(BODY_SIZE_MAX)
            .answers::<Explanation>(),
    ]
}

fn answer(ask: &Ask) -> HandlerResult {
    let asked: Asked = ask.document()?;
    let observed = &ask.context.observed;
    let _turn = observed.admin.explain();
    let judge = observed.judge();
    let explanation = explain(judge.table(), &asked, explanations::now());
    let mut explanation = explanation.map_err(Problem::bad_request)?;
    if let Some(balancing) = &mut explanation.balancing {
        balancing.health = health_of(&judge, &balancing.pool);
    }
    Answer::json(&explanation)
}

/// The health of the pool, if it is not up.
fn health_of(judge: &Judge, pool: &str) -> Option<PoolHealth> {
    let index = judge.table().snapshot.pools.iter().position(|it| *it.name == *pool)?;
    let health = judge.pool(index);
    let why = health.why.clone()?;
    Some(PoolHealth { state: health.state.as_str().to_owned(), why })
}
