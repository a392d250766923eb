//! weir's Debian package: installation, upgrade, removal and purge in a copy of this system.

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_testing::skip_though_strict;
use weir_tests::proxy::weir_binary;
use weir_tests::temp::TempDir;
use weir_tests::{repository, require, tools};

/// The script's exit status if the system has no overlay file system.
const NO_COPY: i32 = 77;

/// Builds the package with this revision number.
fn build(revision: &str, into: &Path) -> PathBuf {
    let output = Command::new(repository::root().join("packaging/build-deb"))
        .args(["--fast", "--revision", revision, "--binary"])
        .arg(weir_binary())
        .arg("--into")
        .arg(into)
        .output()
        .expect("packaging/build-deb");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

#[test]
fn it_is_installed_started_upgraded_and_removed_without_a_trace() {
    require!("dpkg-deb", "unshare", "curl", "setpriv", "strip", "objdump");
    require!("adduser", "deb-systemd-helper");
    if !rustix::process::geteuid().is_root() {
        return tools::skip("a package is installed by root");
    }
    let directory = TempDir::new("package");
    let (first, second) = (build("1", directory.path()), build("2", directory.path()));
    let folder = directory.path().join("system");
    std::fs::create_dir(&folder).expect("a folder");
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child"])
        .arg(repository::root().join("tests/tests/debian_package/install.sh"))
        .args([&folder, &first, &second])
        .output()
        .expect("unshare");
    let (told, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NO_COPY) {
        return skip_though_strict(&format!("this system cannot be copied: {errors}"));
    }
    assert!(output.status.success(), "{told}\n{errors}");
    for line in [
        "-1 install ok installed\n",
        "user: weir:/var/lib/weir:/usr/sbin/nologin\n",
        "configuration: root:weir 640\n",
        "answer: weir runs. Its configuration is /etc/weir/weir.yaml.\n",
        "-2 install ok installed\n",
        "answer: weir still runs.",
        "left: \n",
    ] {
        assert!(told.contains(line), "no {line:?} in:\n{told}\n{errors}");
    }
}
