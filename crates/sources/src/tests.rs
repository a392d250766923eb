//! Tests of sources together.

use std::sync::Arc;

use serde_json::json;
use weir_config::Resolutions;

use super::*;
use crate::overlay::{Change, Pointer};

#[test]
fn documents_have_the_values_of_configurations() {
    let text = "a: [ 5, off, true, \"7\", 1s ]\ninclude: /nowhere.yaml\nb: { c: }\n";
    assert_eq!(
        document("change.yaml", text.into()),
        Ok(
            json!({ "a": [5, "off", true, "7", "1s"], "include": "/nowhere.yaml", "b": { "c": null } })
        )
    );
}

#[test]
fn documents_with_mistakes_have_findings() {
    let check = |text: &[u8], line, expected: &str| {
        let findings = document("change.yaml", text.to_vec()).unwrap_err();
        let Diagnostic { message, file, position, .. } = &findings[0];
        assert_eq!((&**file, position.map(|it| it.line)), ("change.yaml", Some(line)));
        assert!(message.contains(expected), "{message}");
    };
    check(b"", 1, "the document is empty");
    check(b"a: 1\na: 2\n", 2, "a");
    check(b"a: [ 1\n", 2, "not valid YAML");
    check(b"a: \xff\n", 1, "the byte 0xFF is not UTF-8");
}

const MAIN: &str = "include: conf.d\nvirtual_servers: { a: { listen: 127.0.0.1:80, pool: one } }\n";

/// A folder with a main file and others.
fn folder(others: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("conf.d")).expect("a folder");
    let files = others.iter().map(|(name, text)| (format!("conf.d/{name}"), *text));
    for (name, text) in files.chain([("weir.yaml".to_owned(), MAIN)]) {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// The documents of `after` that are the same in memory as in `before`, by the ends of their names.
fn kept(before: &Files, after: &Files) -> Vec<String> {
    let of = |files: &Files| files.places().documents;
    let before = of(before);
    let is_kept = |it: &Arc<_>| before.iter().any(|other| Arc::ptr_eq(it, other));
    let kept = of(after).into_iter().filter(is_kept);
    kept.map(|it| it.name.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

/// The places of errors.
fn places_of(files: &Files) -> Vec<String> {
    let loaded = Sources::new(files, &Overlay::default()).check();
    let place =
        |found: &Diagnostic| found.place().rsplit('/').next().unwrap_or_default().to_owned();
    let errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    errors.map(place).collect()
}

#[test]
fn only_files_that_have_changed_are_parsed_again() {
    let one = "pools:\n  one: { members: [ 10.0.0.1:80 ] }\n";
    let two = "pools:\n  two: { members: [ 10.0.0.2:80 ], unknown: 1 }\n";
    let folder = folder(&[("20.yaml", one), ("30.yaml", two)]);
    let main = folder.path().join("weir.yaml");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join("conf.d").join(name), text).expect("a file");
    };
    let first = Files::read(&main);
    assert_eq!(places_of(&first), ["30.yaml:2:36"]);
    let second = first.read_again(&main);
    assert_eq!(kept(&first, &second), ["weir.yaml", "20.yaml", "30.yaml"]);
    assert_eq!(places_of(&second), places_of(&first));
    // The same length, and perhaps the same time.
    write("20.yaml", "pools:\n  one: { members: [ 10.0.0.9:80 ] }\n");
    let third = second.read_again(&main);
    assert_eq!(kept(&second, &third), ["weir.yaml", "30.yaml"]);
    // A file before the others: findings follow the order of files, and name the right ones.
    write("10.yaml", "pools: { three: { members: [], wrong: 1 } }\n");
    let fourth = third.read_again(&main);
    assert_eq!(kept(&third, &fourth), ["weir.yaml", "20.yaml", "30.yaml"]);
    assert_eq!(places_of(&fourth), ["10.yaml:1:32", "30.yaml:2:36"]);
    let fresh = Files::read(&main);
    let told = |files: &Files| Sources::new(files, &Overlay::default()).check().diagnostics;
    assert_eq!(told(&fourth), told(&fresh));
    // What is gone is forgotten, and what has findings is read again.
    std::fs::remove_file(folder.path().join("conf.d/10.yaml")).expect("a file");
    write("30.yaml", "pools: { two: { members: [] }, two: { members: [] } }\n");
    let fifth = fourth.read_again(&main);
    assert_eq!(kept(&fourth, &fifth), ["weir.yaml", "20.yaml"]);
    assert_eq!(places_of(&fifth), ["30.yaml:1:32"]);
    assert_eq!(kept(&fifth, &fifth.read_again(&main)), ["weir.yaml", "20.yaml"]);
}

/// A check with an overlay leaves the files as they are, although both share their values.
#[test]
fn an_overlay_changes_a_copy() {
    let files = Files::of_text(
        "weir.yaml",
        "virtual_servers: { a: { listen: 127.0.0.1:80, pool: one } }\npools: { one: { members: [ 10.0.0.1:80 ] } }\n",
    );
    let before = Sources::new(&files, &Overlay::default()).to_yaml();
    let path = |text| Pointer::parse(text).expect("a path");
    let changes = [
        Change::Set { path: path("/pools/one/members/10.0.0.1:80/weight"), value: json!(5) },
        Change::Remove { path: path("/virtual_servers/a/listen") },
    ];
    let nothing = Overlay::default();
    let overlay = Sources::new(&files, &nothing).compose(&changes).expect("possible changes");
    let after = Sources::new(&files, &overlay).to_yaml();
    assert!(after.contains("weight: 5") && !after.contains("listen"), "{after}");
    assert_eq!(Sources::new(&files, &Overlay::default()).to_yaml(), before);
}

#[test]
fn a_configuration_that_is_checked_again_has_the_same_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let main = folder.path().join("weir.yaml");
    let text = "virtual_servers:\n  a: { listen: 127.0.0.1:80, pool: a, waf: { mode: block, rules: [ main.conf ] } }\n\
                pools: { a: { members: [] } }\n";
    std::fs::write(&main, text).expect("a file");
    let rules = "SecRule ARGS \"@contains x\" \"id:1,phase:2,deny\"\n";
    std::fs::write(folder.path().join("main.conf"), rules).expect("a file");
    let common = |files: &Files| {
        let config = Sources::new(files, &Overlay::default()).check().config.expect("sound");
        let snapshot = config.snapshot(&Resolutions::default());
        Arc::clone(&snapshot.virtual_servers[0].waf.as_ref().expect("a firewall").common)
    };
    let files = Files::read(&main);
    let first = common(&files);
    assert!(Arc::ptr_eq(&first, &common(&files)));
    assert!(Arc::ptr_eq(&first, &common(&files.read_again(&main))));
    assert!(!Arc::ptr_eq(&first, &common(&Files::read(&main))));
}
