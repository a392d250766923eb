//! The recipe of the container image, as far as it can be tested without a container runtime.

use std::process::Command;

use weir_tests::proxy::weir_binary;
use weir_tests::{repository, require, tools};

const RECIPE: &str = "packaging/container/Containerfile";
const CONFIGURATION: &str = "packaging/container/weir.yaml";

/// The shared libraries in the image.
const LIBRARIES: [&str; 5] =
    ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "linux-vdso.so.1", "ld-linux-x86-64.so.2"];

/// The instructions of the recipe, as name and argument, without comments and with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = repository::read(RECIPE).replace("\\\n", " ");
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("an instruction: {line}")))
        .map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn all(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(of, _)| of == name).map(|(_, rest)| rest).collect()
}

/// Parses a list of quoted words in brackets.
fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

#[test]
fn it_copies_what_is_there_and_runs_it() {
    let copied = all("COPY");
    for line in &copied {
        let paths: Vec<&str> = line.split(' ').filter(|word| !word.starts_with("--")).collect();
        let is_of_tree = !line.contains("--from=");
        for path in paths.iter().take(paths.len() - 1).filter(|_| is_of_tree) {
            assert!(repository::root().join(path).exists(), "{path}");
        }
    }
    let program = words(&all("ENTRYPOINT")[0]).remove(0);
    assert!(copied.iter().any(|line| line.ends_with(&format!("/weir {program}"))), "{copied:?}");
    let command = words(&all("CMD")[0]);
    assert_eq!(command[0], "run");
    assert!(copied.iter().any(|line| line.ends_with(&format!(" {}", command[1]))), "{copied:?}");
    let rust = instructions().into_iter().find(|(_, rest)| rest.contains("rust:")).expect("rust");
    let manifest = repository::read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    assert!(rust.1.contains(&format!("rust:{}-", version.unwrap().trim_matches('"'))), "{rust:?}");
}

#[test]
fn it_does_not_run_as_root_nor_need_to() {
    let user = all("USER").pop().expect("a user");
    let id: u32 = user.split(':').next().unwrap().parse().expect("a number, for Kubernetes");
    assert!(id > 0);
    let text = repository::read(CONFIGURATION);
    for port in all("EXPOSE") {
        let port: u16 = port.split('/').next().unwrap().parse().expect("a port");
        assert!(port >= 1_024 && text.contains(&format!("0.0.0.0:{port}")), "{port}");
    }
    // The folders that weir writes to belong to that user.
    let copied = all("COPY");
    let folders: Vec<_> = copied.iter().filter(|line| line.contains(" /folders/")).collect();
    assert_eq!(folders.len(), 2, "{copied:?}");
    for line in folders {
        assert!(line.contains(&format!("--chown={user}")), "{line}");
        // A copy to the root would give this user the folders above, too.
        assert!(!line.ends_with(" /"), "{line}");
    }
}

#[test]
fn its_configuration_is_sound_and_its_health_check_is_a_command() {
    let file = repository::root().join(CONFIGURATION);
    let checked = Command::new(weir_binary()).arg("check").arg(&file).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // The image has the folder of the socket, this host may lack it.
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(told.lines().all(|line| line.contains("/run/weir")), "{told}");
    let health = all("HEALTHCHECK").pop().expect("a health check");
    let command = words(health.split_once("CMD ").expect("a command").1);
    let mut check = Command::new(weir_binary());
    check.args(&command[1..]).env("WEIR_ADMIN", "unix:/nowhere/at/all.sock");
    // Exit status 3 (unreachable), not 2 (invalid usage).
    assert_eq!(check.status().unwrap().code(), Some(3));
    assert!(repository::read(CONFIGURATION).contains("unix:/run/weir/admin.sock"));
}

#[test]
fn the_program_needs_only_the_libraries_of_the_image() {
    require!("ldd");
    let text = tools::run(Command::new("ldd").arg(weir_binary()));
    for line in text.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        assert!(LIBRARIES.contains(&name), "{line}");
    }
}
