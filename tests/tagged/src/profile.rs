//! The sizes of messages and the durations of waits. With sockets, time is expensive; in a simulation, bytes are.

use std::ops::Range;
use std::time::Duration;

use weir_testing::Random;

/// The sizes and times of a run.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The lengths of bodies and tunnels, as ranges with their shares in per mille.
    pub lengths: &'static [(usize, Range<usize>)],
    /// The percentages of HTTP/1 messages that are sent in one piece, and in a few pieces.
    pub pieces: [usize; 2],
    /// Maximum length of one pause in a hundred. Shorter than any timeout except those of
    /// [`Server::Rough`](crate::place::Server::Rough).
    pub long_pause_max: Duration,
    /// Maximum pause of a side of a tunnel, and of a patient client that waits for 100. Longer than any timeout except those
    /// of tunnels.
    pub rest_max: Duration,
    /// The duration of silence after which an exchange is reported as stuck.
    pub stuck: Duration,
    /// Maximum wait for an event.
    pub turn_max: Duration,
    /// Whether clients and members connect without weir. Then events that require weir do not happen.
    pub is_direct: bool,
    /// Whether findings are printed at once.
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
    /// The profile with sockets: longer bodies and short pauses.
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

    /// The profile of a simulation: shorter bodies and long pauses.
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

    /// The profile of a simulation without weir.
    pub fn direct() -> Self {
        Self { is_direct: true, ..Self::simulation() }
    }

    /// Draws the length of a body.
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

    /// Draws a long pause; `None`: the profile has none.
    pub(crate) fn rest(&self, random: &mut Random) -> Option<Duration> {
        let below = self.rest_max.as_millis() as usize;
        (below > 0).then(|| Duration::from_millis(random.below(below) as u64))
    }

    /// How long a client waits for 100.
    pub(crate) fn continue_max(&self, is_patient: bool) -> Duration {
        const USUAL: Duration = Duration::from_millis(30);
        if is_patient { USUAL.max(self.rest_max) } else { USUAL }
    }

    /// Draws a pause, usually shorter than this number of microseconds.
    pub(crate) fn pause(&self, random: &mut Random, usual: usize) -> Duration {
        let is_long = !self.long_pause_max.is_zero() && random.percent(1);
        let below = if is_long { self.long_pause_max.as_micros() as usize } else { usual };
        Duration::from_micros(random.below(below) as u64)
    }
}
