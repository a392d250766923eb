use std::os::unix::fs::symlink;
use std::sync::Arc;

use weir_config::snapshot::Address;

use super::*;
use crate::admin::document_tests::check;
use crate::admin::testing::Running;

const PAGE: &str = "<!doctype html><title>Report</title>";

/// A listener with a folder of reports, links and other files.
async fn running() -> Running {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let reports = root.join("reports");
    for name in ["first", "second", "empty", "folder"] {
        std::fs::create_dir_all(reports.join(name)).expect("a folder");
    }
    for name in ["first", "second"] {
        std::fs::write(reports.join(name).join(FILE), PAGE).expect("a report");
    }
    std::fs::create_dir(reports.join("folder").join(FILE)).expect("a folder");
    std::fs::write(reports.join("note.txt"), "no report").expect("a file");
    std::fs::write(root.join(FILE), "above the folder").expect("a file");
    symlink(root, reports.join("above")).expect("a link");
    std::fs::create_dir(reports.join("linked")).expect("a folder");
    symlink(root.join(FILE), reports.join("linked").join(FILE)).expect("a link");
    let large = File::create(root.join("large")).expect("a file");
    large.set_len(REPORT_BYTES_MAX + 1).expect("its length");
    std::fs::create_dir(reports.join("large")).expect("a folder");
    std::fs::rename(root.join("large"), reports.join("large").join(FILE)).expect("it moves");
    let text = "admin: { listen: \"unix:/run/weir-test.sock\", reports: reports }\n\
                virtual_servers: { shop: { listen: \"127.0.0.1:0\", pool: web } }\n\
                pools: { web: { members: [ 127.0.0.1:9001 ] } }\n";
    let file = root.join("weir.yaml");
    std::fs::write(&file, text).expect("a file");
    let config = weir_sources::load(&file).config.expect("a configuration");
    let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
    let address = Address::Unix(root.join("admin.sock"));
    Running::with(snapshot, &address, directory).await
}

#[tokio::test]
async fn reports_are_listed_and_shown_without_rights() {
    let running = running().await;
    let (status, list) = running.get("/v1/reports").await;
    assert_eq!(status, 200, "{list}");
    let mut names: Vec<&str> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["first", "large", "second"]);
    let answer = running.send("GET", "/v1/reports/first", "", "").await;
    assert_eq!((answer.status, answer.text.as_str()), (200, PAGE));
    let policy = answer.field("content-security-policy").expect("a policy");
    assert!(policy.starts_with("sandbox; default-src 'none'"), "{policy}");
    assert!(!policy.contains("script"), "{policy}");
    let document = running.get("/v1/openapi.json").await.1;
    check(&document, "/v1/reports/{name}", "get", &answer);
    check(
        &document,
        "/v1/reports",
        "get",
        &running.send("GET", "/v1/reports?limit=1", "", "").await,
    );
}

#[tokio::test]
async fn nothing_else_is_read() {
    let running = running().await;
    for name in [
        "..",
        "%2e%2e",
        ".",
        "above",
        "linked",
        "empty",
        "folder",
        "note.txt",
        "none",
        "large",
        "first%2F..%2F..",
        "%2Fetc",
        "..%2Freports%2Ffirst",
        "first%2F",
        "first%00",
        "first%2Freport.html",
    ] {
        let answer = running.send("GET", &format!("/v1/reports/{name}"), "", "").await;
        assert_eq!(answer.status, 404, "{name}: {}", answer.text);
    }
    let without = Running::on_unix(&["127.0.0.1:9001"]).await;
    let (status, list) = without.get("/v1/reports").await;
    assert_eq!((status, list["items"].as_array().map(Vec::len)), (200, Some(0)), "{list}");
}
