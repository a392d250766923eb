//! The compiled object matches its sources, and both sides of the maps agree.

use std::process::Command;

use weir_packet::Reason;

#[test]
fn the_object_is_what_its_sources_make() {
    let clang = Command::new("clang").arg("--version").output();
    let is_there =
        clang.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("clang version 14."));
    if !is_there || Command::new("llvm-strip").arg("--version").output().is_err() {
        return weir_testing::skip("clang 14 and llvm-strip are not installed");
    }
    let output =
        Command::new("./build").arg("--check").current_dir("bpf").output().expect("bpf/build");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `NotOurs` is `NOT_OURS`.
#[test]
fn reasons_are_in_the_order_of_the_programs() {
    let text = std::fs::read_to_string("bpf/reasons.h").expect("the header");
    let (_, list) = text.split_once("enum reason {").expect("the enum");
    let (list, _) = list.split_once("REASONS,").expect("its end");
    let theirs: Vec<String> = list
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    let ours: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(ours, theirs);
    let dropped =
        ours.iter().position(|name| *name == "denied").expect("the first that is dropped");
    for (place, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(
            reason.verdict() == weir_packet::PacketVerdict::Passed,
            place < dropped,
            "{reason:?}"
        );
    }
}
