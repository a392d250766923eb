//! Limits of a connection, and the refilling budgets behind them.

use super::error::Flood;
use super::hpack::{ListLimits, TABLE_SIZE_DEFAULT};

/// The maximum number of occurrences at once, and the rate of the refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Maximum burst.
    pub burst: u32,
    /// The refill per second, up to the burst.
    pub per_second: u32,
}

impl Allowance {
    const fn new(burst: u32, per_second: u32) -> Self {
        Self { burst, per_second }
    }
}

/// The limits of a connection. Names end in the unit; numbers without a unit are counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For a server: maximum number of streams that the peer may have open (SETTINGS_MAX_CONCURRENT_STREAMS). For a client:
    /// maximum number of streams that it opens, even if the peer permits more.
    pub streams_max: u32,
    /// Maximum size of a decoded header list, with 32 bytes for each line (SETTINGS_MAX_HEADER_LIST_SIZE). A larger list is
    /// delivered truncated, so that the caller can respond.
    pub header_list_size_max: u32,
    /// Maximum number of lines of a header list. Each crumb of a cookie counts as a line.
    pub headers_max: u16,
    /// Maximum size of a header list that is decoded only to keep the table in step. A larger list ends the connection.
    pub header_list_hard_size_max: u32,
    /// Maximum size of a received header block. A larger block ends the connection.
    pub header_block_size_max: u32,
    /// Maximum number of CONTINUATION frames of a header block.
    pub continuations_max: u16,
    /// Maximum size of the table of the peer's encoder (SETTINGS_HEADER_TABLE_SIZE).
    pub decoder_table_size: u32,
    /// Maximum size of the table that our encoder uses, even if the peer permits more.
    pub encoder_table_size_max: u32,
    /// Maximum payload of a received frame (SETTINGS_MAX_FRAME_SIZE): 16,384 to 16,777,215.
    pub frame_size_max: u32,
    /// Maximum payload of a sent frame, even if the peer permits more.
    pub sent_frame_size_max: u32,
    /// Maximum number of bytes that a peer may send on a stream beyond the forwarded bytes (SETTINGS_INITIAL_WINDOW_SIZE).
    pub stream_window_size: u32,
    /// The same limit for all streams together; at least 65,535, the initial window of a connection.
    pub connection_window_size: u32,
    /// Maximum number of interim responses to one request.
    pub interim_responses_max: u16,
    /// Minimum number of bytes that a stalled stream must be able to send before it counts as moving again.
    pub stall_progress_size_min: u32,
    /// A server announces support for extended CONNECT (RFC 8441).
    pub extended_connect: bool,
    /// Streams that a client resets within a second of opening them, which costs less if it waited for a while. Each stream that
    /// ends regularly gives one back.
    pub resets: Allowance,
    /// Streams that are reset because of a client's errors. Correct clients cause none. Each stream that ends regularly
    /// gives one back. Connections to servers have no such limit, because the number of our requests limits these streams.
    pub stream_errors: Allowance,
    /// Frames on closed streams. When a stream is reset, a whole window of small frames may be in flight.
    pub closed_streams: Allowance,
    /// Streams beyond `streams_max`.
    pub refused_streams: Allowance,
    /// SETTINGS frames.
    pub settings: Allowance,
    /// PING frames. A DATA frame, sent or received, gives one back.
    pub pings: Allowance,
    /// PRIORITY, PRIORITY_UPDATE and frames of unknown types. A new stream gives four back.
    pub priorities: Allowance,
    /// WINDOW_UPDATE frames. A DATA frame that we send gives four back, even beyond the burst, because its receiver may send
    /// many of these updates late and at once. A new stream gives two back.
    pub window_updates: Allowance,
    /// DATA frames without data. A DATA frame with data gives one back.
    pub empty_data: Allowance,
    /// DATA frames of a client that are shorter than [`TINY_DATA_SIZE`] and do not end their stream. A frame of half that
    /// size costs half a unit. A larger frame gives one back per [`TINY_DATA_SIZE`] bytes.
    pub tiny_data: Allowance,
    /// The rest of a request after an early response: maximum number of accepted bytes beyond the stream's window.
    pub unwanted_size_max: u32,
    /// The rest of a request after an early response: time in milliseconds until the stream is reset.
    pub unwanted_ms_max: u64,
}

/// The maximum that frames of a peer can give back.
const EARNED_MAX: u64 = 1_000_000;

/// A DATA frame with fewer bytes is a tiny one.
pub const TINY_DATA_SIZE: u32 = 16;

impl Limits {
    /// Suitable for a server whose clients are browsers, and for a client of members.
    pub const DEFAULT: Self = Self {
        streams_max: 100,
        header_list_size_max: 32 * 1024,
        headers_max: 100,
        header_list_hard_size_max: 256 * 1024,
        header_block_size_max: 64 * 1024,
        continuations_max: 16,
        decoder_table_size: TABLE_SIZE_DEFAULT,
        encoder_table_size_max: TABLE_SIZE_DEFAULT,
        frame_size_max: 16 * 1024,
        sent_frame_size_max: 16 * 1024,
        stream_window_size: 256 * 1024,
        connection_window_size: 1024 * 1024,
        interim_responses_max: 32,
        stall_progress_size_min: 1024,
        extended_connect: true,
        resets: Allowance::new(200, 20),
        stream_errors: Allowance::new(50, 10),
        closed_streams: Allowance::new(5000, 500),
        refused_streams: Allowance::new(200, 20),
        settings: Allowance::new(20, 1),
        pings: Allowance::new(50, 5),
        priorities: Allowance::new(500, 20),
        window_updates: Allowance::new(1000, 100),
        empty_data: Allowance::new(100, 10),
        tiny_data: Allowance::new(20_000, 10_000),
        unwanted_size_max: 1024 * 1024,
        unwanted_ms_max: 1000,
    };

    /// These limits, each clamped to the range that the protocol permits.
    pub(super) fn sound(mut self) -> Self {
        use super::frame::{FRAME_SIZE_DEFAULT, FRAME_SIZE_MAX, WINDOW_SIZE_MAX};
        self.streams_max = self.streams_max.clamp(1, STREAMS_MAX);
        self.frame_size_max = self.frame_size_max.clamp(FRAME_SIZE_DEFAULT, FRAME_SIZE_MAX);
        self.sent_frame_size_max =
            self.sent_frame_size_max.clamp(FRAME_SIZE_DEFAULT, FRAME_SIZE_MAX);
        self.stream_window_size = self.stream_window_size.clamp(1, WINDOW_SIZE_MAX);
        self.connection_window_size =
            self.connection_window_size.clamp(CONNECTION_WINDOW_DEFAULT, WINDOW_SIZE_MAX);
        self.header_list_hard_size_max =
            self.header_list_hard_size_max.max(self.header_list_size_max);
        self
    }

    /// The limits for header lists.
    pub fn list(&self) -> ListLimits {
        ListLimits {
            size_max: self.header_list_size_max,
            lines_max: self.headers_max,
            hard_size_max: self.header_list_hard_size_max,
        }
    }

    /// The allowance for a kind of flood; `None`: another limit applies.
    pub(super) fn allowance(&self, flood: Flood) -> Option<Allowance> {
        Some(match flood {
            Flood::Resets => self.resets,
            Flood::StreamErrors => self.stream_errors,
            Flood::ClosedStreams => self.closed_streams,
            Flood::RefusedStreams => self.refused_streams,
            Flood::Settings => self.settings,
            Flood::Pings => self.pings,
            Flood::Priorities => self.priorities,
            Flood::WindowUpdates => self.window_updates,
            Flood::EmptyData => self.empty_data,
            Flood::TinyData => self.tiny_data,
            Flood::InterimResponses
            | Flood::Continuations
            | Flood::HeaderBlock
            | Flood::HeaderList => return None,
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Maximum number of open streams of any connection.
pub const STREAMS_MAX: u32 = 10_000;

/// The initial window of a connection (RFC 9113 section 6.9.2), and the initial window of a stream before
/// SETTINGS_INITIAL_WINDOW_SIZE.
pub(super) const CONNECTION_WINDOW_DEFAULT: u32 = 65_535;

/// The remaining units of every allowance.
#[derive(Debug, Clone)]
pub(super) struct Budgets {
    /// The remaining units in thousandths, so that a slow refill is not lost between calls.
    left_milli: [u64; Flood::ALL.len()],
    refilled_ms: [u64; Flood::ALL.len()],
}

impl Budgets {
    /// Full budgets.
    pub(super) fn new(limits: &Limits) -> Self {
        let left_milli = Flood::ALL.map(|flood| {
            limits.allowance(flood).map_or(0, |allowance| u64::from(allowance.burst) * 1000)
        });
        Self { left_milli, refilled_ms: [0; Flood::ALL.len()] }
    }

    /// Uses one unit; an error if none is left.
    pub(super) fn spend(
        &mut self,
        flood: Flood,
        limits: &Limits,
        now_ms: u64,
    ) -> Result<(), Flood> {
        self.spend_milli(flood, 1000, limits, now_ms)
    }

    /// Like [`Self::spend`], in thousandths of a unit.
    pub(super) fn spend_milli(
        &mut self,
        flood: Flood,
        milli: u32,
        limits: &Limits,
        now_ms: u64,
    ) -> Result<(), Flood> {
        let Some(allowance) = limits.allowance(flood) else { return Ok(()) };
        let place = flood as usize;
        let elapsed_ms = now_ms.saturating_sub(self.refilled_ms[place]);
        self.refilled_ms[place] = now_ms;
        let refill = elapsed_ms.saturating_mul(u64::from(allowance.per_second));
        let full = u64::from(allowance.burst) * 1000;
        let left = &mut self.left_milli[place];
        // Units given back beyond the burst stay.
        *left = left.saturating_add(refill).min(full.max(*left));
        *left = left.checked_sub(u64::from(milli)).ok_or(flood)?;
        Ok(())
    }

    /// Gives back `count` units for useful work.
    pub(super) fn earn(&mut self, flood: Flood, count: u32, limits: &Limits) {
        let Some(allowance) = limits.allowance(flood) else { return };
        let full = u64::from(allowance.burst) * 1000;
        let left = &mut self.left_milli[flood as usize];
        *left = (*left + u64::from(count) * 1000).min(full.max(*left));
    }

    /// Gives back `count` units, even beyond the burst, because the peer may answer our frames at any time and all at once.
    pub(super) fn earn_beyond(&mut self, flood: Flood, count: u32) {
        let left = &mut self.left_milli[flood as usize];
        *left = (*left + u64::from(count) * 1000).min(EARNED_MAX * 1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_refill_with_time_and_with_work() {
        let limits = Limits { pings: Allowance::new(3, 2), ..Limits::DEFAULT };
        let mut budgets = Budgets::new(&limits);
        let spend =
            |budgets: &mut Budgets, now_ms| budgets.spend(Flood::Pings, &limits, now_ms).is_ok();
        assert!((0..3).all(|_| spend(&mut budgets, 1000)));
        assert!(!spend(&mut budgets, 1000));
        assert!(!spend(&mut budgets, 1499));
        assert!(spend(&mut budgets, 1500), "half a second brings one");
        assert!(!spend(&mut budgets, 1500));
        assert!(!spend(&mut budgets, 1000), "a clock that goes back brings nothing");
        budgets.earn(Flood::Pings, 2, &limits);
        assert!(spend(&mut budgets, 1500) && spend(&mut budgets, 1500));
        budgets.earn(Flood::Pings, 100, &limits);
        assert!((0..3).all(|_| spend(&mut budgets, 1500)));
        assert!(!spend(&mut budgets, 1500));
    }

    #[test]
    fn floods_stand_where_their_numbers_say() {
        for (place, flood) in Flood::ALL.into_iter().enumerate() {
            assert_eq!(flood as usize, place);
        }
    }

    #[test]
    fn limits_that_the_protocol_forbids_are_brought_to_those_that_it_allows() {
        let limits = Limits {
            frame_size_max: 0,
            stream_window_size: u32::MAX,
            connection_window_size: 0,
            streams_max: 0,
            ..Limits::DEFAULT
        }
        .sound();
        assert_eq!((limits.frame_size_max, limits.streams_max), (16_384, 1));
        assert_eq!(limits.stream_window_size, 0x7fff_ffff);
        assert_eq!(limits.connection_window_size, 65_535);
        assert_eq!(Limits::DEFAULT.sound(), Limits::DEFAULT);
    }

    #[test]
    fn what_our_own_frames_allow_is_not_cut_to_the_burst() {
        let limits = Limits { window_updates: Allowance::new(3, 1), ..Limits::DEFAULT };
        let mut budgets = Budgets::new(&limits);
        let spend = |budgets: &mut Budgets, now_ms| {
            budgets.spend(Flood::WindowUpdates, &limits, now_ms).is_ok()
        };
        for _ in 0..10 {
            budgets.earn_beyond(Flood::WindowUpdates, 4);
            budgets.earn(Flood::WindowUpdates, 2, &limits);
        }
        assert!((0..43).all(|_| spend(&mut budgets, 5_000)), "time takes nothing away");
        assert!(!spend(&mut budgets, 5_000));
        budgets.earn_beyond(Flood::WindowUpdates, u32::MAX);
        assert!(budgets.left_milli[Flood::WindowUpdates as usize] <= EARNED_MAX * 1000);
    }
}
