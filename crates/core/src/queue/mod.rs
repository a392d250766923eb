//! Waiting for a member when all are full: surge protection instead of 503.
//!
//! Each worker has a [`Line`] of its own per pool, bounded in length and in time, and one shared word per
//! worker and pool says since when the first in its line has waited ([`Line::waiting_since_ms`], 0 for
//! nobody). From these words every worker decides alone whose turn it is; the rest is done by the caller,
//! and only when somebody waits:
//!
//! 1. **A request comes.** If anybody waits ([`anybody_waits`]), or no member admits it, it joins its
//!    worker's line ([`Line::push`]): who comes later does not overtake. The caller stores the worker's
//!    word. If the line was empty it then takes turns as in 3, for a place may have been freed before the
//!    word could be read; those further back are seen to by those in front.
//! 2. **A place is freed.** The caller takes it off the member's occupancy and asks [`Places::next`].
//!    [`Turn::Own`]: occupy a member, and if one admits, [`Line::pop`] and store the word.
//!    [`Turn::Other`]: wake that worker.
//! 3. **A worker is woken.** It takes turns by [`turn`], whether somebody still waits in its own line or
//!    not. [`Turn::Nobody`]: done. [`Turn::Own`]: as in 2, and the next turn; done if no member admits.
//!    [`Turn::Other`]: wake that worker, done.
//! 4. **A deadline passes or a client goes.** [`Line::expire`] or [`Line::cancel`], store the word. Nothing
//!    else, for no place was freed.
//!
//! No wake-up is lost if the store of the word in 1 and the reading of the occupancy after it, and the
//! decrement of the occupancy in 2 and the reading of the words after it, are sequentially consistent: one
//! of the two then sees the other. A wake-up too many does no harm.
//!
//! **Fairness.** Within a worker the order is that of arrival. Between workers it holds to
//! [`OVERTAKING_MS_MAX`]: nobody is served before a request that has waited longer by more than that. Within
//! these bounds a worker keeps most of the places it frees for its own line, for a place that is given to
//! another stands idle until that one has woken up, and at a service time of a millisecond that costs more
//! than exact order is worth. But every so often ([`KEPT_MAX`]) it gives one to the next worker whose first
//! has waited about as long. So in overload, where all wait until their deadline and hardly anyone is older
//! than anyone else, places move until every worker has as many as the others, or as it has use for.
//!
//! A request for which some members are no choice (those that have failed it) does not belong here: the line is
//! the pool's, and its first would hold up those behind it. One with a member of its own (persistence) does, as
//! long as it takes another when that is full.
//!
//! The data path wakes nobody: every worker with somebody in line looks once a turn, and at least each
//! millisecond. That stands for every "wake" above, at the price of a place that stands idle that long.

mod line;
#[cfg(test)]
mod simulation;
mod turn;

pub use line::{Line, Ticket};
pub use turn::{KEPT_MAX, OVERTAKING_MS_MAX, Places, Turn, anybody_waits, turn};
