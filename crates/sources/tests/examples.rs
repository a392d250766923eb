//! The examples: each is sound, alone or with the files that it includes.

use std::path::{Path, PathBuf};

use weir_sources::load;

#[test]
fn examples_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).expect("the folder of examples");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let is_example = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml");
    let mut count = 0;
    for path in paths.filter(is_example) {
        count += 1;
        let loaded = load(&path);
        assert_eq!(loaded.diagnostics, [], "{}", path.display());
        assert!(loaded.config.is_some());
    }
    assert!(count >= 3, "{count}");
}
