//! Tools that transactions share, one after another: buffers, heads, encoders. They carry no data between transactions.

use weir_compression::{Budget, Pool};
use weir_core::body_edit::Searchers;
use weir_core::policy::{Decision, place_of};
use weir_http::edits::FieldEdits;
use weir_http::message::ResponseHead;

use crate::local::key_limits::LimitPlace;
use crate::local::surroundings::Sources;
use crate::parts::deferred_work::DeferredWork;
use crate::parts::encoding::{Encoding, Transforms};
use crate::parts::held_memory::HeldRoom;
use crate::parts::offloaded_inspections::OffloadedInspections;
use crate::parts::request_context::{RequestContext, SPARE_BYTES_MAX, SPARE_MAX};
use crate::parts::request_ids::RequestIds;
use crate::parts::scratch::Scratch;

/// Tools that transactions share, one after another. An `Option` is `None` while the tool is in use.
pub struct Tools {
    /// What the current call has ordered; empty between calls.
    pub deferred_work: Vec<DeferredWork>,
    /// The number of open requests of weir's own for which nobody waits.
    pub unawaited_under_way: u32,
    /// Output buffers.
    pub scratch: Scratch,
    /// The decision about a request.
    pub decision: Option<Box<Decision>>,
    /// The decision about a response.
    pub response_decision: Option<Box<Decision>>,
    /// Changes to a response.
    pub response_edits: FieldEdits,
    /// The head of a response of weir's own.
    pub own_head: Option<Box<ResponseHead>>,
    /// Places under limits that the current request holds; empty between requests.
    pub limit_places: Vec<LimitPlace>,
    #[expect(clippy::vec_box, reason = "the boxes are used again, not what is in them")]
    spare_remembered: Vec<Box<RequestContext>>,
    /// Memory limit for bodies that are held for inspection.
    pub held_room: HeldRoom,
    /// Inspections that go on on another thread.
    pub offloaded: OffloadedInspections,
    /// Request ids for logs.
    pub request_ids: RequestIds,
    /// The state of the random numbers that distribute requests.
    draws: Option<u64>,
    /// Whether the access log contains the followed rules.
    pub notes_rules: bool,
    /// Searchers for text in bodies.
    pub searchers: Searchers,
    /// Compressors.
    pub encoders: Pool,
    /// The budget of CPU time for compression.
    pub budget: Budget,
    /// The clock that measures encoders, in microseconds.
    pub time_us: fn() -> u64,
    /// The CPU time of this thread in microseconds; by default, the clock.
    pub cpu_us: fn() -> u64,
    /// The sources of random numbers and of the time of day.
    pub sources: Sources,
}

impl Tools {
    /// New tools.
    pub fn new(time_us: fn() -> u64, sources: Sources) -> Self {
        Self {
            deferred_work: Vec::new(),
            unawaited_under_way: 0,
            scratch: Scratch::default(),
            decision: None,
            response_decision: None,
            response_edits: FieldEdits::default(),
            own_head: None,
            limit_places: Vec::new(),
            held_room: HeldRoom::default(),
            offloaded: OffloadedInspections::default(),
            request_ids: RequestIds::default(),
            draws: None,
            notes_rules: false,
            spare_remembered: Vec::new(),
            searchers: Searchers::default(),
            encoders: Pool::default(),
            budget: Budget::new(time_us()),
            time_us,
            cpu_us: time_us,
            sources,
        }
    }

    /// The next random number, uniformly distributed.
    pub fn draw(&mut self) -> u64 {
        let seed = self.draws.unwrap_or_else(|| {
            let mut seed = [0; 8];
            (self.sources.fill_randomly)(&mut seed);
            u64::from_le_bytes(seed)
        });
        // A step of SplitMix64.
        let next = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.draws = Some(next);
        place_of(next)
    }

    /// An empty box for data of a request.
    pub fn take_remembered(&mut self) -> Box<RequestContext> {
        self.spare_remembered.pop().unwrap_or_default()
    }

    /// Takes back the data of a request, and its buffers.
    pub fn give_remembered(&mut self, mut context: Box<RequestContext>) {
        if let Some(mut work) = context.stage_work.take() {
            work.end(&mut self.deferred_work);
        }
        context.clear();
        if self.spare_remembered.len() < SPARE_MAX && context.kept_bytes() <= SPARE_BYTES_MAX {
            self.spare_remembered.push(context);
        }
    }

    /// Takes back the transforms of a body.
    pub fn give_transforms(&mut self, transforms: Option<Box<Transforms>>) {
        let Some(transforms) = transforms else { return };
        match transforms.encoding {
            Some(Encoding::Stream { encoder, .. }) => self.encoders.give(encoder),
            Some(Encoding::Whole(encoded)) => self.scratch.give(encoded),
            Some(Encoding::Dropped { .. }) | None => {}
        }
    }
}
