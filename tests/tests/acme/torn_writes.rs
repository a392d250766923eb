//! Writes of ACME's files that end in the middle, because the process is killed: account, order, certificate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::torn::{self, AtLimit};
use weir_tests::{STEP_TIMEOUT, require, tools};

use super::pebble;
use super::{Site, issuer, report, wait_until_ready};

/// Cuts of each series of writes, by default. The largest file is the certificate with its chain.
const CUTS: usize = 3;

const CERTIFICATE: &str = "{ acme: [ shop.example ] }";

/// Starts a weir without certificates, then reloads with them, and ends in the first write that exceeds this size.
fn order_and_end(site: &Site, bytes: usize) {
    let idle = Setup::new(&[site.member.address()])
        .top(&format!("state_dir: {}", site.state.path().display()))
        .admin_socket();
    let mut proxy = Proxy::start(&torn::limitable(idle, AtLimit::Ends));
    torn::limit(&proxy, Some(bytes));
    proxy.write(&site.setup("challenge: http-01", CERTIFICATE));
    let mut reload = Command::new(weir_binary());
    reload.args(["reload", "--admin", &proxy.admin_address()]);
    // weir may end before it answers.
    reload.output().expect("weir reload runs");
    proxy.process().wait(STEP_TIMEOUT);
}

fn start(site: &Site) -> Proxy {
    Proxy::start(&site.setup("challenge: http-01", CERTIFICATE))
}

/// The files of an authority.
fn files(site: &Site) -> Vec<PathBuf> {
    let output = tools::run(Command::new("find").arg(site.state.path()).args(["-type", "f"]));
    output.lines().map(PathBuf::from).collect()
}

/// The kind of the file whose write was cut: the account, the state of an order, or a certificate.
fn cut_file(site: &Site) -> &'static str {
    let names: Vec<String> = files(site).iter().map(|file| file.display().to_string()).collect();
    let name = names.iter().find(|name| name.ends_with(".new")).expect("a cut file");
    ["account.json.", ".json.", ".pem."].into_iter().find(|kind| name.contains(kind)).expect(name)
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    tools::run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Lets the next order begin at once, as if the pause after the last one was over.
fn forget_last_order(site: &Site) {
    for file in files(site).iter().filter(|file| file.extension().is_some_and(|it| it == "json")) {
        let mut value: Value =
            serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
        if value.get("last_order_unix_s").is_some() {
            value["last_order_unix_s"] = 0.into();
            value["not_before_unix_s"] = 0.into();
            fs::write(file, value.to_string()).expect("a file");
        }
    }
}

#[test]
fn a_kill_in_any_write_of_acme_loses_no_certificate() {
    require!("openssl", "curl", "setpriv");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    let root = site.pebble.root();
    wait_until_ready(&mut start(&site));
    let sizes: Vec<usize> =
        files(&site).iter().map(|file| fs::read(file).expect("a file").len()).collect();
    let cuts = torn::cuts(sizes.iter().copied().max().expect("files"), CUTS);
    // The middle of each file, whose size differs by some bytes from order to order, and its last byte: the write before it is
    // complete.
    let sizes = sizes.iter().filter(|size| **size > 0);
    let within = sizes.flat_map(|size| [size / 2, size - 1]);
    let cuts: BTreeSet<usize> = cuts.into_iter().chain(within).collect();
    let kept = site.state.path().join("acme");
    let before = site.state.path().join("before");
    copy(&kept, &before);

    // The first order: what was not kept is asked for again.
    let mut kinds = BTreeSet::new();
    for bytes in &cuts {
        fs::remove_dir_all(&kept).expect("the files");
        order_and_end(&site, *bytes);
        kinds.insert(cut_file(&site));
        forget_last_order(&site);
        let mut proxy = start(&site);
        wait_until_ready(&mut proxy);
        assert!(site.get(&root), "cut at {bytes}");
    }

    assert_eq!(kinds.len(), 3, "{kinds:?}");

    // A renewal: the certificate in use is served from the start on, whatever was cut.
    copy(&before, &kept);
    drop(start(&site));
    let proxy = start(&site);
    site.pebble.ask_for_renewal(&site.shown());
    drop(proxy);
    forget_last_order(&site);
    copy(&kept, &before);
    for bytes in &cuts {
        copy(&before, &kept);
        order_and_end(&site, *bytes);
        forget_last_order(&site);
        let mut proxy = start(&site);
        assert!(issuer(&site.shown()).contains("Pebble"), "cut at {bytes}");
        assert!(site.get(&root), "cut at {bytes}");
        wait_until_ready(&mut proxy);
        assert_eq!(report(&proxy)["reason"], Value::Null, "cut at {bytes}");
    }
}
