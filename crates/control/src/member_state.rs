//! Names for the state of a member: according to monitors and traffic, and according to the operator.

use weir_config::snapshot::Member;
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::shared::live::LiveMember;

use crate::time::monotonic_ms;

/// The state of a member according to monitors and traffic. [`is_in_service`] adds the administrative state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// No monitor has a result yet.
    Pending,
    /// The member can serve.
    Up,
    /// The monitors report the member as down.
    Down,
    /// The member's answers to monitors request its drain.
    Draining,
    /// The monitors pass, but the member was ejected because requests to it failed.
    Ejected,
}

impl MemberState {
    /// All states, in the order of metrics.
    pub const ALL: [Self; 5] = [Self::Up, Self::Pending, Self::Down, Self::Draining, Self::Ejected];

    /// The current state.
    pub fn of(member: &LiveMember) -> Self {
        match member.health() {
            Health::Pending => Self::Pending,
            Health::Down => Self::Down,
            _ if member.ejected_until_ms(monotonic_ms()).is_some() => Self::Ejected,
            Health::Up => Self::Up,
            Health::Draining => Self::Draining,
        }
    }

    /// The name in metrics and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Up => "up",
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Ejected => "ejected",
        }
    }
}

/// The administrative state of a member: set at run time, or the one in the file.
pub fn administrative_state(configured: &Member, live: &LiveMember) -> AdminState {
    live.state(configured.state)
}

/// Whether a member accepts new requests: it is up, has a weight above 0, and is enabled.
pub fn is_in_service(configured: &Member, live: &LiveMember) -> bool {
    MemberState::of(live) == MemberState::Up
        && configured.weight > 0
        && administrative_state(configured, live) == AdminState::Enabled
}
