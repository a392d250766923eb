//! Clients of two workers, kept at members by cookies or by a table, while members go up, down, drain, fill
//! up, and reloads add, remove and reorder them: none moves without a cause. What decides is what decides in
//! a running process; only sockets are missing.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::admin_state::AdminState;
use weir_core::expression::Facts;
use weir_core::monitor::Health;
use weir_core::policy::Decision;
use weir_http::h1::{HeadLimits, Parsed, parse_request};
use weir_http::message::{RequestHead, Scheme};

use crate::clock::Clock;
use crate::live::{LiveMember, LiveTable};
use crate::pool::LocalPool;
use crate::sticky::Sticky;
use crate::table::LocalTable;
use crate::traffic::Verdict;

const MEMBERS: usize = 6;
const CLIENTS: usize = 40;
const WORKERS: usize = 2;
/// Requests that a member may have at a time.
const PLACES: u32 = 3;
const SEEDS: u64 = 20;
const STEPS: usize = 10_000;

/// A generator of numbers (Steele et al., "SplitMix", 2014).
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
    /// Its cookie, as `name=value`.
    cookie: Option<String>,
    /// Who served it last, by number.
    home: Option<usize>,
}

struct World {
    random: Random,
    persistence: &'static str,
    /// The members that the configuration has, in its order.
    order: Vec<usize>,
    table: LiveTable,
    workers: Vec<LocalTable>,
    clients: Vec<Client>,
    /// Requests under way.
    under_way: Vec<(Rc<LocalPool>, u32)>,
    now_ms: u64,
    stays: usize,
    moves: usize,
}

fn snapshot(order: &[usize], persistence: &str) -> Arc<weir_config::snapshot::Snapshot> {
    let members: Vec<String> = order
        .iter()
        .map(|number| format!("{{ address: \"10.0.0.{number}:80\", connections_max: {PLACES} }}"))
        .collect();
    let text = format!(
        "virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p, persistence: s }} }}\n\
         persistence: {{ s: {persistence} }}\npools: {{ p: {{ members: [ {} ] }} }}\n",
        members.join(", ")
    );
    let config = weir_config::parse("test.yaml", &text).config.expect("a good configuration");
    Arc::new(config.snapshot(&weir_config::Resolutions::default()))
}

impl World {
    fn new(seed: u64, persistence: &'static str) -> Self {
        let order: Vec<usize> = (0..MEMBERS - 2).collect();
        let table = LiveTable::build(snapshot(&order, persistence), None, WORKERS);
        table.enter_into_force();
        let workers = (0..WORKERS).map(|id| LocalTable::new(&table, None, id)).collect();
        Self {
            random: Random(seed),
            persistence,
            order,
            table,
            workers,
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            under_way: Vec::new(),
            // A table looks at the clock itself when it takes entries over.
            now_ms: Clock::new().now_ms(),
            stays: 0,
            moves: 0,
        }
    }

    fn live(&self, number: usize) -> Option<&Arc<LiveMember>> {
        let at = self.order.iter().position(|&member| member == number)?;
        Some(&self.table.pools[0].members[at])
    }

    /// Whether a member serves: those that were there before, and others.
    fn serves(&self, number: usize) -> (bool, bool) {
        let Some(live) = self.live(number) else { return (false, false) };
        let has_room = live.occupancy.load(Relaxed) < PLACES;
        let is_up = live.health() == Health::Up && has_room;
        match live.state(AdminState::Enabled) {
            AdminState::Enabled => (is_up, is_up),
            AdminState::Drain => (is_up, false),
            AdminState::Disabled => (false, false),
        }
    }

    fn something_happens(&mut self) {
        let number = self.random.below(MEMBERS);
        let what = self.random.below(8);
        if what == 0 {
            return self.reload(number);
        }
        let Some(live) = self.live(number) else { return };
        match what {
            1 => {
                live.set_health(Health::Down);
            }
            2 | 3 => {
                let wanted = if what == 2 { AdminState::Drain } else { AdminState::Disabled };
                live.set_state_override(Some(wanted));
            }
            4 | 5 => {
                live.set_state_override(None);
            }
            _ => {
                live.set_health(Health::Up);
            }
        }
    }

    /// A member goes, or comes at any place.
    fn reload(&mut self, number: usize) {
        match self.order.iter().position(|&member| member == number) {
            Some(at) if self.order.len() > 1 => {
                self.order.remove(at);
            }
            Some(_) => {}
            None => {
                let at = self.random.below(self.order.len() + 1);
                self.order.insert(at, number);
            }
        }
        let next = snapshot(&self.order, self.persistence);
        let table = LiveTable::build(next, Some(&self.table), WORKERS);
        table.enter_into_force();
        self.workers = self
            .workers
            .iter()
            .enumerate()
            .map(|(id, old)| LocalTable::new(&table, Some(old), id))
            .collect();
        self.table = table;
        // The table of addresses forgets who was at a member that is gone; a cookie is with its client.
        for client in &mut self.clients {
            if client.cookie.is_none() {
                client.home = client.home.filter(|home| self.order.contains(home));
            }
        }
    }

    /// A request of a client on any worker: who serves it.
    fn serve(&mut self, number: usize) -> Option<usize> {
        let worker = self.random.below(WORKERS);
        let server = self.workers[worker].server("v").expect("the virtual server");
        let traffic = server.traffic.as_ref().expect("it has persistence");
        let cookie = self.clients[number].cookie.iter();
        let cookie: String = cookie.map(|cookie| format!("Cookie: x=1; {cookie}\r\n")).collect();
        let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{cookie}\r\n").into_bytes();
        let limits = HeadLimits { head_size_max: 8_192, headers_max: 20 };
        let mut head = RequestHead::new();
        let parsed = parse_request(&input, &limits, &mut head);
        assert!(matches!(parsed, Ok(Parsed::Complete { .. })));
        let facts = Facts {
            request: &head,
            request_input: &input,
            client: Some(SocketAddr::new([192, 0, 2, number as u8].into(), 5_000)),
            server: None,
            scheme: Scheme::Http,
            tls: None,
            response: None,
        };
        let now = Clock::at_us(self.now_ms * 1_000);
        let (mut decision, mut scratch, mut held) = (Decision::default(), Vec::new(), Vec::new());
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        let scratches = (&mut scratch, &mut held);
        let verdict =
            traffic.decide(&facts, &mut evaluation, &server.live, now, &mut decision, scratches);
        let Verdict::Forward(route) = verdict else { panic!("{verdict:?}") };
        let pool = Rc::clone(traffic.pool(route.pool));
        let member = pool.occupy(&[], now, route.wish).ok()?;
        let kept = route.kept.expect("somebody keeps it");
        if kept.known != Some(member) || kept.is_stale {
            match &*kept.sticky {
                Sticky::Insert(insert) => {
                    let field = String::from_utf8_lossy(insert.field(member, false)).into_owned();
                    self.clients[number].cookie = field.split(';').next().map(str::to_owned);
                }
                Sticky::Source(source) => {
                    let client = kept.client.expect("it has an address");
                    source.table.remember(client, member, self.now_ms);
                }
                other => panic!("{other:?}"),
            }
        }
        self.under_way.push((pool, member));
        Some(self.order[member as usize])
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
        let home = self.clients[number].home;
        let others: Vec<usize> = (0..MEMBERS).filter(|&member| self.serves(member).1).collect();
        let stays = home.filter(|&home| self.serves(home).0);
        let served = self.serve(number);
        match (stays, served) {
            (Some(home), served) => {
                assert_eq!(served, Some(home), "{what}: client {number} moved without a cause");
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
            self.clients[number].home = served;
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
