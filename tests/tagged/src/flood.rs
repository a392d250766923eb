//! Floods of an HTTP/2 client: above the limit, so that weir must close the connection with ENHANCE_YOUR_CALM, or just below
//! it, so that weir must not.

use weir_testing::Random;
use weir_testing::frame::{Frame, code, kind};

use crate::http2::{Http2, PRIORITY_UPDATE};
use crate::http2_terms::Change;
use crate::message::Fields;
use crate::plan::{Framing, Method, Plan, Rule};

/// Number of requests that are reset at once. Together with the resets of plans, it is below the limit.
const RESETS: usize = 100;

/// The kind of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Requests that are reset at once, below the limit.
    FewResets,
    /// Requests that are reset at once, above the limit.
    Resets,
    /// PING frames.
    Pings,
    /// SETTINGS frames.
    Settings,
    /// PRIORITY_UPDATE frames.
    Priorities,
    /// WINDOW_UPDATE frames.
    Updates,
}

impl Flood {
    /// Draws a kind of flood.
    pub fn draw(random: &mut Random) -> Self {
        match random.below(12) {
            0..7 => Self::FewResets,
            7 => Self::Resets,
            8 => Self::Pings,
            9 => Self::Settings,
            10 => Self::Priorities,
            _ => Self::Updates,
        }
    }

    /// Whether a flood may use the request of this plan.
    pub fn is_for(plan: &Plan) -> bool {
        let is_sent_at_once = plan.body.framing == Framing::Empty && plan.tunnel.is_none();
        is_sent_at_once
            && plan.method != Method::Post
            && plan.rule == Rule::Plain
            && plan.flaw.is_none()
    }

    /// Whether weir must close the connection.
    pub fn is_too_much(self) -> bool {
        self != Self::FewResets
    }

    /// Writes the flood; `lines` are the header lines of its requests.
    pub fn write(self, http2: &mut Http2, lines: &Fields, random: &mut Random) {
        let frames = |http2: &mut Http2, count, frame: Frame| {
            (0..count).for_each(|_| http2.write(&frame));
        };
        match self {
            Self::FewResets | Self::Resets => {
                let count = if self.is_too_much() { 4 * RESETS } else { random.below(RESETS) };
                for _ in 0..count {
                    let stream = http2.open();
                    http2.headers(stream, lines, true, random);
                    http2.reset(stream, code::CANCEL);
                }
            }
            Self::Pings => frames(http2, 200, Frame::new(kind::PING, 0, 0, *b"tell me!")),
            Self::Settings => (0..100).for_each(|_| _ = http2.settle(Change::None)),
            Self::Priorities => {
                frames(http2, 1_500, Frame::new(PRIORITY_UPDATE, 0, 0, *b"\0\0\0\x01u=0"));
            }
            Self::Updates => frames(http2, 3_000, Frame::window_update(0, 1)),
        }
    }
}
