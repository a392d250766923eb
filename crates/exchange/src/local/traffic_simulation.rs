//! Simulation of persistence: clients on two workers, with cookies or a table, and members of two pools. Members go up,
//! down, drain and fill up. Reloads add, remove and reorder members, and add and remove the second pool with its
//! policy. No client may move without a cause. The code under test is that of a running process, without sockets.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::admin_state::AdminState;
use weir_core::clock::Clock;
use weir_core::expression::{Facts, NoSurroundings};
use weir_core::monitor::Health;
use weir_core::policy::Decision;
use weir_http::h1::{HeadLimits, ParseProgress, parse_request};
use weir_http::message::{RequestHead, Scheme};
use weir_http::path::TargetForm;

use crate::environment::Environment;
use crate::local::pool::LocalPool;
use crate::local::table::LocalTable;
use crate::local::traffic::RoutingVerdict;
use crate::shared::live::{LiveMember, LiveTable};
use crate::shared::sticky::Sticky;

/// The time at the beginning.
const NOW_MS: u64 = 1_000_000;
const MEMBERS: usize = 6;
const CLIENTS: usize = 40;
const WORKERS: usize = 2;
/// Maximum number of concurrent requests per member.
const PLACES: u32 = 3;
const SEEDS: u64 = 20;
const STEPS: usize = 10_000;

/// A random number generator (Steele et al., "SplitMix", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

#[derive(Default)]
struct Client {
    /// The client's cookie as `name=value`.
    cookie: Option<String>,
    /// The client's last member in each pool, by number.
    homes: [Option<usize>; 2],
}

struct World {
    random: Random,
    persistence: &'static str,
    /// The members of each pool in the configuration, in order.
    orders: [Vec<usize>; 2],
    /// Whether the configuration has the second pool.
    is_switching: bool,
    table: LiveTable,
    workers: Vec<LocalTable>,
    clients: Vec<Client>,
    /// Open requests.
    under_way: Vec<(Rc<LocalPool>, u32)>,
    now_ms: u64,
    stays: usize,
    moves: usize,
}

fn snapshot(
    orders: &[Vec<usize>; 2],
    is_switching: bool,
    persistence: &str,
) -> Arc<weir_config::snapshot::Snapshot> {
    let pools: Vec<String> = ["p", "q"]
        .iter()
        .zip(orders)
        .map(|(name, order)| {
            let members: Vec<String> = order
                .iter()
                .map(|number| {
                    format!("{{ address: \"10.0.0.{number}:80\", connections_max: {PLACES} }}")
                })
                .collect();
            format!("{name}: {{ members: [ {} ] }}", members.join(", "))
        })
        .collect();
    let (pools, policies) = if is_switching {
        let rule = "{ when: 'request.path == \"/q\"', then: [ { pool: q } ] }";
        (pools.join(", "), format!("policies: {{ switch: {{ rules: [ {rule} ] }} }}\n"))
    } else {
        (pools[0].clone(), String::new())
    };
    let followed = if is_switching { ", policies: [ switch ]" } else { "" };
    let text = format!(
        "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p, persistence: s{followed} }} }}\n\
         {policies}persistence: {{ s: {persistence} }}\npools: {{ {pools} }}\n",
    );
    let parsed = weir_config::parse("test.yaml", &text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    Arc::new(config.snapshot(&weir_config::Resolutions::default()))
}

impl World {
    fn new(seed: u64, persistence: &'static str) -> Self {
        let orders = [(0..MEMBERS - 2).collect(), (1..MEMBERS).collect()];
        let table = LiveTable::build(
            snapshot(&orders, false, persistence),
            None,
            WORKERS,
            &Environment::known(),
        );
        table.enter_into_force(NOW_MS);
        let workers = (0..WORKERS).map(|id| LocalTable::new(&table, None, id)).collect();
        Self {
            random: Random(seed),
            persistence,
            orders,
            is_switching: false,
            table,
            workers,
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            under_way: Vec::new(),
            // A table reads the clock itself when it takes entries over.
            now_ms: NOW_MS,
            stays: 0,
            moves: 0,
        }
    }

    fn live(&self, pool: usize, number: usize) -> Option<&Arc<LiveMember>> {
        let at = self.orders[pool].iter().position(|&member| member == number)?;
        Some(&self.table.pools.get(pool)?.members[at])
    }

    /// Whether a member serves its known clients, and new clients.
    fn serves(&self, pool: usize, number: usize) -> (bool, bool) {
        let Some(live) = self.live(pool, number) else { return (false, false) };
        let has_room = live.occupancy.load(Relaxed) < PLACES;
        let is_up = live.health() == Health::Up && has_room;
        match live.state(AdminState::Enabled) {
            AdminState::Enabled => (is_up, is_up),
            AdminState::Drain => (is_up, false),
            AdminState::Disabled => (false, false),
        }
    }

    fn something_happens(&mut self) {
        let (pool, number) = (self.random.below(2), self.random.below(MEMBERS));
        let what = self.random.below(8);
        if what == 0 {
            return self.reload(pool, number);
        }
        let Some(live) = self.live(pool, number) else { return };
        match what {
            1 => {
                live.set_health(Health::Down, 1_000_000);
            }
            2 | 3 => {
                let wanted = if what == 2 { AdminState::Drain } else { AdminState::Disabled };
                live.set_state_override(Some(wanted));
            }
            4 | 5 => {
                live.set_state_override(None);
            }
            _ => {
                live.set_health(Health::Up, 1_000_000);
            }
        }
    }

    /// Removes a member, or adds one at a random position; or adds or removes the second pool. If only members change, half of
    /// the changes are those of a pool in the same table.
    fn reload(&mut self, pool: usize, number: usize) {
        let was_switching = self.is_switching;
        let order = &mut self.orders[pool];
        match order.iter().position(|&member| member == number) {
            _ if self.random.below(3) == 0 => self.is_switching = !self.is_switching,
            Some(at) if order.len() > 1 => {
                order.remove(at);
            }
            Some(_) => {}
            None => {
                let at = self.random.below(order.len() + 1);
                order.insert(at, number);
            }
        }
        let next = snapshot(&self.orders, self.is_switching, self.persistence);
        let is_of_members = was_switching == self.is_switching && pool < self.table.pools.len();
        if is_of_members && self.random.below(2) == 0 {
            self.table = self.table.with_members(next, &[pool], &Environment::known());
            self.table.pools[pool].enter_into_force(NOW_MS);
            for (id, worker) in self.workers.iter_mut().enumerate() {
                worker.take_members(&self.table, &[pool], id);
            }
        } else {
            let table = LiveTable::build(next, Some(&self.table), WORKERS, &Environment::known());
            table.enter_into_force(NOW_MS);
            let workers = self.workers.iter().enumerate();
            let workers = workers.map(|(id, old)| LocalTable::new(&table, Some(old), id));
            self.workers = workers.collect();
            self.table = table;
        }
        // The table of addresses forgets the clients of removed members; a cookie stays with its client.
        for client in self.clients.iter_mut().filter(|client| client.cookie.is_none()) {
            let [first, second] = &mut client.homes;
            *first = first.filter(|home| self.orders[0].contains(home));
            *second = second.filter(|home| self.is_switching && self.orders[1].contains(home));
        }
    }

    /// Sends a client's request for a pool on a random worker. Returns the member.
    fn serve(&mut self, number: usize, wanted: usize) -> Option<usize> {
        let worker = self.random.below(WORKERS);
        let server = self.workers[worker].server("v").expect("the virtual server");
        let traffic = server.traffic.as_ref().expect("it has persistence");
        let cookie = self.clients[number].cookie.iter();
        let cookie: String = cookie.map(|cookie| format!("Cookie: x=1; {cookie}\r\n")).collect();
        let path = ["/", "/q"][wanted];
        let input = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{cookie}\r\n").into_bytes();
        let limits = HeadLimits { head_size_max: 8_192, headers_max: 20 };
        let mut head = RequestHead::new();
        let parsed = parse_request(&input, &limits, TargetForm::default(), &mut head);
        assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })));
        let facts = Facts {
            request: &head,
            request_input: &input,
            client: Some(SocketAddr::new([192, 0, 2, number as u8].into(), 5_000)),
            server: None,
            scheme: Scheme::Http,
            tls: None,
            response: None,
            datagram: None,
            around: &NoSurroundings,
            unix_s: None,
        };
        let now = Clock::at_us(self.now_ms * 1_000);
        let (mut decision, mut scratch, mut held) = (Decision::default(), Vec::new(), Vec::new());
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        let scratches = (&mut scratch, &mut held, 0);
        let verdict =
            traffic.decide(&facts, &mut evaluation, &server.live, now, &mut decision, scratches);
        let RoutingVerdict::Forward(route) = verdict else { panic!("{verdict:?}") };
        assert_eq!(route.pool, wanted);
        let pool = traffic.pool(route.pool);
        let member = pool.occupy(&[], now, route.preference).ok()?;
        let stickiness = route.stickiness.expect("somebody keeps it");
        if stickiness.known != Some(member) || stickiness.is_stale {
            match &*stickiness.sticky {
                Sticky::Insert(insert) => {
                    let mut field = Vec::new();
                    insert.write_field(member, false, &decision.other_tokens, &mut field);
                    let field = String::from_utf8_lossy(&field);
                    let cookie = field.split(';').next().filter(|it| it.starts_with("WEIR="));
                    self.clients[number].cookie = Some(cookie.expect("its name").to_owned());
                }
                Sticky::Address { .. } => stickiness.note_member(member, self.now_ms),
                other => panic!("{other:?}"),
            }
        }
        self.under_way.push((pool, member));
        Some(self.orders[wanted][member as usize])
    }

    fn step(&mut self, what: &str) {
        self.now_ms += 1 + self.random.below(20) as u64;
        match self.random.below(10) {
            0 => self.something_happens(),
            1..=4 if !self.under_way.is_empty() => {
                let at = self.random.below(self.under_way.len());
                let (pool, member) = self.under_way.swap_remove(at);
                pool.release(member);
            }
            _ => self.request(what),
        }
    }

    fn request(&mut self, what: &str) {
        let number = self.random.below(CLIENTS);
        let pool = if self.is_switching { self.random.below(2) } else { 0 };
        let home = self.clients[number].homes[pool];
        let others: Vec<usize> =
            (0..MEMBERS).filter(|&member| self.serves(pool, member).1).collect();
        let stays = home.filter(|&home| self.serves(pool, home).0);
        let served = self.serve(number, pool);
        match (stays, served) {
            (Some(home), served) => {
                assert_eq!(
                    served,
                    Some(home),
                    "{what}: client {number} moved in pool {pool} without a cause"
                );
                self.stays += 1;
            }
            (None, Some(member)) => {
                assert!(others.contains(&member), "{what}: {member} takes nobody new");
                self.moves += usize::from(home.is_some());
            }
            (None, None) => {
                assert!(others.is_empty(), "{what}: {others:?} would have served {number}");
            }
        }
        if served.is_some() {
            self.clients[number].homes[pool] = served;
        }
    }
}

fn simulate(persistence: &'static str) {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, persistence);
        for step in 0..STEPS {
            world.step(&format!("seed {seed}, step {step}"));
        }
        assert!(world.stays > 1_000 && world.moves > 100, "{} {}", world.stays, world.moves);
    }
}

#[test]
fn no_client_with_a_cookie_moves_without_a_cause() {
    simulate("{ type: cookie }");
}

#[test]
fn no_client_in_the_table_of_addresses_moves_without_a_cause() {
    simulate("{ type: source_address, timeout: 1h, entries_max: 1000 }");
}
