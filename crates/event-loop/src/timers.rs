//! Deadlines of sockets: a hashed timer wheel with lazy entries.
//!
//! A socket has one deadline, which changes with almost every event (idle, waiting, idle, ...). A later deadline needs only
//! one store: the entry stays in its slot, and if it comes up too early, it is moved to a later slot. Only a deadline before
//! the entry's slot moves the entry at once. So a keep-alive connection moves its entry about once per shortest timeout, not
//! once per request (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", scheme 6).

/// Resolution. A deadline fires at most this much late, and never early.
pub const TICK_MS: u64 = 16;
/// Number of slots. One revolution takes about 65 seconds; entries with later deadlines are moved several times.
const SLOTS: usize = 4096;
/// Marks the end of a list of entries.
const NONE: u32 = u32::MAX;

/// The entry of a socket on the wheel, stored with the socket.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The deadline; `u64::MAX`: none.
    deadline_ms: u64,
    /// The tick at which the entry comes up; 0: the entry is not on the wheel.
    tick: u64,
    previous: u32,
    next: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self { deadline_ms: u64::MAX, tick: 0, previous: NONE, next: NONE }
    }
}

impl Entry {
    /// Whether a deadline is set.
    pub fn is_armed(&self) -> bool {
        self.deadline_ms != u64::MAX
    }

    /// Sets the deadline if the entry does not have to come up earlier for it. Otherwise changes nothing. Returns whether
    /// the deadline was set.
    #[inline]
    pub fn put_off(&mut self, deadline_ms: u64) -> bool {
        let comes_up_in_time = self.tick != 0 && deadline_ms > (self.tick - 1) * TICK_MS;
        if comes_up_in_time {
            self.deadline_ms = deadline_ms;
        }
        comes_up_in_time
    }

    /// Clears the deadline. The entry is removed from the wheel when it comes up.
    #[inline]
    pub fn clear(&mut self) {
        self.deadline_ms = u64::MAX;
    }
}

/// Access to the entries, which are stored in the caller's table.
pub trait Entries {
    /// The entry of socket `index`.
    fn entry(&mut self, index: u32) -> &mut Entry;
}

/// The timer wheel.
#[derive(Debug)]
pub struct Timers {
    heads: Box<[u32]>,
    occupied: [u64; SLOTS / 64],
    now_tick: u64,
    /// A lower bound for the first tick that has an entry.
    next_tick: u64,
}

impl Timers {
    /// An empty wheel with the time `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            heads: vec![NONE; SLOTS].into_boxed_slice(),
            occupied: [0; SLOTS / 64],
            now_tick: now_ms / TICK_MS,
            next_tick: u64::MAX,
        }
    }

    /// Sets the deadline of socket `index`. Callers that have access to the entry try [`Entry::put_off`] first.
    #[inline(never)]
    pub fn set(&mut self, entries: &mut impl Entries, index: u32, deadline_ms: u64) {
        let entry = entries.entry(index);
        entry.deadline_ms = deadline_ms;
        let tick = self.tick_of(deadline_ms);
        if entry.tick == 0 || tick < entry.tick {
            self.unlink(entries, index);
            self.link(entries, index, tick);
        }
    }

    /// Removes the socket from the wheel. This is required before its slot in the table is reused.
    pub fn remove(&mut self, entries: &mut impl Entries, index: u32) {
        self.unlink(entries, index);
        *entries.entry(index) = Entry::default();
    }

    /// Whether entries must be examined at `now_ms`. If not, the wheel advances to that time.
    #[inline]
    pub fn is_due(&mut self, now_ms: u64) -> bool {
        let target = now_ms / TICK_MS;
        if target < self.next_tick {
            self.now_tick = self.now_tick.max(target);
            return false;
        }
        true
    }

    /// Advances to `now_ms`, and appends the sockets with expired deadlines to `due`. Their deadlines are cleared.
    pub fn advance(&mut self, entries: &mut impl Entries, now_ms: u64, due: &mut Vec<u32>) {
        if !self.is_due(now_ms) {
            return;
        }
        let target = now_ms / TICK_MS;
        let first = self.next_tick.max(self.now_tick);
        let last = target.min(first + SLOTS as u64 - 1);
        self.now_tick = target;
        for tick in first..=last {
            let slot = slot_of(tick);
            let mut index = std::mem::replace(&mut self.heads[slot], NONE);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            while index != NONE {
                let entry = entries.entry(index);
                let (next, deadline_ms) = (entry.next, entry.deadline_ms);
                *entry = Entry { deadline_ms, ..Entry::default() };
                if deadline_ms <= now_ms {
                    entry.deadline_ms = u64::MAX;
                    due.push(index);
                } else if deadline_ms != u64::MAX {
                    let later = self.tick_of(deadline_ms);
                    self.link(entries, index, later);
                }
                index = next;
            }
        }
        self.next_tick = self.first_occupied();
    }

    /// The time at which the wheel must be advanced next.
    #[cfg(feature = "simulation")]
    pub fn next_ms(&self) -> Option<u64> {
        (self.next_tick != u64::MAX).then(|| self.next_tick * TICK_MS)
    }

    /// Milliseconds from `now_ms` until the wheel must be advanced; `None`: the wheel is empty.
    pub fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        (self.next_tick != u64::MAX)
            .then(|| (self.next_tick * TICK_MS).saturating_sub(now_ms).max(1))
    }

    /// The first tick at or after a deadline, limited to the ticks that the wheel can hold.
    fn tick_of(&self, deadline_ms: u64) -> u64 {
        let furthest = self.now_tick + SLOTS as u64 - 1;
        deadline_ms.div_ceil(TICK_MS).clamp(self.now_tick + 1, furthest)
    }

    fn link(&mut self, entries: &mut impl Entries, index: u32, tick: u64) {
        let slot = slot_of(tick);
        let head = std::mem::replace(&mut self.heads[slot], index);
        self.occupied[slot / 64] |= 1 << (slot % 64);
        if head != NONE {
            entries.entry(head).previous = index;
        }
        let entry = entries.entry(index);
        entry.tick = tick;
        entry.previous = NONE;
        entry.next = head;
        self.next_tick = self.next_tick.min(tick);
    }

    fn unlink(&mut self, entries: &mut impl Entries, index: u32) {
        let Entry { tick, previous, next, .. } = *entries.entry(index);
        if tick == 0 {
            return;
        }
        if next != NONE {
            entries.entry(next).previous = previous;
        }
        if previous != NONE {
            entries.entry(previous).next = next;
        } else {
            let slot = slot_of(tick);
            self.heads[slot] = next;
            if next == NONE {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
        }
        entries.entry(index).tick = 0;
    }

    /// The first tick after the current one whose slot has an entry. Every entry is less than one revolution away.
    fn first_occupied(&self) -> u64 {
        let start = self.now_tick + 1;
        let mut distance = 0;
        while distance < SLOTS as u64 {
            let slot = slot_of(start + distance);
            let bits = self.occupied[slot / 64] >> (slot % 64);
            if bits != 0 {
                return start + distance + u64::from(bits.trailing_zeros());
            }
            distance += 64 - (slot % 64) as u64;
        }
        u64::MAX
    }
}

fn slot_of(tick: u64) -> usize {
    (tick % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table(Vec<Entry>);

    impl Entries for Table {
        fn entry(&mut self, index: u32) -> &mut Entry {
            &mut self.0[index as usize]
        }
    }

    /// Compares the wheel with a simple model: sockets with changing deadlines, and time in random steps.
    fn simulate(seed: u64) {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        let count = 50;
        let mut now_ms = draw(1_000_000);
        let mut timers = Timers::new(now_ms);
        let mut table = Table(vec![Entry::default(); count]);
        let mut model: Vec<Option<u64>> = vec![None; count];
        let mut due = Vec::new();
        for step in 0..20_000 {
            let index = draw(count as u64) as u32;
            match draw(10) {
                0..=4 => {
                    let spread = [100, 5_000, 60_000, 400_000][draw(4) as usize];
                    let deadline = now_ms + draw(spread);
                    let tick = table.entry(index).tick;
                    if table.entry(index).put_off(deadline) {
                        // `set` would also have left the entry in its slot.
                        assert!(tick != 0 && timers.tick_of(deadline) >= tick);
                    } else {
                        assert!(tick == 0 || timers.tick_of(deadline) < tick);
                        timers.set(&mut table, index, deadline);
                    }
                    model[index as usize] = Some(deadline);
                }
                5 => {
                    table.entry(index).clear();
                    model[index as usize] = None;
                }
                6 => {
                    timers.remove(&mut table, index);
                    model[index as usize] = None;
                }
                _ => {
                    now_ms += [0, 1, 20, 3_000, 200_000][draw(5) as usize];
                    due.clear();
                    timers.advance(&mut table, now_ms, &mut due);
                    for &index in &due {
                        let deadline = model[index as usize].take();
                        assert!(
                            deadline.is_some_and(|at| at <= now_ms),
                            "seed {seed} step {step}: socket {index} fired early"
                        );
                    }
                    for (index, deadline) in model.iter().enumerate() {
                        assert!(
                            deadline.is_none_or(|at| at + TICK_MS > now_ms),
                            "seed {seed} step {step}: socket {index} did not fire"
                        );
                    }
                }
            }
            if let Some(wait_ms) = timers.wait_ms(now_ms) {
                let first = model.iter().flatten().min();
                assert!(
                    first.is_none_or(|&at| now_ms + wait_ms <= at.max(now_ms) + TICK_MS),
                    "seed {seed} step {step}: would sleep past the first deadline"
                );
            } else {
                assert!(model.iter().all(Option::is_none), "seed {seed} step {step}: forgotten");
            }
        }
    }

    #[test]
    fn wheel_agrees_with_the_model() {
        for seed in 1..=16 {
            simulate(seed);
        }
    }
}
