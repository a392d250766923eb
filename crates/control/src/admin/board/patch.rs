//! The changes between two documents, as a JSON merge patch (RFC 7396): keys with new values, and `null` for removed keys.
//! A key whose value is `null` is the same as an absent key.

use serde_json::{Map, Value};

/// The patch that changes the earlier document into the later one; `None`: they are equal.
pub(super) fn between(earlier: &Value, later: &Value) -> Option<Value> {
    let (Value::Object(earlier), Value::Object(now)) = (earlier, later) else {
        return (earlier != later).then(|| later.clone());
    };
    let mut patch = Map::new();
    for key in earlier.keys().filter(|key| !now.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in now {
        let change = between(earlier.get(key).unwrap_or(&Value::Null), value);
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The algorithm of RFC 7396.
    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let Some(target) = target.as_object_mut() else { return };
        for (key, value) in patch {
            match value {
                Value::Null => drop(target.remove(key)),
                value => apply(target.entry(key.clone()).or_insert(Value::Null), value),
            }
        }
    }

    #[test]
    fn patches_have_what_changed_and_nothing_else() {
        for (earlier, later, expected) in [
            (json!({ "a": 1 }), json!({ "a": 1 }), None),
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 3 }), Some(json!({ "b": 3 }))),
            (
                json!({ "a": { "b": 1, "c": 2 } }),
                json!({ "a": { "b": 1 } }),
                Some(json!({ "a": { "c": null } })),
            ),
            (json!({ "a": [1, 2] }), json!({ "a": [1] }), Some(json!({ "a": [1] }))),
            (json!({ "a": 1 }), json!({ "a": null }), Some(json!({ "a": null }))),
            (json!({}), json!({ "a": { "b": 1 } }), Some(json!({ "a": { "b": 1 } }))),
        ] {
            let patch = between(&earlier, &later);
            assert_eq!(patch, expected);
            let mut made = earlier;
            patch.iter().for_each(|patch| apply(&mut made, patch));
            // An absent key and `null` are the same.
            let mut plain = later;
            if let Some(map) = plain.as_object_mut() {
                map.retain(|_, value| !value.is_null());
            }
            assert_eq!(made, plain);
        }
    }
}
