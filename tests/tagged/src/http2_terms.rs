//! The HTTP/2 settings of one side for its receive windows and streams. A setting applies when the peer has acknowledged it.

use std::collections::VecDeque;

use weir_testing::frame::{Frame, setting};

/// Maximum number of changes, because many SETTINGS frames count as a flood.
const CHANGES_MAX: usize = 5;

/// A changed setting.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// The initial window of streams.
    Initial(u32),
    /// The maximum number of concurrent streams.
    StreamsMax(u32),
    /// No change: the current value is sent again.
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
    /// Announced settings that are not acknowledged, oldest first.
    said: VecDeque<Values>,
    changes_left: usize,
}

impl Terms {
    /// Settings with default values and the first announced values.
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

    /// Disables further changes.
    pub fn keep(&mut self) {
        self.changes_left = 0;
    }

    /// The acknowledged initial window of streams.
    pub fn initial(&self) -> i64 {
        self.holding.initial
    }

    /// The acknowledged maximum of concurrent streams.
    pub fn streams_max(&self) -> usize {
        self.holding.streams_max
    }

    /// Announces a change. Returns its frame; `None`: no more changes are allowed.
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

    /// Applies the oldest unacknowledged settings. Returns the change of the stream windows. An error if there are none.
    pub fn confirm(&mut self) -> Result<i64, String> {
        let confirmed = self.said.pop_front().ok_or("a confirmation of nothing")?;
        Ok(confirmed.initial - std::mem::replace(&mut self.holding, confirmed).initial)
    }
}
