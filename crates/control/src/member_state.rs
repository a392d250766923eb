//! Words for a member's state: by its monitors and its traffic, and by the operator.

use weir_config::snapshot::Member;
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::shared::live::LiveMember;

use crate::time::monotonic_ms;

/// A member's state by its monitors and its traffic; [`is_in_service`] adds the administrative state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Its monitors have no result yet.
    Pending,
    /// It can serve.
    Up,
    /// A monitor says that it is down.
    Down,
    /// It asks by its answers to monitors for nothing new.
    Draining,
    /// Its monitors succeed, but its traffic has failed.
    Ejected,
}

impl MemberState {
    /// All of them, in the order of metrics.
    pub const ALL: [Self; 5] = [Self::Up, Self::Pending, Self::Down, Self::Draining, Self::Ejected];

    /// The state now.
    pub fn of(member: &LiveMember) -> Self {
        match member.health() {
            Health::Pending => Self::Pending,
            Health::Down => Self::Down,
            _ if member.ejected_until_ms(monotonic_ms()).is_some() => Self::Ejected,
            Health::Up => Self::Up,
            Health::Draining => Self::Draining,
        }
    }

    /// The word for metrics and people.
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

/// The administrative state of a member: set at run time, or in the file.
pub fn administrative_state(configured: &Member, live: &LiveMember) -> AdminState {
    live.state(configured.state)
}

/// Whether a member takes new requests: it is up, has a weight above 0, and is enabled.
pub fn is_in_service(configured: &Member, live: &LiveMember) -> bool {
    MemberState::of(live) == MemberState::Up
        && configured.weight > 0
        && administrative_state(configured, live) == AdminState::Enabled
}
