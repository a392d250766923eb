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
        let known: BTreeSet<String> = changes(table).collect();
        self.changes().filter(|change| !known.contains(change)).collect()
    }

    /// What this table has and was not observed. What happens seldom does not count.
    pub fn unreached_of(&self, table: &str) -> Vec<String> {
        let seen: BTreeSet<String> = self.changes().collect();
        let often = table.split(SELDOM).next().unwrap_or_default();
        changes(often).filter(|change| !seen.contains(change)).collect()
    }

    /// Each state and event, with each state that has followed.
    fn changes(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|((state, on), after)| {
            after.iter().map(move |after| format!("{state:?} {on:?}: {after:?}"))
        })
    }

    /// The table of these cells. `often`: those that each run of the tests reaches.
    pub fn table(&self, often: &Self) -> String {
        let mut seldom = self.clone();
        for (cell, after) in &often.0 {
            if let Some(all) = seldom.0.get_mut(cell) {
                all.retain(|it| !after.contains(it));
            }
        }
        seldom.0.retain(|_, after| !after.is_empty());
        format!("{HEADER}{}{SELDOM}{HEADER}{}", often.text(), seldom.text())
    }

    /// The text of the rows.
    fn text(&self) -> String {
        let row = |((state, on), after): (&(State, On), &BTreeSet<State>)| {
            let after: Vec<String> = after.iter().map(|after| format!("`{after:?}`")).collect();
            format!("| `{state:?}` | `{on:?}` | {} |\n", after.join(", "))
        };
        self.0.iter().map(row).collect()
    }
}

/// The header of a table.
const HEADER: &str = "| state | event | becomes |\n|---|---|---|\n";
/// What is between the two tables.
const SELDOM: &str = "\n## Seldom\n\nOnly the seeds with which the table is made reach these:\n\n";

/// Each state and event of a table, with each state that follows, as [`Cells::changes`] has them.
fn changes(table: &str) -> impl Iterator<Item = String> {
    table.lines().filter(|line| line.starts_with("| `")).flat_map(|line| {
        let mut cells = line.split('`').skip(1).step_by(2);
        let (state, on) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        cells.map(move |after| format!("{state} {on}: {after}"))
    })
}
