//! The folder of pins: objects that outlive the process, and their removal.

use std::path::{Path, PathBuf};

use aya::maps::MapData;

use crate::attach::pinned_links;
use crate::error::{Error, kernel};
use crate::maps::{PINNED, chain, pin_of};
use crate::options::Options;
use crate::table::buckets_of;
use crate::unpin;

/// The mount point of BPF file systems.
const BPF_FILE_SYSTEM: &str = "/sys/fs/bpf";

/// Maximum length of a packet path's name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Checks whether a name is allowed on a BPF file system.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_fine) {
        return Err(Error::Name {
            what: format!(
                "{name:?} cannot name a packet path: use 1 to {NAME_BYTES_MAX} letters, digits, - and _"
            ),
        });
    }
    Ok(())
}

/// Creates the directory; mounts the BPF file system if it is not mounted, as bpftool does.
pub fn prepare(options: &Options) -> Result<PathBuf, Error> {
    check_name(&options.name)?;
    let folder = options.pins.join(&options.name);
    if options.pins.starts_with(BPF_FILE_SYSTEM) && !is_bpf(Path::new(BPF_FILE_SYSTEM)) {
        mount()?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| {
        if error.kind() == std::io::ErrorKind::PermissionDenied {
            Error::NotPermitted { what: format!("making {}", folder.display()) }
        } else {
            kernel(&format!("making {}", folder.display()), error.to_string())
        }
    })?;
    if !is_bpf(&folder) {
        return Err(kernel(
            "pinning maps",
            format!(
                "{} is on no BPF file system: mount -t bpf bpf {BPF_FILE_SYSTEM}",
                folder.display()
            ),
        ));
    }
    Ok(folder)
}

/// The magic number of a BPF file system.
const BPF_MAGIC: i64 = 0xcafe_4a11;

fn is_bpf(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|it| it.f_type == BPF_MAGIC)
}

fn mount() -> Result<(), Error> {
    use rustix::mount::MountFlags;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
    rustix::mount::mount("bpf", BPF_FILE_SYSTEM, "bpf", flags, None).map_err(|error| match error {
        rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => {
            Error::NotPermitted { what: format!("mounting a BPF file system at {BPF_FILE_SYSTEM}") }
        }
        error => {
            kernel(&format!("mounting a BPF file system at {BPF_FILE_SYSTEM}"), error.to_string())
        }
    })
}

/// Whether the pinned maps equal those that these options would create. Other maps are removed, because flows of
/// another layout or size cannot be read.
pub fn can_take_over(folder: &Path, options: &Options) -> Result<bool, Error> {
    let mut is_whole = true;
    for (name, entries) in
        [("flows", buckets_of(options.flows_max)), ("direct", options.remembered_max)]
    {
        let path = folder.join(pin_of(name));
        is_whole &= path.exists() && {
            let map = MapData::from_pin(&path)
                .map_err(|error| kernel(&format!("opening {}", path.display()), chain(&error)))?;
            let info = map
                .info()
                .map_err(|error| kernel(&format!("reading {}", path.display()), chain(&error)))?;
            info.max_entries() == entries
        };
    }
    is_whole &= PINNED.iter().all(|name| folder.join(pin_of(name)).exists());
    if !is_whole {
        remove_maps(folder)?;
    }
    Ok(is_whole)
}

fn remove_maps(folder: &Path) -> Result<(), Error> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| {
            kernel(&format!("removing {}", path.display()), error.to_string())
        }
    };
    for entry in std::fs::read_dir(folder).map_err(fail(folder))? {
        let path = entry.map_err(fail(folder))?.path();
        if path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("map"))
        {
            std::fs::remove_file(&path).map_err(fail(&path))?;
        }
    }
    Ok(())
}

/// Removes the folder with everything that is pinned in it: links first, so that packets take their normal way before flows
/// are gone.
pub fn remove_all(folder: &Path) -> Result<(), Error> {
    for path in pinned_links(folder)? {
        unpin::detach(&path)
            .map_err(|error| kernel(&format!("detaching {}", path.display()), error.to_string()))?;
    }
    remove_maps(folder)?;
    std::fs::remove_dir(folder)
        .map_err(|error| kernel(&format!("removing {}", folder.display()), error.to_string()))
}

/// Detaches and unpins objects that processes left under `pins`, of `name` or of all. Returns the removed names. It
/// must not run beside a process that uses them.
pub fn detach_leftovers(pins: &Path, name: Option<&str>) -> Result<Vec<String>, Error> {
    if let Some(name) = name {
        check_name(name)?;
    }
    let entries = match std::fs::read_dir(pins) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(Error::NotPermitted { what: format!("reading {}", pins.display()) });
        }
        Err(error) => {
            return Err(kernel(&format!("reading {}", pins.display()), error.to_string()));
        }
    };
    let mut removed = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| kernel(&format!("reading {}", pins.display()), error.to_string()))?
            .path();
        let Some(found) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() && name.is_none_or(|name| name == found) {
            remove_all(&path)?;
            removed.push(found.to_owned());
        }
    }
    removed.sort();
    Ok(removed)
}
