//! The packages of the repository according to cargo: workspace, laboratory, simulation and fuzz targets.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repository;

/// Manifests of the workspaces.
const WORKSPACES: [&str; 4] =
    ["Cargo.toml", "bench/Cargo.toml", "simulation/Cargo.toml", "fuzz/Cargo.toml"];

/// A package.
#[derive(Debug, Clone)]
pub struct Package {
    /// The package's folder, relative to the repository's root.
    pub folder: String,
    /// The dependencies in its manifest.
    pub dependencies: Vec<Dependency>,
}

/// A dependency in a manifest.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// The name in its registry.
    pub name: String,
    /// The folder, relative to the repository's root, if it is a package of this repository.
    pub folder: Option<String>,
    /// The builds that use it.
    pub scope: Scope,
}

/// The builds that use a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Every build.
    Always,
    /// Builds with a feature.
    Feature,
    /// Tests and benchmarks.
    Tests,
}

/// All packages.
pub fn all() -> Vec<Package> {
    WORKSPACES.iter().flat_map(|manifest| of_workspace(manifest)).collect()
}

fn of_workspace(manifest: &str) -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(repository::root().join(manifest))
        .output()
        .unwrap_or_else(|error| panic!("cargo metadata: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata of {manifest}: {stderr}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON of cargo metadata");
    list(&metadata["packages"]).iter().map(package).collect()
}

fn package(package: &Value) -> Package {
    let manifest = text(&package["manifest_path"]);
    let folder = manifest.strip_suffix("/Cargo.toml").expect("a manifest's path");
    let dependencies = list(&package["dependencies"]).iter().map(dependency).collect();
    Package { folder: from_root(folder), dependencies }
}

fn dependency(dependency: &Value) -> Dependency {
    let scope = match dependency["kind"].as_str() {
        Some("dev") => Scope::Tests,
        _ if dependency["optional"] == true => Scope::Feature,
        _ => Scope::Always,
    };
    Dependency {
        name: text(&dependency["name"]).to_owned(),
        folder: dependency["path"].as_str().map(from_root),
        scope,
    }
}

fn from_root(path: &str) -> String {
    let path = Path::new(path).strip_prefix(repository::root()).expect("below the root");
    path.to_string_lossy().into_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text of cargo metadata")
}
