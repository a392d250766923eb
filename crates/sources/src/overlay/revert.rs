//! Takes back one step between two overlays, and keeps what came after it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Change, Overlay, Pointer, below};

/// A path that the step has changed, and that a later step has changed again.
pub type Conflict = String;

impl Overlay {
    /// This overlay without the step from `before` to `after`. `Err`: the paths that have changed again since.
    pub fn without(&self, before: &Self, after: &Self) -> Result<Self, Vec<Conflict>> {
        let mut reverted = self.clone();
        let mut conflicts = Vec::new();
        let delta = before.delta(after);
        let put = delta.put.iter().map(Change::path);
        for path in put.chain(&delta.dropped) {
            let text = path.as_str();
            if let Some(above) = self.above(path) {
                conflicts.push(above.path().as_str().to_owned());
                continue;
            }
            match merged([before.get(text), after.get(text), self.get(text)]) {
                Ok(Some(change)) => reverted.insert(change),
                Ok(None) => _ = reverted.drop_at(text),
                Err(DeeperPaths(below)) => {
                    conflicts.extend(below.into_iter().map(|below| format!("{text}{below}")));
                }
            }
        }
        let restored = before.delta(after).dropped.into_iter().chain(delta.put_paths());
        for path in restored.filter(|path| reverted.get(path.as_str()).is_some()) {
            conflicts.extend(reverted.beside(&path));
        }
        if conflicts.is_empty() {
            return Ok(reverted);
        }
        Err(conflicts.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// The paths of changes above and below this one, which an overlay never has.
    fn beside(&self, path: &Pointer) -> Vec<Conflict> {
        let above = self.above(path).map(|above| above.path().as_str().to_owned());
        let [from, to] = below(path);
        let below = self.changes.range(&from, &to);
        above.into_iter().chain(below.map(|it| it.path().as_str().to_owned())).collect()
    }
}

/// Paths below a change, which have changed again; an empty one is the change itself.
struct DeeperPaths(Vec<String>);

/// The change of the newest overlay without the step: before, after, now.
fn merged([before, after, now]: [Option<&Change>; 3]) -> Result<Option<Change>, DeeperPaths> {
    if now == after {
        return Ok(before.cloned());
    }
    if now == before {
        return Ok(now.cloned());
    }
    let (
        Some(Change::Set { value: before, .. }),
        Some(Change::Set { value: after, .. }),
        Some(Change::Set { value: now, path }),
    ) = (before, after, now)
    else {
        return Err(DeeperPaths(vec![String::new()]));
    };
    let mut conflicts = Vec::new();
    let value = values([Some(before), Some(after), Some(now)], "", &mut conflicts);
    match value.filter(|_| conflicts.is_empty()) {
        Some(value) => Ok(Some(Change::Set { path: path.clone(), value })),
        None => Err(DeeperPaths(conflicts)),
    }
}

/// The same for values: maps are merged key by key. The depth is that of the values, which are bounded when they are read.
fn values(
    [before, after, now]: [Option<&Value>; 3],
    path: &str,
    conflicts: &mut Vec<String>,
) -> Option<Value> {
    if now == after {
        return before.cloned();
    }
    if now == before || before == after {
        return now.cloned();
    }
    let (Some(Value::Object(before)), Some(Value::Object(after)), Some(Value::Object(now))) =
        (before, after, now)
    else {
        conflicts.push(path.to_owned());
        return now.cloned();
    };
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).chain(now.keys()).collect();
    let mut merged = Map::new();
    for key in keys {
        let below = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        let three = [before.get(key), after.get(key), now.get(key)];
        if let Some(value) = values(three, &below, conflicts) {
            merged.insert(key.clone(), value);
        }
    }
    Some(Value::Object(merged))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overlay(changes: Value) -> Overlay {
        serde_json::from_value(changes).expect("an overlay")
    }

    fn set(path: &str, value: Value) -> Value {
        json!({ "op": "set", "path": path, "value": value })
    }

    #[test]
    fn one_step_goes_and_the_others_stay() {
        let check = |before: Value, after: Value, now: Value, expected: Result<Value, &[&str]>| {
            let told = format!("{before} {after} {now}");
            let (before, after, now) = (overlay(before), overlay(after), overlay(now));
            let expected = expected.map(overlay);
            let found = now.without(&before, &after);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{told}"),
                (Err(found), Err(expected)) => assert_eq!(found, expected, "{told}"),
                (found, _) => panic!("{told}: {found:?}"),
            }
        };
        let (a, b) = (|value: u64| set("/a", json!(value)), |value: u64| set("/b", json!(value)));
        check(json!([]), json!([a(1)]), json!([a(1)]), Ok(json!([])));
        check(json!([]), json!([a(1)]), json!([a(1), b(2)]), Ok(json!([b(2)])));
        check(json!([a(1)]), json!([a(2)]), json!([a(2), b(2)]), Ok(json!([a(1), b(2)])));
        check(json!([a(1)]), json!([]), json!([b(2)]), Ok(json!([a(1), b(2)])));
        // It has been taken back already.
        check(json!([a(1)]), json!([a(2)]), json!([a(1), b(2)]), Ok(json!([a(1), b(2)])));
        // It has changed again.
        check(json!([a(1)]), json!([a(2)]), json!([a(3)]), Err(&["/a"]));
        check(json!([]), json!([a(1)]), json!([{ "op": "remove", "path": "/a" }]), Err(&["/a"]));
        // Something above or below it has been changed as a whole.
        let below = set("/a/x", json!(1));
        check(json!([]), json!([below]), json!([set("/a", json!({ "x": 1 }))]), Err(&["/a"]));
        check(json!([a(1)]), json!([]), json!([below]), Err(&["/a/x"]));
    }

    #[test]
    fn maps_are_merged_key_by_key() {
        let of = |value: Value| overlay(json!([set("/pools/web", value)]));
        let before = of(json!({ "balance": "a", "members": { "m/1": 1 } }));
        let after = of(json!({ "balance": "b", "members": { "m/1": 2 }, "retries": 1 }));
        let later = of(json!({ "balance": "b", "members": { "m/1": 2, "n": 1 }, "retries": 1 }));
        let expected = of(json!({ "balance": "a", "members": { "m/1": 1, "n": 1 } }));
        assert_eq!(later.without(&before, &after), Ok(expected));
        let later = of(json!({ "balance": "c", "members": { "m/1": 3 }, "retries": 1 }));
        let found = later.without(&before, &after).expect_err("conflicts");
        assert_eq!(found, ["/pools/web/balance", "/pools/web/members/m~11"]);
    }
}
