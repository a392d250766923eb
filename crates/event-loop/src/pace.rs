//! The destination of a tunnel's bytes, and whether they are copied or spliced; see [`straight`](crate::straight).

use crate::bounds::Bulk;
use crate::token::Token;

/// Number of consecutive short moves after which bytes are copied again.
pub const SHORT_FILLS: u8 = 2;

/// The destination of a socket's bytes, and the method of the transfer.
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
    /// Starts with copying, as no data has arrived yet.
    pub fn to(sink: Token) -> Self {
        Self { sink, pace: Pace::Copied }
    }

    /// Whether the peer's FIN was reported. The socket is not read after that.
    pub fn has_ended(&self) -> bool {
        self.pace == Pace::Ended
    }

    /// Selects the method for the next bytes, after one transfer of this size.
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
