//! The file that is read again, and its names: beside everything else, since either may take long.

use std::pin::Pin;

use weir_config::{Config, Diagnostic};

use super::{Supervisor, load};
use crate::logs::Logs;
use crate::own_keys;

/// How far it is.
pub(super) enum Reading {
    /// The file is read and checked.
    File(Task<Loaded>),
    /// Its names are being resolved.
    Names(Box<Config>, Task<()>),
}

type Loaded = Result<Box<Config>, Vec<Diagnostic>>;

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// A step that has ended.
pub(super) enum Read {
    /// The file is read, or has errors.
    File(Loaded),
    /// Its names have answers, or their time is over.
    Names,
}

impl Reading {
    /// Returns when one of its parts has ended; never, if nothing is read. Nothing is lost when it is dropped.
    pub(super) async fn step(reading: &mut Option<Self>) -> Read {
        match reading {
            None => std::future::pending().await,
            Some(Self::File(task)) => Read::File(task.await),
            Some(Self::Names(_, task)) => {
                task.await;
                Read::Names
            }
        }
    }

    /// The configuration whose names are being resolved.
    pub(super) fn config(&self) -> Option<&Config> {
        match self {
            Self::File(_) => None,
            Self::Names(config, _) => Some(config),
        }
    }
}

impl Supervisor {
    /// Begins to read the file again.
    pub(super) fn begin_reading(&mut self) {
        // A log file that was rotated is let go even when the configuration is bad.
        self.logs.reopen(&self.table.snapshot.log);
        self.observed.reloads.begin();
        self.manager.begin_reload();
        let (file, events) = (self.file.clone(), self.events.clone());
        self.reading =
            Some(Reading::File(Box::pin(async move { load(&file, &events).await.map(Box::new) })));
    }

    /// Reads the file again and prepares it, or reports the reason and changes nothing. Returns whether it is prepared.
    pub(super) async fn read_again(&mut self) -> bool {
        self.begin_reading();
        loop {
            let read = Reading::step(&mut self.reading).await;
            if let Some(is_prepared) = self.take_read(read) {
                return is_prepared;
            }
        }
    }

    /// Continues with a file that was read. Returns whether it is prepared; `None`: its names are being resolved.
    pub(super) fn take_read(&mut self, read: Read) -> Option<bool> {
        let reading = self.reading.take();
        match (read, reading) {
            (Read::File(Ok(config)), _) => {
                self.ask_for_names(config);
                None
            }
            (Read::File(Err(diagnostics)), _) => {
                self.events.report(&diagnostics);
                let reason = format!("{} has errors", self.file.display());
                Some(self.refuse(reason, &diagnostics))
            }
            (Read::Names, Some(Reading::Names(config, _))) => Some(self.prepare_read(*config)),
            (Read::Names, _) => None,
        }
    }

    fn ask_for_names(&mut self, config: Box<Config>) {
        // Names of all configurations are followed until it is clear which one stays.
        let waiting = self.next.as_ref().and_then(|next| next.config.as_ref());
        let configs = [Some(&self.config), Some(&*config), waiting];
        let names = configs.into_iter().flatten().flat_map(Config::host_names);
        let answers = self.names.begin(names.map(str::to_owned).collect());
        // Programs are loaded meanwhile.
        let opened = self.packets.begin(&config.snapshot(&self.names.resolutions()));
        let both = async move {
            answers.await;
            if let Some(opened) = opened {
                // In any case it is requested again.
                let _ = opened.await;
            }
        };
        self.reading = Some(Reading::Names(config, Box::pin(both)));
    }

    fn prepare_read(&mut self, config: Config) -> bool {
        let mut snapshot = config.snapshot(&self.names.resolutions());
        if let Err(error) = Logs::check(&snapshot.log, &self.table.snapshot.log) {
            return self.refuse(error, &[]);
        }
        if let Err(error) = own_keys::provide(&mut snapshot) {
            return self.refuse(error, &[]);
        }
        self.upgrading.provide_keys(&mut snapshot);
        match self.prepare_next(snapshot, Some(config)) {
            Ok(()) => {
                self.observed.reloads.prepared();
                true
            }
            Err(error) => self.refuse(error, &[]),
        }
    }
}
