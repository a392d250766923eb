//! Simulation: clients with cookies for two pools and with entries in a table, while members come and go, keys change
//! and time passes. No client may move without a cause.

use super::cookie::{CookieTokens, OtherTokens, SetCookieFields, TokenForm, TokenMember};
use super::keys::Keys;
use super::source::{SourceEntry, Timeout};
use super::{MemberState, stays};
use weir_http::cookies::SetCookie;
use weir_testing::Random;

/// The members of all configurations.
const LABELS: [&str; 10] = [
    "10.0.0.1:80",
    "10.0.0.2:80",
    "10.0.0.3:80",
    "10.0.0.4:80",
    "10.0.0.5:80",
    "[::1]:80",
    "[::1]:81",
    "[::1]:82",
    "unix:/a",
    "unix:/b",
];

/// Two pools with the same members; clients use the same cookies for both.
const POOLS: [&str; 2] = ["web", "api"];

const CLIENTS: usize = 300;
const TIMEOUT_MS: u64 = 60_000;

/// An entry may live longer than its timeout by this time: an eighth of the timeout, and a tick.
const TIMEOUT_MS_END: u64 = TIMEOUT_MS + TIMEOUT_MS / 8 + 100;

/// One client at one pool.
struct Client {
    by: By,
    /// The state in the model: the last member, the time, and the key of the cookie.
    home: Option<usize>,
    last_ms: u64,
    key: u8,
}

enum By {
    /// A cookie in the jar of this number, for this pool.
    Cookie { jar: usize, pool: usize },
    /// An entry in the table.
    Entry(Option<u64>),
}

/// The cookies of one pool.
struct Pool {
    tokens: CookieTokens,
    fields: SetCookieFields,
}

struct World {
    seed: u64,
    random: Random,
    now_ms: u64,
    /// The keys; the first one signs.
    keys: Vec<u8>,
    /// The configured members, as indexes in [`LABELS`].
    members: Vec<usize>,
    states: [MemberState; LABELS.len()],
    pools: [Pool; POOLS.len()],
    /// Cookie fields.
    jars: Vec<String>,
    moves: u32,
    stays: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let (keys, members) = (vec![0], (0..6).collect::<Vec<_>>());
        let pools = load(&keys, &members);
        Self {
            seed,
            random: Random::new(seed),
            now_ms: 0,
            keys,
            members,
            states: [MemberState::Up; LABELS.len()],
            pools,
            jars: vec![String::new(); CLIENTS],
            moves: 0,
            stays: 0,
        }
    }

    /// Members change their states; sometimes the configuration is reloaded.
    fn something_happens(&mut self) {
        use MemberState::*;
        let label = self.random.below(LABELS.len());
        // Half of the events bring a member up, so that most members are up most of the time.
        let states = [Disabled, Down, Full, Draining, Up, Up, Up, Up];
        self.states[label] = states[self.random.below(states.len())];
        if self.random.percent(10) {
            self.reload();
        }
    }

    /// Members are added, removed and reordered; keys are added and removed.
    fn reload(&mut self) {
        let label = self.random.below(LABELS.len());
        match self.members.iter().position(|&member| member == label) {
            Some(at) if self.members.len() > 1 => {
                self.members.remove(at);
            }
            Some(_) => {}
            None => {
                let at = self.random.below(self.members.len() + 1);
                self.members.insert(at, label);
            }
        }
        match self.random.below(4) {
            0 if self.keys.len() < 3 => {
                let next = self.keys.iter().max().map_or(0, |key| key.wrapping_add(1));
                self.keys.insert(0, next);
            }
            1 if self.keys.len() > 1 => self.keys.truncate(self.keys.len() - 1),
            _ => {}
        }
        self.pools = load(&self.keys, &self.members);
    }

    fn state(&self, label: usize) -> MemberState {
        if self.members.contains(&label) { self.states[label] } else { MemberState::Gone }
    }

    /// The member in a client's cookie, and the tokens of other pools.
    fn read(&self, jar: usize, pool: usize) -> (Option<TokenMember>, OtherTokens) {
        let mut others = OtherTokens::default();
        let field = [self.jars[jar].as_bytes()];
        (self.pools[pool].tokens.read(field, "WEIR", &mut others), others)
    }

    /// The member in the client's cookie or entry.
    fn found(&self, client: &Client) -> Option<usize> {
        match client.by {
            By::Cookie { jar, pool } => {
                let found = self.read(jar, pool).0?;
                Some(self.members[found.member as usize])
            }
            By::Entry(entry) => {
                let entry = SourceEntry::from_bits(entry?);
                (entry.ends_ms() > self.now_ms).then_some(entry.member as usize)
            }
        }
    }

    /// Any member that takes new clients.
    fn pick(&mut self) -> Option<usize> {
        let up: Vec<usize> = self
            .members
            .iter()
            .copied()
            .filter(|&label| self.states[label] == MemberState::Up)
            .collect();
        (!up.is_empty()).then(|| up[self.random.below(up.len())])
    }

    /// Serves a request as a worker would.
    fn serve(&mut self, client: &mut Client) -> Option<usize> {
        let found = self.found(client);
        if found.is_some_and(|label| stays(self.state(label))) {
            self.keep(client);
            return found;
        }
        let picked = self.pick()?;
        self.assign(client, picked);
        Some(picked)
    }

    fn keep(&mut self, client: &mut Client) {
        match &mut client.by {
            By::Cookie { jar, pool } => {
                let found = self.read(*jar, *pool).0.expect("just found");
                if found.standing != TokenForm::Current {
                    self.assign(client, self.members[found.member as usize]);
                }
            }
            By::Entry(entry) => {
                let known = entry.map(SourceEntry::from_bits);
                let touched =
                    known.and_then(|known| known.touched(self.now_ms, Timeout::new(TIMEOUT_MS)));
                *entry = touched.map(SourceEntry::to_bits).or(*entry);
            }
        }
    }

    fn assign(&mut self, client: &mut Client, label: usize) {
        match &mut client.by {
            By::Cookie { jar, pool } => {
                let member = self.members.iter().position(|&member| member == label);
                let (_, others) = self.read(*jar, *pool);
                let mut field = b"lang=en; ".to_vec();
                let fields = &self.pools[*pool].fields;
                fields.write(member.expect("configured") as u32, &others, &mut field);
                field.extend_from_slice(b"; theme=dark");
                self.jars[*jar] = String::from_utf8(field).expect("text");
                client.key = self.keys[0];
            }
            By::Entry(entry) => {
                let new = SourceEntry::new(label as u32, self.now_ms, Timeout::new(TIMEOUT_MS));
                *entry = Some(new.to_bits());
            }
        }
    }

    /// Whether the entry of the client may, or must, have expired.
    fn forgotten(&self, client: &Client) -> (bool, bool) {
        match client.by {
            By::Cookie { .. } => {
                let lost = !self.keys.contains(&client.key);
                (lost, lost)
            }
            By::Entry(_) => {
                let idle_ms = self.now_ms - client.last_ms;
                (idle_ms > TIMEOUT_MS, idle_ms > TIMEOUT_MS_END)
            }
        }
    }

    fn request(&mut self, client: &mut Client) {
        let home = client.home.map(|label| (label, self.state(label)));
        let (may_be_forgotten, is_forgotten) = self.forgotten(client);
        let served = self.serve(client);
        let seed = self.seed;
        if let Some((home, state)) = home
            && !is_forgotten
        {
            use MemberState::*;
            let must_stay = matches!(state, Up | Draining);
            if must_stay && !may_be_forgotten {
                assert_eq!(served, Some(home), "seed {seed}: moved from {home} though {state:?}");
                self.stays += 1;
            } else if !must_stay {
                assert_ne!(served, Some(home), "seed {seed}: stayed on {home} though {state:?}");
                self.moves += 1;
            }
        }
        let Some(label) = served else {
            return;
        };
        if served != client.home {
            assert_eq!(self.state(label), MemberState::Up, "seed {seed}: a new client for {label}");
        }
        client.home = served;
        client.last_ms = self.now_ms;
    }
}

fn load(keys: &[u8], members: &[usize]) -> [Pool; POOLS.len()] {
    let lines: String = keys.iter().map(|key| format!("{key:02x}").repeat(32) + "\n").collect();
    let keys = Keys::parse(&lines).expect("sound keys");
    let cookie = SetCookie {
        name: "WEIR".into(),
        path: None,
        domain: None,
        max_age_s: None,
        secure: false,
        http_only: false,
        same_site: None,
    };
    POOLS.map(|pool| {
        let labels = members.iter().map(|&member| LABELS[member]);
        let tokens = CookieTokens::new(&keys, pool, labels);
        let fields = SetCookieFields::new(&cookie, &tokens).expect("a sound cookie");
        Pool { tokens, fields }
    })
}

#[test]
fn no_client_moves_without_a_cause() {
    const SEEDS: u64 = 20;
    const STEPS: usize = 50_000;
    let (mut moves, mut stays) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let mut clients: Vec<Client> = (0..CLIENTS)
            .map(|number| Client {
                by: match number % 4 {
                    0 | 1 => By::Cookie { jar: number / 4, pool: number % 4 },
                    _ => By::Entry(None),
                },
                home: None,
                last_ms: 0,
                key: 0,
            })
            .collect();
        for _ in 0..STEPS {
            // A client sends a request about every 45 s: some pauses are longer than the timeout.
            world.now_ms += world.random.below(300) as u64;
            if world.random.percent(3) {
                world.something_happens();
            } else {
                let client = world.random.below(CLIENTS);
                world.request(&mut clients[client]);
            }
        }
        moves += world.moves;
        stays += world.stays;
    }
    // Both cases were frequent.
    assert!(moves > 10_000 && stays > 300_000, "{moves} moves, {stays} stays");
}
