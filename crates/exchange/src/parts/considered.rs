//! The decisions about a request.

use crate::local::pool::Preference;
use crate::parts::remembered::Remembered;

/// The decisions about a request.
pub struct Considered {
    /// Index of the pool; the exchange begins there even if it ends at once.
    pub pool: usize,
    /// Which of its members.
    pub preference: Preference,
    /// It is held back until then; 0: it is not.
    pub not_before_us: u64,
    /// The number for its id; 0: not needed yet, or already taken.
    pub request_number: u64,
    /// Data that is kept until its response.
    pub remembered: Option<Box<Remembered>>,
    /// It gets no member.
    pub ending: Option<Ending>,
}

/// How a request ends without a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the policies have it: see [`weir_core::policy::Decision::end`].
    Policy,
    /// As the web application firewall has it: see [`crate::parts::inspecting::Block`].
    Blocked,
    /// With 429.
    Limited {
        /// When another would pass.
        retry_after_s: u64,
    },
    /// With 503: too many passwords wait to be checked.
    Overloaded,
    /// With the text of a challenge: see [`weir_tls::challenges`].
    Challenge,
    /// With 421: its connection's handshake was for another name.
    Misdirected,
    /// The connection closes.
    Closed,
    /// With 500: a policy made something of it that cannot be sent.
    Failed,
}
