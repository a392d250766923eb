//! Records of recent requests: each has blocks of one exchange only.

use serde_json::Value;
use weir_tagged::world::{Finding, Kind, World};
use weir_tests::proxy::Proxy;

/// Records that are looked at with all fields each time.
const FULL: usize = 20;

/// Looks at the recent requests. While weir records none, there is nothing to look at.
pub fn look(proxy: &Proxy, world: &World) {
    let Some(list) = get(proxy, "/v1/requests?limit=1000") else { return };
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    for item in items {
        check(item, world);
    }
    for id in items.iter().filter_map(|item| item["id"].as_str()).take(FULL) {
        // It may have been dropped since.
        if let Some(full) = get(proxy, &format!("/v1/requests/{id}")) {
            check(&full, world);
        }
    }
}

fn check(record: &Value, world: &World) {
    // The id is weir's own, and as long as two blocks: in thousands of records, one looks like a block by chance.
    let mut record = record.clone();
    if let Some(fields) = record.as_object_mut() {
        fields.remove("id");
    }
    let text = record.to_string().into_bytes();
    if !world.key.owners(&text, |id| world.is_known(id)).is_empty() {
        world.count(Kind::Records);
    }
    if let Err(error) = world.check_rest(&text, None) {
        let what = format!("a record of a request: {error}");
        world.found(&Finding { what, id: None, received: text });
    }
}

fn get(proxy: &Proxy, path: &str) -> Option<Value> {
    let mut client = proxy.admin_client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    let response = client.response();
    match response.status {
        200 => serde_json::from_slice(&response.body).ok(),
        404 => None,
        _ => panic!("{path}: {response:?}"),
    }
}
