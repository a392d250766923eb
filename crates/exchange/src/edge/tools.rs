//! What transactions use one after another: buffers, heads, encoders. Nothing in it says anything of the one before.

use weir_compression::{Budget, Pool};
use weir_core::policy::Decision;
use weir_http::edits::FieldEdits;
use weir_http::message::ResponseHead;

use crate::edge::scratch::Scratch;
use crate::local::traffic::Held;
use crate::transaction::encoding::Encoding;
use crate::transaction::extras::{Extras, SPARE_BYTES_MAX, SPARE_MAX};

/// What transactions use one after another. What is an `Option` leaves while it is used.
pub struct Tools {
    /// Buffers for what is written.
    pub scratch: Scratch,
    /// What is decided about a request.
    pub decision: Option<Box<Decision>>,
    /// The same about a response.
    pub response_decision: Option<Box<Decision>>,
    /// What is changed of a response.
    pub response_edits: FieldEdits,
    /// The head of a response of weir's own.
    pub own_head: Option<Box<ResponseHead>>,
    /// What the request that is looked at holds under limits; empty between two.
    pub held: Vec<Held>,
    #[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
    spare_extras: Vec<Box<Extras>>,
    /// What compresses.
    pub encoders: Pool,
    /// How hard it tries.
    pub budget: Budget,
    /// The time within a turn, in microseconds, by which encoders are measured.
    pub time_us: fn() -> u64,
    /// Fills with bytes that nobody can tell in advance.
    pub fill_randomly: fn(&mut [u8]),
}

impl Tools {
    /// None was used yet.
    pub fn new(time_us: fn() -> u64, fill_randomly: fn(&mut [u8])) -> Self {
        Self {
            scratch: Scratch::default(),
            decision: None,
            response_decision: None,
            response_edits: FieldEdits::default(),
            own_head: None,
            held: Vec::new(),
            spare_extras: Vec::new(),
            encoders: Pool::default(),
            budget: Budget::new(time_us()),
            time_us,
            fill_randomly,
        }
    }

    /// Room to remember something of a request.
    pub fn take_extras(&mut self) -> Box<Extras> {
        self.spare_extras.pop().unwrap_or_default()
    }

    /// Takes back what was remembered of a request, and what it held.
    pub fn give_extras(&mut self, extras: Option<Box<Extras>>) {
        let Some(mut extras) = extras else { return };
        extras.clear();
        if self.spare_extras.len() < SPARE_MAX && extras.kept_bytes() <= SPARE_BYTES_MAX {
            self.spare_extras.push(extras);
        }
    }

    /// Takes an encoder back.
    pub fn give_encoding(&mut self, encoding: Option<Box<Encoding>>) {
        match encoding.map(|encoding| *encoding) {
            Some(Encoding::Stream { encoder, .. }) => self.encoders.give(encoder),
            Some(Encoding::Whole(encoded)) => self.scratch.give(encoded),
            Some(Encoding::Dropped { .. }) | None => {}
        }
    }
}
