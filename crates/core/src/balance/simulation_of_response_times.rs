//! Least response time under load: members have response times, and several cores share their state.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Balancer, Method, ResponseTime, View};
use weir_testing::Random;

/// State that the cores share, and counters of the test.
#[derive(Clone, Default)]
struct Member {
    occupancy: u32,
    response_time: ResponseTime,
    picks: u64,
}

struct Seen<'a> {
    members: &'a [Member],
    now_ms: u64,
}

impl View for Seen<'_> {
    fn occupancy(&self, index: usize) -> u32 {
        self.members[index].occupancy
    }
    fn admits(&self, _: usize) -> bool {
        true
    }
    fn cost(&self, index: usize) -> u64 {
        let Member { occupancy, response_time, .. } = self.members[index];
        response_time.cost(self.now_ms, occupancy)
    }
}

/// Returns the duration of a response, and whether it is a failure.
type Service<'a> = &'a dyn Fn(usize, u64) -> (u64, bool);

struct Cores {
    random: Random,
    now_us: u64,
    balancers: Vec<Balancer>,
    members: Vec<Member>,
    /// End, beginning, member, failed.
    under_way: BinaryHeap<Reverse<(u64, u64, usize, bool)>>,
}

impl Cores {
    fn new(weights: &[u16], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let cores = 1 + random.below(4) as u64;
        let balancer = |core| Balancer::new(Method::LeastResponseTime, weights, seed ^ core);
        Self {
            random,
            now_us: 1_000_000_000,
            balancers: (0..cores).map(balancer).collect(),
            members: vec![Member::default(); weights.len()],
            under_way: BinaryHeap::new(),
        }
    }

    /// Runs for this time, with a request every `pause_us` on average. Responses take between half and one and a half
    /// times the value of `service`.
    fn run(&mut self, for_ms: u64, pause_us: usize, service: Service) {
        let end_us = self.now_us + for_ms * 1_000;
        self.members.iter_mut().for_each(|member| member.picks = 0);
        while self.now_us < end_us {
            self.now_us += self.random.below(2 * pause_us) as u64;
            self.answer();
            let core = self.random.below(self.balancers.len());
            let seen = Seen { members: &self.members, now_ms: self.now_us / 1_000 };
            let index = self.balancers[core].pick(&seen, 0).unwrap();
            let (mean_us, failed) = service(index, self.now_us);
            let taken_us = mean_us / 2 + self.random.below(mean_us as usize + 1) as u64;
            self.members[index].occupancy += 1;
            self.members[index].picks += 1;
            self.under_way.push(Reverse((self.now_us + taken_us, self.now_us, index, failed)));
        }
    }

    fn answer(&mut self) {
        while let Some(&Reverse((end_us, begin_us, index, failed))) = self.under_way.peek()
            && end_us <= self.now_us
        {
            self.under_way.pop();
            let member = &mut self.members[index];
            member.occupancy -= 1;
            let (now_ms, taken_us) = (end_us / 1_000, end_us - begin_us);
            member.response_time = if failed {
                member.response_time.failed(now_ms, taken_us)
            } else {
                member.response_time.observe(now_ms, taken_us)
            };
        }
    }

    /// The member's share of the requests since the start of `run`, in percent.
    fn share(&self, index: usize) -> f64 {
        let all: u64 = self.members.iter().map(|member| member.picks).sum();
        100.0 * self.members[index].picks as f64 / all as f64
    }
}

#[test]
fn equal_members_share_evenly() {
    for (seed, members) in (0..12).zip([2, 6, 40].repeat(4)) {
        let mut cores = Cores::new(&vec![1; members], seed);
        // About five requests on each member.
        let pause_us = 2_000 / (5 * members);
        cores.run(600, pause_us, &|_, _| (2_000, false));
        let fair = 100.0 / members as f64;
        for index in 0..members {
            let share = cores.share(index);
            assert!((0.7 * fair..1.3 * fair).contains(&share), "seed {seed}: {share} of {fair}");
        }
    }
}

#[test]
fn members_get_requests_by_speed_and_weight() {
    for seed in 0..8 {
        let service = |index: usize, _: u64| (if index == 0 { 4_000 } else { 2_000 }, false);
        let mut cores = Cores::new(&[1, 1, 1, 2], seed);
        cores.run(200, 20, &service);
        cores.run(500, 20, &service);
        // Twice as slow: half of the requests under way, each of which takes twice as long: 1/4, 1, 1, 2.
        for (index, expected) in [5.9, 23.5, 23.5, 47.1].into_iter().enumerate() {
            let share = cores.share(index);
            assert!((0.7 * expected..1.3 * expected).contains(&share), "seed {seed}: {share}");
        }
    }
}

/// A member a hundred times as slow gets next to nothing, and its share within the stated time when it has
/// recovered: 27 s until it is tried, and two half-lives.
#[test]
fn a_slow_member_is_left_alone_and_a_recovered_one_gets_its_share() {
    for (seed, members) in (0..6).zip([2, 5, 30].repeat(2)) {
        let mut cores = Cores::new(&vec![1; members], seed);
        let fair = 100.0 / members as f64;
        let slow = |index: usize, _: u64| (if index == 0 { 200_000 } else { 2_000 }, false);
        cores.run(1_000, 500, &slow);
        cores.run(20_000, 500, &slow);
        let share = cores.share(0);
        assert!(share < 0.5, "seed {seed}: {share}");
        cores.run(27_000 + 8_000, 500, &|_, _| (2_000, false));
        cores.run(10_000, 500, &|_, _| (2_000, false));
        let share = cores.share(0);
        assert!(share > 0.5 * fair, "seed {seed}: {share} of {fair}");
    }
}

/// Every member is tried, including slow ones.
#[test]
fn no_member_starves() {
    for seed in 0..4 {
        let mut cores = Cores::new(&[1; 20], seed);
        let service = |index: usize, _: u64| (1_000 * (1 + index as u64 * index as u64), false);
        cores.run(2_000, 500, &service);
        cores.run(60_000, 500, &service);
        let fewest = cores.members.iter().map(|member| member.picks).min();
        assert!(fewest > Some(0), "seed {seed}");
    }
}

/// A member without response times, or without recent ones, is tried with one request at a time.
#[test]
fn an_unknown_member_is_tried_but_not_flooded() {
    for (seed, members) in (0..12).zip([2, 5, 30].repeat(4)) {
        let mut cores = Cores::new(&vec![1; members], seed);
        cores.run(2_000, 500, &|_, _| (2_000, false));
        let old = ResponseTime::UNKNOWN.observe(100_000, 300_000);
        cores.members[0].response_time = if seed % 2 == 0 { ResponseTime::UNKNOWN } else { old };
        // Its open requests are irrelevant here.
        cores.under_way.retain(|request| request.0.2 != 0);
        cores.members[0].occupancy = 0;
        let slow = |index: usize, _: u64| (if index == 0 { 400_000 } else { 2_000 }, false);
        cores.run(190, 500, &slow);
        assert_eq!(cores.members[0].picks, 1, "seed {seed}");
    }
}

#[test]
fn quick_failures_do_not_attract_requests() {
    for (seed, members) in (0..6).zip([2, 5, 30].repeat(2)) {
        let mut cores = Cores::new(&vec![1; members], seed);
        let broken = |index: usize, _: u64| if index == 0 { (100, true) } else { (2_000, false) };
        cores.run(20_000, 1_000, &broken);
        let share = cores.share(0);
        assert!(share < 1.0, "seed {seed}: {share}");
    }
}
