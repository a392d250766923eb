//! The process as a whole: starts its parts, activates configurations, ends.
//!
//! | signal | effect |
//! |---|---|
//! | SIGHUP | the files are read again and activated, or refused as a whole; logs are reopened |
//! | SIGUSR2 | an upgrade: another process replaces this one |
//! | SIGTERM, SIGINT | accepts no connections, and ends after the last transaction, at the latest after `drain_timeout` |
//! | a second SIGTERM or SIGINT | ends at once |

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use std::{fmt, io};

use admin_listeners::AdminListeners;
use next_configuration::NextConfiguration;
use preparation::PreparationStep;
use tokio::signal::unix::{Signal, SignalKind, signal};
use upgrades::{InheritedState, UpgradeState};
use weir_acme::{Acme, AcmeError};
use weir_api::events::StreamEndReason;
use weir_config::snapshot::{Address, Snapshot};
use weir_config::{Colour, Config, Diagnostic, Severity};
use weir_dataplane::handle::{DataPlane, Options, usable_cores};
use weir_dataplane::inherited_sockets::InheritedSockets;
use weir_dataplane::outside;
use weir_event_loop::error_text::io_error_text;
use weir_exchange::shared::live::LiveTable;
use weir_sources::Files;
use weir_telemetry::records::recorder::RecordSender;
use weir_telemetry::reports::Event;

use crate::events::{Events, Level};
use crate::freed_memory::FreedMemory;
use crate::key_log::KeyLog;
use crate::logs::{LogError, Logs};
use crate::monitors::Monitors;
use crate::names::{self, NameServers, Names};
use crate::observed_state::{FetchResults, ObservedState};
use crate::ocsp::Ocsp;
use crate::overlay::changes::Changes;
use crate::overlay::journal::JournalError;
use crate::overlay::judge::{Configuration, check, take_back_overdue};
use crate::own_keys::{self, OwnKeysError};
use crate::packets::PacketPlane;
use crate::requests::Requests;
use crate::sandbox;
use crate::service_manager::ServiceManager;
use crate::token_keys::TokenKeys;
use crate::upgrade::predecessor::Predecessor;
use crate::upgrade::successor::Successor;

mod admin_listeners;
mod members;
mod next_configuration;
mod pending_versions;
mod preparation;
mod service;
mod upgrades;
mod without_effect;
mod worker_events;

/// Capacity of the channel for events of workers.
const WORKER_EVENTS_WAITING_MAX: usize = 256;

/// Changes of several names within this time become active together.
const NAMES_SETTLE: Duration = Duration::from_millis(100);

/// The interval at which a draining process checks whether its workers have ended.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// The interval at which a process checks whether its workers are alive.
const ALIVE_POLL: Duration = Duration::from_secs(1);

/// Timeout for workers that must end at once.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for writing the waiting log lines at the end.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// The event text for a signal that ends the process during startup.
const STOPPED_DURING_STARTUP: &str = "stopped during startup";

/// The reason why the process does not serve.
#[derive(Debug)]
pub enum Error {
    /// The configuration file has errors.
    Configuration {
        /// The file.
        file: PathBuf,
        /// The errors in the file.
        diagnostics: Vec<Diagnostic>,
    },
    /// The overlay cannot be read.
    Overlay(JournalError),
    /// The key of persistence cookies cannot be read or created.
    OwnKeys(OwnKeysError),
    /// ACME certificates cannot be stored.
    Acme(AcmeError),
    /// A log cannot be opened.
    Log(LogError),
    /// The file for the secrets of TLS sessions cannot be opened.
    KeyLog(PathBuf, io::Error),
    /// The admin address cannot be bound.
    Admin(Address, io::Error),
    /// The data path cannot start.
    DataPlane(weir_dataplane::handle::StartError),
    /// Threads, signals or the runtime cannot be set up.
    System(io::Error),
    /// The workers ended unexpectedly.
    WorkersEnded,
    /// The configuration requires a sandbox that the kernel does not have.
    Sandbox(io::Error),
    /// The process that this one was started to replace did not hand over.
    Handover(io::Error),
    /// The predecessor did not answer the request for permission to serve.
    NoWord,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration { file, diagnostics } => {
                let text = weir_config::render_text(diagnostics, Colour::Never);
                write!(formatter, "{text}{}: the configuration cannot be used", file.display())
            }
            Self::Overlay(error) => error.fmt(formatter),
            Self::OwnKeys(error) => error.fmt(formatter),
            Self::Acme(error) => error.fmt(formatter),
            Self::Log(error) => error.fmt(formatter),
            Self::KeyLog(path, error) => {
                let (path, error) = (path.display(), io_error_text(error));
                write!(formatter, "TLS key log: cannot open {path}: {error}")
            }
            Self::Admin(address, error) => {
                write!(
                    formatter,
                    "admin listener: cannot listen on {address}: {}",
                    io_error_text(error)
                )
            }
            Self::DataPlane(error) => error.fmt(formatter),
            Self::System(error) => write!(formatter, "cannot start: {}", io_error_text(error)),
            Self::Sandbox(error) => write!(
                formatter,
                "`data_plane.sandbox: on` needs Landlock of the kernel (Linux 5.13, `landlock` in its `lsm` list): {}; \
                 `auto` starts without it",
                io_error_text(error)
            ),
            Self::WorkersEnded => formatter.write_str("all workers have ended"),
            Self::Handover(error) => {
                let error = io_error_text(error);
                write!(formatter, "cannot take over from the running weir: {error}")
            }
            Self::NoWord => {
                formatter.write_str("the running weir did not say that this one may serve")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Serves the configuration file until a signal ends it. `key_log`: the file for the secrets of all TLS sessions.
pub fn run(file: &Path, key_log: Option<&Path>, events: &Events) -> Result<(), Error> {
    let heritage = InheritedState::from_environment(events)?;
    let waiting = heritage.failure_channel();
    let result = run_with(file, key_log, events, heritage);
    if let (Some(waiting), Err(error)) = (&waiting, &result) {
        upgrades::tell_failure(waiting, error);
    }
    result
}

fn run_with(
    file: &Path,
    key_log: Option<&Path>,
    events: &Events,
    heritage: InheritedState,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::System)?;
    let result = runtime.block_on(async {
        // Handlers are installed first: a signal during startup must not kill the process halfway.
        let mut signals = Signals::new().map_err(Error::System)?;
        let key_log = key_log.map(|path| open_key_log(path, events)).transpose()?;
        let start =
            Supervisor::prepare(file, NameServers::System, key_log, (events.clone(), heritage));
        let supervisor = tokio::select! {
            prepared = start => prepared?,
            () = Signals::end(&mut signals.terminate, &mut signals.interrupt) => {
                events.info("weir", STOPPED_DURING_STARTUP);
                return Ok(());
            }
        };
        supervisor.serve(signals).await
    });
    // weir does not wait for a thread that still serves an admin client.
    runtime.shutdown_background();
    result
}

/// Opens the file for the secrets of TLS sessions, and reports a prominent warning.
fn open_key_log(path: &Path, events: &Events) -> Result<KeyLog, Error> {
    let log = KeyLog::start(path, events).map_err(|error| Error::KeyLog(path.to_owned(), error))?;
    let path = path.display();
    events.warning(
        "TLS key log",
        format_args!("is ON: with {path} anyone can decrypt all TLS traffic; switch it off soon"),
    );
    Ok(log)
}

/// Opens the store of request records. Also returns the sender for the workers.
fn open_records(
    table: &LiveTable,
    events: &Events,
) -> Result<(Arc<Requests>, Option<RecordSender>), Error> {
    let requests = Arc::new(Requests::new(table.snapshot.log.recent_requests));
    events.tell_followers(&requests);
    let records = requests.receive().map_err(Error::System)?;
    Ok((requests, Some(records)))
}

/// Begins to fetch OCSP responses and keys of tokens.
fn begin_fetching(snapshot: &Snapshot, events: &Events) -> (Ocsp, TokenKeys) {
    let mut ocsp = Ocsp::new(events.clone());
    ocsp.apply(snapshot);
    let mut token_keys = TokenKeys::new(events.clone());
    token_keys.apply(snapshot);
    (ocsp, token_keys)
}

/// The signals that the process handles.
struct Signals {
    reload: Signal,
    upgrade: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            reload: signal(SignalKind::hangup())?,
            upgrade: signal(SignalKind::user_defined2())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of the two signals that end the process.
    async fn end(terminate: &mut Signal, interrupt: &mut Signal) {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// All parts of the running process.
pub struct Supervisor {
    file: PathBuf,
    events: Events,
    /// The active configuration.
    configuration: Arc<Configuration>,
    table: Arc<LiveTable>,
    data_plane: DataPlane,
    monitors: Monitors,
    names: Names,
    ocsp: Ocsp,
    acme: Acme,
    token_keys: TokenKeys,
    packets: PacketPlane,
    logs: Logs,
    observed: Arc<ObservedState>,
    key_log: Option<KeyLog>,
    manager: ServiceManager,
    freed: FreedMemory,
    upgrading: UpgradeState,
    admins: AdminListeners,
    /// The configuration that becomes active after its first probes, if there is one.
    next: Option<NextConfiguration>,
    /// The preparation of a configuration, if one is in progress.
    reading: Option<PreparationStep>,
}

impl Supervisor {
    /// Reads the file, starts everything, and serves after the first probes of the members. After an error nothing
    /// runs.
    pub async fn start(
        file: &Path,
        name_servers: NameServers,
        events: Events,
    ) -> Result<Self, Error> {
        let mut supervisor =
            Self::prepare(file, name_servers, None, (events, InheritedState::default())).await?;
        supervisor.wait().await;
        Ok(supervisor)
    }

    /// Reads the file and starts everything. Connections wait until [`Self::serve_until`] or [`Self::wait`] has the
    /// results of the first probes. After an error nothing runs.
    async fn prepare(
        file: &Path,
        name_servers: NameServers,
        key_log: Option<KeyLog>,
        (events, mut heritage): (Events, InheritedState),
    ) -> Result<Self, Error> {
        let (configuration, changes) = first(file, &events, &heritage).await?;
        let names = first_names(&configuration, name_servers, &events).await;
        let resolutions = names.resolutions();
        names::tell_of_own_doors(&configuration.config, &resolutions, &events);
        let mut snapshot = configuration.config.snapshot(&resolutions);
        let acme = provide(&mut snapshot, &heritage, &events)?;
        key_log.iter().for_each(|key_log| key_log.listen_to(&mut snapshot));
        let mut packets = PacketPlane::new(events.clone());
        heritage.have_packets_left(&snapshot).await;
        packets.settle(&mut snapshot);
        packets.accept();
        let workers = workers_of(&snapshot);
        let logs = Logs::start(&snapshot.log, events.clone()).map_err(Error::Log)?;
        let table = Arc::new(LiveTable::build(Arc::new(snapshot), None, workers, &outside()));
        let sandbox = sandbox::decide(table.snapshot.data_plane.sandbox).map_err(Error::Sandbox)?;
        let inherited = heritage.give_to(&table);
        let (requests, records) = open_records(&table, &events)?;
        let (mut data_plane, of_workers) =
            start_workers(&table, (&logs, records), inherited, sandbox.is_on)?;
        let mut monitors = Monitors::new(events.clone());
        monitors.apply(&table);
        let next = NextConfiguration::at_start(&table);
        monitors.prepare(&table.snapshot, |pool| next.until(pool));
        let (ocsp, token_keys) = begin_fetching(&table.snapshot, &events);
        let observed = Arc::new(ObservedState::new(
            Arc::clone(&table),
            Arc::clone(data_plane.counters()),
            logs.view(),
            monitors.board(),
            FetchResults::of(&ocsp, &token_keys, &acme),
            packets.board(),
            (Arc::clone(&configuration.files), changes, requests),
        ));
        observed.set_sandbox(sandbox);
        observed.set_sessions(data_plane.sessions());
        let outlets = open_outlets(of_workers, &observed, &events, heritage.take_admins()).await;
        let admins = outlets.inspect_err(|_| data_plane.stop())?;
        let upgrading = UpgradeState::new(heritage, &observed, &events);
        let manager = upgrading.service_manager();
        let supervisor = Self {
            file: file.to_owned(),
            events,
            configuration,
            table,
            data_plane,
            monitors,
            names,
            ocsp,
            acme,
            token_keys,
            packets,
            logs,
            observed,
            key_log,
            manager,
            freed: FreedMemory::default(),
            upgrading,
            admins,
            next: Some(next),
            reading: None,
        };
        next_configuration::show_waiting(&supervisor);
        Ok(supervisor)
    }

    /// The active table.
    pub fn table(&self) -> &Arc<LiveTable> {
        &self.table
    }

    /// The state for the admin listener.
    pub fn observed(&self) -> &Arc<ObservedState> {
        &self.observed
    }

    /// The address of the first admin listener, with its real port.
    pub fn admin_address(&self) -> Option<&Address> {
        self.admins.first_address()
    }

    async fn serve(mut self, mut signals: Signals) -> Result<(), Error> {
        upgrades::follow_signal(&self, signals.upgrade);
        let end = Signals::end(&mut signals.terminate, &mut signals.interrupt);
        self.serve_until(&mut signals.reload, end).await?;
        if self.is_starting() {
            self.events.info("weir", STOPPED_DURING_STARTUP);
            self.stop().await;
            self.finish();
            return Ok(());
        }
        self.drain();
        let mut alive = tokio::time::interval(ALIVE_POLL);
        loop {
            tokio::select! {
                () = self.drained() => {
                    self.admins.handed_over_closed().await;
                    break;
                }
                _ = alive.tick() => self.manager.extend(),
                () = self.manager.due() => self.manager.look(self.data_plane.stuck_workers()),
                _ = signals.reload.recv() => {
                    // The log may have been rotated. Other settings have no effect during a drain.
                    self.logs.reopen(&self.table.snapshot.log);
                    self.events.warning("configuration", "is not reloaded: weir drains");
                }
                () = Signals::end(&mut signals.terminate, &mut signals.interrupt) => {
                    self.events.warning("weir", "got a second signal: exits now");
                    self.stop().await;
                    break;
                }
            }
        }
        let streams = &self.observed.admin.streams;
        streams.end(StreamEndReason::Stopped);
        streams.ended().await;
        self.finish();
        Ok(())
    }

    /// Serves until `end`; reads the file again at each `reload`. [`Self::drain`] follows.
    pub async fn serve_until(
        &mut self,
        reload: &mut Signal,
        end: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let mut alive = tokio::time::interval(ALIVE_POLL);
        let observed = Arc::clone(&self.observed);
        tokio::pin!(end);
        loop {
            tokio::select! {
                // A signal that arrives while the file is read causes another read.
                _ = reload.recv(), if upgrades::may_read(self) => self.begin_reading(),
                () = observed.reloads.asked(), if upgrades::may_read(self) => self.begin_reading(),
                () = observed.changes.wanted(), if upgrades::may_read(self) => self.begin_transactions(),
                request = observed.upgrades.asked(), if upgrades::may_begin(self) => {
                    let started = upgrades::start(self, &request);
                    self.upgrading.begin(started);
                }
                said = Successor::said(&mut self.upgrading.successor) => {
                    if self.upgrading.take(said, &mut self.packets, &self.table) {
                        self.upgrading.hand_over(&mut self.admins, &mut self.manager);
                        return Ok(());
                    }
                }
                said = Predecessor::said(&mut self.upgrading.predecessor) => {
                    if self.upgrading.hear(said, &self.table, &mut self.manager)? {
                        upgrades::put_in_force(self).await;
                    }
                }
                read = PreparationStep::step(&mut self.reading) => {
                    self.take_read(read);
                }
                is_followed = observed.admin.requests.followed() => self.data_plane.follow(is_followed),
                () = &mut end => return Ok(()),
                step = NextConfiguration::step(&self.next, &self.monitors), if self.upgrading.is_idle() => self.take(step).await,
                () = self.names.changed(), if self.upgrading.is_idle() => {
                    tokio::time::sleep(NAMES_SETTLE).await;
                    self.apply_names();
                }
                () = self.acme.arrived() => self.ocsp.apply(&self.table.snapshot),
                _ = alive.tick() => self.look_after_workers()?,
                () = self.manager.due() => self.manager.look(self.data_plane.stuck_workers()),
            }
        }
    }

    /// Reads the file again and activates it after its first probes, or reports the reason and changes nothing. Returns
    /// whether it is active.
    pub async fn reload(&mut self) -> bool {
        let is_good = self.read_again().await;
        self.wait().await;
        is_good
    }

    /// Prepares the current addresses of names. Returns whether anything changed.
    pub fn apply_names(&mut self) -> bool {
        let resolutions = self.names.resolutions();
        let config = &self.newest().config;
        names::tell_of_own_doors(config, &resolutions, &self.events);
        match members::with_present(config, &config.pools_with_names(), self) {
            Some(found) if found.changes.is_empty() => return false,
            Some(found) => {
                self.prepare_members(found, None);
                return true;
            }
            // Fields are withheld from a new address, or a whole configuration waits, which may need listeners or the packet path.
            None => {}
        }
        let newest = members::newest_snapshot(self);
        let mut snapshot = config.snapshot(&resolutions);
        snapshot.own_keys = newest.own_keys.clone();
        snapshot.acme = newest.acme.clone();
        if let Err(error) = self.prepare_next(snapshot, None) {
            // Impossible: there are no new listeners.
            self.events.error("names", format_args!("changed, but: {error}"));
        }
        true
    }

    /// Stops accepting connections. The workers end after their last transactions.
    pub fn drain(&mut self) {
        self.reading = None;
        self.abandon_next();
        self.acme.hand_over();
        self.observed.reloads.abandon();
        self.observed.changes.close();
        let timeout_ms = self.table.snapshot.data_plane.drain_timeout_ms;
        self.observed.draining.store(true, Relaxed);
        let limit = Duration::from_millis(timeout_ms);
        self.events.info(
            "weir",
            format_args!("drains: accepts no new connections, and exits within {limit:?}"),
        );
        self.manager.stop();
        self.upgrading.abandon(&mut self.packets, &self.table);
        match self.upgrading.idle_grace_ms(timeout_ms) {
            Some(idle_ms) => self.data_plane.drain_beside(timeout_ms, idle_ms),
            None => self.data_plane.drain(timeout_ms),
        }
        self.packets.drain(limit);
    }

    /// Returns after all workers, and the last flow of the packet path, have ended.
    pub async fn drained(&self) {
        while !(self.data_plane.is_finished() && self.packets.is_finished()) {
            tokio::time::sleep(DRAIN_POLL).await;
        }
    }

    /// Ends all workers now.
    pub async fn stop(&mut self) {
        self.data_plane.stop();
        self.packets.stop();
        if tokio::time::timeout(STOP_TIMEOUT, self.drained()).await.is_err() {
            self.events.warning("weir", "exits without workers that do not end");
        }
    }

    /// Ends all parts, and writes the waiting log lines.
    pub fn finish(self) {
        let Self { data_plane, logs, events, packets, observed, .. } = self;
        // Tasks that still answer admin clients hold `observed`, so its channel is closed explicitly.
        observed.admin.audit.close();
        drop(packets);
        if data_plane.is_finished() {
            data_plane.join();
        }
        logs.finish(LOG_TIMEOUT);
        events.info("weir", "has ended");
    }

    fn refuse(&mut self, reason: impl fmt::Display, wrong: &[Diagnostic]) -> bool {
        self.retain_names();
        self.packets.restore();
        self.manager.refuse_reload();
        // The log has the line when a caller learns the result.
        let what = format_args!("was not reloaded, the previous one stays in effect: {reason}");
        self.events.error("configuration", what);
        self.observed.reloads.fail(&reason.to_string(), wrong);
        false
    }

    /// Follows the names of the active, the next and the currently read configuration, and stops following others.
    fn retain_names(&mut self) {
        let read = self.reading.as_ref().and_then(PreparationStep::config);
        let waiting = self.next.as_ref().and_then(|next| next.configurations.newest());
        let configs = [Some(&self.configuration.config), waiting.map(|it| &it.config), read];
        self.names.retain(configs.into_iter().flatten().flat_map(Config::host_names));
        self.names.hurry(self.next.is_some() || self.reading.is_some());
    }

    /// Reports workers that have ended unexpectedly. Fails if no worker is left.
    fn look_after_workers(&mut self) -> Result<(), Error> {
        self.data_plane.close_departed();
        self.manager.observe(|| service::status_line(&self.table));
        self.freed.look(self.observed.workers.totals().memory_releases);
        for worker in self.data_plane.let_go_of_ended() {
            self.observed.workers_ended.fetch_add(1, Relaxed);
            let what = "has ended for good: the other workers serve in its place; restart weir";
            self.events.error(format_args!("worker {worker}"), what);
        }
        if self.data_plane.is_finished() { Err(Error::WorkersEnded) } else { Ok(()) }
    }

    /// The newest configuration: the one that waits for first probes, or the active one.
    fn newest(&self) -> &Arc<Configuration> {
        let waiting = self.next.as_ref().and_then(|next| next.configurations.newest());
        waiting.unwrap_or(&self.configuration)
    }
}

/// Starts the data path. Returns it with the receivers of its events and of policies' log lines.
fn start_workers(
    table: &Arc<LiveTable>,
    (logs, records): (&Logs, Option<RecordSender>),
    inherited: InheritedSockets,
    is_confined: bool,
) -> Result<(DataPlane, [Receiver<Event>; 2]), Error> {
    let (events, worker_events) = sync_channel(WORKER_EVENTS_WAITING_MAX);
    let (policy_lines, lines) = sync_channel(WORKER_EVENTS_WAITING_MAX);
    let options = Options {
        workers: table.workers(),
        logs: logs.senders(),
        events,
        inherited,
        policy_lines,
        records,
        is_confined,
    };
    let data_plane = DataPlane::start(Arc::clone(table), options).map_err(Error::DataPlane)?;
    Ok((data_plane, [worker_events, lines]))
}

/// Reports changed settings that a reload does not apply.
fn tell_restart_needed(events: &Events, table: &LiveTable, observed: &ObservedState) {
    let changes = &observed.changes;
    let wanted = table.snapshot.data_plane.sandbox.as_str();
    if let Some(running) = observed.sandbox().filter(|running| running.setting != wanted) {
        let what = format_args!("needs a restart to change from {} to {wanted}", running.setting);
        events.warning("data_plane.sandbox", what);
    }
    let (wanted, running) = (workers_of(&table.snapshot), table.workers());
    if wanted != running {
        let what = format_args!("needs a restart to change from {running} to {wanted}");
        events.warning("data_plane.workers", what);
    }
    let place = changes.place();
    if changes.history().version() > 0 && !place.starts_with(&table.snapshot.state_dir) {
        let place = place.display();
        let what = format_args!("needs a restart to change; move the overlay there: {place}");
        events.warning("state_dir", what);
    }
}

/// Starts the reporting of workers' events, and the admin listeners.
async fn open_outlets(
    of_workers: [Receiver<Event>; 2],
    observed: &Arc<ObservedState>,
    events: &Events,
    inherited_admins: Vec<(Address, OwnedFd)>,
) -> Result<AdminListeners, Error> {
    for channel in of_workers {
        worker_events::tell(channel, events.clone(), Arc::clone(observed))
            .map_err(Error::System)?;
    }
    AdminListeners::open(inherited_admins, observed, events).await
}

/// Reads the files and the overlay, and reports warnings. The files are read on another thread: many certificates or a slow
/// disk take seconds, and monitors and the admin listener must continue.
async fn first(
    file: &Path,
    events: &Events,
    heritage: &InheritedState,
) -> Result<(Arc<Configuration>, Arc<Changes>), Error> {
    // A process that replaces another one writes only once it serves. Until then, the overlay belongs to the other process.
    let may_write = !heritage.has_predecessor();
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let files = Arc::new(Files::read(&path));
        let changes = Changes::open(&files.state_dir())?;
        if may_write {
            take_back_overdue(&changes)?;
        }
        let history = changes.history();
        Ok((check(&path, files, (history.overlay(), history.version())), changes))
    });
    let unsound = |diagnostics| Error::Configuration { file: file.to_owned(), diagnostics };
    let read = read.await.map_err(|error| unsound(defect(file, &error)))?;
    let ((configuration, diagnostics), changes) = read.map_err(Error::Overlay)?;
    let Some(configuration) = configuration else { return Err(unsound(diagnostics)) };
    events.report(&diagnostics);
    if let Some(what) = changes.left_out.told() {
        events.warning("state_dir", what);
    }
    Ok((Arc::new(configuration), Arc::new(changes)))
}

/// Adds keys and certificates to the first snapshot.
fn provide(
    snapshot: &mut Snapshot,
    heritage: &InheritedState,
    events: &Events,
) -> Result<Acme, Error> {
    own_keys::provide(snapshot).map_err(Error::OwnKeys)?;
    heritage.provide_keys(snapshot);
    let acme = Acme::new(Arc::new(events.clone()));
    acme.provide(snapshot).map_err(Error::Acme)?;
    Ok(acme)
}

/// Resolves the names of the first configuration.
async fn first_names(
    configuration: &Configuration,
    name_servers: NameServers,
    events: &Events,
) -> Names {
    let mut names = Names::new(name_servers, events.clone());
    names.follow(configuration.config.host_names()).await;
    names
}

/// The diagnostic for an internal error while the files were read.
fn defect(file: &Path, error: &tokio::task::JoinError) -> Vec<Diagnostic> {
    let message = format!("weir failed to read the file, which is a defect of weir: {error}");
    vec![Diagnostic::of_file(Severity::Error, message, &file.display().to_string())]
}

fn workers_of(snapshot: &Snapshot) -> usize {
    snapshot.data_plane.workers.map_or_else(usable_cores, usize::from)
}

/// A configuration and its workers as text: `2 virtual servers, 1 pool, 3 members, 2 workers`.
struct Summary<'a>(&'a Config, usize);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.0.summary();
        let counts = [
            (summary.virtual_servers, "virtual server"),
            (summary.pools, "pool"),
            (summary.members, "member"),
            (self.1, "worker"),
        ];
        for (index, (count, noun)) in counts.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let plural = if count == 1 { "" } else { "s" };
            write!(formatter, "{comma}{count} {noun}{plural}")?;
        }
        Ok(())
    }
}

impl Events {
    /// Reports the diagnostics of a configuration in the format of `weir check`. Followers, whose role may be less than `admin`,
    /// get their places alone: messages quote values.
    fn report(&self, diagnostics: &[Diagnostic]) {
        const SUBJECT: &&str = &"configuration:";
        for diagnostic in diagnostics {
            let (level, article) = match diagnostic.severity {
                Severity::Error => (Level::Error, "an"),
                Severity::Warning => (Level::Warning, "a"),
            };
            for line in
                weir_config::render_text(std::slice::from_ref(diagnostic), Colour::Never).lines()
            {
                self.tell_host(level, SUBJECT, &line);
            }
            let (place, word) = (diagnostic.place(), diagnostic.severity.word());
            let found = format_args!("{place} has {article} {word}, which `weir check` shows");
            self.tell_stream(level, SUBJECT, &found);
        }
    }
}

#[cfg(test)]
mod tests;
