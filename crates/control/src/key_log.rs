//! A log of TLS session secrets, to decrypt recorded traffic: `weir run --tls-key-log`.
//!
//! Each line contains one secret, in the NSS key log format (`SSLKEYLOGFILE`), which Wireshark and others read. A thread
//! writes the lines, because workers do not share its descriptors. If its queue is full, lines are dropped, as in other
//! logs. Everyone who can read the file can decrypt the traffic, so only the owner can read it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use weir_config::snapshot::Snapshot;
use weir_event_loop::error_text::io_error_text;

use crate::events::Events;

/// Maximum number of lines that wait to be written.
const LINES_WAITING_MAX: usize = 4_096;
/// The mode of the file: readable only by its owner.
const MODE: u32 = 0o600;

/// The log that receives the secrets of all sessions.
#[derive(Debug, Clone)]
pub struct KeyLog(Arc<Lines>);

#[derive(Debug)]
struct Lines(SyncSender<String>);

impl KeyLog {
    /// Opens the file for appending, and starts the writing thread.
    pub fn start(path: &Path, events: &Events) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path)?;
        // An existing file may have another mode. Pipes and devices keep their mode.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(MODE))?;
        }
        let (sender, waiting) = sync_channel(LINES_WAITING_MAX);
        let (events, shown) = (events.clone(), path.display().to_string());
        thread::Builder::new()
            .name("weir-key-log".into())
            .spawn(move || write_lines(file, &waiting, &events, &shown))?;
        Ok(Self(Arc::new(Lines(sender))))
    }

    /// Sets this log in all virtual servers and pools of the snapshot.
    pub fn listen_to(&self, snapshot: &mut Snapshot) {
        for tls in snapshot.virtual_servers.iter_mut().filter_map(|server| server.tls.as_mut()) {
            let tls = Arc::make_mut(tls);
            let names = tls.names.iter_mut().map(|names| &mut names.offer);
            for offer in names.chain([&mut tls.default]) {
                Arc::make_mut(&mut offer.config).key_log = Arc::clone(&self.0) as _;
            }
        }
        for pool in snapshot.pools.iter_mut().filter(|pool| pool.tls.is_some()) {
            let Some(tls) = &mut Arc::make_mut(pool).tls else { continue };
            let config = &mut Arc::make_mut(tls).config;
            Arc::make_mut(config).key_log = Arc::clone(&self.0) as _;
        }
    }
}

fn write_lines(mut file: File, waiting: &Receiver<String>, events: &Events, shown: &str) {
    let mut is_broken = false;
    for line in waiting {
        match file.write_all(line.as_bytes()) {
            Ok(()) => is_broken = false,
            Err(error) if !is_broken => {
                is_broken = true;
                let error = io_error_text(&error);
                events.error("TLS key log", format_args!("cannot write to {shown}: {error}"));
            }
            Err(_) => {}
        }
    }
}

impl weir_tls::KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", hexadecimal(client_random), hexadecimal(secret));
        let _ = self.0.try_send(line);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use weir_tls::KeyLog as _;

    use super::*;

    #[test]
    fn lines_are_appended_for_the_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        std::fs::write(&path, "before\n").expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
        let (events, _) = crate::events::testing::Captured::new();
        let log = KeyLog::start(&path, &events).expect("a log");
        log.0.log("CLIENT_RANDOM", &[0, 0xab], &[0x12, 0xff]);
        let begun = Instant::now();
        let expected = "before\nCLIENT_RANDOM 00ab 12ff\n";
        while std::fs::read_to_string(&path).expect("text") != expected {
            assert!(begun.elapsed() < Duration::from_secs(10), "not written");
            thread::sleep(Duration::from_millis(5));
        }
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        assert!(KeyLog::start(&folder.path().join("none/keys"), &events).is_err());
    }
}
