//! The administrative state of a member, and its effect together with the member's health.

use crate::monitor::Health;

/// The administrative state of a member: `state` in the configuration, or a command at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdminState {
    /// The member takes traffic.
    #[default]
    Enabled,
    /// No new clients: the member finishes open requests and keeps clients that persistence sends to it. The first step
    /// of a maintenance.
    Drain,
    /// The member finishes only open requests; its persistent clients go elsewhere.
    Disabled,
}

/// The requests that a member takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Any request.
    All,
    /// Requests that persistence keeps on it.
    Persistent,
    /// No requests.
    Nothing,
}

impl AdminState {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drain => "drain",
            Self::Disabled => "disabled",
        }
    }

    /// The requests that a member in this state and with this `health` takes: down in any state means no requests, and
    /// a monitor can drain a member as an operator can.
    pub fn admission(self, health: Health) -> Admission {
        match (self, health) {
            (Self::Disabled, _) | (_, Health::Down | Health::Pending) => Admission::Nothing,
            (Self::Drain, Health::Up) | (_, Health::Draining) => Admission::Persistent,
            (Self::Enabled, Health::Up) => Admission::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admissions() {
        use AdminState::*;
        use Admission::*;
        let table = [
            (Enabled, Health::Up, All),
            (Enabled, Health::Draining, Persistent),
            (Enabled, Health::Down, Nothing),
            (Enabled, Health::Pending, Nothing),
            (Drain, Health::Up, Persistent),
            (Drain, Health::Draining, Persistent),
            (Drain, Health::Down, Nothing),
            (Drain, Health::Pending, Nothing),
            (Disabled, Health::Up, Nothing),
            (Disabled, Health::Draining, Nothing),
            (Disabled, Health::Down, Nothing),
            (Disabled, Health::Pending, Nothing),
        ];
        for (state, health, expected) in table {
            assert_eq!(state.admission(health), expected, "{state:?} {health:?}");
        }
        assert_eq!(AdminState::default().as_str(), "enabled");
        assert_eq!((Drain.as_str(), Disabled.as_str()), ("drain", "disabled"));
    }
}
