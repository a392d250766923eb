//! Workers that share a pool with limits: requests arrive, wait, give up, time out and are served, and wake-ups are late.
//! Within a millisecond, the workers' steps are interleaved at random; each step is one atomic operation.

use super::{Line, OVERTAKING_MS_MAX, Places, Ticket, Turn, anybody_waits, turn};
use weir_testing::Random;

const TIMEOUT_MS: u64 = 200;

/// The next step of a worker.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A request has arrived: does any request wait?
    Come(usize),
    /// No request waited: is a member free?
    Try(usize),
    /// The request must wait.
    Join(usize),
    /// A request on this member has ended.
    Free(usize),
    /// Which worker gets the place?
    Give,
    /// Which request has waited longest?
    Decide,
    /// The own first request may be served if a member is free. Then whether to continue with `Decide`.
    Serve { again: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Coming,
    Waiting(Ticket),
    Served,
    Refused,
    Cancelled,
    Expired,
}

struct Request {
    worker: usize,
    came_ms: u64,
    state: State,
}

struct Worker {
    line: Line<usize>,
    places: Places,
    /// The steps of the current operation, the next one last.
    steps: Vec<Step>,
    /// The time at which a wake-up arrives.
    woken_ms: Option<u64>,
}

struct Pool {
    random: Random,
    now_ms: u64,
    workers: Vec<Worker>,
    /// The shared words of the workers.
    words: Vec<u64>,
    occupancy: Vec<u32>,
    limit: Vec<u32>,
    requests: Vec<Request>,
    /// Active requests: end, worker and member of each.
    running: Vec<(u64, usize, usize)>,
    service_ms: usize,
    wake_ups: u64,
}

impl Pool {
    fn new(seed: u64, workers: usize, limit: Vec<u32>, length_max: usize) -> Self {
        let worker = |_| Worker {
            line: Line::new(length_max),
            places: Places::new(),
            steps: Vec::new(),
            woken_ms: None,
        };
        Self {
            random: Random::new(seed),
            now_ms: 1,
            workers: (0..workers).map(worker).collect(),
            words: vec![0; workers],
            occupancy: vec![0; limit.len()],
            limit,
            requests: Vec::new(),
            running: Vec::new(),
            service_ms: 50,
            wake_ups: 0,
        }
    }

    fn free_member(&self) -> Option<usize> {
        (0..self.limit.len()).find(|&member| self.occupancy[member] < self.limit[member])
    }

    /// Simulates one millisecond with this number of arrivals; one client gives up with this probability.
    fn tick(&mut self, arrivals: usize, cancel_percent: usize) {
        for _ in 0..arrivals {
            let worker = self.random.below(self.workers.len());
            self.requests.push(Request { worker, came_ms: self.now_ms, state: State::Coming });
            self.workers[worker].steps.insert(0, Step::Come(self.requests.len() - 1));
        }
        let now_ms = self.now_ms;
        let (ended, running): (Vec<_>, Vec<_>) =
            self.running.drain(..).partition(|end| end.0 <= now_ms);
        self.running = running;
        for (_, worker, member) in ended {
            self.workers[worker].steps.insert(0, Step::Free(member));
        }
        for worker in 0..self.workers.len() {
            if self.workers[worker].woken_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
                self.workers[worker].woken_ms = None;
                self.workers[worker].steps.insert(0, Step::Decide);
            }
        }
        self.run_steps();
        if self.random.percent(cancel_percent) {
            self.cancel_one();
        }
        self.expire();
        self.now_ms += 1;
    }

    fn run_steps(&mut self) {
        loop {
            let busy: Vec<usize> = (0..self.workers.len())
                .filter(|&worker| !self.workers[worker].steps.is_empty())
                .collect();
            if busy.is_empty() {
                return;
            }
            let worker = busy[self.random.below(busy.len())];
            if let Some(step) = self.workers[worker].steps.pop() {
                // The next step of this operation comes before other work of the worker.
                let next = self.step(worker, step);
                self.workers[worker].steps.extend(next);
            }
        }
    }

    fn step(&mut self, worker: usize, step: Step) -> Option<Step> {
        match step {
            Step::Come(request) if anybody_waits(self.words.iter().copied()) => {
                Some(Step::Join(request))
            }
            Step::Come(request) => Some(Step::Try(request)),
            Step::Try(request) => match self.free_member() {
                Some(member) => {
                    self.begin(worker, request, member);
                    None
                }
                None => Some(Step::Join(request)),
            },
            Step::Join(request) => self.join(worker, request),
            Step::Free(member) => {
                self.occupancy[member] -= 1;
                Some(Step::Give)
            }
            Step::Give => {
                let words = self.words.iter().copied();
                let (turn, after) = self.workers[worker].places.next(words, worker);
                self.workers[worker].places = after;
                self.act(turn, false)
            }
            Step::Decide => self.act(turn(self.words.iter().copied(), worker), true),
            Step::Serve { again } => {
                let member = self.free_member()?;
                let request = self.workers[worker].line.pop().expect("the word says who waits");
                self.show(worker);
                self.begin(worker, request, member);
                again.then_some(Step::Decide)
            }
        }
    }

    fn act(&mut self, turn: Turn, again: bool) -> Option<Step> {
        match turn {
            Turn::Nobody => None,
            Turn::Own => Some(Step::Serve { again }),
            Turn::Other(other) => {
                let late_ms = self.random.below(3) as u64;
                self.workers[other].woken_ms.get_or_insert(self.now_ms + late_ms);
                self.wake_ups += 1;
                None
            }
        }
    }

    fn join(&mut self, worker: usize, request: usize) -> Option<Step> {
        let line = &mut self.workers[worker].line;
        let was_empty = line.is_empty();
        let joined = line.push(request, self.requests[request].came_ms, TIMEOUT_MS);
        self.requests[request].state = match joined {
            Ok(ticket) => State::Waiting(ticket),
            Err(_) => State::Refused,
        };
        self.show(worker);
        (was_empty && joined.is_ok()).then_some(Step::Decide)
    }

    fn show(&mut self, worker: usize) {
        self.words[worker] = self.workers[worker].line.waiting_since_ms();
    }

    /// Serves a request: no waiting request is overtaken by more than the stated bound.
    fn begin(&mut self, worker: usize, request: usize, member: usize) {
        assert!(matches!(self.requests[request].state, State::Coming | State::Waiting(_)));
        self.requests[request].state = State::Served;
        let came_ms = self.requests[request].came_ms;
        for waiting in self.workers.iter().filter(|worker| !worker.line.is_empty()) {
            let overtaken_ms = came_ms.saturating_sub(waiting.line.waiting_since_ms());
            assert!(overtaken_ms <= OVERTAKING_MS_MAX, "overtaken by {overtaken_ms} ms");
        }
        assert_eq!(self.requests[request].worker, worker);
        self.occupancy[member] += 1;
        assert!(self.occupancy[member] <= self.limit[member]);
        let service_ms = 1 + self.random.below(2 * self.service_ms) as u64;
        self.running.push((self.now_ms + service_ms, worker, member));
    }

    fn cancel_one(&mut self) {
        let waiting: Vec<usize> = (0..self.requests.len())
            .rev()
            .take(500)
            .filter(|&request| matches!(self.requests[request].state, State::Waiting(_)))
            .collect();
        if waiting.is_empty() {
            return;
        }
        let request = waiting[self.random.below(waiting.len())];
        let Request { worker, state, .. } = self.requests[request];
        if let State::Waiting(ticket) = state {
            assert_eq!(self.workers[worker].line.cancel(ticket), Some(request));
            self.requests[request].state = State::Cancelled;
            self.show(worker);
        }
    }

    fn expire(&mut self) {
        for worker in 0..self.workers.len() {
            while let Some(request) = self.workers[worker].line.expire(self.now_ms) {
                assert_eq!(self.now_ms, self.requests[request].came_ms + TIMEOUT_MS);
                self.requests[request].state = State::Expired;
            }
            self.show(worker);
        }
    }

    /// Between the ticks: no request waits while a place is free, unless a wake-up is pending.
    fn check(&self) {
        let on_its_way = self.workers.iter().any(|worker| worker.woken_ms.is_some());
        let waits = anybody_waits(self.words.iter().copied());
        assert!(!waits || on_its_way || self.free_member().is_none(), "a wake-up was lost");
        let waiting: usize = self.workers.iter().map(|worker| worker.line.len()).sum();
        let held: u32 = self.occupancy.iter().sum();
        assert_eq!(held as usize, self.running.len());
        let listed = self
            .requests
            .iter()
            .filter(|request| matches!(request.state, State::Waiting(_)))
            .count();
        assert_eq!(waiting, listed, "a waiter was lost");
    }

    fn count(&self, state: State) -> usize {
        self.requests.iter().filter(|request| request.state == state).count()
    }
}

#[test]
fn nobody_is_lost_overtaken_or_left_beside_a_free_place() {
    for seed in 0..32 {
        let mut random = Random::new(seed);
        let limit: Vec<u32> =
            (0..1 + random.below(4)).map(|_| 1 + random.below(4) as u32).collect();
        let mut pool = Pool::new(seed, 1 + random.below(6), limit, 1 + random.below(40));
        pool.service_ms = 5 + random.below(50);
        for _ in 0..20 {
            // From an idle pool to heavy overload.
            let load_percent = random.below(100);
            let cancel_percent = random.below(60);
            for _ in 0..60 {
                let arrivals = usize::from(pool.random.percent(load_percent));
                let arrivals = arrivals * (1 + pool.random.below(2));
                pool.tick(arrivals, cancel_percent);
                pool.check();
            }
        }
        for _ in 0..TIMEOUT_MS + 200 {
            pool.tick(0, 0);
            pool.check();
        }
        assert!(pool.running.is_empty(), "seed {seed}");
        let ended = [State::Served, State::Refused, State::Cancelled, State::Expired]
            .map(|state| pool.count(state));
        assert_eq!(ended.iter().sum::<usize>(), pool.requests.len(), "seed {seed}: {ended:?}");
    }
}

/// At twice the capacity of the members, the members are always busy, all workers get their share, and few places need a
/// wake-up.
#[test]
fn at_double_load_no_place_is_idle() {
    for seed in 0..8 {
        let mut pool = Pool::new(seed, 4, vec![5; 4], 100);
        // 20 places of 50 ms serve a request in 2.5 ms.
        let (mut held, mut ticks) = (0, 0);
        for tick in 0..5_000 {
            let arrivals = usize::from(pool.random.percent(80));
            pool.tick(arrivals, 2);
            if tick >= 500 {
                held += pool.occupancy.iter().sum::<u32>();
                ticks += 1;
            }
        }
        let busy = f64::from(held) / f64::from(20 * ticks);
        assert!(busy >= 0.97, "seed {seed}: {busy}");
        let served = |worker: usize| {
            let of_worker =
                |request: &&Request| request.worker == worker && request.state == State::Served;
            pool.requests.iter().filter(of_worker).count()
        };
        let mean = pool.count(State::Served) / 4;
        assert!((0..4).all(|worker| served(worker).abs_diff(mean) < mean / 5), "seed {seed}");
        let per_served = pool.wake_ups as f64 / pool.count(State::Served) as f64;
        assert!(per_served < 0.5, "seed {seed}: {per_served} wake-ups per request");
    }
}

/// One worker has few requests and another many, half of which can be served. The requests of the first are served at least
/// as often as those of the second, although the first begins without a place.
#[test]
fn a_worker_with_few_places_does_not_starve() {
    let mut pool = Pool::new(3, 2, vec![10], 500);
    pool.service_ms = 10;
    let come = |pool: &mut Pool, worker: usize| {
        pool.requests.push(Request { worker, came_ms: pool.now_ms, state: State::Coming });
        let number = pool.requests.len() - 1;
        pool.workers[worker].steps.push(Step::Come(number));
    };
    for tick in 0..12_000 {
        // 10 places of 10.5 ms serve about 0.95 requests per millisecond.
        (0..2).for_each(|_| come(&mut pool, 0));
        if tick % 20 == 19 {
            come(&mut pool, 1);
        }
        pool.tick(0, 0);
    }
    let served_share = |worker: usize| {
        let of_worker = || pool.requests.iter().filter(|request| request.worker == worker);
        let served = of_worker().filter(|request| request.state == State::Served).count();
        served as f64 / of_worker().count() as f64
    };
    let (few, many) = (served_share(1), served_share(0));
    assert!(few >= many && many > 0.4, "{few} {many}");
}
