//! Settings of an HTTP/2 end for its own windows and streams, which hold once the peer has
//! acknowledged them.

use std::collections::VecDeque;

use weir_testing::frame::{Frame, setting};

/// Further SETTINGS that a side sends: many of them count as a flood.
const CHANGES_MAX: usize = 5;

/// A changed setting.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Windows of streams.
    Initial(u32),
    /// Limit of streams.
    StreamsMax(u32),
    /// A repeated current value.
    None,
}

#[derive(Debug, Clone, Copy)]
struct Values {
    initial: i64,
    streams_max: usize,
}

/// The announced and the acknowledged settings.
#[derive(Debug)]
pub struct Terms {
    holding: Values,
    /// Announced since, and not acknowledged.
    said: VecDeque<Values>,
    changes_left: usize,
}

impl Terms {
    /// The settings before the first acknowledgement, and the first announced ones.
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

    /// Initial windows of streams.
    pub fn initial(&self) -> i64 {
        self.holding.initial
    }

    /// Limit of streams.
    pub fn streams_max(&self) -> usize {
        self.holding.streams_max
    }

    /// The frame for this, unless there were enough.
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

    /// The peer has acknowledged the oldest unacknowledged settings; returns by how much windows
    /// open.
    pub fn confirm(&mut self) -> Result<i64, String> {
        let confirmed = self.said.pop_front().ok_or("a confirmation of nothing")?;
        Ok(confirmed.initial - std::mem::replace(&mut self.holding, confirmed).initial)
    }
}
