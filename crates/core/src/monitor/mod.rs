//! Health of a member: what its monitors and its traffic say.
//!
//! A member takes traffic while all of its monitors say [`Health::Up`] ([`Health::of_member`]) and
//! its traffic has not ejected it ([`Passive`]).

mod active;
mod passive;

pub use active::{MonitorState, Transition};
pub use passive::{Ejected, Passive};

/// When a monitor probes and how many results change its mind. Durations in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// From the start of one probe to the start of the next.
    pub interval_ms: u64,
    /// A probe without an answer by then has failed.
    pub timeout_ms: u64,
    /// Consecutive passes that bring a member up again.
    pub rise: u32,
    /// Consecutive failures that take a member down.
    pub fall: u32,
    /// Each interval is shortened or lengthened by up to this many percent, so that probes spread.
    pub jitter_percent: u8,
}

/// Passive marking: what traffic itself says of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveSettings {
    /// Consecutive failures (no connection, 5xx, malformed response) that eject the member.
    pub failures: u16,
    /// The failures must fall into this time.
    pub window_ms: u32,
    /// How long the member gets no traffic.
    pub eject_ms: u32,
}

/// What the monitors of one member say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// Monitored, and no probe has passed yet: no traffic.
    Pending = 0,
    /// Takes traffic.
    Up = 1,
    /// Takes none.
    Down = 2,
}

impl Health {
    /// The health of a member with these monitors: up if all are up (or there is none), down if one is
    /// down, else pending.
    pub fn of_member(monitors: impl IntoIterator<Item = Health>) -> Health {
        monitors.into_iter().fold(Health::Up, |health, monitor| match (health, monitor) {
            (Health::Down, _) | (_, Health::Down) => Health::Down,
            (Health::Pending, _) | (_, Health::Pending) => Health::Pending,
            (Health::Up, Health::Up) => Health::Up,
        })
    }

    /// The word for logs, metrics and people.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Pending => "pending",
            Health::Up => "up",
            Health::Down => "down",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Health::{self, *};

    #[test]
    fn all_monitors_must_be_up() {
        let check = |monitors: &[Health], expected| {
            assert_eq!(Health::of_member(monitors.iter().copied()), expected, "{monitors:?}");
        };
        check(&[], Up);
        check(&[Up], Up);
        check(&[Up, Up], Up);
        check(&[Pending], Pending);
        check(&[Up, Pending], Pending);
        check(&[Pending, Up], Pending);
        check(&[Down, Pending], Down);
        check(&[Pending, Down, Up], Down);
        check(&[Up, Down], Down);
    }
}
