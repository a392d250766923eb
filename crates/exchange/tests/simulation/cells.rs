//! The events that happen in each state of a transaction, and the states that follow: the table `crates/exchange/phases.md`.

use std::collections::{BTreeMap, BTreeSet};

use weir_exchange::parts::phase::{Begun, Phase};
use weir_exchange::parts::wait_state::WaitState;
use weir_exchange::transaction::Transaction;

/// The state of a transaction between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// An exchange whose stages have not begun, or whose wait in the queue has ended without a place.
    Before,
    /// An exchange that waits at a stage.
    AtStage,
    /// An exchange that holds its body.
    ForBody,
    /// An exchange that waits in the queue of its pool.
    InLine,
    /// An exchange that has left the queue for a place at a member.
    Called,
    /// An exchange with a member, whose response has not begun.
    Asked,
    /// An exchange whose response is held.
    Held,
    /// An exchange whose response is held, and waits for its verdict.
    Judging,
    /// An exchange whose response is forwarded.
    Sent,
    /// An exchange whose response has begun, without a member.
    Left,
    /// As [`Self::Judging`], with all of the response, and without a member.
    JudgingAlone,
    /// An exchange whose response waits for the client's windows.
    Deliver,
    /// A relayed connection before its first attempt, or whose wait in the queue has ended.
    RelayBefore,
    /// A relayed connection that waits in the queue of its pool.
    RelayInLine,
    /// A relayed connection whose member is being connected.
    RelayAsked,
    /// A tunnel.
    Tunnel,
    /// A tunnel whose member is gone; the client has not taken everything.
    TunnelAlone,
    /// The transaction has ended.
    Over,
}

impl State {
    /// The state of a transaction.
    pub fn of(it: &Transaction) -> Self {
        let phase = &it.ends().phase;
        match it {
            Transaction::Tunnel(_) if phase.attempt().is_some() => Self::Tunnel,
            Transaction::Tunnel(_) => Self::TunnelAlone,
            Transaction::Relay(_) => match phase {
                Phase::Before(WaitState::InLine(_) | WaitState::Beside) => Self::RelayInLine,
                Phase::Asked(..) => Self::RelayAsked,
                _ => Self::RelayBefore,
            },
            Transaction::Http(_) => match phase {
                Phase::Before(WaitState::No) => Self::Before,
                Phase::Before(WaitState::AtStage) => Self::AtStage,
                Phase::Before(WaitState::ForBody) => Self::ForBody,
                Phase::Before(WaitState::InLine(_) | WaitState::Beside) => Self::InLine,
                Phase::Before(WaitState::Called(_)) => Self::Called,
                Phase::Asked(_, None) => Self::Asked,
                Phase::Asked(_, Some(Begun::Held)) => Self::Held,
                Phase::Asked(_, Some(Begun::Judging)) => Self::Judging,
                Phase::Asked(_, Some(Begun::Sent)) => Self::Sent,
                Phase::Left(_) => Self::Left,
                Phase::Judge(_) => Self::JudgingAlone,
                Phase::Deliver(_) => Self::Deliver,
            },
        }
    }
}

/// What a transaction is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// It begins: an exchange with its head, a relayed connection, a tunnel.
    Begins,
    /// Data of the client, perhaps with the end.
    ClientData,
    /// The client has ended its sending side.
    ClientEnds,
    /// The client has ended its request early.
    ClientCuts,
    /// The client has taken everything.
    ClientTook,
    /// The client's windows have let data out.
    ClientLetOut,
    /// The client's deadline has passed.
    ClientIsLate,
    /// The client is gone.
    ClientLeaves,
    /// A peer has broken the protocol: the client is answered by weir.
    Refused,
    /// The process stops.
    Stops,
    /// What it has waited for is there.
    Resumes,
    /// The timeout in the queue has passed.
    WaitedInVain,
    /// The request to a service has begun.
    ServiceAsked,
    /// The request to a service has ended.
    ServiceAnswers,
    /// An inspection is back.
    Inspected,
    /// The connection to the member is open.
    Connected,
    /// The member's SETTINGS are there.
    Settings,
    /// The member's SETTINGS have not arrived in time.
    SettingsAreLate,
    /// The member does not support extended CONNECT.
    NoTunnel,
    /// The member has taken everything.
    MemberTook,
    /// An interim response.
    Interim,
    /// The head of a response.
    Head,
    /// The member accepts a tunnel.
    Switches,
    /// Data of the member, perhaps with the end.
    MemberData,
    /// The member has ended its sending side.
    MemberEnds,
    /// The response is complete.
    Complete,
    /// The connection to the member is lost.
    MemberLost,
    /// The stream to the member is lost.
    StreamLost,
}

/// The observed states and events, with the states that follow.
#[derive(Debug, Default, Clone)]
pub struct Cells(BTreeMap<(State, On), BTreeSet<State>>);

impl Cells {
    /// Nothing was observed.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Notes an event.
    pub fn note(&mut self, before: State, on: On, after: State) {
        self.0.entry((before, on)).or_default().insert(after);
    }

    /// Adds the cells of another run.
    pub fn add(&mut self, other: Self) {
        for (cell, after) in other.0 {
            self.0.entry(cell).or_default().extend(after);
        }
    }

    /// What was observed and is not in this table.
    pub fn missing_in(&self, table: &str) -> Vec<String> {
        let rows: BTreeMap<String, BTreeSet<&str>> = rows(table).collect();
        let is_known = |cell: &str, state: &State| {
            rows.get(cell).is_some_and(|row| row.contains(&*format!("{state:?}")))
        };
        let mut missing = Vec::new();
        for ((state, on), after) in &self.0 {
            let cell = format!("{state:?} {on:?}");
            let unknown = after.iter().filter(|after| !is_known(&cell, after));
            missing.extend(unknown.map(|after| format!("{cell}: {after:?}")));
        }
        missing
    }

    /// The rows of this table that were not observed. Those that happen seldom do not count.
    pub fn unreached_of(&self, table: &str) -> Vec<String> {
        let seen: BTreeSet<String> =
            self.0.keys().map(|(state, on)| format!("{state:?} {on:?}")).collect();
        let often = table.split(SELDOM).next().unwrap_or_default();
        rows(often).map(|(cell, _)| cell).filter(|cell| !seen.contains(cell)).collect()
    }

    /// The table of these cells. `often`: those that each run of the tests reaches.
    pub fn table(&self, often: &Self) -> String {
        let (often, seldom): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|(cell, _)| often.0.contains_key(cell));
        format!("{HEADER}{}{SELDOM}{HEADER}{}", text(&often), text(&seldom))
    }
}

/// The header of a table.
const HEADER: &str = "| state | event | becomes |\n|---|---|---|\n";
/// What is between the two tables.
const SELDOM: &str = "\n## Seldom\n\nOnly the seeds with which the table is made reach these:\n\n";

/// The text of rows.
fn text(rows: &[(&(State, On), &BTreeSet<State>)]) -> String {
    let row = |((state, on), after): &(&(State, On), &BTreeSet<State>)| {
        let after: Vec<String> = after.iter().map(|after| format!("`{after:?}`")).collect();
        format!("| `{state:?}` | `{on:?}` | {} |\n", after.join(", "))
    };
    rows.iter().map(row).collect()
}

/// The rows of a table: state and event, and the states that follow.
fn rows(table: &str) -> impl Iterator<Item = (String, BTreeSet<&str>)> {
    table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| {
        let mut cells = line.split('`').skip(1).step_by(2);
        Some((format!("{} {}", cells.next()?, cells.next()?), cells.collect()))
    })
}
