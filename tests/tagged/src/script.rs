//! The steps by which a side sends its frames on an HTTP/2 stream, as windows and time permit.

use std::collections::VecDeque;
use std::time::Duration;

use weir_testing::Random;

use crate::clock::Moment;
use crate::http2::Http2;
use crate::link::UNTIL_EVENT;
use crate::message::Fields;
use crate::plan::Body;
use crate::profile::Profile;
use crate::tag::{Id, Key, Part};
use crate::world::World;

/// The script of a stream pauses while the connection has more unsent bytes than this.
const QUEUED_BYTES_MAX: usize = 64 * 1024;

/// A step of a script.
#[derive(Debug)]
pub enum Step {
    /// A head or trailers, and whether this is the end of the stream.
    Headers(Fields, bool),
    /// A raw header block, and whether this is the end of the stream.
    Block(Vec<u8>, bool),
    /// The bytes of a part from the first to the second position, and whether this is the end of the stream.
    Data(usize, usize, bool),
    /// An irrelevant frame.
    Chat,
    /// RST_STREAM with this error code.
    Reset(u32),
    /// A pause.
    Pause(Duration),
    /// A pause until 100 or a final response arrives, or this time has passed.
    Continue(Duration),
}

/// The progress of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Waiting, at most for this time.
    Waits(Duration),
    /// All steps are done.
    Done,
    /// The stream is reset.
    Reset,
}

/// The remaining steps of a script.
#[derive(Debug)]
pub struct Script {
    key: Key,
    profile: Profile,
    id: Id,
    part: Part,
    steps: VecDeque<Step>,
    since: Option<Moment>,
    /// Whether the first step is done.
    pub has_begun: bool,
    /// Whether the condition of [`Step::Continue`] is met.
    pub continued: bool,
}

impl Script {
    /// An empty script; [`Step::Data`] sends bytes of this part.
    pub fn new(world: &World, id: Id, part: Part) -> Self {
        let (key, profile, steps) = (world.key, world.profile, VecDeque::new());
        Self { key, profile, id, part, steps, since: None, has_begun: false, continued: false }
    }

    /// Adds a step.
    pub fn push(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// Adds a body in frames of random sizes, with pauses at random, and its trailers.
    pub fn body(&mut self, body: &Body, trailers: Fields, random: &mut Random) {
        let is_trailed = !trailers.is_empty();
        let frame_max = [30, 900, 16_384, 16_384][random.below(4)].max(body.bytes / 100);
        let pauses = random.percent(30);
        let mut at = 0;
        while at < body.bytes {
            let length = (1 + random.below(frame_max)).min(body.bytes - at);
            let is_last = at + length == body.bytes;
            // The end of the stream is in the last data frame or in a separate one.
            let end = is_last && !is_trailed && random.percent(70);
            self.push(Step::Data(at, at + length, end));
            at += length;
            if end {
                return;
            }
            if pauses && random.percent(20) {
                self.push(Step::Pause(self.profile.pause(random, 3_000)));
            }
        }
        match is_trailed {
            true => self.push(Step::Headers(trailers, true)),
            false => self.push(Step::Data(at, at, true)),
        }
    }

    /// Keeps the first steps: this share in per mille, but at least one.
    pub fn keep(&mut self, permille: usize) {
        let count = (self.steps.len() * permille / 1_000).max(1);
        self.steps.truncate(count);
    }

    /// Whether the last step ends the stream.
    pub fn is_ended(&self) -> bool {
        matches!(self.steps.back(), Some(Step::Headers(_, true) | Step::Data(_, _, true)))
    }

    /// Leaves out the end of the stream.
    pub fn unend(&mut self) {
        if let Some(Step::Data(_, _, end)) = self.steps.back_mut() {
            *end = false;
        }
    }

    /// The number of bytes in all data steps.
    pub fn data_bytes(&self) -> usize {
        let bytes = |step: &Step| if let Step::Data(from, to, _) = step { to - from } else { 0 };
        self.steps.iter().map(bytes).sum()
    }

    /// Number of remaining steps.
    pub fn steps_left(&self) -> usize {
        self.steps.len()
    }

    /// Drops the remaining steps.
    pub fn stop(&mut self) {
        self.steps.clear();
    }

    /// Whether no steps remain.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// Performs as many steps as possible on the stream.
    pub fn go_on(&mut self, http2: &mut Http2, stream: u32, random: &mut Random) -> Progress {
        loop {
            if http2.link.queued() > QUEUED_BYTES_MAX {
                return Progress::Waits(UNTIL_EVENT);
            }
            match self.steps.front_mut() {
                None => return Progress::Done,
                Some(Step::Headers(lines, end)) => http2.headers(stream, lines, *end, random),
                Some(Step::Block(block, end)) => http2.block(stream, block, *end, random),
                Some(Step::Data(from, to, end)) => {
                    let allowed = http2.allowance(stream).min(16_384);
                    let length = allowed.min(*to - *from);
                    let is_last = length == *to - *from;
                    if length == 0 && !is_last {
                        return Progress::Waits(UNTIL_EVENT);
                    }
                    let mut data = vec![0; length];
                    self.key.fill(self.id, self.part, *from, &mut data);
                    http2.data(stream, &data, is_last && *end, random);
                    *from += length;
                    if !is_last {
                        continue;
                    }
                }
                Some(Step::Chat) => http2.chat(stream, random),
                Some(Step::Reset(code)) => {
                    http2.reset(stream, *code);
                    return Progress::Reset;
                }
                Some(Step::Pause(time)) => {
                    let now = http2.link.now();
                    let until = *self.since.get_or_insert(now) + *time;
                    if let Some(left) = now.left_until(until) {
                        return Progress::Waits(left);
                    }
                    self.since = None;
                }
                Some(Step::Continue(most)) => {
                    let now = http2.link.now();
                    let until = *self.since.get_or_insert(now) + *most;
                    let left = now.left_until(until);
                    if let Some(left) = left.filter(|_| !self.continued) {
                        return Progress::Waits(left);
                    }
                    self.since = None;
                }
            }
            self.steps.pop_front();
            self.has_begun = true;
        }
    }
}
