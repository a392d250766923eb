//! Finds rule sets and tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_waf::plan::{Files, RuleSet};

/// Reads files from disk.
struct Disk;

impl Files for Disk {
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String> {
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        let path = folder.join(pattern);
        let Some((before, behind)) = pattern.split_once('*') else {
            let text = path.to_string_lossy().into_owned();
            return if path.is_file() { vec![text] } else { Vec::new() };
        };
        let prefix = folder.join(before).to_string_lossy().into_owned();
        let folder = Path::new(&prefix).parent().unwrap_or(folder).to_owned();
        let mut found: Vec<String> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().to_string_lossy().into_owned())
            .filter(|path| path.starts_with(&prefix) && path.ends_with(behind))
            .collect();
        found.sort();
        found
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| error.to_string())
    }
}

fn shared(variable: &str, name: &str) -> Option<PathBuf> {
    let given = std::env::var_os(variable).map(PathBuf::from);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = given.unwrap_or_else(|| repository.join("../shared").join(name));
    let is_there = found.is_dir();
    if !is_there {
        weir_testing::skip_though_strict(&format!(
            "{} is not there: set {variable}",
            found.display()
        ));
    }
    is_there.then_some(found)
}

/// Compiles the rules of these files.
pub fn compiled(paths: Vec<PathBuf>) -> Arc<RuleSet> {
    let paths: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    match RuleSet::compile(&paths, &mut Disk) {
        Ok(rules) => Arc::new(rules),
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{} problems:\n{}", problems.len(), problems.join("\n"));
        }
    }
}

fn in_order(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of rules")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "conf"))
        .collect();
    found.sort();
    found
}

/// The paths of the files of CRS 4.
pub fn paths() -> Option<Vec<PathBuf>> {
    let folder = shared("WEIR_CRS", "crs4")?;
    let mut paths = vec![folder.join("crs-setup.conf.example")];
    paths.extend(in_order(&folder.join("rules")));
    Some(paths)
}

/// CRS 4, compiled once for all tests.
pub fn rules() -> Option<Arc<RuleSet>> {
    static RULES: OnceLock<Option<Arc<RuleSet>>> = OnceLock::new();
    RULES.get_or_init(|| paths().map(compiled)).clone()
}

/// The folder of CRS's regression tests.
pub fn tests() -> Option<PathBuf> {
    Some(shared("WEIR_CRS_TESTS", "crs4-tests")?.join("tests/regression/tests"))
}

/// CRS 3, from Debian's package.
pub fn debian_rules() -> Option<Arc<RuleSet>> {
    let given = std::env::var_os("WEIR_CRS_DEBIAN").map(PathBuf::from);
    let root = given.unwrap_or_else(|| PathBuf::from("/"));
    let rules = root.join("usr/share/modsecurity-crs/rules");
    if !rules.is_dir() {
        weir_testing::skip("Debian's modsecurity-crs is not installed");
        return None;
    }
    let mut paths = vec![root.join("etc/modsecurity/crs/crs-setup.conf")];
    paths.extend(in_order(&rules));
    Some(compiled(paths))
}
