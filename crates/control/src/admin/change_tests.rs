//! Transactions over the API of a process with real workers.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use weir_config::snapshot::Address;

use super::document_tests::check;
use super::testing::{Answered, JSON, send_to};
use crate::events::testing::Captured;
use crate::names::NameServers;
use crate::supervisor::Supervisor;

/// An API client of a process.
struct Client(Address);

impl Client {
    async fn send(&self, method: &str, path: &str, fields: &str, body: &Value) -> Answered {
        let (fields, body) = match method {
            "GET" => (fields.to_owned(), String::new()),
            _ => (format!("{JSON}{fields}"), body.to_string()),
        };
        send_to(&self.0, method, path, &fields, &body).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.send("GET", path, "", &Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.parts().1
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("POST", path, "", &body).await.parts()
    }

    /// Sets the weight of the member.
    async fn weight(&self, weight: u64, query: &str, fields: &str) -> Answered {
        let change = json!({ "op": "set", "path": "/pools/web/members/127.0.0.1:1/weight", "value": weight });
        let body = json!({ "comment": "more", "changes": [change] });
        self.send("POST", &format!("/v1/changes{query}"), fields, &body).await
    }

    async fn weight_now(&self) -> Value {
        self.get("/v1/pools/web").await["members"][0]["weight"].clone()
    }
}

/// A port without a listener.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs `work` with a client of a process that has one member.
async fn run(work: impl AsyncFnOnce(&Client)) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let socket: PathBuf = directory.path().join("admin.sock");
    let text = format!(
        "admin: {{ listen: \"unix:{}\" }}\nstate_dir: {}\nlog: {{ access: {{ format: \"off\" }} }}\n\
         data_plane: {{ workers: 1 }}\n\
         virtual_servers: {{ shop: {{ listen: \"127.0.0.1:{}\", pool: web }} }}\n\
         pools: {{ web: {{ members: [ 127.0.0.1:1 ] }}, pair: {{ members: [ 127.0.0.1:1, 127.0.0.1:2 ] }} }}\n",
        socket.display(),
        state.display(),
        free_port()
    );
    let file = directory.path().join("weir.yaml");
    std::fs::write(&file, text).unwrap();
    let (events, _captured) = Captured::new();
    let mut supervisor = Supervisor::start(&file, NameServers::System, events).await.unwrap();
    let mut reload = signal(SignalKind::window_change()).unwrap();
    let client = Client(Address::Unix(socket));
    supervisor.serve_until(&mut reload, work(&client)).await.unwrap();
    supervisor.stop().await;
    supervisor.finish();
}

#[tokio::test]
async fn a_transaction_becomes_a_version_and_is_rolled_back() {
    run(async |client| {
        let tried = client.weight(5, "?dry_run=true", "").await.parts();
        assert_eq!((tried.0, &tried.1["state"]), (200, &json!("done")), "{tried:?}");
        assert_eq!(
            (client.weight_now().await, tried.1["version"].clone()),
            (json!(1), Value::Null)
        );
        let (status, done) = client.weight(5, "", "").await.parts();
        assert_eq!(
            (status, &done["state"], &done["version"]),
            (200, &json!("in_force"), &json!(1))
        );
        assert_eq!(done["changes"], json!(["changed pools.web"]));
        assert_eq!(client.weight_now().await, 5);
        let later = client.get(&format!("/v1/changes/{}", done["number"])).await;
        assert_eq!(later, done);

        let version = client.get("/v1/versions/1").await;
        let change =
            json!({ "op": "set", "path": "/pools/web/members/127.0.0.1:1/weight", "value": 5 });
        assert_eq!((&version["comment"], &version["changes"]), (&json!("more"), &json!([change])));
        let uid = format!("uid {}", rustix::process::getuid().as_raw());
        assert!(version["author"].as_str().is_some_and(|author| author.contains(&uid)));
        // What is so already makes no version, and its `ETag` stays.
        let (status, again) = client.weight(5, "", "").await.parts();
        assert_eq!(
            (status, &again["state"], &again["version"]),
            (200, &json!("unchanged"), &json!(1))
        );
        assert_eq!(again["changes"], json!([]));
        assert_eq!(client.get("/v1/diff").await["version"], 1);
        let versions = client.get("/v1/versions").await;
        assert_eq!((&versions["items"][0], &versions["next"]), (&version, &Value::Null));
        let diff = client.get("/v1/diff").await;
        assert_eq!((&diff["version"], &diff["items"][0]["effect"]), (&json!(1), &json!("added")));
        let merged = client.send("GET", "/v1/configuration", "", &Value::Null).await;
        assert!(merged.text.contains("weight: 5"), "{}", merged.text);
        assert!(weir_config::parse("merged.yaml", &merged.text).config.is_some());

        let (status, back) = client.post("/v1/versions/0/rollback", json!({})).await;
        assert_eq!((status, &back["version"]), (200, &json!(2)), "{back}");
        assert_eq!(client.weight_now().await, 1);
        assert_eq!(client.get("/v1/versions/2").await["rolled_back_to"], 0);
        assert_eq!(client.get("/v1/diff").await["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn the_last_member_goes_only_if_the_request_says_so() {
    run(async |client| {
        let weightless = async |query: &str, last: Option<bool>| {
            let path = "/pools/pair/members/127.0.0.1:1/weight";
            let mut body = json!({ "changes": [{ "op": "set", "path": path, "value": 0 }] });
            last.iter().for_each(|last| body["last"] = (*last).into());
            client.post(&format!("/v1/changes{query}"), body).await
        };
        let weight = async || client.get("/v1/pools/pair").await["members"][0]["weight"].clone();
        let state = "/v1/pools/pair/members/127.0.0.1%3A2/state";
        let disabled = client.send("PUT", state, "", &json!({ "state": "disabled" })).await;
        assert_eq!(disabled.status, 200, "{}", disabled.text);
        let detail = "no other member of pool `pair` takes new requests: clients would get 503";
        for (query, last) in [("", None), ("", Some(false)), ("?dry_run=true", None)] {
            let (status, problem) = weightless(query, last).await;
            assert_eq!((status, &problem["detail"]), (409, &json!(detail)), "{problem}");
            assert_eq!(problem["needs"], "last");
            assert!(problem["help"].as_str().is_some_and(|help| help.contains("--last")));
        }
        assert_eq!(
            (weight().await, &client.get("/v1/diff").await["version"]),
            (json!(1), &json!(0))
        );
        let (status, tried) = weightless("?dry_run=true", Some(true)).await;
        assert_eq!((status, &tried["state"]), (200, &json!("done")), "{tried}");
        let (status, done) = weightless("", Some(true)).await;
        assert_eq!((status, &done["version"]), (200, &json!(1)), "{done}");
        assert_eq!(weight().await, 0);
        // Nothing more is lost. The way back, and from there to no weight again by a rollback.
        let (status, done) = weightless("", None).await;
        assert_eq!((status, &done["state"]), (200, &json!("unchanged")));
        assert_eq!(client.post("/v1/versions/0/rollback", json!({})).await.0, 200);
        let (status, problem) = client.post("/v1/versions/1/rollback", json!({})).await;
        assert_eq!((status, &problem["needs"]), (409, &json!("last")), "{problem}");
        let (status, _) = client.post("/v1/versions/1/rollback", json!({ "last": true })).await;
        assert_eq!((status, weight().await), (200, json!(0)));
    })
    .await;
}

#[tokio::test]
async fn an_answer_waits_for_first_probes_as_long_as_the_request_says() {
    run(async |client| {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let pool = json!({
            "members": [silent.local_addr().unwrap().to_string()],
            "monitors": [{ "type": "http", "timeout": "30s", "interval": "60s" }],
        });
        let add = json!({ "changes": [{ "op": "set", "path": "/pools/silent", "value": pool }] });
        let again = add.clone();
        let (status, early) = client.post("/v1/changes?wait_ms=1", add).await;
        assert_eq!(status, 202, "{early}");
        assert!(["checking", "waiting"].contains(&early["state"].as_str().unwrap()), "{early}");
        let (status, _) = client.post("/v1/changes?wait_ms=15001", again).await;
        assert_eq!(status, 400);
        let later = client.get(&format!("/v1/changes/{}", early["number"])).await;
        assert_eq!(later["number"], early["number"]);
    })
    .await;
}

#[tokio::test]
async fn the_version_that_a_client_knows_has_to_be_the_newest() {
    run(async |client| {
        let at = |version: u64| format!("If-Match: \"version-{version}\"\r\n");
        assert_eq!(client.weight(2, "", &at(1)).await.status, 412);
        assert_eq!(client.weight(2, "", "If-Match: \"other\"\r\n").await.status, 412);
        assert_eq!(client.weight(2, "", &at(0)).await.status, 200);
        assert_eq!(client.weight(3, "", &at(0)).await.status, 412);
        assert_eq!(client.weight(3, "", "If-Match: *\r\n").await.status, 200);
        assert_eq!(client.weight_now().await, 3);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_findings() {
    run(async |client| {
        let wrong = client.weight(1_000, "", "").await.parts();
        assert_eq!(wrong.0, 409, "{wrong:?}");
        let finding = &wrong.1["diagnostics"][0];
        assert_eq!(finding["pointer"], "/pools/web/members/127.0.0.1:1/weight", "{wrong:?}");
        let admin = json!({ "changes": [{ "op": "remove", "path": "/admin" }] });
        assert_eq!(client.post("/v1/changes", admin).await.0, 409);
        let gone = json!({ "op": "remove", "path": "/pools/web/members/127.0.0.1:1" });
        for wrong in [
            json!({ "changes": [{ "op": "remove", "path": "pools" }] }),
            json!({ "changes": [{ "op": "add", "path": "/pools/x" }] }),
            json!({ "changes": [] }),
            json!({ "changes": [gone], "confirm_within_s": 0 }),
            json!({ "changes": [gone], "comment": "two\nlines" }),
        ] {
            assert_eq!(client.post("/v1/changes", wrong.clone()).await.0, 400, "{wrong}");
        }
        assert_eq!(client.post("/v1/versions/7/rollback", json!({})).await.0, 409);
        assert_eq!(client.post("/v1/versions/7/confirm", json!({})).await.0, 409);
        assert_eq!(client.get("/v1/versions").await["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn a_version_can_be_confirmed() {
    run(async |client| {
        let change =
            json!({ "op": "set", "path": "/pools/web/members/127.0.0.1:1/weight", "value": 9 });
        let (status, done) = client
            .post("/v1/changes", json!({ "changes": [change], "confirm_within_s": 600 }))
            .await;
        assert_eq!((status, &done["version"]), (200, &json!(1)), "{done}");
        assert_eq!(client.get("/v1/diff").await["unconfirmed"], 1);
        assert!(client.get("/v1/versions/1").await["confirm_until"].is_string());
        let (status, confirmed) = client.post("/v1/versions/1/confirm", json!({})).await;
        assert_eq!((status, &confirmed["state"]), (200, &json!("done")), "{confirmed}");
        assert_eq!(client.get("/v1/diff").await["unconfirmed"], Value::Null);
        assert!(client.get("/v1/versions/1").await["confirm_until"].is_null());
        assert_eq!(client.weight_now().await, 9);
    })
    .await;
}

#[tokio::test]
async fn answers_are_as_documented() {
    run(async |client| {
        let document = client.get("/v1/openapi.json").await;
        let change = |weight: u64| {
            json!({ "changes": [
                { "op": "set", "path": "/pools/web/members/127.0.0.1:1/weight", "value": weight },
            ] })
        };
        for (method, path, asked, body, status) in [
            ("post", "/v1/changes", "/v1/changes", change(3), 200),
            ("post", "/v1/changes", "/v1/changes", change(3_000), 409),
            ("get", "/v1/changes/{number}", "/v1/changes/1", Value::Null, 200),
            ("get", "/v1/changes/{number}", "/v1/changes/2", Value::Null, 200),
            ("get", "/v1/versions", "/v1/versions", Value::Null, 200),
            ("get", "/v1/versions/{number}", "/v1/versions/1", Value::Null, 200),
            ("get", "/v1/diff", "/v1/diff", Value::Null, 200),
            ("post", "/v1/versions/{number}/rollback", "/v1/versions/0/rollback", json!({}), 200),
            ("post", "/v1/versions/{number}/rollback", "/v1/versions/9/rollback", json!({}), 409),
            ("post", "/v1/versions/{number}/confirm", "/v1/versions/9/confirm", json!({}), 409),
            ("get", "/v1/configuration", "/v1/configuration", Value::Null, 200),
        ] {
            let answer = client.send(&method.to_uppercase(), asked, "", &body).await;
            assert_eq!(answer.status, status, "{method} {asked}: {}", answer.text);
            check(&document, path, method, &answer);
        }
    })
    .await;
}
