//! Actions of checks of the web application firewall, by their names.

use serde_json::{Map, Value, json};
use weir_waf::checks::{Action, Check};

use crate::decode::{Context, Decode, Registry, words_schema};
use crate::document::{Node, NodeValue};
use crate::hints::nearest;
use crate::quote::clip;

/// Actions for the findings of checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckActions(pub Vec<(Check, Action)>);

const ACTIONS: [Action; 3] = [Action::Off, Action::Alarm, Action::Block];

const fn meaning(action: Action) -> &'static str {
    match action {
        Action::Off => "The check does not run.",
        Action::Alarm => "Findings are logged and counted.",
        Action::Block => "Findings are logged and counted; in mode `block` the request is denied.",
    }
}

impl Decode for CheckActions {
    fn expected() -> String {
        "a map from names of checks to `off`, `alarm` or `block`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        let action = words_schema(&ACTIONS.map(|action| (action.name(), meaning(action))));
        let properties = Check::ALL.map(|check| {
            let described = json!({ "description": check.sentence(), "allOf": [action] });
            (check.name().to_owned(), described)
        });
        let properties: Map<String, Value> = properties.into_iter().collect();
        json!({ "type": "object", "additionalProperties": false, "properties": properties })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            context.mismatch(node, &Self::expected(), None);
            return None;
        };
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            let Some(check) = Check::named(&entry.key) else {
                let names = Check::ALL.map(Check::name);
                let message = format!("there is no check `{}`", clip(&entry.key));
                let help = match nearest(&entry.key, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "docs/waf.md has a table of all checks".to_owned(),
                };
                context.error_help(entry.key_span, message, help);
                continue;
            };
            let action = match &entry.value.value {
                NodeValue::Scalar(scalar) => {
                    ACTIONS.into_iter().find(|action| action.name() == scalar.text)
                }
                _ => None,
            };
            match action {
                Some(action) => found.push((check, action)),
                None => context.within_key(&entry.key, |context| {
                    context.mismatch(&entry.value, "`off`, `alarm` or `block`", None);
                }),
            }
        }
        Some(Self(found))
    }
}
