//! The control plane's interface to the data path: start, tables, drain, stop.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::{Address, ListenPoint, Snapshot};
use weir_event_loop::error_text::io_error_text;
use weir_event_loop::{clock, random};
use weir_exchange::shared::counters::{PerWorker, WorkerCounters};
use weir_exchange::shared::live::LiveTable;
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::records::recorder::RecordSender;
use weir_telemetry::reports::{Event, LogSenders};
use weir_telemetry::side_logs::SideLogs;

pub use crate::binding::{
    BindError, look_at_source, missing_interfaces, missing_packet_interfaces,
};
use crate::binding::{addresses, adjust, are_on_interface, bind, port, remove_socket_file};
use crate::inherited_sockets::{self, InheritedSockets};
use crate::inspectors::Inspectors;
use crate::panics;
use crate::password_threads;
use crate::removed_listeners::DepartedListeners;
use crate::thread::WorkerThread;
use crate::worker::{Command, Setup};
use crate::worker_sessions::WorkerSessions;

/// The parameters for the start of the data path.
#[derive(Debug)]
pub struct Options {
    /// The number of threads; the table's counters must have the same number of slots.
    pub workers: usize,
    /// The channels of the logs.
    pub logs: LogSenders,
    /// The channel of events; workers never wait for it.
    pub events: SyncSender<Event>,
    /// The listening sockets that were inherited.
    pub inherited: InheritedSockets,
    /// The channel for log lines of policies. It is separate because every request can cause a line, and lines must not
    /// displace events.
    pub policy_lines: SyncSender<Event>,
    /// The queue of request records; `None`: requests are not recorded.
    pub records: Option<RecordSender>,
    /// Whether workers, and threads that inspect, are denied access to files.
    pub is_confined: bool,
}

/// The reason why the data path cannot start.
#[derive(Debug)]
pub enum StartError {
    /// Binding a listener failed.
    Bind(BindError),
    /// Starting a worker thread failed.
    Worker(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(formatter),
            Self::Worker(error) => {
                write!(formatter, "cannot start a worker thread: {}", io_error_text(error))
            }
        }
    }
}

impl std::error::Error for StartError {}

/// The number of cores that this process may run on: the default number of workers.
pub fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The running data path.
#[derive(Debug)]
pub struct DataPlane {
    workers: Vec<WorkerThread>,
    /// Duplicates of each listener. Socket `i` belongs to worker `i` modulo the number of workers. They keep the
    /// kernel's accept queues open if a worker panics. `None`: the worker has ended.
    listeners: HashMap<ListenPoint, Vec<Option<OwnedFd>>>,
    /// Listeners of a prepared snapshot that no worker has yet. Connections wait in their accept queues.
    prepared: HashMap<ListenPoint, Vec<OwnedFd>>,
    /// Removed UDP listeners with open sessions.
    departed: DepartedListeners,
    /// Inherited listening sockets that no snapshot has used yet.
    inherited: InheritedSockets,
    /// All ports that this process has listened on: workers may still be closing a removed listener.
    ports: HashSet<u16>,
    table: Arc<LiveTable>,
    counters: Arc<PerWorker<WorkerCounters>>,
    inspectors: Inspectors,
}

impl DataPlane {
    /// Binds the listeners of the table and starts the workers. After an error nothing runs. Connections are accepted only
    /// after [`Self::put_in_force`].
    pub fn start(table: Arc<LiveTable>, options: Options) -> Result<Self, StartError> {
        raise_descriptor_limit();
        panics::note();
        let Options { workers, logs, events, inherited, policy_lines, records, is_confined } =
            options;
        let counters = Arc::new(PerWorker::new(workers));
        let (inspectors, to_inspectors) = Inspectors::new(workers, is_confined);
        let mut data_plane = Self {
            workers: Vec::with_capacity(workers),
            listeners: HashMap::new(),
            prepared: HashMap::new(),
            departed: DepartedListeners::default(),
            ports: inherited.addresses().filter_map(port).collect(),
            inherited,
            table: Arc::clone(&table),
            counters: Arc::clone(&counters),
            inspectors,
        };
        data_plane.prepare(&table.snapshot).map_err(StartError::Bind)?;
        for id in 0..workers {
            let worker = WorkerThread::start(is_confined, |commands| Setup {
                id,
                table: Arc::clone(&table),
                counters: Arc::clone(&counters),
                log: AccessLog::new(logs.access.clone(), random_id()),
                side_logs: SideLogs::new(logs.waf.clone(), logs.spans.clone()),
                events: events.clone(),
                policy_lines: policy_lines.clone(),
                records: records.clone(),
                commands,
                inspectors: Some(to_inspectors.clone()),
            });
            match worker {
                Ok(worker) => data_plane.workers.push(worker),
                Err(error) => {
                    data_plane.stop();
                    return Err(StartError::Worker(error));
                }
            }
        }
        Ok(data_plane)
    }

    /// Binds the listeners of a snapshot that are not bound yet, and checks that this host can use the source addresses of
    /// its pools. Connections wait until [`Self::put_in_force`]. Closes listeners that were prepared earlier and are not
    /// needed for this snapshot. After an error nothing has changed.
    pub fn prepare(&mut self, snapshot: &Snapshot) -> Result<(), BindError> {
        let workers = self.table.workers();
        let inherited = self.inherited.take(snapshot, workers)?;
        self.prepared.extend(inherited);
        let is_here =
            |address: &ListenPoint| self.listens(address) || self.prepared.contains_key(address);
        let new = addresses(snapshot).map(|(_, address)| address).filter(|it| !is_here(it));
        let returning = |address: &ListenPoint| self.departed.duplicates(address);
        let returning: HashMap<ListenPoint, Vec<OwnedFd>> =
            new.filter_map(|address| Some((address.clone(), returning(address)?))).collect();
        let is_bound = |address: &ListenPoint| is_here(address) || returning.contains_key(address);
        let added = bind(snapshot, is_bound, &self.ports, workers)?;
        self.ports.extend(added.keys().filter_map(port));
        self.prepared.extend(added);
        self.prepared.extend(returning);
        let wanted: HashSet<&ListenPoint> =
            addresses(snapshot).map(|(_, address)| address).collect();
        let gone = self.prepared.extract_if(|address, _| !wanted.contains(address));
        gone.for_each(|(address, _)| remove_own_file(&self.inherited, &address));
        Ok(())
    }

    /// Whether an address has a listener that is bound to the current network interface.
    fn listens(&self, address: &ListenPoint) -> bool {
        let Some(sockets) = self.listeners.get(address) else { return false };
        are_on_interface(sockets.iter().flatten(), address)
    }

    /// Closes the prepared listeners.
    pub fn abandon(&mut self) {
        for (address, _) in self.prepared.drain() {
            remove_own_file(&self.inherited, &address);
        }
    }

    /// Sends a table, whose snapshot is prepared, to the workers with its listeners, and closes removed listeners. Listeners
    /// that are in both tables stay unchanged.
    pub fn put_in_force(&mut self, table: Arc<LiveTable>) {
        let added = std::mem::take(&mut self.prepared);
        adjust(&self.listeners, &added, &self.table.snapshot, &table.snapshot);
        table.enter_into_force(clock::now().now_ms());
        if let Some(logins) = &table.logins {
            password_threads::start(logins, usable_cores());
        }
        if table.snapshot.virtual_servers.iter().any(|server| server.waf.is_some()) {
            self.inspectors.start(self.workers.iter().map(WorkerThread::link));
        }
        let kept: HashSet<&ListenPoint> =
            addresses(&table.snapshot).map(|(_, address)| address).collect();
        // A listener on an interface that no longer exists is replaced by one on the current interface of that name.
        let goes =
            |address: &&ListenPoint| !kept.contains(*address) || added.contains_key(*address);
        let removed: Vec<ListenPoint> = self.listeners.keys().filter(goes).cloned().collect();
        for (index, worker) in self.workers.iter().enumerate() {
            let mut given = Vec::with_capacity(added.len());
            for (address, sockets) in &added {
                for socket in sockets.iter().skip(index).step_by(self.workers.len()) {
                    worker.hand_over(socket);
                    given.push(address.clone());
                }
            }
            worker.tell(Command::Apply {
                table: Arc::clone(&table),
                added: given,
                removed: removed.clone(),
            });
        }
        let leave_in_ms = table.snapshot.data_plane.drain_timeout_ms;
        for address in &removed {
            self.close_listener(address, leave_in_ms);
        }
        added.keys().for_each(|address| self.departed.forget(address));
        for (address, sockets) in added {
            let of_workers = sockets.into_iter().zip(self.workers.iter().cycle());
            let kept = of_workers.map(|(socket, worker)| (!worker.is_let_go).then_some(socket));
            self.listeners.insert(address, kept.collect());
        }
        self.table = table;
    }

    /// Sends the members of some pools, by their indexes, to the workers. The table differs from the active one in nothing else.
    pub fn put_members_in_force(&mut self, table: Arc<LiveTable>, pools: &Arc<[usize]>) {
        let now_ms = clock::now().now_ms();
        pools.iter().for_each(|index| table.pools[*index].enter_into_force(now_ms));
        for worker in &self.workers {
            let (table, pools) = (Arc::clone(&table), Arc::clone(pools));
            worker.tell(Command::Members { table, pools });
        }
        self.table = table;
    }

    /// Stops accepting. Each worker ends after its last transaction, at the latest after `timeout_ms`.
    pub fn drain(&mut self, timeout_ms: u64) {
        self.close_listeners(timeout_ms);
        for worker in &self.workers {
            worker.tell(Command::Drain { timeout_ms, idle_ms: None });
        }
    }

    /// As [`Self::drain`], while another process accepts on the same listeners. Idle HTTP/1 clients may send one more
    /// request within `idle_ms`.
    pub fn drain_beside(&mut self, timeout_ms: u64, idle_ms: u64) {
        self.inherited.hand_over(self.listeners.keys().cloned());
        self.close_listeners(timeout_ms);
        for worker in &self.workers {
            worker.tell(Command::Drain { timeout_ms, idle_ms: Some(idle_ms) });
        }
    }

    /// Duplicates of the active listeners, for another process.
    pub fn duplicate_listeners(&self) -> io::Result<Vec<(ListenPoint, Vec<OwnedFd>)>> {
        inherited_sockets::duplicates(self.listeners.iter())
    }

    /// The addresses whose sockets were opened by a service manager.
    pub fn of_manager(&self) -> impl Iterator<Item = &ListenPoint> {
        self.inherited.of_manager()
    }

    /// Closes the inherited sockets that no table uses, when this process is the only one that serves. Returns their
    /// addresses.
    pub fn let_go_of_inherited(&mut self) -> Vec<ListenPoint> {
        let unused = self.inherited.let_go();
        unused.iter().for_each(|address| remove_own_file(&self.inherited, address));
        unused
    }

    /// The way to the sessions of all workers.
    pub fn sessions(&self) -> WorkerSessions {
        WorkerSessions::of(self.workers.iter().map(WorkerThread::link))
    }

    /// Starts or stops recording all requests, for a client that follows them.
    pub fn follow(&self, is_followed: bool) {
        for worker in &self.workers {
            worker.tell(Command::Follow(is_followed));
        }
    }

    /// Ends all workers at once.
    pub fn stop(&mut self) {
        self.close_listeners(0);
        self.departed.clear();
        for worker in &self.workers {
            worker.tell(Command::Stop);
        }
    }

    /// Closes the listeners of an address: TCP and unix sockets at once, UDP sockets after their last session.
    fn close_listener(&mut self, address: &ListenPoint, leave_in_ms: u64) {
        let Some(sockets) = self.listeners.remove(address) else { return };
        remove_own_file(&self.inherited, address);
        if !matches!(address.address, Address::Udp(_)) {
            return;
        }
        let servers = self.table.snapshot.virtual_servers.iter().zip(&self.table.virtual_servers);
        let mut of_address = servers.filter(|(server, _)| server.listen.contains(address));
        if let Some((_, server)) = of_address.next() {
            let now_ms = clock::now().now_ms();
            let times = (now_ms, now_ms.saturating_add(leave_in_ms));
            self.departed.keep(address.clone(), sockets, Arc::clone(server), times);
        }
    }

    fn close_listeners(&mut self, leave_in_ms: u64) {
        self.abandon();
        let addresses: Vec<ListenPoint> = self.listeners.keys().cloned().collect();
        addresses.iter().for_each(|address| self.close_listener(address, leave_in_ms));
    }

    /// Closes removed UDP listeners without sessions. Must be called regularly.
    pub fn close_departed(&mut self) {
        self.departed.close_finished(clock::now().now_ms());
    }

    /// Whether all workers have ended.
    pub fn is_finished(&self) -> bool {
        self.workers.iter().all(|worker| worker.thread.is_finished())
    }

    /// The workers that have ended since the last call. Closes the duplicates of their sockets, so that the kernel assigns
    /// no more connections to these sockets.
    pub fn let_go_of_ended(&mut self) -> Vec<usize> {
        let mut ended = Vec::new();
        for (index, worker) in self.workers.iter_mut().enumerate() {
            if !worker.is_let_go && worker.thread.is_finished() {
                worker.is_let_go = true;
                ended.push(index);
            }
        }
        let count = self.workers.len();
        for sockets in self.listeners.values_mut() {
            for &index in &ended {
                sockets.iter_mut().skip(index).step_by(count).for_each(|socket| *socket = None);
            }
        }
        ended
    }

    /// The workers that have not answered the previous request, because they are stuck in a turn of their loop. Requests a
    /// new answer from the others.
    pub fn stuck_workers(&mut self) -> Vec<usize> {
        let workers = self.workers.iter_mut().enumerate();
        workers.filter_map(|(index, worker)| (!worker.is_turning()).then_some(index)).collect()
    }

    /// Waits until all workers have ended.
    pub fn join(self) {
        for worker in self.workers {
            // The worker has caught and reported its own panic.
            let _ = worker.thread.join();
        }
    }

    /// The active table.
    pub fn table(&self) -> &Arc<LiveTable> {
        &self.table
    }

    /// The counters of the workers.
    pub fn counters(&self) -> &Arc<PerWorker<WorkerCounters>> {
        &self.counters
    }
}

/// Removes the file of a unix socket, unless it belongs to another process.
fn remove_own_file(inherited: &InheritedSockets, address: &ListenPoint) {
    if !inherited.is_file_of_others(address) {
        remove_socket_file(address);
    }
}

/// Raises the limit of open descriptors to the maximum that the administrator allows. Each worker has a descriptor table of
/// this size.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // On failure the lower limit remains. Accepting respects the actual limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The first request id of a worker, different from those of other workers and processes.
fn random_id() -> u128 {
    u128::from_ne_bytes(random::bytes())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::mpsc::{Receiver, sync_channel};

    use weir_event_loop::{ListenOptions, sockets};

    use super::*;
    use crate::endpoint::endpoint;
    use crate::outside;

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\n\r\nok";

    /// A test directory, a member that answers every request, and a data path with that member.
    struct Bed {
        directory: PathBuf,
        data_plane: DataPlane,
        events: Receiver<Event>,
    }

    impl Bed {
        fn new(name: &str) -> Self {
            Self::with_workers(name, 1)
        }

        fn with_workers(name: &str, workers: usize) -> Self {
            let directory =
                std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            serve_member(&directory.join("member"));
            let table = table(&directory, &["client"], None, workers);
            let (log, _) = sync_channel(1);
            let (events, receiver) = sync_channel(8);
            let policy_lines = events.clone();
            let (spans, _) = sync_channel(1);
            let logs = LogSenders { waf: log.clone(), access: log, spans };
            let inherited = InheritedSockets::default();
            let records = None;
            let is_confined = weir_event_loop::confine::version().is_ok();
            let options =
                Options { workers, logs, events, inherited, policy_lines, records, is_confined };
            let mut data_plane = DataPlane::start(Arc::clone(&table), options).unwrap();
            data_plane.put_in_force(table);
            Self { directory, data_plane, events: receiver }
        }

        fn client(&self) -> UnixStream {
            self.client_of("client")
        }

        fn client_of(&self, socket: &str) -> UnixStream {
            UnixStream::connect(self.directory.join(socket)).unwrap()
        }

        fn address(&self, socket: &str) -> ListenPoint {
            Address::Unix(self.directory.join(socket)).into()
        }
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            self.data_plane.stop();
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }

    /// A table with one virtual server for each name, which listens on the unix socket of that name.
    fn table(
        directory: &Path,
        names: &[&str],
        previous: Option<&LiveTable>,
        workers: usize,
    ) -> Arc<LiveTable> {
        table_with(directory, names, "", previous, workers)
    }

    /// As [`table`], with further keys of each virtual server.
    fn table_with(
        directory: &Path,
        names: &[&str],
        more: &str,
        previous: Option<&LiveTable>,
        workers: usize,
    ) -> Arc<LiveTable> {
        let directory = directory.display();
        let server =
            |name| format!("  {name}: {{ listen: \"unix:{directory}/{name}\", pool: p{more} }}\n");
        let servers: String = names.iter().map(server).collect();
        let text = format!(
            "log: {{ access: {{ format: off }} }}\nvirtual_servers:\n{servers}\
             pools: {{ p: {{ members: [ \"unix:{directory}/member\" ] }} }}\n",
        );
        let loaded = weir_config::parse("test.yaml", &text);
        let config = loaded.config.expect("a good configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        Arc::new(LiveTable::build(snapshot, previous, workers, &outside()))
    }

    fn serve_member(path: &Path) {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut request = [0; 1024];
                    while stream.read(&mut request).is_ok_and(|count| count > 0) {
                        stream.write_all(ANSWER.as_bytes()).unwrap();
                    }
                });
            }
        });
    }

    fn get(stream: &mut UnixStream) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut answer = vec![0; ANSWER.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, ANSWER.as_bytes());
    }

    #[test]
    fn a_panic_costs_the_connections_of_its_worker_and_nothing_else() {
        let bed = Bed::new("panic");
        let mut before = bed.client();
        get(&mut before);
        bed.data_plane.workers[0].tell(Command::Panic);
        assert_eq!(before.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
        let mut after = bed.client();
        get(&mut after);
        let Ok(Event::WorkerPanicked { worker: 0, message }) = bed.events.recv() else {
            panic!("no event of the panic");
        };
        let (text, place) = message.split_once(" (").unwrap();
        assert_eq!(text, "as told");
        assert!(place.starts_with("crates/dataplane/src/worker/commands.rs:"), "{place}");
        let table = bed.data_plane.table();
        // The client receives the response a moment before the worker updates its counters.
        let server = &table.virtual_servers[0].counters;
        while server.totals().requests_active > 0 {
            std::thread::yield_now();
        }
        let totals = server.totals();
        assert_eq!((totals.connections_open, totals.requests, totals.requests_active), (1, 2, 0));
        assert_eq!(table.virtual_servers[0].connections.load(Relaxed), 1);
        let member = &table.pools[0].members[0];
        assert_eq!(member.occupancy.load(Relaxed), 0);
        assert_eq!(member.counters.totals().connections_idle, 1);
    }

    /// Idle connections do not keep the members that their pool had when they were opened.
    #[test]
    fn former_members_are_dropped_while_connections_are_idle() {
        let mut bed = Bed::new("former");
        let mut client = bed.client();
        for weight in 2..5 {
            get(&mut client);
            let before = Arc::clone(bed.data_plane.table());
            let mut snapshot = weir_config::snapshot::Snapshot::clone(&before.snapshot);
            Arc::make_mut(&mut snapshot.pools[0]).members[0].weight = weight;
            let table = before.with_members(Arc::new(snapshot), &[0], &outside());
            let former = Arc::downgrade(&before.pools[0]);
            drop(before);
            bed.data_plane.put_members_in_force(Arc::new(table), &Arc::from([0]));
            // The worker has the members when it answers.
            bed.data_plane.stuck_workers();
            while !bed.data_plane.stuck_workers().is_empty() {
                std::thread::yield_now();
            }
            assert!(former.upgrade().is_none(), "something keeps them");
        }
        let members = &bed.data_plane.table().pools[0].members;
        assert_eq!(members[0].counters.totals().connections_idle, 1);
    }

    /// A confined worker serves unix sockets but cannot open files. Other threads are not restricted.
    #[test]
    fn a_worker_opens_no_file() {
        if let Err(error) = weir_event_loop::confine::version() {
            return weir_testing::skip(&format!("the kernel has no Landlock: {error}"));
        }
        let bed = Bed::new("confined");
        // Clients and members on unix sockets are served.
        get(&mut bed.client());
        let (answer, opened) = std::sync::mpsc::channel();
        bed.data_plane.workers[0].tell(Command::Open("/etc/passwd".into(), answer));
        let refused = opened.recv().unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        std::fs::File::open("/etc/passwd").expect("other threads are not restricted");
    }

    /// A worker without threads for inspections gives long ones a turn in each of its rounds.
    #[test]
    fn long_inspections_are_kept_if_no_thread_takes_them() {
        let mut bed = Bed::new("kept");
        // The worker's queue has no threads, whatever starts.
        bed.data_plane.inspectors = Inspectors::new(1, false).0;
        let first = Arc::clone(bed.data_plane.table());
        let keys = ", waf: { mode: block, checks: off }";
        let guarded = table_with(&bed.directory, &["client"], keys, Some(&first), 1);
        bed.data_plane.put_in_force(guarded);
        // The worker has the table when it answers.
        bed.data_plane.stuck_workers();
        while !bed.data_plane.stuck_workers().is_empty() {
            std::thread::yield_now();
        }
        let body = format!(
            "[\"{}\",\"1' UNION SELECT user, password FROM users--\"]",
            "a word ".repeat(6_000)
        );
        let head = format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut clients: Vec<UnixStream> = (0..3).map(|_| bed.client()).collect();
        for client in &mut clients {
            client.write_all(head.as_bytes()).unwrap();
            client.write_all(body.as_bytes()).unwrap();
        }
        for client in &mut clients {
            let mut answer = [0; 12];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 403");
        }
        let totals = bed.data_plane.counters().totals();
        assert_eq!((totals.waf_inspections_kept, totals.waf_inspections_moved), (3, 0));
        assert_eq!((totals.waf_inspections_away, totals.waf_inspections_lost), (0, 0));
        get(&mut bed.client());
    }

    /// A reload may restore a removed member, so requests of a worker there must end with the worker.
    #[test]
    fn a_panic_leaves_no_request_on_a_member_that_has_gone() {
        let mut bed = Bed::new("gone");
        let silent = bed.directory.join("silent");
        let _listener = UnixListener::bind(&silent).unwrap();
        let first = Arc::clone(bed.data_plane.table());
        let mut snapshot = Snapshot::clone(&first.snapshot);
        Arc::make_mut(&mut snapshot.pools[0]).members[0].address = Address::Unix(silent);
        let second = Arc::new(LiveTable::build(Arc::new(snapshot), Some(&first), 1, &outside()));
        bed.data_plane.put_in_force(Arc::clone(&second));
        let mut client = bed.client();
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let gone = Arc::clone(&second.pools[0].members[0]);
        while gone.occupancy.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        let third = LiveTable::build(Arc::clone(&first.snapshot), Some(&second), 1, &outside());
        bed.data_plane.put_in_force(Arc::new(third));
        bed.data_plane.workers[0].tell(Command::Panic);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
        let Ok(Event::WorkerPanicked { worker: 0, .. }) = bed.events.recv() else {
            panic!("no event of the panic");
        };
        assert_eq!(gone.occupancy.load(Relaxed), 0);
    }

    #[test]
    fn a_worker_that_has_ended_is_given_no_connections() {
        let mut bed = Bed::with_workers("ended", 2);
        assert!(bed.data_plane.let_go_of_ended().is_empty());
        bed.data_plane.workers[0].tell(Command::Stop);
        while !bed.data_plane.workers[0].thread.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(bed.data_plane.let_go_of_ended(), [0]);
        assert!(bed.data_plane.let_go_of_ended().is_empty());
        let names = ["client", "late"];
        let next = table(&bed.directory, &names, Some(bed.data_plane.table()), 2);
        bed.data_plane.prepare(&next.snapshot).unwrap();
        bed.data_plane.put_in_force(next);
        let kept = |sockets: &Vec<Option<OwnedFd>>| {
            sockets.iter().map(Option::is_some).collect::<Vec<bool>>()
        };
        for socket in names {
            assert_eq!(kept(&bed.data_plane.listeners[&bed.address(socket)]), [false, true]);
            for _ in 0..10 {
                get(&mut bed.client_of(socket));
            }
        }
        assert!(!bed.data_plane.is_finished());
    }

    #[test]
    fn a_worker_that_is_stuck_is_found_and_one_without_work_is_not() {
        let mut bed = Bed::with_workers("stuck", 2);
        let (go_on, until) = std::sync::mpsc::channel();
        bed.data_plane.workers[1].tell(Command::Wait(until));
        while bed.data_plane.stuck_workers() != [1] {
            std::thread::yield_now();
        }
        go_on.send(()).unwrap();
        while !bed.data_plane.stuck_workers().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn connections_wait_until_their_listener_is_in_force() {
        let mut bed = Bed::new("prepared");
        let names = ["client", "first", "second"];
        let both = table(&bed.directory, &names, Some(bed.data_plane.table()), 1);
        bed.data_plane.prepare(&both.snapshot).unwrap();
        let [mut first, mut dropped] = ["first", "second"].map(|socket| bed.client_of(socket));
        first.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        // Preparing another table keeps the listener that is in both.
        let one = table(&bed.directory, &names[..2], Some(bed.data_plane.table()), 1);
        bed.data_plane.prepare(&one.snapshot).unwrap();
        assert!(dropped.read(&mut [0; 1]).map_or(true, |length| length == 0));
        assert!(!bed.directory.join("second").exists());
        get(&mut bed.client());
        first.set_nonblocking(true).unwrap();
        let error = first.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "it is not accepted yet");
        first.set_nonblocking(false).unwrap();
        bed.data_plane.put_in_force(one);
        let mut answer = vec![0; ANSWER.len()];
        first.read_exact(&mut answer).unwrap();
        assert_eq!(answer, ANSWER.as_bytes());
        // Abandoned listeners leave no files, and active listeners stay.
        bed.data_plane.prepare(&both.snapshot).unwrap();
        bed.data_plane.abandon();
        assert!(!bed.directory.join("second").exists());
        get(&mut bed.client_of("first"));
    }

    #[test]
    fn a_drained_data_path_ends_when_its_last_client_has_gone() {
        let mut bed = Bed::new("drain");
        let mut client = bed.client();
        get(&mut client);
        bed.data_plane.drain(60_000);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "an idle connection is closed");
        drop(client);
        while !bed.data_plane.is_finished() {
            std::thread::yield_now();
        }
        assert!(UnixStream::connect(bed.directory.join("client")).is_err());
    }

    #[test]
    fn listeners_wait_for_the_command_that_names_them() {
        let bed = Bed::new("between");
        let next = table(&bed.directory, &["client", "late"], Some(bed.data_plane.table()), 1);
        let address = bed.address("late");
        let listener =
            sockets::listen(endpoint(&address.address), 1, ListenOptions::default()).unwrap();
        let worker = &bed.data_plane.workers[0];
        worker.hand_over(&listener[0]);
        // The worker makes a turn, and receives the listener without its command.
        get(&mut bed.client());
        worker.tell(Command::Apply { table: next, added: vec![address], removed: vec![] });
        get(&mut bed.client_of("late"));
    }

    #[test]
    fn a_listener_that_is_lost_on_the_way_is_told_and_takes_no_others_place() {
        let bed = Bed::new("lost");
        let names = ["client", "lost", "found"];
        let next = table(&bed.directory, &names, Some(bed.data_plane.table()), 1);
        let [lost, found] = ["lost", "found"].map(|name| bed.address(name));
        let listener =
            sockets::listen(endpoint(&found.address), 1, ListenOptions::default()).unwrap();
        let worker = &bed.data_plane.workers[0];
        worker.hand_over_nothing();
        worker.hand_over(&listener[0]);
        let added = vec![lost.clone(), found];
        worker.tell(Command::Apply { table: Arc::clone(&next), added, removed: vec![] });
        get(&mut bed.client_of("found"));
        let Ok(Event::SocketFailed { error }) = bed.events.recv() else {
            panic!("no event of the loss");
        };
        assert_eq!(error, format!("listener {lost} was lost"));
        let requests =
            |index: usize| next.virtual_servers[index].counters.totals().connections_accepted;
        assert_eq!((requests(1), requests(2)), (0, 1));
    }
}
