//! The action `pool` with one pool or several weighted pools, and the action `mirror` with a pool for copies.

use std::sync::Arc;

use weir_core::policy::subrequest::Mirror;
use weir_core::policy::{Action, PoolChoice, Split, Subrequest};

use super::compiler::Compiler;
use crate::decode::{Context, Spanned};
use crate::raw::policy as raw;
use crate::shapes::PoolChoice as Raw;

/// The pools that a rule selects for the request, or for copies of it.
pub(super) fn of(
    compiler: &mut Compiler<'_>,
    raw: &Spanned<raw::Action>,
    context: &mut Context,
) -> Option<Action> {
    match &raw.value {
        raw::Action::Pool(choice) => pool(compiler, &choice.value, context),
        raw::Action::Mirror(mirror) => {
            let pool = compiler.pool(mirror.value.pool.as_ref()?, context)? as u32;
            let share = mirror.value.share.value.0;
            let mirror = Subrequest::Mirror(Arc::new(Mirror { pool, share }));
            Some(Action::Subrequest(mirror))
        }
        other => {
            debug_assert!(false, "`{}` names no pool", other.key());
            None
        }
    }
}

fn pool(compiler: &mut Compiler<'_>, raw: &Raw, context: &mut Context) -> Option<Action> {
    let split = match raw {
        Raw::One(name) => {
            let pool = compiler.pool(name, context)? as u32;
            return Some(Action::Pool(PoolChoice::One(pool)));
        }
        Raw::Split(split) => split,
    };
    let mut pools = Vec::with_capacity(split.len());
    // Each unknown name is reported.
    for (name, weight) in split {
        pools.extend(compiler.pool(name, context).map(|pool| (pool as u32, *weight)));
    }
    let is_sound = pools.len() == split.len();
    is_sound.then(|| Action::Pool(PoolChoice::Split(Arc::new(Split::new(pools)))))
}
