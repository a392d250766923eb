//! Configurations of several files: how they are joined, and where their mistakes are.

use std::path::{Path, PathBuf};

use weir_config::document::DOCUMENT_BYTES_MAX;
use weir_config::{Colour, render_json, render_text};
use weir_sources::overlay::Overlay;
use weir_sources::{FILES_MAX, Files, Sources, load, parse_bytes};

/// A directory of files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn main(&self) -> PathBuf {
        self.path().join("weir.yaml")
    }

    /// Findings without source lines, and without the directory's name.
    fn told(&self) -> Vec<String> {
        let loaded = load(&self.main());
        let text = render_text(&loaded.diagnostics, Colour::Never);
        let text = text.replace(&format!("{}/", self.path().display()), "");
        let is_line = |line: &&str| !line.starts_with(' ');
        text.lines().filter(is_line).map(str::to_owned).collect()
    }
}

const SERVERS: &str = "virtual_servers:\n  a: { listen: 127.0.0.1:80, pool: one }\n";

#[test]
fn sections_with_names_are_joined() {
    let folder = Folder::new(&[
        (
            "weir.yaml",
            "include: [ more.yaml, conf.d, profiles.yaml ]\nprofiles: { http: { p: { headers_max: 5 } } }\n\
             virtual_servers:\n  a: { listen: 127.0.0.1:80, pool: one, http: p }\n",
        ),
        (
            "more.yaml",
            "pools: { one: { members: [ 10.0.0.1:80 ] } }\nlog: { access: { format: combined } }\n",
        ),
        ("conf.d/20.yaml", "pools: { two: { members: [ 10.0.0.2:80 ] } }\n"),
        (
            "conf.d/10.yaml",
            "virtual_servers:\n  b: { listen: 127.0.0.1:81, pool: two, http: q, compression: c }\n",
        ),
        ("conf.d/.hidden.yaml", "nonsense"),
        ("conf.d/readme.txt", "nonsense"),
        ("conf.d/deeper/30.yaml", "nonsense"),
        (
            "profiles.yaml",
            "profiles: { http: { q: { headers_max: 6 } }, compression: { c: { gzip: { level: 1 } } } }\n",
        ),
    ]);
    assert_eq!(folder.told(), [""; 0]);
    let config = load(&folder.main()).config.expect("a sound configuration");
    let summary = config.summary();
    assert_eq!((summary.virtual_servers, summary.pools, summary.members), (2, 2, 2));
    let files = Files::read(&folder.main());
    let names: Vec<String> =
        files.names().map(|name| name.rsplit('/').next().expect("a name").to_owned()).collect();
    assert_eq!(names, ["weir.yaml", "more.yaml", "10.yaml", "20.yaml", "profiles.yaml"]);
    // One file with the same content is the same configuration.
    let one = Folder::new(&[("weir.yaml", &Sources::new(&files, &Overlay::default()).to_yaml())]);
    let merged = load(&one.main()).config.expect("a sound configuration");
    assert_eq!(merged.changes_from(&config), []);
}

#[test]
fn mistakes_are_told_with_their_files() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(Folder::new(files).told(), expected, "{files:?}");
    };
    let main = |include: &str| format!("include: {include}\n{SERVERS}");
    let one = "pools:\n  one: { members: [ 10.0.0.1:80 ] }\n";
    check(
        &[
            ("weir.yaml", &main("[ a.yaml, b.yaml ]")),
            ("a.yaml", one),
            ("b.yaml", &format!("# twice\n{one}")),
        ],
        &[
            "b.yaml:3:3: error: `pools.one` is given twice; the first is in line 2 of a.yaml",
            "help: keep one of them, or give one another name",
        ],
    );
    check(
        &[
            ("weir.yaml", &main("a.yaml")),
            ("a.yaml", &format!("{one}log: {{}}\ninclude: [ b.yaml ]\n")),
        ],
        &[
            "a.yaml:4:1: error: an included file cannot include others",
            "help: move it to `include` of weir.yaml",
        ],
    );
    check(
        &[
            ("weir.yaml", &format!("{}log: {{ access: {{ format: json }} }}\n", main("a.yaml"))),
            ("a.yaml", &format!("log: {{}}\n{one}profiles: {{ http: {{ x: {{}} }} }}\n")),
        ],
        &[
            "a.yaml:1:1: error: `log` is given twice; the first is in line 4 of weir.yaml",
            "help: keep one of them: only `virtual_servers`, `pools`, `policies`, `data_sets`, `persistence`, \
             `authentication` and `profiles` may be in several files",
        ],
    );
    check(
        &[
            ("weir.yaml", &format!("{}profiles: {{ http: {{ x: {{}} }} }}\n", main("a.yaml"))),
            ("a.yaml", &format!("{one}profiles: {{ http: {{ x: {{}} }} }}\n")),
        ],
        &[
            "a.yaml:3:21: error: `profiles.http.x` is given twice; the first is in line 4 of weir.yaml",
            "help: keep one of them, or give one another name",
        ],
    );
    // A mistake in an included file, and a name of it that another place in another file has.
    check(
        &[
            ("weir.yaml", &main("[ a.yaml, b.yaml ]")),
            ("a.yaml", "pools:\n  one: { balanse: random_two, members: [ 10.0.0.1:80 ] }\n"),
            ("b.yaml", "virtual_servers:\n  b: { listen: 127.0.0.1:80, pool: one }\n"),
        ],
        &[
            "a.yaml:2:10: error: unknown key `balanse` in `pools.one`",
            "help: did you mean `balance`?",
            "b.yaml:2:16: error: `127.0.0.1:80` is used twice: in line 3 of weir.yaml by virtual server `a`",
            "help: give each listener its own address or port",
        ],
    );
    check(
        &[("weir.yaml", &main("[ a.yaml, b.yaml ]")), ("a.yaml", one), ("b.yaml", "- 1\n")],
        &[
            "b.yaml:1:1: error: an included file must be a map of sections",
            "help: write sections as in the file that includes it: `pools:`, …",
        ],
    );
    check(
        &[
            ("weir.yaml", &main("[ a.yaml, b.yaml ]")),
            ("a.yaml", one),
            ("b.yaml", "pools: [ 1 ]\n"),
        ],
        &[
            "b.yaml:1:8: error: `pools` must be a map from names to their settings",
            "help: give it entries, or remove the key",
        ],
    );
    check(
        &[("weir.yaml", &main("[ a.yaml ]")), ("a.yaml", "pools:\n\tx: 1\n")],
        &[
            "a.yaml:2:2: error: not valid YAML: tabs disallowed within this context (block indentation)",
            "help: indent with spaces: YAML does not allow tabs",
        ],
    );
}

#[test]
fn what_is_not_there_is_told_where_it_is_named() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let pools = ("pools.yaml", "pools:\n  one: { members: [ 10.0.0.1:80 ] }\n");
        let files: Vec<_> = files.iter().copied().chain([pools]).collect();
        assert_eq!(Folder::new(&files).told(), expected, "{files:?}");
    };
    let main = |include: &str| format!("include: {include}\n{SERVERS}");
    let relative = "help: a relative path starts at the directory of the file that was given";
    check(
        &[("weir.yaml", &main("[ pools.yaml, none.yaml ]"))],
        &["weir.yaml:1:24: error: cannot open none.yaml: No such file or directory", relative],
    );
    check(
        &[("weir.yaml", &main("[ pools.yaml, empty ]")), ("empty/a.txt", ""), ("empty/b.yml", "")],
        &[
            "weir.yaml:1:24: warning: empty/b.yml is not read",
            "help: of a directory, files are read whose names end in `.yaml`",
            "weir.yaml:1:24: warning: empty has no file *.yaml",
            "help: remove it here, or add files",
        ],
    );
    check(
        &[("weir.yaml", &main("[ pools.yaml, blank.yaml ]")), ("blank.yaml", "# nothing\n")],
        &["blank.yaml:1:1: warning: the file is empty", "help: remove it, or include others"],
    );
    check(
        &[("weir.yaml", &main("[ pools.yaml, ./pools.yaml ]"))],
        &["weir.yaml:1:24: error: ./pools.yaml is included twice", "help: name it once"],
    );
    check(
        &[("weir.yaml", &main("[ pools.yaml, weir.yaml ]"))],
        &[
            "weir.yaml:1:24: error: weir.yaml includes itself",
            "help: put the other files into a directory of their own",
        ],
    );
    check(
        &[("weir.yaml", &main("[ pools.yaml, /dev/null ]"))],
        &[
            "weir.yaml:1:24: error: cannot include /dev/null: it is a device, not a file",
            "help: name a regular file",
        ],
    );
    check(
        &[("weir.yaml", &main("{ a: b }"))],
        &[
            "weir.yaml:1:10: error: `include` must be a path, found a map",
            "weir.yaml:3:36: error: pool `one` is not defined",
            "help: no pool is defined at all",
        ],
    );
    let folder = Folder::new(&[("weir.yaml", &main("[ bytes.yaml ]"))]);
    std::fs::write(folder.path().join("bytes.yaml"), b"a: 1\nb: \xff\n").expect("a file");
    let told = folder.told();
    assert!(
        told.contains(&"bytes.yaml:2:4: error: the byte 0xFF is not UTF-8".to_owned()),
        "{told:?}"
    );
}

#[test]
fn there_are_not_too_many_files() {
    let folder = Folder::new(&[("weir.yaml", &format!("include: many\n{SERVERS}"))]);
    std::fs::create_dir(folder.path().join("many")).expect("a directory");
    for number in 0..FILES_MAX {
        let text = format!("pools: {{ p{number}: {{ members: [ 10.0.0.1:80 ] }} }}\n");
        std::fs::write(folder.path().join(format!("many/{number}.yaml")), text).expect("a file");
    }
    let told = folder.told();
    let expected = "weir.yaml:1:10: error: the configuration has more than 1000 files";
    assert_eq!(told.first().map(String::as_str), Some(expected));
}

/// Lines with passwords are masked in each file, and JSON names the file.
#[test]
fn excerpts_are_of_the_right_file_and_have_no_secrets() {
    let folder = Folder::new(&[
        ("weir.yaml", &format!("include: [ a.yaml ]\n{SERVERS}")),
        (
            "a.yaml",
            "pools:\n  one:\n    members: [ 10.0.0.1:80 ]\n    monitors:\n      - { type: ldap, password: hunter2, x: 1 }\n",
        ),
    ]);
    let loaded = load(&folder.main());
    let text = render_text(&loaded.diagnostics, Colour::Never);
    assert!(text.contains("password: *******, x: 1 }") && !text.contains("hunter2"), "{text}");
    let json = render_json(&loaded.diagnostics);
    let first = &json["diagnostics"][0];
    assert!(first["file"].as_str().expect("a file").ends_with("/a.yaml"), "{json}");
    assert_eq!((&first["line"], &first["pointer"]), (&5.into(), &serde_json::Value::Null));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new(&[]);
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a writable file");
        path
    };
    let named_pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&named_pipe).status();
    assert!(made.expect("coreutils' mkfifo").success());
    let large = usize::try_from(DOCUMENT_BYTES_MAX).expect("64 bits") + 1;
    let cases = [
        (folder.path().join("none.yaml"), "cannot open the file: No such file", None),
        (folder.path().to_owned(), "this is a directory; name a file", None),
        (named_pipe, "this is a named pipe; name a file", None),
        (write("large", &vec![b'#'; large]), "larger than 16 MiB", None),
        (write("utf16", b"\xff\xfea\0"), "UTF-16", None),
        (write("latin1", b"a: 1\nb: \xc3\xa9\xe9"), "the byte 0xE9 is not UTF-8", Some((2, 5))),
    ];
    for (path, message, position) in &cases {
        let loaded = load(path);
        let [finding] = loaded.diagnostics.as_slice() else {
            panic!("one finding: {:?}", loaded.diagnostics);
        };
        assert!(finding.message.contains(message), "{finding:?}");
        let found = finding.position.map(|place| (place.line, place.column));
        assert_eq!(found, *position, "{finding:?}");
        assert_eq!(Path::new(&finding.file), path);
        assert!(loaded.config.is_none());
    }
    let loaded = parse_bytes("-", vec![b'#'; large]);
    assert_eq!(loaded.diagnostics[0].message, "the file is larger than 16 MiB");
}
