//! State that a process has left in the kernel, because it crashed or was configured to keep its flows.

use std::path::Path;

use super::lock::{self, Lock, LockState};

/// The packet paths in the kernel that were examined, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DetachedPaths {
    /// Names of removed packet paths.
    pub removed: Vec<String>,
    /// Names that a running process uses.
    pub in_use: Vec<String>,
}

/// Removes the state that a process has left in the kernel: under all names, or under one. The state of a running process
/// stays: without `name` it is skipped; with its name it is an error.
pub fn detach_leftovers(name: Option<&str>) -> Result<DetachedPaths, String> {
    detach_in(Path::new(lock::PINS), name)
}

fn detach_in(pins: &Path, name: Option<&str>) -> Result<DetachedPaths, String> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => left_names(pins)?,
    };
    let mut detached = DetachedPaths::default();
    for left in names {
        // The lock is held until the directory is removed.
        let _lock = match Lock::take_present(pins, &left)? {
            LockState::Absent => continue,
            LockState::InUse if name.is_some() => return Err(lock::in_use(&left)),
            LockState::InUse => {
                detached.in_use.push(left);
                continue;
            }
            LockState::Taken(lock) => lock,
        };
        let found = weir_packet::detach_leftovers(pins, Some(&left));
        detached.removed.extend(found.map_err(|error| error.to_string())?);
    }
    Ok(detached)
}

/// The state of a former process under the name of a packet path whose virtual servers this process serves by sockets. Its
/// programs would intercept the packets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    /// There is no state, or a running process uses it.
    None,
    /// The state was removed.
    Removed,
    /// The state could not be removed.
    Stays(String),
}

/// Removes the state under this name.
pub(super) fn remove(pins: &Path, name: &str) -> Leftover {
    // The lock is held until the directory is removed.
    let _lock = match Lock::take_present(pins, name) {
        Ok(LockState::Absent | LockState::InUse) => return Leftover::None,
        Ok(LockState::Taken(lock)) => lock,
        Err(error) => return Leftover::Stays(error),
    };
    match weir_packet::detach_leftovers(pins, Some(name)) {
        Ok(_) => Leftover::Removed,
        Err(error) => Leftover::Stays(error.to_string()),
    }
}

/// Names of packet paths without a running process. Names that cannot be checked are omitted.
pub(super) fn abandoned(pins: &Path) -> Vec<String> {
    let is_abandoned =
        |name: &String| matches!(Lock::take_present(pins, name), Ok(LockState::Taken(_)));
    left_names(pins).unwrap_or_default().into_iter().filter(is_abandoned).collect()
}

/// Names of the packet paths in the kernel, with or without a running process.
fn left_names(pins: &Path) -> Result<Vec<String>, String> {
    let entries = match std::fs::read_dir(pins) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", pins.display())),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_packets_from_sockets_is_removed_or_told() {
        let pins = std::env::temp_dir().join(format!("weir-leftover-{}", std::process::id()));
        std::fs::create_dir_all(pins.join("a")).unwrap();
        assert_eq!(remove(&pins, "b"), Leftover::None);
        let held = Lock::take_present(&pins, "a").unwrap();
        assert_eq!(remove(&pins, "a"), Leftover::None);
        assert!(abandoned(&pins).is_empty());
        drop(held);
        assert_eq!(abandoned(&pins), ["a"]);
        assert_eq!(remove(&pins, "a"), Leftover::Removed);
        assert_eq!(remove(&pins, "a"), Leftover::None);
        std::fs::remove_dir(&pins).unwrap();
    }

    #[test]
    fn what_a_process_has_is_passed_over_and_the_rest_removed() {
        let pins = std::env::temp_dir().join(format!("weir-leftovers-{}", std::process::id()));
        for name in ["a", "b", "c"] {
            std::fs::create_dir_all(pins.join(name)).unwrap();
        }
        let held = Lock::take_present(&pins, "b").unwrap();
        assert!(matches!(held, LockState::Taken(_)));
        let error = detach_in(&pins, Some("b")).unwrap_err();
        assert_eq!(error, "another process has the packet path `b`");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let detached = DetachedPaths { removed: names(&["a", "c"]), in_use: names(&["b"]) };
        assert_eq!(detach_in(&pins, None), Ok(detached));
        drop(held);
        let detached = DetachedPaths { removed: names(&["b"]), in_use: names(&[]) };
        assert_eq!(detach_in(&pins, None), Ok(detached));
        assert_eq!(detach_in(&pins, Some("b")), Ok(DetachedPaths::default()));
        std::fs::remove_dir(&pins).unwrap();
    }
}
