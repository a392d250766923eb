//! What an end of a connection of HTTP/2 says of its own windows and streams, which holds once the other end has
//! confirmed it.

use std::collections::VecDeque;

use weir_testing::frame::{Frame, setting};

/// Further SETTINGS that a side sends: who sends many is taken for a flood.
const CHANGES_MAX: usize = 5;

/// Something else that is to hold.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Windows of streams.
    Initial(u32),
    /// Streams at a time.
    StreamsMax(u32),
    /// What holds already, as often as anybody likes.
    None,
}

#[derive(Debug, Clone, Copy)]
struct Values {
    initial: i64,
    streams_max: usize,
}

/// What was said, and what holds.
#[derive(Debug)]
pub struct Terms {
    holding: Values,
    /// What was said since, and is not confirmed.
    said: VecDeque<Values>,
    changes_left: usize,
}

impl Terms {
    /// What holds until something else is confirmed, and what is said first.
    pub fn new(
        (initial, streams_max): (i64, usize),
        (first_initial, first_streams_max): (u32, u32),
    ) -> Self {
        let first =
            Values { initial: i64::from(first_initial), streams_max: first_streams_max as usize };
        Self {
            holding: Values { initial, streams_max },
            said: VecDeque::from([first]),
            changes_left: CHANGES_MAX,
        }
    }

    /// Nothing more is changed.
    pub fn keep(&mut self) {
        self.changes_left = 0;
    }

    /// What the windows of streams are at first.
    pub fn initial(&self) -> i64 {
        self.holding.initial
    }

    /// How many streams there may be at a time.
    pub fn streams_max(&self) -> usize {
        self.holding.streams_max
    }

    /// The frame that says so, unless there were enough.
    pub fn change(&mut self, change: Change) -> Option<Frame> {
        let mut values = self.said.back().copied().unwrap_or(self.holding);
        let entry = match change {
            Change::Initial(initial) => {
                values.initial = i64::from(initial);
                (setting::INITIAL_WINDOW_SIZE, initial)
            }
            Change::StreamsMax(streams_max) => {
                values.streams_max = streams_max as usize;
                (setting::MAX_CONCURRENT_STREAMS, streams_max)
            }
            Change::None => (setting::INITIAL_WINDOW_SIZE, values.initial as u32),
        };
        if !matches!(change, Change::None) {
            self.changes_left = self.changes_left.checked_sub(1)?;
        }
        self.said.push_back(values);
        Some(Frame::settings(&[entry]))
    }

    /// The other end has confirmed what was said first of all that it had not; by how much windows open.
    pub fn confirm(&mut self) -> Result<i64, String> {
        let confirmed = self.said.pop_front().ok_or("a confirmation of nothing")?;
        Ok(confirmed.initial - std::mem::replace(&mut self.holding, confirmed).initial)
    }
}
