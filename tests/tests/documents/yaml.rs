//! Every YAML block of every document goes through `weir check`.
//!
//! A block need not be a whole configuration. What it leaves out is added: a virtual server, pools, files, other named
//! parts. What it has must be right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use weir_tests::proxy::weir_binary;
use weir_tests::repository::{expect_none, files, read, root};
use weir_tests::temp::TempDir;

/// Blocks for other programs begin with these keys.
const OTHERS: &[&str] = &["groups:"];

/// Where a block belongs that begins with a key that is not one of the configuration.
const WITHIN: &[(&str, &[&str])] = &[
    ("tls:", &["virtual_servers", "example"]),
    ("waf:", &["virtual_servers", "example"]),
    ("client_certificates:", &["virtual_servers", "example", "tls"]),
    ("resumption:", &["virtual_servers", "example", "tls"]),
    ("- when:", &["policies", "example", "rules"]),
];

/// What the virtual server and its TLS of [`WITHIN`] need beside the block.
const BESIDE: &[(&str, &str)] = &[
    ("example", "listen: 127.0.0.1:8080\n    pool: web"),
    ("tls", "certificates: [ { cert: shop.crt, key: shop.key } ]"),
];

/// Documents whose first block passes as it is, without any addition: readers begin with it.
const FIRST_IS_WHOLE: &[&str] = &[
    "docs/compression.md",
    "docs/configuration.md",
    "docs/first-minutes.md",
    "docs/layer-4.md",
    "docs/rollouts.md",
    "docs/traffic-management.md",
    "docs/udp.md",
    "docs/waf.md",
];

/// Rounds in which missing parts are added.
const ROUNDS_MAX: usize = 20;

/// A YAML block, without its indentation.
struct Block {
    place: String,
    text: String,
}

fn blocks(path: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        match &mut open {
            None if bare.starts_with("```yaml") || bare.starts_with("```yml") => {
                let place = format!("{path}:{number}");
                open = Some((indent, Block { place, text: String::new() }));
            }
            None => {}
            Some(_) if bare == "```" => blocks.extend(open.take().map(|(_, block)| block)),
            Some((indent, block)) => {
                block.text.push_str(line.get(*indent..).unwrap_or_default());
                block.text.push('\n');
            }
        }
    }
    blocks
}

/// The block, moved to the place where it belongs.
fn placed(text: &str) -> String {
    let first = text.lines().find(|line| !line.trim_start().starts_with('#')).unwrap_or_default();
    let bare = first.trim_start();
    let within = WITHIN.iter().find(|(key, _)| bare.starts_with(key)).map(|(_, path)| *path);
    let Some(path) = within else { return text.to_owned() };
    let indent = first.len() - bare.len();
    let mut placed = String::new();
    for (depth, key) in path.iter().enumerate() {
        let _ = writeln!(placed, "{}{key}:", "  ".repeat(depth));
        let beside = BESIDE.iter().find(|(name, _)| name == key && path[0] == "virtual_servers");
        if let Some((_, lines)) = beside {
            let _ = writeln!(placed, "{}{lines}", "  ".repeat(depth + 1));
        }
    }
    for line in text.lines() {
        let line = line.get(indent..).unwrap_or_default();
        let _ = writeln!(placed, "{}{line}", "  ".repeat(path.len()));
    }
    placed
}

/// The errors of `weir check` in this folder.
fn errors(folder: &Path) -> Vec<String> {
    let output = Command::new(weir_binary())
        .args(["check", "--json", "weir.yaml"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the built command");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let all = document["diagnostics"].as_array().expect("a list").iter();
    let errors = all.filter(|it| it["severity"] == "error");
    let told = |it: &Value| it["message"].as_str().unwrap_or_default().to_owned();
    let errors: Vec<String> = errors.map(told).collect();
    assert_eq!(errors.is_empty(), output.status.success(), "{output:?}");
    errors
}

/// Named parts that a block leaves out, by section and name.
type Added = BTreeMap<&'static str, BTreeMap<String, String>>;

/// Adds what this error misses. Returns whether it could.
fn add(error: &str, folder: &Path, added: &mut Added) -> bool {
    let named = |before: &str, after: &str| {
        let rest = error.strip_prefix(before)?;
        rest.split_once(after).map(|(name, _)| name.to_owned())
    };
    let (section, name, part) = if error.contains("lacks `virtual_servers`") {
        let part = "{ listen: 127.0.0.1:8080, pool: web }";
        ("virtual_servers", "example".to_owned(), part)
    } else if let Some(name) = named("pool `", "` is not defined") {
        ("pools", name, "{ members: [ 127.0.0.1:9001 ] }")
    } else if let Some(name) = named("authentication `", "` is not defined")
        .or_else(|| named("there is no authentication `", "` of type jwt"))
    {
        let part = "{ type: jwt, keys: { url: \"https://login.example/keys\" }, issuer: \"https://login.example/\", audience: [ a ] }";
        ("authentication", name, part)
    } else if let Some(name) = named("cannot open ", ": No such file")
        .or_else(|| named("cannot read the directory ", ": No such file"))
    {
        return make(&folder.join(name));
    } else {
        return false;
    };
    added.entry(section).or_default().insert(name, part.to_owned()).is_none()
}

/// Makes a file or folder that a block names, with a content of its kind.
fn make(path: &Path) -> bool {
    let examples = root().join("examples/tls");
    let copy = |name: &str| std::fs::copy(examples.join(name), path).is_ok();
    let write = |text: &str| std::fs::write(path, text).is_ok();
    match path.extension().and_then(|it| it.to_str()) {
        Some("crt" | "pem") => copy("shop-ec.crt"),
        Some("key") => copy("shop-ec.key"),
        Some("crl") => copy("revoked.crl"),
        Some("keys") => copy("tickets.keys"),
        Some("htpasswd") => {
            write("ann:$2y$05$NlwuYNGNZ9v6UMNxd9VTfeb2NOxSEnQTZqDm6u3tpzN7PfnAdcSLa\n")
        }
        Some("conf") => write("SecAction \"id:1,phase:1,pass,nolog\"\n"),
        Some(_) => write("x\n"),
        None if std::fs::create_dir(path).is_ok() => {
            let inner = ["rules.conf", "shop.crt", "shop.key"];
            inner.iter().all(|name| make(&path.join(name)))
        }
        None => false,
    }
}

/// Completes a block until it passes. `Err`: its errors.
fn check(block: &Block) -> Result<(), String> {
    let folder = TempDir::new("documents");
    let here = folder.path().display().to_string();
    let text = placed(&block.text)
        .replace("/etc/weir/", &format!("{here}/"))
        .replace("sha256:…", &format!("sha256:{}", "0".repeat(64)));
    let mut added = Added::new();
    for _ in 0..ROUNDS_MAX {
        let mut parts = String::new();
        for (section, items) in &added {
            let _ = writeln!(parts, "{section}:");
            for (name, part) in items {
                let _ = writeln!(parts, "  {name}: {part}");
            }
        }
        let include = if parts.is_empty() { "" } else { "include: added.yaml\n" };
        std::fs::write(folder.path().join("added.yaml"), parts).expect("a file");
        std::fs::write(folder.path().join("weir.yaml"), format!("{include}{text}"))
            .expect("a file");
        let errors = errors(folder.path());
        if errors.is_empty() {
            return Ok(());
        }
        let mut has_added = false;
        for error in &errors {
            has_added |= add(error, folder.path(), &mut added);
        }
        if !has_added {
            return Err(errors.join("; "));
        }
    }
    Err("it needs too many additions".to_owned())
}

#[test]
fn the_first_example_of_a_guide_passes_as_it_is() {
    for path in FIRST_IS_WHOLE {
        let found = blocks(path, &read(path));
        let first = found.first().unwrap_or_else(|| panic!("{path} has no example"));
        let folder = TempDir::new("first");
        std::fs::write(folder.path().join("weir.yaml"), &first.text).expect("a file");
        assert_eq!(errors(folder.path()), [""; 0], "{}", first.place);
    }
}

#[test]
fn every_yaml_block_passes_weir_check() {
    let mut findings = Vec::new();
    let mut count = 0;
    for path in files("md") {
        for block in blocks(&path, &read(&path)) {
            if OTHERS.iter().any(|key| block.text.starts_with(key)) {
                continue;
            }
            count += 1;
            if let Err(errors) = check(&block) {
                findings.push(format!("{}: {errors}", block.place));
            }
        }
    }
    assert!(count > 80, "the documents have examples: {count}");
    expect_none(&findings);
}
