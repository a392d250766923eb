//! Where the bytes of a tunnel go, and whether they are copied or moved; see [`straight`](crate::straight).

use crate::bounds::Bulk;
use crate::token::Token;

/// Short moves in a row that make it one to be copied.
pub const SHORT_FILLS: u8 = 2;

/// Where the bytes of a socket go, and how.
#[derive(Debug)]
pub struct Straight {
    pub sink: Token,
    pub pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Copied,
    Spliced { short_fills: u8 },
    Ended,
}

impl Straight {
    /// Pace toward this socket, before any data.
    pub fn to(sink: Token) -> Self {
        Self { sink, pace: Pace::Copied }
    }

    /// Whether its peer has ended, and that was reported: it is not read any more.
    pub fn has_ended(&self) -> bool {
        self.pace == Pace::Ended
    }

    /// Selects how the next bytes are moved, after this many came at once.
    pub fn note(&mut self, bytes: usize, bulk: Bulk) {
        self.pace = match self.pace {
            Pace::Copied if bytes < bulk.read_bytes => Pace::Copied,
            Pace::Copied => Pace::Spliced { short_fills: 0 },
            Pace::Spliced { .. } if bytes >= bulk.short_bytes => Pace::Spliced { short_fills: 0 },
            Pace::Spliced { short_fills } if short_fills + 1 < SHORT_FILLS => {
                Pace::Spliced { short_fills: short_fills + 1 }
            }
            Pace::Spliced { .. } => Pace::Copied,
            Pace::Ended => Pace::Ended,
        };
    }
}
