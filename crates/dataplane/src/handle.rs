//! How the control plane starts, feeds and stops the data path.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::Address;

use crate::access_log::AccessLog;
use crate::counters::{PerWorker, WorkerCounters};
use crate::live::LiveTable;
use crate::reports::{Event, LogBatch};
use crate::sockets;
use crate::thread::WorkerThread;
use crate::worker::{Command, Setup};

/// What the data path is started with.
#[derive(Debug)]
pub struct Options {
    /// Threads; the table's counters must be laid out for as many.
    pub workers: usize,
    /// Where access log batches go; never waited for.
    pub log: SyncSender<LogBatch>,
    /// Where events go; never waited for.
    pub events: SyncSender<Event>,
}

/// A virtual server's address cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    /// The virtual server.
    pub virtual_server: Arc<str>,
    /// The address.
    pub address: Address,
    /// Why.
    pub error: io::Error,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            virtual_server,
            address,
            error,
        } = self;
        write!(
            formatter,
            "virtual server {virtual_server}: cannot listen on {address}: {error}"
        )
    }
}

impl std::error::Error for BindError {}

/// The data path cannot start.
#[derive(Debug)]
pub enum StartError {
    /// A listener cannot be had.
    Bind(BindError),
    /// A worker thread cannot be started.
    Worker(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(formatter),
            Self::Worker(error) => write!(formatter, "cannot start a worker thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Cores that this process may run on: the default number of workers.
pub fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The running data path.
#[derive(Debug)]
pub struct DataPlane {
    workers: Vec<WorkerThread>,
    /// Duplicates of every listener, in the workers' order: they keep the kernel's queues alive
    /// through a worker's panic.
    listeners: HashMap<Address, Vec<OwnedFd>>,
    table: Arc<LiveTable>,
    counters: Arc<PerWorker<WorkerCounters>>,
}

impl DataPlane {
    /// Binds every listener of the table, starts the workers. On error nothing runs.
    pub fn start(table: Arc<LiveTable>, options: Options) -> Result<Self, StartError> {
        let Options {
            workers,
            log,
            events,
        } = options;
        let listeners = bind(&table, &HashMap::new(), workers).map_err(StartError::Bind)?;
        let counters = Arc::new(PerWorker::new(workers));
        let mut data_plane = Self {
            workers: Vec::with_capacity(workers),
            listeners: HashMap::new(),
            table: Arc::clone(&table),
            counters: Arc::clone(&counters),
        };
        for id in 0..workers {
            let worker = WorkerThread::start(|commands| Setup {
                id,
                table: Arc::clone(&table),
                counters: Arc::clone(&counters),
                log: AccessLog::new(log.clone(), random_id()),
                events: events.clone(),
                commands,
            });
            match worker {
                Ok(worker) => data_plane.workers.push(worker),
                Err(error) => {
                    data_plane.stop();
                    return Err(StartError::Worker(error));
                }
            }
        }
        data_plane.put_in_force(table, listeners);
        Ok(data_plane)
    }

    /// Puts a new table in force: binds what is new, hands it to the workers, closes what is gone.
    /// On error nothing has changed. Listeners that are in both tables are not touched.
    pub fn apply(&mut self, table: Arc<LiveTable>) -> Result<(), BindError> {
        let added = bind(&table, &self.listeners, self.workers.len())?;
        self.put_in_force(table, added);
        Ok(())
    }

    fn put_in_force(&mut self, table: Arc<LiveTable>, added: HashMap<Address, Vec<OwnedFd>>) {
        let kept: HashSet<&Address> = addresses(&table).map(|(_, address)| address).collect();
        let gone = self
            .listeners
            .keys()
            .filter(|address| !kept.contains(address));
        let removed: Vec<Address> = gone.cloned().collect();
        let addresses: Vec<Address> = added.keys().cloned().collect();
        for (index, worker) in self.workers.iter().enumerate() {
            for address in &addresses {
                worker.hand_over(&added[address][index]);
            }
            worker.tell(Command::Apply {
                table: Arc::clone(&table),
                added: addresses.clone(),
                removed: removed.clone(),
            });
        }
        for address in &removed {
            self.listeners.remove(address);
            remove_socket_file(address);
        }
        self.listeners.extend(added);
        self.table = table;
    }

    /// Stops accepting; each worker ends when its last transaction has, at the latest after
    /// `timeout_ms`.
    pub fn drain(&mut self, timeout_ms: u64) {
        self.close_listeners();
        for worker in &self.workers {
            worker.tell(Command::Drain { timeout_ms });
        }
    }

    /// Ends all workers at once.
    pub fn stop(&mut self) {
        self.close_listeners();
        for worker in &self.workers {
            worker.tell(Command::Stop);
        }
    }

    fn close_listeners(&mut self) {
        for (address, _) in self.listeners.drain() {
            remove_socket_file(&address);
        }
    }

    /// Whether all workers have ended.
    pub fn is_finished(&self) -> bool {
        self.workers
            .iter()
            .all(|worker| worker.thread.is_finished())
    }

    /// Waits until all workers have ended.
    pub fn join(self) {
        for worker in self.workers {
            // A panic of a worker was caught and reported by the worker itself.
            let _ = worker.thread.join();
        }
    }

    /// The table in force.
    pub fn table(&self) -> &Arc<LiveTable> {
        &self.table
    }

    /// What the worker threads did.
    pub fn counters(&self) -> &Arc<PerWorker<WorkerCounters>> {
        &self.counters
    }
}

/// Every address that a table listens on, with its virtual server.
fn addresses(table: &LiveTable) -> impl Iterator<Item = (&Arc<str>, &Address)> {
    let servers = table.snapshot.virtual_servers.iter();
    servers.flat_map(|server| server.listen.iter().map(|address| (&server.name, address)))
}

/// Binds the addresses that are not bound yet.
fn bind(
    table: &LiveTable,
    bound: &HashMap<Address, Vec<OwnedFd>>,
    workers: usize,
) -> Result<HashMap<Address, Vec<OwnedFd>>, BindError> {
    let mut added = HashMap::new();
    for (virtual_server, address) in addresses(table) {
        if bound.contains_key(address) {
            continue;
        }
        let sockets = if sockets::is_taken(address) {
            Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process listens there",
            ))
        } else {
            sockets::listen(address, workers)
        };
        let sockets = sockets.map_err(|error| BindError {
            virtual_server: Arc::clone(virtual_server),
            address: address.clone(),
            error,
        })?;
        added.insert(address.clone(), sockets);
    }
    Ok(added)
}

/// A unix socket that nobody serves any more leaves no file behind.
fn remove_socket_file(address: &Address) {
    if let Address::Unix(path) = address {
        // Whoever removed it first did what was wanted.
        let _ = std::fs::remove_file(path);
    }
}

/// Where a worker's request ids start: unlike those of other workers and processes.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let draw = || u128::from(RandomState::new().hash_one(std::process::id()));
    draw() << 64 | draw()
}
