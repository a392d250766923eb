//! More of something than an HTTP/2 client may send, so that its connection has to end with
//! ENHANCE_YOUR_CALM; or slightly less, so that it must not.

use weir_testing::Random;
use weir_testing::frame::{Frame, code, kind};

use crate::http2::{Http2, PRIORITY_UPDATE};
use crate::http2_terms::Change;
use crate::message::Fields;
use crate::plan::{Framing, Method, Plan, Rule};

/// Requests that are reset at once, within the limit together with those of plans.
const RESETS: usize = 100;

/// The kind of the flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Requests that are reset at once, within the limit.
    FewResets,
    /// The same, above the limit.
    Resets,
    /// PING.
    Pings,
    /// SETTINGS.
    Settings,
    /// PRIORITY_UPDATE.
    Priorities,
    /// WINDOW_UPDATE.
    Updates,
}

impl Flood {
    /// Any of them.
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

    /// Whether it consists of repeated requests.
    pub fn is_for(plan: &Plan) -> bool {
        let is_sent_at_once = plan.body.framing == Framing::Empty && plan.tunnel.is_none();
        is_sent_at_once
            && plan.method != Method::Post
            && plan.rule == Rule::Plain
            && plan.flaw.is_none()
    }

    /// Whether the connection has to end.
    pub fn is_too_much(self) -> bool {
        self != Self::FewResets
    }

    /// Writes the flood; `lines` are those of a request.
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
