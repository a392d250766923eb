//! Attack strings, and harmless strings that resemble them.

use std::fs;
use std::path::{Path, PathBuf};

/// Debug builds test one in this many strings, because all strings take minutes there.
const SAMPLE: usize = if cfg!(debug_assertions) { 23 } else { 1 };

/// The strings of one kind of attack.
#[derive(Debug)]
pub struct Category {
    pub name: String,
    pub attacks: Vec<Vec<u8>>,
    pub harmless: Vec<Vec<u8>>,
}

/// All kinds, sorted by name; `None`: the collection is missing.
pub fn read() -> Option<Vec<Category>> {
    let given = std::env::var_os("WEIR_CORPORA").map(PathBuf::from);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = given.unwrap_or_else(|| repository.join("../shared/corpora"));
    let folder = root.join("mgm/nuclei/payloads");
    let Ok(entries) = fs::read_dir(&folder) else {
        weir_testing::skip_though_strict(&format!(
            "{} is not there: set WEIR_CORPORA",
            folder.display()
        ));
        return None;
    };
    let mut found: Vec<Category> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| Category {
            name: entry.file_name().to_string_lossy().into_owned(),
            attacks: lines(&entry.path().join("true-positives.txt"), SAMPLE),
            harmless: lines(&entry.path().join("false-positives.txt"), 1),
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Some(found)
}

fn lines(path: &Path, step: usize) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = bytes.split(|byte| *byte == b'\n').map(|it| it.strip_suffix(b"\r").unwrap_or(it));
    lines.filter(|line| !line.is_empty()).step_by(step).map(<[u8]>::to_vec).collect()
}
