//! What processes left in the kernel that crashed, or were told to keep their flows.

use std::path::Path;

use super::lock::{self, Lock, Present};

/// What became of packet paths that were in the kernel, by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Detached {
    /// Those that were removed.
    pub removed: Vec<String>,
    /// Those that a running process has.
    pub in_use: Vec<String>,
}

/// Removes what a process left in the kernel; of all names if none is given. What a running process has stays: of all names it is
/// passed over, by its own name it is an error.
pub fn detach_leftovers(name: Option<&str>) -> Result<Detached, String> {
    detach_in(Path::new(lock::PINS), name)
}

fn detach_in(pins: &Path, name: Option<&str>) -> Result<Detached, String> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => left_names(pins)?,
    };
    let mut detached = Detached::default();
    for left in names {
        // It is held until the folder is gone.
        let _lock = match Lock::take_present(pins, &left)? {
            Present::Absent => continue,
            Present::InUse if name.is_some() => return Err(lock::in_use(&left)),
            Present::InUse => {
                detached.in_use.push(left);
                continue;
            }
            Present::Taken(lock) => lock,
        };
        let found = weir_packet::detach_leftovers(pins, Some(&left));
        detached.removed.extend(found.map_err(|error| error.to_string())?);
    }
    Ok(detached)
}

/// Names of packet paths that are in the kernel, a running process' or not.
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
    fn what_a_process_has_is_passed_over_and_the_rest_removed() {
        let pins = std::env::temp_dir().join(format!("weir-leftovers-{}", std::process::id()));
        for name in ["a", "b", "c"] {
            std::fs::create_dir_all(pins.join(name)).unwrap();
        }
        let held = Lock::take_present(&pins, "b").unwrap();
        assert!(matches!(held, Present::Taken(_)));
        let error = detach_in(&pins, Some("b")).unwrap_err();
        assert_eq!(error, "another process has the packet path `b`");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let detached = Detached { removed: names(&["a", "c"]), in_use: names(&["b"]) };
        assert_eq!(detach_in(&pins, None), Ok(detached));
        drop(held);
        let detached = Detached { removed: names(&["b"]), in_use: names(&[]) };
        assert_eq!(detach_in(&pins, None), Ok(detached));
        assert_eq!(detach_in(&pins, Some("b")), Ok(Detached::default()));
        std::fs::remove_dir(&pins).unwrap();
    }
}
