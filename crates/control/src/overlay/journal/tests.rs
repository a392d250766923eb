//! Tests of the journal: incomplete and damaged lines, and rewriting.

use serde_json::json;
use weir_sources::overlay::Change;

use super::super::history::RequestedChanges;
use super::*;

fn overlay(weight: u64) -> Overlay {
    let changes = json!([
        { "op": "set", "path": "/pools/web/members/10.0.0.1:80/weight", "value": weight },
        { "op": "remove", "path": format!("/pools/p{}", weight % 3) },
    ]);
    serde_json::from_value(changes).expect("an overlay")
}

/// The next version of a history, with this overlay.
fn next(history: &History, overlay: &Overlay, confirm_until_unix_ms: Option<u64>) -> Entry {
    let number = history.version() + 1;
    Entry::Version(Arc::new(Version {
        number,
        unix_ms: 1_700_000_000_000 + number,
        author: "alice".into(),
        comment: format!("the {number}. \"change\" – ü"),
        wanted: RequestedChanges::Changes(overlay.changes().map(Change::clone).collect()),
        confirm_until_unix_ms,
        delta: history.overlay().delta(overlay),
    }))
}

/// Appends a version with this overlay.
fn push(journal: &mut Journal, history: &mut History, overlay: &Overlay) {
    let entry = next(history, overlay, None);
    take(history, entry.clone()).expect("it is the next");
    journal.append(&[entry], history).expect("it can be written");
}

fn shown(history: &History) -> (u64, String) {
    (history.version(), serde_json::to_string(history.overlay()).expect("JSON"))
}

#[test]
fn versions_survive() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("a/b");
    let (mut journal, mut history) = Journal::open(&state_dir).unwrap();
    assert_eq!(
        (history.version(), state_dir.exists()),
        (0, false),
        "nothing is made before it is needed"
    );
    for weight in 1..=5 {
        push(&mut journal, &mut history, &overlay(weight));
    }
    let (mut again, mut read) = Journal::open(&state_dir).unwrap();
    assert_eq!(shown(&read), shown(&history));
    assert_eq!(read.get(3), history.get(3));
    assert_eq!(read.overlay_after(2), Some(overlay(2)));
    assert_eq!(read.overlay_after(0), Some(Overlay::default()));
    assert_eq!((read.overlay_after(6), read.get(0), read.get(6)), (None, None, None));
    push(&mut again, &mut read, &overlay(9));
    // `journal` does not know the version that `again` has written.
    let entry = next(&history, &overlay(7), None);
    take(&mut history, entry.clone()).unwrap();
    let error = journal.append(&[entry], &history).unwrap_err();
    assert!(error.to_string().contains("another process has written"), "{error}");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(again.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Whatever part of the last write remains after a crash, earlier versions are intact, and the next one can be written.
#[test]
fn torn_writes_lose_nothing_that_was_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut history) = Journal::open(folder.path()).unwrap();
    let mut ends = vec![0];
    for weight in 1..=4 {
        push(&mut journal, &mut history, &overlay(weight));
        ends.push(usize::try_from(journal.bytes).unwrap());
    }
    let path = journal.path().to_owned();
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        let expected = ends.iter().filter(|end| **end <= cut).count() - 1;
        // After the last complete byte, a disk may contain nothing, zeros, or data of another file.
        for rest in [&b""[..], &[0; 7], b"garbage", b" \n{}\n"] {
            if cut == whole.len() && !rest.is_empty() {
                continue;
            }
            fs::write(&path, [&whole[..cut], rest].concat()).unwrap();
            let (mut journal, mut read) = Journal::open(folder.path()).unwrap();
            assert_eq!(read.version(), expected as u64, "cut at {cut}");
            let is_torn = cut + rest.len() > ends[expected];
            assert_eq!(journal.left_out().is_some(), is_torn, "cut at {cut}");
            assert_eq!(read.overlay_after(read.version()), history.overlay_after(read.version()));
            push(&mut journal, &mut read, &overlay(8));
            assert_eq!(journal.left_out(), None);
            let (_, again) = Journal::open(folder.path()).unwrap();
            assert_eq!(shown(&again), shown(&read), "cut at {cut}");
        }
    }
}

/// A changed byte before complete lines is not an incomplete write. It is reported, and no entry is skipped.
#[test]
fn damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut history) = Journal::open(folder.path()).unwrap();
    for weight in 1..=3 {
        push(&mut journal, &mut history, &overlay(weight));
    }
    let path = journal.path().to_owned();
    let whole = fs::read(&path).unwrap();
    let first_end = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for index in 0..first_end {
        let mut damaged = whole.clone();
        damaged[index] ^= 1;
        fs::write(&path, damaged).unwrap();
        let error = Journal::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is damaged in line 1"), "byte {index}: {error}");
    }
    // A damaged last line is treated as not written.
    let mut damaged = whole.clone();
    let last = damaged.len() - 2;
    damaged[last] ^= 1;
    fs::write(&path, damaged).unwrap();
    let (journal, read) = Journal::open(folder.path()).unwrap();
    assert_eq!(read.version(), 2);
    assert!(journal.left_out().is_some_and(|what| what.contains("are no whole version")));
    // A version is missing between others.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(&path, [lines[0], lines[2], lines[2]].concat()).unwrap();
    assert!(Journal::open(folder.path()).is_err());
}

#[test]
fn what_cannot_be_kept_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let state_dir = file.join("state");
    let opened = Journal::open(&state_dir);
    let error = match opened {
        Err(error) => error,
        Ok((mut journal, history)) => journal.append(&[], &history).unwrap_err(),
    };
    let told = error.to_string();
    assert!(told.contains("overlay.journal") && told.contains("Not a directory"), "{told}");
    // A named pipe is refused without waiting for a writer.
    let pipe = folder.path().join(FILE_NAME);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = Journal::open(folder.path()).unwrap_err().to_string();
    assert!(told.contains("it is a named pipe, not a file"), "{told}");
}

#[test]
fn a_large_file_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut history) = Journal::open(folder.path()).unwrap();
    for weight in 1..=40 {
        push(&mut journal, &mut history, &overlay(weight));
    }
    // A temporary file of a crashed process is replaced.
    fs::write(journal.path().with_extension("journal.new"), "old").unwrap();
    for _ in 0..30 {
        history.forget_oldest();
    }
    journal.rewrite(&history).unwrap();
    let (mut journal, mut read) = Journal::open(folder.path()).unwrap();
    assert_eq!((read.oldest(), read.version(), read.versions().len()), (30, 40, 10));
    assert_eq!(shown(&read), shown(&history));
    assert_eq!(read.overlay_after(30), Some(overlay(30)));
    assert_eq!((read.overlay_after(29), read.get(30)), (None, None));
    push(&mut journal, &mut read, &overlay(41));
    assert_eq!(Journal::open(folder.path()).unwrap().1.version(), 41);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, [FILE_NAME]);
}

/// Whatever a crash leaves of the file that a rewrite makes, the old one is read, and the next rewrite succeeds.
#[test]
fn a_torn_rewrite_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut history) = Journal::open(folder.path()).unwrap();
    for weight in 1..=6 {
        push(&mut journal, &mut history, &overlay(weight));
    }
    let (path, temporary) =
        (journal.path().to_owned(), journal.path().with_extension("journal.new"));
    let old = fs::read(&path).unwrap();
    let mut fewer = history.clone();
    (0..3).for_each(|_| fewer.forget_oldest());
    journal.rewrite(&fewer).unwrap();
    let new = fs::read(&path).unwrap();
    for cut in 0..=new.len() {
        fs::write(&path, &old).unwrap();
        fs::write(&temporary, &new[..cut]).unwrap();
        let (mut journal, read) = Journal::open(folder.path()).unwrap();
        assert_eq!((read.oldest(), shown(&read)), (0, shown(&history)), "cut at {cut}");
        journal.rewrite(&fewer).unwrap();
        assert_eq!((fs::read(&path).unwrap() == new, temporary.exists()), (true, false));
    }
}

#[test]
fn confirmations_survive() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut history) = Journal::open(folder.path()).unwrap();
    let entry = next(&history, &overlay(1), Some(5));
    take(&mut history, entry.clone()).unwrap();
    journal.append(&[entry], &history).unwrap();
    let read = Journal::open(folder.path()).unwrap().1;
    assert_eq!(read.unconfirmed().map(|it| (it.version, it.until_unix_ms)), Some((1, 5)));
    let confirmed = Entry::Confirmed { version: 1, author: "bob".into(), unix_ms: 3 };
    take(&mut history, confirmed.clone()).unwrap();
    journal.append(&[confirmed], &history).unwrap();
    assert_eq!(Journal::open(folder.path()).unwrap().1.unconfirmed(), None);
    journal.rewrite(&history).unwrap();
    assert_eq!(Journal::open(folder.path()).unwrap().1.unconfirmed(), None);
}
