//! Configurations with `waf`, and folders with rules.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use weir_config::snapshot::VirtualServer;
use weir_config::{Diagnostic, LoadResult, Resolutions, parse};

/// A valid file with one virtual server, to which lines are added; the first is line 5. `rest`
/// follows it.
pub fn file(lines: &str, rest: &str) -> String {
    format!(
        "virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n    pool: p\n    {lines}\n{rest}\
         pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
    )
}

/// The virtual server of a file without findings.
#[track_caller]
pub fn virtual_server(lines: &str, rest: &str) -> VirtualServer {
    all(&file(lines, rest)).remove(0)
}

#[track_caller]
pub fn server(lines: &str) -> VirtualServer {
    virtual_server(lines, "")
}

/// A file with many virtual servers.
pub fn many(count: usize, lines: impl Fn(usize) -> String, rest: &str) -> String {
    let mut text = "virtual_servers:\n".to_owned();
    for index in 0..count {
        let (port, lines) = (1_000 + index, lines(index));
        writeln!(text, "  s{index}: {{ listen: 127.0.0.1:{port}, pool: p, {lines} }}")
            .expect("a String takes all");
    }
    text + rest + "pools: { p: { members: [ 127.0.0.1:9001 ] } }\n"
}

#[track_caller]
pub fn servers(count: usize, lines: impl Fn(usize) -> String, rest: &str) -> Vec<VirtualServer> {
    all(&many(count, lines, rest))
}

#[track_caller]
fn all(text: &str) -> Vec<VirtualServer> {
    let loaded = parse("weir.yaml", text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    loaded.config.expect("a configuration").snapshot(&Resolutions::new()).virtual_servers.clone()
}

/// `SEVERITY LINE:COLUMN MESSAGE -> SUGGESTION`.
fn show(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.position.map(|place| format!("{}:{}", place.line, place.column));
    let suggestion = diagnostic.suggestion.as_deref().unwrap_or("-");
    let (word, place) = (diagnostic.severity.word(), place.unwrap_or_default());
    format!("{word} {place} {} -> {suggestion}", diagnostic.message)
}

pub fn findings(name: &str, text: &str) -> Vec<String> {
    parse(name, text).diagnostics.iter().map(show).collect()
}

/// Exactly these findings.
#[track_caller]
pub fn check(lines: &str, rest: &str, expected: &[&str]) {
    let text = file(lines, rest);
    assert_eq!(findings("weir.yaml", &text), expected, "\n{text}");
}

/// A folder with rules, and a configuration in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.add("", files);
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn add(&self, under: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.path().join(under).join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }

    pub fn load(&self, lines: &str, rest: &str) -> LoadResult {
        let name = self.path().join("weir.yaml").display().to_string();
        parse(&name, &file(lines, rest))
    }

    /// The findings, with paths relative to the folder.
    pub fn findings(&self, lines: &str) -> Vec<String> {
        let here = format!("{}/", self.path().display());
        let loaded = self.load(lines, "");
        loaded.diagnostics.iter().map(|it| show(it).replace(&here, "")).collect()
    }

    #[track_caller]
    pub fn check(&self, lines: &str, expected: &[&str]) {
        assert_eq!(self.findings(lines), expected, "\n{lines}");
    }
}
