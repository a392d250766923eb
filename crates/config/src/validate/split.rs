//! The action `pool`: one pool, or several with their weights.

use std::sync::Arc;

use weir_core::policy::{Action, PoolChoice, Split};

use super::compiler::Compiler;
use crate::decode::Context;
use crate::shapes::PoolChoice as Raw;

/// What a rule says of the pool that gets the request.
pub(super) fn action(
    compiler: &mut Compiler<'_>,
    raw: &Raw,
    context: &mut Context,
) -> Option<Action> {
    let split = match raw {
        Raw::One(name) => {
            let pool = compiler.pool(name, context)? as u32;
            return Some(Action::Pool(PoolChoice::One(pool)));
        }
        Raw::Split(split) => split,
    };
    let mut pools = Vec::with_capacity(split.len());
    // Each unknown name is told.
    for (name, weight) in split {
        pools.extend(compiler.pool(name, context).map(|pool| (pool as u32, *weight)));
    }
    let is_sound = pools.len() == split.len();
    is_sound.then(|| Action::Pool(PoolChoice::Split(Arc::new(Split::new(pools)))))
}
