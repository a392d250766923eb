//! `weir member`: takes a member out of service at run time, and puts it back.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use weir_api::member::{Member, RUNTIME, UP};
use weir_api::member_state::{
    MemberStateChange, MemberStateChanged, MemberStatesChanged, WantedState,
};
use weir_api::sessions::SessionsToEnd;
use weir_cli::output;
use weir_cli::values::parse_duration;

use crate::admin::client::{Client, segment};
use crate::admin::error::Error;
use crate::admin::text::{Tone, counted, printable, span};
use crate::admin::{self, Connection, EXIT_REFUSED, EXIT_USAGE};
use crate::sessions;

const COMMAND: &str = "weir member";

/// Exit status if requests are open at the end of `--wait`.
const EXIT_UNDER_WAY: u8 = 4;

/// The interval of checks while waiting for a member.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The interval between lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Number of successive checks that must find no open request. The second check finds a request that a worker was
/// dispatching during the first.
const IDLE_LOOKS: u32 = 2;

/// Take a member out of service while weir runs, or put it back
///
/// The last member of a pool that takes new requests stays, unless --last says that this is meant: weir looks at the
/// members when it is asked. Open requests are never cut; connections of type tcp are, when their member is disabled, if
/// `reset_on_service_down` says so. The change applies from the next request on. It survives reloads, and ends when weir
/// exits or the member leaves its pool. For a permanent change, edit the configuration. end-sessions changes no state: it
/// ends the relayed connections, WebSockets and UDP sessions that the member has now.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 done; 1 weir refused, or the pool or member is unknown; 2 wrong usage; 3 weir cannot be reached; 4
/// requests were still open at the end of --wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir member web 10.0.0.11:80 drain --wait 5m && ssh 10.0.0.11 reboot\n  \
                        weir member web 10.0.0.11:80 enable\n  \
                        weir member 10.0.0.11:80 drain --wait   # in all its pools\n  \
                        weir member database 10.0.0.21:5432 end-sessions\n  \
                        weir pool web                           # show the members and their state")]
#[command(override_usage = "weir member [OPTIONS] [POOL] <ADDRESS> <ACTION>")]
pub struct Arguments {
    /// The pool (default: all pools), the member's address as shown by `weir pool POOL`, and an action: drain (only
    /// clients with persistence get new requests), disable (no new requests), enable (overrides the configuration),
    /// reset (back to the configuration), end-sessions (ends relayed connections, WebSockets and UDP sessions)
    #[arg(value_name = "POOL ADDRESS ACTION", num_args = 2..=3, required = true,
          value_parser = NonEmptyStringValueParser::new())]
    words: Vec<String>,

    /// Wait until no request is open at the member (500ms, 30s, 5m, 1h) [default: no limit]
    ///
    /// Only with drain and disable. If you interrupt it, the member keeps its new state.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,

    #[command(flatten)]
    connection: Connection,

    /// Also if no other member of the pool takes new requests: clients get 503 then
    #[arg(long)]
    last: bool,

    /// Print the admin listener's JSON on standard output
    #[arg(long, conflicts_with = "wait")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// No new requests but those of clients that persistence keeps on it
    Drain,
    /// New requests again, whatever the configuration says
    Enable,
    /// No new requests, not even of persistent clients
    Disable,
    /// What the configuration says
    Reset,
    /// Nothing but the end of its relayed connections, WebSockets and UDP sessions
    EndSessions,
}

impl Action {
    /// The state that it asks for; `None`: the action is not about the state.
    fn state(self) -> Option<WantedState> {
        match self {
            Self::Drain => Some(WantedState::Drain),
            Self::Enable => Some(WantedState::Enabled),
            Self::Disable => Some(WantedState::Disabled),
            Self::Reset => Some(WantedState::Configured),
            Self::EndSessions => None,
        }
    }
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let [place @ .., word] = &arguments.words[..] else { return ExitCode::from(EXIT_USAGE) };
    let Ok(action) = Action::from_str(word, false) else {
        let words = "drain, enable, disable, reset, end-sessions";
        output::tell(format_args!(
            "{COMMAND}: `{word}` is no action; the last word is one of {words}\n"
        ));
        return ExitCode::from(EXIT_USAGE);
    };
    if arguments.wait.is_some() && !matches!(action, Action::Drain | Action::Disable) {
        output::tell(format_args!("{COMMAND}: --wait goes with drain and disable\n"));
        return ExitCode::from(EXIT_USAGE);
    }
    let done = match action.state() {
        Some(state) => change(arguments, place, state),
        None => end_sessions(arguments, place),
    };
    done.unwrap_or_else(|error| admin::refuse(COMMAND, &error))
}

/// Ends the sessions of the member.
fn end_sessions(arguments: &Arguments, place: &[String]) -> Result<ExitCode, Error> {
    let client = arguments.connection.client()?;
    let [pool @ .., address] = place else { return Ok(ExitCode::from(EXIT_USAGE)) };
    let wanted = SessionsToEnd {
        pool: pool.first().cloned(),
        member: Some(address.clone()),
        ..SessionsToEnd::default()
    };
    let (document, ended) = sessions::end_sessions(&client, &wanted)?;
    Ok(match arguments.json {
        true => admin::print(COMMAND, &String::from_utf8_lossy(&document)),
        false => admin::print(COMMAND, &sessions::told(ended)),
    })
}

fn change(arguments: &Arguments, place: &[String], state: WantedState) -> Result<ExitCode, Error> {
    let client = arguments.connection.client()?;
    let wanted = MemberStateChange { state, last: arguments.last };
    let (document, changed) = match place {
        [pool, address] => {
            let document = client.put(&state_of(&path_of(pool, address)), &wanted)?;
            let changed = vec![client.read::<MemberStateChanged>(&document)?];
            (document, changed)
        }
        _ => {
            let address = place.first().map_or("", String::as_str);
            let document =
                client.put(&state_of(&format!("/v1/members/{}", segment(address))), &wanted)?;
            let changed = client.read::<MemberStatesChanged>(&document)?.members;
            (document, changed)
        }
    };
    for warning in changed.iter().filter_map(warning) {
        output::tell(admin::paint_of_stderr().line(Tone::Wrong, "", &warning));
    }
    if arguments.json {
        return Ok(admin::print(COMMAND, &String::from_utf8_lossy(&document)));
    }
    let text: String = changed.iter().map(done_text).collect();
    let mut status = admin::print(COMMAND, &text);
    let Some(limit) = arguments.wait else { return Ok(status) };
    let began = Instant::now();
    for changed in &changed {
        if status != ExitCode::SUCCESS {
            break;
        }
        let (pool, address) = (&changed.pool, &changed.member.address);
        let rest = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let waited = wait(&client, &path_of(pool, address), rest)?;
        status = waited.tell(&printable(&format!("{pool}/{address}")));
    }
    Ok(status)
}

fn path_of(pool: &str, address: &str) -> String {
    format!("/v1/pools/{}/members/{}", segment(pool), segment(address))
}

fn state_of(path: &str) -> String {
    format!("{path}/state")
}

/// The result, such as `web/10.0.0.11:80 is drained: it gets nothing new; 3 requests under way`.
fn done_text(changed: &MemberStateChanged) -> String {
    let MemberStateChanged { pool, member, before, changed, .. } = changed;
    let was = match (changed, before == &member.administrative) {
        (false, _) => " already",
        (true, true) => ", as before",
        (true, false) => "",
    };
    let text = if member.is_enabled() {
        let then = match member.state.as_str() {
            UP => "it takes requests".to_owned(),
            state => format!("it is {state}, and takes requests once it is up"),
        };
        format!("is enabled{was}{}: {then}", source(member))
    } else {
        let is = if member.administrative == "drain" { "drained" } else { "disabled" };
        let count = u64::from(member.draining_requests.unwrap_or(0));
        let under_way = counted(count, "request");
        format!("is {is}{was}{}: it gets nothing new; {under_way} under way", source(member))
    };
    printable(&format!("{pool}/{} {text}", member.address)) + "\n"
}

fn source(member: &Member) -> &'static str {
    match member.administrative_source.as_str() {
        RUNTIME => "",
        _ => ", as the configuration says",
    }
}

/// A warning about the consequences of the change.
fn warning(changed: &MemberStateChanged) -> Option<String> {
    let pool = &changed.pool;
    let nobody_left = changed.members_in_service == 0 && !changed.member.is_enabled();
    let then = if changed.fallback_serves { "its fallback serves" } else { "clients get 503" };
    nobody_left.then(|| format!("no member of pool {pool} takes new requests now: {then}"))
}

/// The end of a wait for a member.
#[derive(Debug, PartialEq, Eq)]
enum WaitResult {
    /// No request is open, after this time.
    Idle(Duration),
    /// The time is over; this many requests are open.
    Late(Duration, u32),
    /// The member was enabled again by another command.
    Enabled,
    /// The member was removed from its pool.
    Gone,
}

impl WaitResult {
    /// Prints the end of the wait; returns its exit status.
    fn tell(&self, name: &str) -> ExitCode {
        match self {
            Self::Idle(time) => {
                let text = format!("{name} has nothing under way, after {}\n", span(*time));
                admin::print(COMMAND, &text)
            }
            Self::Late(time, count) => {
                let requests = counted(u64::from(*count), "request");
                let time = span(*time);
                output::tell(format_args!(
                    "{COMMAND}: {requests} of {name} still under way after {time}; \
                     it gets nothing new until it is enabled\n"
                ));
                ExitCode::from(EXIT_UNDER_WAY)
            }
            Self::Enabled => {
                output::tell(format_args!("{COMMAND}: {name} was enabled meanwhile\n"));
                ExitCode::from(EXIT_REFUSED)
            }
            Self::Gone => {
                output::tell(format_args!(
                    "{COMMAND}: {name} left its pool meanwhile; \
                     what it has under way ends, but cannot be seen any more\n"
                ));
                ExitCode::from(EXIT_REFUSED)
            }
        }
    }
}

/// Waits until the member has no open requests, and prints the progress.
fn wait(client: &Client, path: &str, limit: Option<Duration>) -> Result<WaitResult, Error> {
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    let mut idle_looks = 0;
    loop {
        let member: Member = match client.get(path) {
            Ok(document) => client.read(&document)?,
            Err(error) if error.is_not_found() => return Ok(WaitResult::Gone),
            Err(error) => return Err(error),
        };
        let waited = began.elapsed();
        match member.draining_requests {
            None => return Ok(WaitResult::Enabled),
            Some(0) => idle_looks += 1,
            Some(count) => {
                idle_looks = 0;
                if limit.is_some_and(|limit| waited >= limit) {
                    return Ok(WaitResult::Late(waited, count));
                }
                if told.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
                    told = Some(Instant::now());
                    let requests = counted(u64::from(count), "request");
                    output::tell(format_args!("{requests} under way, {}\n", span(waited)));
                }
            }
        }
        if idle_looks >= IDLE_LOOKS {
            return Ok(WaitResult::Idle(waited));
        }
        let rest = limit.map_or(POLL_INTERVAL, |limit| limit.saturating_sub(waited));
        let rest = if idle_looks > 0 { POLL_INTERVAL } else { rest };
        thread::sleep(rest.min(POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::tests::POOL;

    /// The response to a change of the first or second member of the tests' pool.
    fn changed(member: usize, change: impl FnOnce(&mut MemberStateChanged)) -> MemberStateChanged {
        let pool: serde_json::Value = serde_json::from_str(POOL).unwrap();
        let answer = serde_json::json!({
            "pool": "web", "changed": true, "before": "enabled", "members_in_service": 1,
            "member": pool["members"][member],
        });
        let mut answer = serde_json::from_value(answer).unwrap();
        change(&mut answer);
        answer
    }

    #[test]
    fn what_was_done() {
        let check = |answer: MemberStateChanged, expected: &str| {
            assert_eq!(done_text(&answer), format!("web/{expected}\n"));
        };
        check(
            changed(1, |_| {}),
            "127.0.0.1:9002 is drained: it gets nothing new; 1 request under way",
        );
        check(
            changed(1, |answer| {
                answer.changed = false;
                answer.before = "drain".into();
                answer.member.draining_requests = Some(0);
            }),
            "127.0.0.1:9002 is drained already: it gets nothing new; 0 requests under way",
        );
        check(
            changed(1, |answer| answer.member.administrative = "disabled".into()),
            "127.0.0.1:9002 is disabled: it gets nothing new; 1 request under way",
        );
        check(
            changed(0, |answer| answer.before = "drain".into()),
            "127.0.0.1:9001 is enabled, as the configuration says: it takes requests",
        );
        check(
            changed(2, |answer| {
                answer.before = "drain".into();
                answer.member.administrative_source = "runtime".into();
            }),
            "127.0.0.1:9003 is enabled: it is down, and takes requests once it is up",
        );
        check(
            changed(0, |answer| answer.member.administrative_source = "runtime".into()),
            "127.0.0.1:9001 is enabled, as before: it takes requests",
        );
    }

    #[test]
    fn whoever_takes_the_last_one_out_is_warned() {
        let check = |answer: MemberStateChanged, expected: bool| {
            assert_eq!(warning(&answer).is_some(), expected, "{answer:?}");
        };
        check(changed(1, |_| {}), false);
        check(changed(1, |answer| answer.members_in_service = 0), true);
        check(changed(2, |answer| answer.members_in_service = 0), false);
        let told = |fallback_serves| {
            let none = |answer: &mut MemberStateChanged| {
                answer.members_in_service = 0;
                answer.fallback_serves = fallback_serves;
            };
            warning(&changed(1, none)).expect("a warning")
        };
        assert!(told(false).ends_with("clients get 503"));
        assert!(told(true).ends_with("its fallback serves"));
    }
}
