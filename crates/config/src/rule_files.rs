//! Files of the web application firewall's rules on this host: lists, path patterns, and contents.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_waf::builtin;
use weir_waf::exclusion;
use weir_waf::plan::{FILES_MAX, Files};

use crate::file::{self, ReadError};

/// The word for the built-in rules, in place of a path.
pub const BUILTIN: &str = "builtin";

/// Maximum size of a rule file, or of a data file that rules name.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Folders in which packages and administrators install OWASP CRS.
const PLACES: [&str; 6] = [
    "/usr/share/modsecurity-crs",
    "/usr/share/coreruleset",
    "/etc/coreruleset",
    "/opt/coreruleset",
    "/usr/local/share/coreruleset",
    "./coreruleset",
];

/// The folder of Debian's CRS package, and its setup file.
const DEBIAN: &str = "/usr/share/modsecurity-crs";
const DEBIAN_SETUP: &str = "/etc/modsecurity/crs/crs-setup.conf";

/// The folders of this host that contain CRS rules.
pub fn found() -> Vec<PathBuf> {
    PLACES.iter().map(PathBuf::from).filter(|place| place.join("rules").is_dir()).collect()
}

/// The files of a path, in reading order: a file, a CRS folder, or [`BUILTIN`].
pub fn of_path(path: &Path) -> Result<Vec<String>, String> {
    if path == Path::new(BUILTIN) {
        return Ok(builtin::paths());
    }
    match fs::metadata(path) {
        Err(error) => {
            Err(format!("cannot open {}: {}", path.display(), crate::file::without_number(&error)))
        }
        Ok(metadata) if metadata.is_dir() => of_folder(path),
        Ok(_) => Ok(vec![text(path)]),
    }
}

/// Set-up, plugins and rules of a CRS folder, or the files of another folder.
fn of_folder(path: &Path) -> Result<Vec<String>, String> {
    let rules = if path.join("rules").is_dir() { path.join("rules") } else { path.to_owned() };
    let mut own = named(&rules, "", ".conf")?;
    if own.is_empty() {
        return Err(format!("{} has no file *.conf", rules.display()));
    }
    let setup = setup(path).map(|setup| text(&setup));
    own.retain(|file| Some(file) != setup.as_ref());
    let mut files: Vec<String> = setup.into_iter().collect();
    // Plugins are read before and after the rules (CRS 4).
    let plugins = path.join("plugins");
    let of_plugins = |end| match plugins.is_dir() {
        true => named(&plugins, "", end),
        false => Ok(Vec::new()),
    };
    files.extend(of_plugins("-config.conf")?);
    files.extend(of_plugins("-before.conf")?);
    files.extend(own);
    files.extend(of_plugins("-after.conf")?);
    Ok(files)
}

/// The set-up file of a CRS folder.
fn setup(path: &Path) -> Option<PathBuf> {
    let of_debian = path.starts_with(DEBIAN).then(|| PathBuf::from(DEBIAN_SETUP));
    let own = path.join("crs-setup.conf");
    let setups = [Some(own), of_debian, Some(path.join("crs-setup.conf.example"))];
    setups.into_iter().flatten().find(|setup| setup.is_file())
}

/// The files of a folder whose names have this prefix and suffix, sorted by name; at most one more than the maximum.
fn named(folder: &Path, before: &str, behind: &str) -> Result<Vec<String>, String> {
    list(folder, before, behind).map_err(|error| {
        format!(
            "cannot read the directory {}: {}",
            folder.display(),
            crate::file::without_number(&error)
        )
    })
}

fn list(folder: &Path, before: &str, behind: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    // An empty path is the folder of this process.
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in fs::read_dir(here)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_meant = name.len() >= before.len() + behind.len()
            && name.starts_with(before)
            && name.ends_with(behind);
        let path = folder.join(&*name);
        // A broken link is not skipped silently.
        if is_meant && !path.is_dir() {
            found.push(text(&path));
        }
        if found.len() > FILES_MAX {
            break;
        }
    }
    found.sort();
    Ok(found)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads rule files of this host within limits on size and time, and the built-in rule files.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// A file was not read in time. Further files are not read.
    pub is_late: bool,
    /// The files that were read, and fingerprints of their contents.
    pub read: BTreeMap<String, u64>,
    /// Rules for the exclusions of the configuration, as the content of [`exclusion::FILE`].
    pub exclusions: Option<String>,
}

impl Files for Disk {
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String> {
        let own = builtin::files().find(beside, pattern);
        if !own.is_empty() {
            return own;
        }
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        let path = folder.join(pattern);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some((before, behind)) = name.as_deref().and_then(|name| name.split_once('*')) else {
            // A star in a folder's name is not supported either.
            let is_there = path.is_file() || pattern.contains('*');
            return if is_there { vec![text(&path)] } else { Vec::new() };
        };
        // Only one `*` in the name is supported. Other patterns are taken for file names, so the error is "no such
        // file".
        let is_other = pattern.contains(['?', '[']) || pattern.matches('*').count() > 1;
        if is_other {
            return vec![text(&path)];
        }
        let parent = path.parent().unwrap_or(folder);
        match list(parent, before, behind) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            // Reading the folder reports the reason.
            Err(_) => vec![text(parent)],
        }
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        if let Some(rules) = self.exclusions.as_ref().filter(|_| path == exclusion::FILE) {
            return Ok(rules.clone().into_bytes());
        }
        if let Ok(bytes) = builtin::files().read(path) {
            return Ok(bytes);
        }
        if self.is_late {
            return Err("another file was not read in time".into());
        }
        let read = file::read(Path::new(path), FILE_BYTES_MAX);
        if let Ok(bytes) = &read {
            self.read.insert(path.to_owned(), file::fingerprint(bytes));
        }
        read.map_err(|error| {
            self.is_late = matches!(error, ReadError::Late);
            match error {
                ReadError::Open(error) | ReadError::Read(error) => {
                    crate::file::without_number(&error)
                }
                ReadError::TooLarge => format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20),
                other => other.to_string(),
            }
        })
    }
}
