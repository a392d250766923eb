//! Lengths of messages and waits: over sockets time is expensive, in a simulation bytes are.

use std::ops::Range;
use std::time::Duration;

use weir_testing::Random;

/// Sizes and times of a run.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Lengths of bodies and tunnels, each with its share per thousand.
    pub lengths: &'static [(usize, Range<usize>)],
    /// HTTP/1 messages, in percent, that are sent in one piece; and those in few.
    pub pieces: [usize; 2],
    /// One pause in a hundred takes up to this long; shorter than any timeout but those of the
    /// rough server.
    pub long_pause_max: Duration,
    /// A side that rests in a tunnel, or waits for 100, does so for up to this long: longer than
    /// any timeout but that of tunnels.
    pub rest_max: Duration,
    /// Maximum silence before an exchange counts as stuck.
    pub stuck: Duration,
    /// Maximum wait for an event.
    pub turn_max: Duration,
    /// Clients and members connect without weir: events that need weir do not happen.
    pub is_direct: bool,
    /// Findings are printed at once.
    pub is_told: bool,
}

const SOCKETS: &[(usize, Range<usize>)] = &[
    (100, 0..1),
    (300, 1..101),
    (350, 100..4_100),
    (170, 4_000..20_000),
    (70, 16_000..116_000),
    (10, 100_000..600_000),
];

const SIMULATION: &[(usize, Range<usize>)] = &[
    (100, 0..1),
    (400, 1..100),
    (440, 100..1_000),
    (49, 1_000..3_000),
    (10, 3_000..20_000),
    (1, 20_000..300_000),
];

impl Profile {
    /// Over sockets: bodies of several reads, short pauses.
    pub fn sockets() -> Self {
        Self {
            lengths: SOCKETS,
            pieces: [65, 25],
            long_pause_max: Duration::ZERO,
            rest_max: Duration::ZERO,
            stuck: Duration::from_secs(25),
            turn_max: Duration::from_millis(100),
            is_direct: false,
            is_told: true,
        }
    }

    /// In a simulation: short bodies; time is free.
    pub fn simulation() -> Self {
        Self {
            lengths: SIMULATION,
            pieces: [75, 20],
            long_pause_max: Duration::from_secs(2),
            rest_max: Duration::from_secs(25),
            stuck: Duration::from_secs(60),
            turn_max: Duration::from_secs(20),
            is_direct: false,
            is_told: false,
        }
    }

    /// The same without weir in between.
    pub fn direct() -> Self {
        Self { is_direct: true, ..Self::simulation() }
    }

    /// A length of a body.
    pub(crate) fn length(&self, random: &mut Random) -> usize {
        let mut place = random.below(1_000);
        for (permille, range) in self.lengths {
            if place < *permille {
                return range.start + random.below(range.len());
            }
            place -= permille;
        }
        0
    }

    /// A rest, if there are any.
    pub(crate) fn rest(&self, random: &mut Random) -> Option<Duration> {
        let below = self.rest_max.as_millis() as usize;
        (below > 0).then(|| Duration::from_millis(random.below(below) as u64))
    }

    /// How long a client waits for 100.
    pub(crate) fn continue_max(&self, is_patient: bool) -> Duration {
        const USUAL: Duration = Duration::from_millis(30);
        if is_patient { USUAL.max(self.rest_max) } else { USUAL }
    }

    /// A pause, mostly below this many microseconds.
    pub(crate) fn pause(&self, random: &mut Random, usual: usize) -> Duration {
        let is_long = !self.long_pause_max.is_zero() && random.percent(1);
        let below = if is_long { self.long_pause_max.as_micros() as usize } else { usual };
        Duration::from_micros(random.below(below) as u64)
    }
}
