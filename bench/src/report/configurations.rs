//! The configurations that the runner kept, in `RUN/configurations/<test>/<product>/<file>`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::source::visible;

/// The folder in a run's folder.
pub const FOLDER: &str = "configurations";

/// Maximum number of bytes shown of a file.
pub const FILE_BYTES_MAX: u64 = 256 << 10;

/// Maximum number of files shown. Further files are only counted.
pub const FILES_MAX: usize = 4_000;

/// A configuration. Tests with the same text share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The product.
    pub product: String,
    /// The file's name.
    pub file: String,
    /// The text of the file.
    pub text: String,
    /// Whether the text ends at [`FILE_BYTES_MAX`].
    pub is_cut: bool,
    /// The tests that used it.
    pub tests: Vec<String>,
}

/// The kept configurations of a run.
#[derive(Debug, Default)]
pub struct KeptConfigurations {
    /// The configurations, sorted by product and file.
    pub configurations: Vec<Configuration>,
    /// Number of files beyond [`FILES_MAX`].
    pub left_out: usize,
}

/// Reads the kept configurations of a run; the result is empty if there are none. `rank` orders tests and products.
pub fn read(run_folder: &Path, rank: impl Fn(&str) -> usize) -> io::Result<KeptConfigurations> {
    let root = run_folder.join(FOLDER);
    let mut kept = KeptConfigurations::default();
    let mut by_content: BTreeMap<(usize, String, String, String), Configuration> = BTreeMap::new();
    let mut files_read = 0;
    let mut tests = folders(&root)?;
    tests.sort_by_key(|(name, _)| (rank(name), name.clone()));
    for (test, folder) in tests {
        for (product, folder) in folders(&folder)? {
            for (file, path) in entries(&folder, fs::FileType::is_file)? {
                if files_read == FILES_MAX {
                    kept.left_out += 1;
                    continue;
                }
                files_read += 1;
                let (text, is_cut) = read_text(&path)?;
                let place = (rank(&product), product.clone(), file.clone(), text.clone());
                let configuration = by_content.entry(place).or_insert_with(|| Configuration {
                    product: product.clone(),
                    file,
                    text,
                    is_cut,
                    tests: Vec::new(),
                });
                configuration.tests.push(test.clone());
            }
        }
    }
    kept.configurations = by_content.into_values().collect();
    Ok(kept)
}

fn read_text(path: &Path) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > FILE_BYTES_MAX;
    bytes.truncate(FILE_BYTES_MAX as usize);
    Ok((visible(&String::from_utf8_lossy(&bytes)), is_cut))
}

fn folders(path: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    entries(path, fs::FileType::is_dir)
}

/// Entries of one kind, sorted by name. Symbolic links are skipped: a report must not publish other files.
fn entries(
    path: &Path,
    is_wanted: impl Fn(&fs::FileType) -> bool,
) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if is_wanted(&entry.file_type()?) {
            found.push((visible(&entry.file_name().to_string_lossy()), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_ones_are_shown_once_and_links_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(FOLDER).join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        write("a/nginx/nginx.conf", "one");
        write("b/nginx/nginx.conf", "one");
        write("c/nginx/nginx.conf", "two");
        write("a/weir/weir.yaml", "long".repeat(100_000).as_str());
        let link = folder.path().join(FOLDER).join("a/nginx/link.conf");
        std::os::unix::fs::symlink("/etc/passwd", link).expect("a link");

        let kept = read(folder.path(), |name| usize::from(name != "weir")).expect("configurations");
        let found: Vec<_> = kept
            .configurations
            .iter()
            .map(|c| (c.product.as_str(), c.tests.join(" "), c.text.len(), c.is_cut))
            .collect();
        let cut = FILE_BYTES_MAX as usize;
        assert_eq!(
            found,
            [
                ("weir", "a".to_owned(), cut, true),
                ("nginx", "a b".to_owned(), 3, false),
                ("nginx", "c".to_owned(), 3, false)
            ]
        );
    }

    #[test]
    fn a_run_may_have_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path(), |_| 0).expect("nothing").configurations.is_empty());
    }
}
