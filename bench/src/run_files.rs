//! The files of a run's folder: `run.json`, and the record of each test in a file of its own.
//!
//! `run.json` is a [`Run`] whose `tests` are names only. So a test that ends is written once, and no file of a long run is too large
//! to look at.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::record::{Run, TestRecord};

/// Name of the file with everything but the records of the tests.
pub const FILE_NAME: &str = "run.json";
/// Name of the folder with the records of the tests.
const TESTS: &str = "tests";

/// The file with the record of a test.
pub fn test_file(run_folder: &Path, test: &str) -> PathBuf {
    run_folder.join(TESTS).join(format!("{test}.json"))
}

/// Writes a whole run.
pub fn write(run_folder: &Path, run: &Run) -> io::Result<()> {
    run.tests.iter().try_for_each(|test| write_test(run_folder, test))?;
    write_head(run_folder, run)
}

/// Writes the record of a test. The run has it as soon as [`write_head`] has listed it.
pub fn write_test(run_folder: &Path, test: &TestRecord) -> io::Result<()> {
    fs::create_dir_all(run_folder.join(TESTS))?;
    replace(&test_file(run_folder, &test.name), &serde_json::to_vec(test)?)
}

/// Writes [`FILE_NAME`].
pub fn write_head(run_folder: &Path, run: &Run) -> io::Result<()> {
    let names: Vec<&str> = run.tests.iter().map(|test| test.name.as_str()).collect();
    let text = serde_json::to_vec_pretty(&run.with_tests(names))?;
    replace(&run_folder.join(FILE_NAME), &text)
}

/// Replaces a file. A reader sees the old file or the complete new one, never a part.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("json.draft");
    let mut file = File::create(&draft)?;
    file.write_all(text)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of a file of the runs that the repository keeps.
    const KEPT_BYTES_MAX: u64 = 256 << 10;

    fn too_large(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, kind) = (entry.path(), entry.metadata().expect("its kind"));
            let is_report = path.ends_with(crate::report::HTML_FILE);
            if kind.is_dir() {
                too_large(&path, found);
            } else if kind.len() > KEPT_BYTES_MAX && !is_report {
                found.push(path);
            }
        }
    }

    #[test]
    fn no_file_of_the_kept_runs_is_large() {
        let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs");
        let mut found = Vec::new();
        too_large(&runs, &mut found);
        assert_eq!(found, [""; 0].map(PathBuf::from), "keep a part of them, or less often");
    }
}
