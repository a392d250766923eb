//! What the operator wants of a member, and what follows from that and its health.

use crate::monitor::Health;

/// What the operator wants of a member: `state` in the configuration, or a command at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdminState {
    /// It takes traffic.
    #[default]
    Enabled,
    /// Nothing new: it goes on with what is under way and with clients that persistence keeps on it.
    /// What a maintenance begins with.
    Drain,
    /// It goes on with what is under way only; its persistent clients go elsewhere.
    Disabled,
}

/// What a member takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Any request.
    All,
    /// Requests that persistence keeps on it.
    Persistent,
    /// None.
    Nothing,
}

impl AdminState {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drain => "drain",
            Self::Disabled => "disabled",
        }
    }

    /// What a member takes whose monitors say `health`: a member that is down takes nothing whatever is
    /// wanted of it.
    pub fn admission(self, health: Health) -> Admission {
        match (self, health) {
            (Self::Disabled, _) | (_, Health::Down | Health::Pending) => Admission::Nothing,
            (Self::Drain, Health::Up) => Admission::Persistent,
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
            (Enabled, Health::Down, Nothing),
            (Enabled, Health::Pending, Nothing),
            (Drain, Health::Up, Persistent),
            (Drain, Health::Down, Nothing),
            (Drain, Health::Pending, Nothing),
            (Disabled, Health::Up, Nothing),
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
