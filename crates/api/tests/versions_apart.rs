//! The two sides of the API may have different versions.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_api::flows::FlowsToEnd;
use weir_api::health::HealthState;
use weir_api::member_state::{MemberStateChange, WantedState};
use weir_api::pool::Pool;
use weir_api::process::ProcessHealth;
use weir_api::reload::ReloadAsked;
use weir_api::sessions::{Sessions, SessionsToEnd};
use weir_api::status::Status;
use weir_api::upgrade::UpgradeState;
use weir_api::virtual_server::VirtualServer;

fn read<T: DeserializeOwned>(document: Value) -> Result<T, String> {
    serde_json::from_value(document).map_err(|error| error.to_string())
}

#[test]
fn an_older_weir_has_fewer_keys() {
    let status =
        json!({ "version": "0.1.0", "virtual_servers": [{ "name": "shop" }], "pools": [] });
    let status: Status = read(status).expect("it is a status");
    assert_eq!((status.process.health, status.process.pid), (ProcessHealth::Unknown, 0));
    assert_eq!(status.virtual_servers[0].health.state, HealthState::Unknown);
    assert!(status.virtual_servers[0].relayed.is_none() && status.packet_path.is_none());
    assert!(read::<Status>(json!({})).is_err(), "that is no status");
}

#[test]
fn a_newer_weir_has_further_keys_and_states() {
    let pool = json!({
        "name": "web", "health": { "state": "sleeping", "why": "night", "since": 1 }, "colour": 7,
        "members": [{ "address": "10.0.0.1:80", "requests": 3, "colour": 7 }],
    });
    let pool: Pool = read(pool).expect("it is a pool");
    assert_eq!(pool.health.state, HealthState::Unknown);
    assert_eq!(pool.health.why.as_deref(), Some("night"));
    assert_eq!(pool.members[0].counts.requests, 3);
    let relayed = json!({ "relayed": { "complete": 2, "moon": 1 } });
    let server: VirtualServer = read(relayed).expect("it is a virtual server");
    assert_eq!(server.relayed.map(|it| it.complete), Some(2));
}

#[test]
fn what_only_a_newer_weir_has_breaks_no_other_part() {
    let status = json!({
        "version": "9", "virtual_servers": [], "pools": [], "upgrade": { "number": 1, "state": "asleep" },
        "configuration": { "waiting": { "pools": [{ "colour": 7 }] }, "last_reload_failure": {} },
        "packet_path": { "interfaces": [{ "name": "eth0" }] },
    });
    let status: Status = read(status).expect("it is a status");
    let upgrade = status.process.upgrade.expect("there is one");
    assert_eq!((upgrade.number, upgrade.state), (1, UpgradeState::Unknown));
    let sessions = json!({ "items": [{ "type": "quic", "pool": "web" }], "more": false });
    let sessions: Sessions = read(sessions).expect("they are sessions");
    assert_eq!(sessions.items[0].r#type, None);
    assert!(read::<SessionsToEnd>(json!({ "type": "quic" })).is_err(), "a filter must be known");
}

#[test]
fn an_older_weir_says_only_the_number_of_a_reload() {
    let asked: ReloadAsked = read(json!({ "number": 4 })).expect("it is an answer");
    assert_eq!(asked.number, 4);
    let whole = json!({ "number": 5, "state": "reading", "changes": [], "changes_omitted": 0 });
    assert_eq!(read::<ReloadAsked>(whole).expect("it is an answer").number, 5);
}

#[test]
fn a_request_must_not_have_further_keys() {
    assert!(read::<SessionsToEnd>(json!({ "clients": "10.0.0.1" })).is_err());
    assert!(read::<FlowsToEnd>(json!({ "clients": "10.0.0.1" })).is_err());
    assert!(read::<MemberStateChange>(json!({ "state": "drain", "now": true })).is_err());
}

#[test]
fn a_request_has_only_what_it_asks_for() {
    let drain = MemberStateChange { state: WantedState::Drain, last: false };
    assert_eq!(json!(drain), json!({ "state": "drain" }));
    let ended = SessionsToEnd { pool: Some("web".into()), ..SessionsToEnd::default() };
    assert_eq!(json!(ended), json!({ "pool": "web" }));
    assert_eq!(json!(FlowsToEnd { all: true, ..FlowsToEnd::default() }), json!({ "all": true }));
}

#[test]
fn filters_require_no_key() {
    fn required<T: JsonSchema>() -> Value {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let schema = settings.into_generator().into_root_schema_for::<T>();
        schema.get("required").cloned().unwrap_or_default()
    }
    assert_eq!(required::<SessionsToEnd>(), Value::Null);
    assert_eq!(required::<FlowsToEnd>(), Value::Null);
    assert_eq!(required::<MemberStateChange>(), json!(["state"]));
}
