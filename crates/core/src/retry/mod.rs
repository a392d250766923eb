//! Whether a request that failed on one member may be sent to another.
//!
//! RFC 9110 section 9.2.2: a proxy must not repeat a request with a non-idempotent method on its own unless it knows
//! that the first one was not processed. It knows that only if no byte of the request has left this host. Once a byte
//! of a response has arrived, the client may have seen it, so nothing is ever repeated.
//!
//! Even allowed retries are limited: [`RetryBudget`] keeps them from multiplying the load on an overloaded pool.

mod budget;

pub use budget::{BudgetSettings, RetryBudget};

/// The progress of sending a request on the connection that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendProgress {
    /// No byte was passed to the kernel: the member cannot have processed it.
    Nothing,
    /// Some or all of the request was sent, and every byte is still available for a retry.
    Replayable,
    /// Some or all of the request was sent, and a part of it (a streamed body) is not available any more.
    Consumed,
}

/// A request on a connection that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Whether the method is idempotent (`weir_http::message::Method::is_idempotent`).
    pub idempotent: bool,
    /// The part of the request that the member may have seen.
    pub sent: SendProgress,
    /// Whether a byte of a response, or of an interim one (1xx), has arrived.
    pub response_started: bool,
    /// Whether the connection has served an earlier request. The member may have closed it while it was idle, which is not a
    /// failure of the member: a retry on a new connection is not counted. The caller must then use a new connection, so this
    /// happens once per member.
    pub reused_connection: bool,
    /// Number of further members that this request may try.
    pub tries_left: u8,
}

/// Whether the request may be sent again.
///
/// Cost: constant.
pub fn may_retry(failed: &FailedAttempt) -> bool {
    let allowed = failed.tries_left > 0 || failed.reused_connection;
    let safe = match failed.sent {
        SendProgress::Nothing => true,
        SendProgress::Replayable => failed.idempotent,
        SendProgress::Consumed => false,
    };
    allowed && safe && !failed.response_started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_requests_are_repeated() {
        use SendProgress::*;
        // idempotent, sent, response started, reused, tries left, expected
        let table = [
            (true, Nothing, false, false, 1, true),
            (false, Nothing, false, false, 1, true),
            (false, Nothing, false, true, 0, true),
            (true, Replayable, false, false, 1, true),
            (true, Replayable, false, true, 0, true),
            (true, Replayable, false, true, 3, true),
            (false, Replayable, false, false, 1, false),
            (false, Replayable, false, true, 1, false),
            (true, Consumed, false, false, 1, false),
            (true, Consumed, false, true, 1, false),
            (false, Consumed, false, false, 1, false),
            (true, Nothing, false, false, 0, false),
            (true, Replayable, false, false, 0, false),
            (true, Replayable, true, false, 1, false),
            (true, Replayable, true, true, 1, false),
            (true, Nothing, true, false, 1, false),
            (false, Consumed, true, true, 9, false),
        ];
        for (idempotent, sent, response_started, reused_connection, tries_left, expected) in table {
            let failed =
                FailedAttempt { idempotent, sent, response_started, reused_connection, tries_left };
            assert_eq!(may_retry(&failed), expected, "{failed:?}");
        }
    }

    #[test]
    fn nothing_is_repeated_after_a_response_byte() {
        for idempotent in [false, true] {
            for sent in [SendProgress::Nothing, SendProgress::Replayable, SendProgress::Consumed] {
                for reused_connection in [false, true] {
                    for tries_left in 0..=u8::MAX {
                        assert!(!may_retry(&FailedAttempt {
                            idempotent,
                            sent,
                            response_started: true,
                            reused_connection,
                            tries_left
                        }));
                    }
                }
            }
        }
    }
}
