//! The deadlines of a process that drains.

/// The deadlines of a draining process.
#[derive(Debug, Clone, Copy)]
pub struct DrainDeadlines {
    /// The time at which the remaining clients are closed.
    pub until_ms: u64,
    /// The time until which idle HTTP/1 clients may send one more request; `None`: they are closed at once.
    pub idle_until_ms: Option<u64>,
    /// Until when clients to which nothing was sent yet may send their first request; `None`: the time is over.
    pub first_until_ms: Option<u64>,
}

impl DrainDeadlines {
    /// Whether the process is draining, but idle clients may still send one more request.
    pub fn spares_idle(this: Option<Self>) -> bool {
        this.is_some_and(|draining| draining.idle_until_ms.is_some())
    }

    /// Whether the process is stopping while new clients may still send their first request.
    pub fn spares_new(this: Option<Self>) -> bool {
        this.is_some_and(|draining| draining.first_until_ms.is_some())
    }

    /// Ends the times that are over. Returns whether there were any.
    pub fn end_times(&mut self, now_ms: u64) -> bool {
        let times = [&mut self.idle_until_ms, &mut self.first_until_ms];
        let over =
            times.into_iter().filter_map(|time| time.take_if(|until_ms| *until_ms <= now_ms));
        over.count() > 0
    }

    /// The time of the next step.
    pub fn next_ms(self) -> u64 {
        let times = self.idle_until_ms.into_iter().chain(self.first_until_ms);
        times.fold(self.until_ms, u64::min)
    }
}
