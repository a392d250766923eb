//! Health of a member, by its monitors and its traffic.
//!
//! A member takes traffic while its monitors, all or the required number, report [`Health::Up`]
//! ([`Health::of_member`], [`Health::of_monitors`]) and its traffic has not ejected it ([`Passive`]).

mod active;
mod passive;

pub use active::{MonitorState, ProbeOutcome, Transition};
pub use passive::{Circuit, Ejection, EjectionBounds, Passive, TRIAL_MS, may_eject};

/// The times of a monitor's probes, and the number of results that change the health. Durations in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Time from the start of one probe to the start of the next.
    pub interval_ms: u64,
    /// A probe without an answer within this time has failed.
    pub timeout_ms: u64,
    /// Number of consecutive passes that bring a member up again.
    pub rise: u32,
    /// Number of consecutive failures that take a member down.
    pub fall: u32,
    /// Each interval is shortened or lengthened by up to this many percent, so that probes spread.
    pub jitter_percent: u8,
    /// Time for which a member that was down must pass before it is up again.
    pub up_delay_ms: u64,
}

/// Passive monitoring: health by the results of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassiveSettings {
    /// Number of consecutive failures (no connection, 5xx, malformed response) that eject the member.
    pub failures: u16,
    /// The failures must occur within this time.
    pub window_ms: u32,
    /// Length of the first ejection; later ejections in a row are longer.
    pub eject_ms: u32,
}

/// The result of all monitors of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// No probe has passed yet: the member takes no requests.
    Pending = 0,
    /// Takes traffic.
    Up = 1,
    /// Takes no requests.
    Down = 2,
    /// Up, but a probe's answer asks for no new clients: it keeps clients that persistence sends to it.
    Draining = 3,
}

impl Health {
    /// The health of a member whose monitors must all be up; see [`Health::of_monitors`]. Without monitors: up.
    pub fn of_member(monitors: impl IntoIterator<Item = Health>) -> Health {
        Self::of_monitors(monitors, usize::MAX)
    }

    /// The health of a member of whose monitors at least `up_min` must be up. Pending: pending monitors may still
    /// complete the number. Down: they cannot. A draining monitor counts as up and makes the member drain. `up_min` is
    /// limited to the number of monitors; 0 means 1. A member without monitors is up.
    pub fn of_monitors(monitors: impl IntoIterator<Item = Health>, up_min: usize) -> Health {
        let (mut up, mut pending, mut draining, mut all) = (0, 0, 0, 0);
        for monitor in monitors {
            all += 1;
            match monitor {
                Health::Up => up += 1,
                Health::Draining => draining += 1,
                Health::Pending => pending += 1,
                Health::Down => {}
            }
        }
        let needed = up_min.max(1).min(all);
        match up + draining {
            passed if passed >= needed && draining > 0 => Health::Draining,
            passed if passed >= needed => Health::Up,
            passed if passed + pending >= needed => Health::Pending,
            _ => Health::Down,
        }
    }

    /// The name in logs, metrics and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Pending => "pending",
            Health::Up => "up",
            Health::Down => "down",
            Health::Draining => "draining",
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
        check(&[Up, Draining], Draining);
        check(&[Pending, Draining], Pending);
        check(&[Down, Draining], Down);
    }

    #[test]
    fn some_monitors_are_enough() {
        let check = |monitors: &[Health], up_min, expected| {
            let health = Health::of_monitors(monitors.iter().copied(), up_min);
            assert_eq!(health, expected, "{up_min} of {monitors:?}");
        };
        check(&[], 2, Up);
        check(&[Up, Down, Down], 1, Up);
        check(&[Up, Down, Down], 0, Up);
        check(&[Up, Down, Down], 2, Down);
        check(&[Up, Down, Pending], 2, Pending);
        check(&[Up, Up, Pending], 2, Up);
        check(&[Up, Up, Down], 9, Down);
        check(&[Up, Up, Up], 9, Up);
        check(&[Down, Down, Draining], 1, Draining);
        check(&[Up, Up, Draining], 2, Draining);
        check(&[Up, Down, Draining], 2, Draining);
        check(&[Down, Down, Pending], 2, Down);
    }
}
