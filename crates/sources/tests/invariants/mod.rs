//! Invariants for any files and any overlay, for tests and for the fuzzer.

use weir_config::{Colour, render_json, render_text};
use weir_sources::overlay::{Change, Overlay};
use weir_sources::{Files, Sources};

/// Between a file and a list of changes in JSON.
pub const DIVIDER: &str = "\n%%\n";

/// For any text and changes: possible changes make one overlay; stored and read again, it is the same; and the merged
/// file is the same configuration.
pub fn overlay(input: &str) {
    let (text, changes) = input.split_once(DIVIDER).unwrap_or((input, "[]"));
    let files = Files::of_text("weir.yaml", text);
    let changes: Vec<Change> = serde_json::from_str(changes).unwrap_or_default();
    let mut overlay = Overlay::default();
    for change in &changes {
        match Sources::new(&files, &overlay).compose(std::slice::from_ref(change)) {
            Ok(composed) => overlay = composed,
            Err(wrong) => {
                assert!(!wrong.is_empty(), "{change:?}");
                render_text(&wrong, Colour::Never);
                render_json(&wrong);
            }
        }
    }
    let stored = serde_json::to_string(&overlay).expect("JSON");
    assert_eq!(serde_json::from_str::<Overlay>(&stored).expect(&stored), overlay);
    assert_eq!(Sources::new(&files, &overlay).differences().len(), overlay.len());
    for change in overlay.changes() {
        change.concealed();
        let again = Sources::new(&files, &overlay).compose(std::slice::from_ref(change));
        assert!(again.is_err() || again.as_ref() == Ok(&overlay), "{change:?}: {again:?}");
    }
    let loaded = Sources::new(&files, &overlay).check();
    let Some(config) = loaded.config else { return };
    let merged = Sources::new(&files, &overlay).to_yaml();
    let one = Files::of_text("weir.yaml", &merged);
    let nothing = Overlay::default();
    let one = Sources::new(&one, &nothing);
    assert_eq!(one.to_yaml(), merged);
    let again = one.check();
    let told = render_text(&again.diagnostics, Colour::Never);
    let again = again.config.unwrap_or_else(|| panic!("{told}\n{merged}"));
    let changes = again.changes_from(&config);
    assert_eq!(changes, [], "{merged}");
}
