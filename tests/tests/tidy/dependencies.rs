//! The packages of other authors in the four workspaces: their licences, their sources, and versions that are there twice.
//!
//! `cargo metadata` names them. Known vulnerabilities are no part of it: they need a database that changes daily
//! (docs/dependencies.md).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use weir_tests::repository;

/// The workspaces of the repository.
const WORKSPACES: [&str; 4] =
    ["Cargo.toml", "bench/Cargo.toml", "simulation/Cargo.toml", "fuzz/Cargo.toml"];

/// The platform that weir runs on. What others need is not looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The only source of packages.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that permit weir's own (Apache-2.0), without an obligation to publish changes.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Licences of packages that are no part of weir, only of its fuzz targets.
const LICENCES_OF_FUZZING: [&str; 1] = ["NCSA"];

/// Packages of weir that are there in several versions, because others depend on them.
const TWICE: [&str; 10] = [
    "base64",
    "bit-vec",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "getrandom",
    "syn",
    "synstructure",
    "untrusted",
];

/// A package of another author.
struct Package {
    workspace: &'static str,
    name: String,
    version: String,
    /// The licence, as an expression of SPDX. Old packages have `/` for `OR`.
    licence: String,
    source: String,
}

/// The packages that a workspace uses on the platform.
fn packages_of(workspace: &'static str) -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            PLATFORM,
            "--manifest-path",
        ])
        .arg(repository::root().join(workspace))
        .output()
        .expect("cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata of {workspace}: {errors}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let used: BTreeSet<String> =
        list(&found["resolve"]["nodes"]).iter().map(|node| text(&node["id"])).collect();
    let others = list(&found["packages"]).into_iter().filter(|package| {
        !package["source"].is_null() && used.contains(package["id"].as_str().unwrap_or_default())
    });
    let others = others.map(|package| Package {
        workspace,
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: text(&package["license"]),
        source: text(&package["source"]),
    });
    others.collect()
}

fn packages() -> &'static [Package] {
    static PACKAGES: LazyLock<Vec<Package>> =
        LazyLock::new(|| WORKSPACES.into_iter().flat_map(packages_of).collect());
    &PACKAGES
}

/// Whether a licence expression can be satisfied by these licences alone. An exception (`WITH`) only permits more.
fn is_satisfied(expression: &str, licences: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let is_satisfied = any(&mut words, licences);
    is_satisfied && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, licences: &[&str]) -> bool {
    let mut is_satisfied = all(words, licences);
    while words.next_if_eq(&"OR").is_some() {
        is_satisfied |= all(words, licences);
    }
    is_satisfied
}

fn all(words: &mut Words<'_>, licences: &[&str]) -> bool {
    let mut is_satisfied = one(words, licences);
    while words.next_if_eq(&"AND").is_some() {
        is_satisfied &= one(words, licences);
    }
    is_satisfied
}

fn one(words: &mut Words<'_>, licences: &[&str]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let is_satisfied = any(words, licences);
        return words.next_if_eq(&")").is_some() && is_satisfied;
    }
    let is_satisfied = words.next().is_some_and(|name| licences.contains(&name));
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    is_satisfied
}

#[test]
fn licences_permit_ours() {
    let mut findings = BTreeSet::new();
    for Package { workspace, name, version, licence, .. } in packages() {
        let mut licences = LICENCES.to_vec();
        if workspace.starts_with("fuzz/") {
            licences.extend(LICENCES_OF_FUZZING);
        }
        if !is_satisfied(licence, &licences) {
            findings.insert(format!(
                "{workspace}: {name} {version} has the licence `{licence}`: choose another package"
            ));
        }
    }
    repository::expect_none(&findings.into_iter().collect::<Vec<_>>());
}

#[test]
fn packages_come_from_one_source() {
    let others = packages().iter().filter(|package| package.source != SOURCE);
    let findings =
        others.map(|it| format!("{}: {} comes from {}", it.workspace, it.name, it.source));
    repository::expect_none(&findings.collect::<Vec<_>>());
}

#[test]
fn versions_that_are_there_twice_are_known() {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages().iter().filter(|package| package.workspace == WORKSPACES[0]) {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let new = versions.iter().filter(|(name, _)| !TWICE.contains(name));
    let mut findings: Vec<String> = new
        .map(|(name, versions)| {
            let versions: Vec<&str> = versions.iter().copied().collect();
            format!(
                "{name} is there in the versions {}: `cargo tree -i {name}@VERSION` says why",
                versions.join(" and ")
            )
        })
        .collect();
    let gone = TWICE.iter().filter(|name| !versions.contains_key(*name));
    findings.extend(gone.map(|name| format!("{name} is there once now: remove it from TWICE")));
    repository::expect_none(&findings);
}

#[test]
fn expressions_are_read() {
    for (expression, expected) in [
        ("MIT", true),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND GPL-3.0", false),
        ("MIT AND (GPL-3.0 OR ISC)", true),
        ("(MIT OR Apache-2.0) AND GPL-3.0", false),
        ("MIT OR Apache-2.0 AND GPL-3.0", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0 WITH LLVM-exception AND GPL-3.0", false),
        ("GPL-3.0", false),
        ("", false),
        ("MIT)", false),
        ("(MIT", false),
        ("MIT MIT", false),
    ] {
        assert_eq!(is_satisfied(expression, &LICENCES), expected, "{expression}");
    }
}
