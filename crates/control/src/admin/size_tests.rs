//! The API with a thousand virtual servers and ten thousand members.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use weir_config::snapshot::Address;

use super::testing::Running;

/// Number of virtual servers, each with a pool.
const SERVERS: usize = 1_000;

/// Number of members per pool.
const MEMBERS: usize = 10;

async fn start() -> Running {
    let mut servers = String::from("virtual_servers:\n");
    let mut pools = String::from("pools:\n");
    for number in 0..SERVERS {
        let (high, low) = (number / 250, number % 250);
        writeln!(servers, "  s{number}: {{ listen: \"127.1.{high}.{low}:80\", pool: p{number} }}")
            .unwrap();
        let members: Vec<String> =
            (0..MEMBERS).map(|member| format!("10.{member}.{high}.{low}:80")).collect();
        writeln!(pools, "  p{number}: {{ members: [ {} ] }}", members.join(", ")).unwrap();
    }
    let loaded = weir_config::parse("weir.yaml", &format!("{servers}{pools}"));
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
    let directory = tempfile::tempdir().unwrap();
    let address = Address::Unix(directory.path().join("admin.sock"));
    Running::with(snapshot, &address, directory).await
}

#[tokio::test]
async fn lists_come_page_by_page() {
    let running = start().await;
    for (path, pages) in [("/v1/virtual-servers", SERVERS / 100), ("/v1/pools", SERVERS / 100)] {
        let mut names = Vec::new();
        let mut after = String::new();
        for page in 1..=pages {
            let (status, document) = running.get(&format!("{path}?limit=100{after}")).await;
            assert_eq!(status, 200, "{document}");
            let items = document["items"].as_array().unwrap();
            assert_eq!(items.len(), 100);
            names.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
            assert_eq!(document["next"].is_null(), page == pages, "page {page} of {path}");
            after = format!("&after={}", document["next"].as_str().unwrap_or_default());
        }
        let expected = (0..SERVERS).map(|number| format!("{}{number}", &names[0][..1]));
        assert_eq!(names, expected.collect::<Vec<_>>(), "{path}");
    }
    let (status, document) = running.get("/v1/pools?limit=1000").await;
    let pools = document["items"].as_array().unwrap();
    let members: usize = pools.iter().map(|pool| pool["members"].as_array().unwrap().len()).sum();
    assert_eq!((status, members), (200, SERVERS * MEMBERS));
}

/// Large answers are made on other threads, so the control plane's own thread stays responsive.
#[tokio::test]
async fn a_probe_does_not_wait_for_a_large_answer() {
    let running = start().await;
    let large = async {
        let (status, document) = running.get("/v1/status").await;
        assert_eq!((status, document["pools"].as_array().unwrap().len()), (200, SERVERS));
        Instant::now()
    };
    let small = async {
        assert_eq!(running.get("/health").await.0, 200);
        Instant::now()
    };
    let (large, small) = tokio::join!(large, small);
    assert!(small < large);
}
