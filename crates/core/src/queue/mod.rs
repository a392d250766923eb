//! Waiting for a member when all are full: surge protection instead of 503.
//!
//! Each worker has its own [`Line`] per pool, bounded in length and in time. One shared word per worker and pool has
//! the time since which the first request of its line has waited ([`Line::waiting_since_ms`], 0 for an empty line).
//! From these words every worker decides alone whose turn it is. The caller does the rest, and only if a request waits:
//!
//! 1. **A request arrives.** If any request waits ([`anybody_waits`]), or no member admits the new one, it joins its
//!    worker's line ([`Line::push`]): it must not overtake. The caller stores the worker's word. If the line was empty, the
//!    caller then takes turns as in 3, because a place may have been freed before other workers could read the word.
//!    Requests further back are handled after those before them.
//! 2. **A place is freed.** The caller decrements the member's occupancy and calls [`Places::next`]. [`Turn::Own`]: occupy a
//!    member; if one admits, call [`Line::pop`] and store the word. [`Turn::Other`]: wake that worker.
//! 3. **A worker is woken.** It takes turns by [`turn`], even if its own line is empty. [`Turn::Nobody`]: done.
//!    [`Turn::Own`]: as in 2, then the next turn; done if no member admits. [`Turn::Other`]: wake that worker, done.
//! 4. **A deadline passes or a client leaves.** Call [`Line::expire`] or [`Line::cancel`], and store the word. Nothing else
//!    is needed, because no place was freed.
//!
//! No wake-up is lost if two sequences are sequentially consistent: in 1, the store of the word and the later load of the
//! occupancy; in 2, the decrement of the occupancy and the later load of the words. One of the two then sees the other. An
//! unnecessary wake-up does no harm.
//!
//! **Fairness.** Within a worker, requests are served in order of arrival. Between workers, the order is exact to
//! [`OVERTAKING_MS_MAX`]: no request is served before one that has waited longer by more than that. Within this bound a
//! worker keeps most of the places that it frees for its own line, since a place given to another worker is idle until
//! that worker has woken up; at a service time of a millisecond this costs more than exact order is worth. But from
//! time to time ([`KEPT_MAX`]) it gives one to the next worker whose first request has waited about as long. So in
//! overload, where all requests wait until their deadline and have about the same age, places move until every worker
//! has as many as the others, or as it can use.
//!
//! A request that cannot use some members (those at which it failed) must not join: the line is for the whole pool, and such
//! a request would block those behind it. A request with its own member (persistence) may join, if it accepts another member
//! when that one is full.
//!
//! The data path does not wake workers: every worker with waiting requests checks the words once per turn of its loop, and
//! at least every millisecond. This replaces every "wake" above; a place may be idle for that time.

mod line;
#[cfg(test)]
mod simulation;
mod turn;

pub use line::{Line, Ticket};
pub use turn::{KEPT_MAX, OVERTAKING_MS_MAX, Places, Turn, anybody_waits, turn};
