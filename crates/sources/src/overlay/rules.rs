//! The rules for changes: permitted paths, and the lookup of a path in a tree.

use serde_json::Value;
use weir_config::document::{Finding, NODE_DEPTH_MAX, Node, NodeValue, Span};
use weir_config::parts::{NAMED, PROFILES};
use weir_config::{Endpoint, clip, escaped, nearest};

use super::{Change, value};
use crate::member_index::{MemberIndex, endpoint_of};

/// The reason why a change is not possible.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub message: String,
    pub suggestion: String,
}

impl Refusal {
    pub fn new(message: impl Into<String>, suggestion: impl Into<String>) -> Self {
        Self { message: message.into(), suggestion: suggestion.into() }
    }

    pub fn at(self, pointer: usize) -> Finding {
        Finding::new(Span::overlaid(pointer), self.message).help(self.suggestion)
    }
}

/// Keys that an overlay cannot change, and the reasons.
const PROTECTED: [(&[&str], &str); 4] = [
    (&["include"], "it says which files there are"),
    (&["admin"], "it is the listener that changes come through"),
    (&["state_dir"], "the overlay itself is kept there"),
    (&["data_plane", "workers"], "only a restart can change it"),
];

/// The key of a pool's list of members.
const MEMBERS: &str = "members";

/// Whether a path is below a pool's list of members.
pub(super) fn is_in_members(segments: &[String]) -> bool {
    segments.len() > 3 && is_members(&segments[..3])
}

/// Whether this is the path of a pool's list of members.
pub(super) fn is_members(path: &[String]) -> bool {
    matches!(path, [pools, _, members] if pools == "pools" && members == MEMBERS)
}

/// Whether this is the path of one member.
fn is_member(path: &[String]) -> bool {
    path.len() == 4 && is_members(&path[..3])
}

/// The kind of the entries in a map whose keys are names.
fn kind_of_names(path: &[String]) -> Option<String> {
    match path {
        [section] if NAMED.contains(&section.as_str()) => Some(
            match section.as_str() {
                "virtual_servers" => "virtual server",
                "pools" => "pool",
                "policies" => "policy",
                "data_sets" => "data set",
                other => other,
            }
            .to_owned(),
        ),
        [profiles, kind] if profiles == PROFILES => Some(format!("{kind} profile")),
        _ => None,
    }
}

/// The keys in a path, without names of entries and addresses of members.
pub(super) fn keys(segments: &[String]) -> Vec<String> {
    let is_key =
        |at: &usize| kind_of_names(&segments[..*at]).is_none() && !is_members(&segments[..*at]);
    (0..segments.len()).filter(is_key).map(|at| segments[at].clone()).collect()
}

/// The reason why the change is impossible in any configuration.
pub(super) fn refused(change: &Change) -> Option<Refusal> {
    let segments = change.path().segments();
    for (key, why) in PROTECTED {
        let shorter = key.len().min(segments.len());
        if segments[..shorter].iter().zip(key).all(|(segment, key)| segment == key) {
            let name = key.join("/");
            let help = match segments.len() < key.len() {
                true => "set single keys below it".to_owned(),
                false => "change it in the file".to_owned(),
            };
            let message = format!("/{name} cannot be changed by an overlay: {why}");
            return Some(Refusal::new(message, help));
        }
    }
    let Change::Set { value, .. } = change else { return of_address(&segments) };
    if segments.len() + value::depth(value) > NODE_DEPTH_MAX {
        let message = format!("lists and maps are nested more than {NODE_DEPTH_MAX} deep");
        return Some(Refusal::new(message, "set a value that is not nested as deep"));
    }
    of_address(&segments).or_else(|| {
        let is_one = is_member(&segments);
        is_one.then(|| member_value(&segments[3], value).err()).flatten()
    })
}

/// Refuses a change of a member's address: the path contains the address.
fn of_address(segments: &[String]) -> Option<Refusal> {
    let is_it = segments.len() == 5 && is_in_members(segments) && segments[4] == "address";
    is_it.then(|| {
        let help = "remove the member, and set another one";
        Refusal::new("a member's address is in its path, and cannot change", help)
    })
}

/// The value of one member: only its address, or a map with `address`.
pub(super) fn member_value(segment: &str, value: &Value) -> Result<Value, Refusal> {
    let Some(endpoint) = Endpoint::read(segment) else { return Err(not_an_address(segment)) };
    let is_it = |text: &Value| text.as_str().and_then(Endpoint::read).as_ref() == Some(&endpoint);
    let other = || {
        let message = format!("the value has another address than its path, `{}`", clip(segment));
        Refusal::new(message, "leave out `address`: it is in the path")
    };
    match value {
        Value::String(_) if is_it(value) => Ok(value.clone()),
        Value::String(_) => Err(other()),
        Value::Object(entries) => match entries.get("address") {
            Some(address) if !is_it(address) => Err(other()),
            Some(address) if entries.len() == 1 => Ok(address.clone()),
            Some(_) => Ok(value.clone()),
            None if entries.is_empty() => Ok(segment.into()),
            None => {
                let address = ("address".to_owned(), Value::from(segment));
                let others = entries.iter().map(|(key, value)| (key.clone(), value.clone()));
                Ok(Value::Object(std::iter::once(address).chain(others).collect()))
            }
        },
        _ => Err(Refusal::new(
            "the value of a member is a map of its settings",
            "`{}` for one without settings",
        )),
    }
}

/// A tree in which paths are looked up, and where it has members.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'n> {
    pub root: &'n Node,
    pub index: &'n MemberIndex,
}

/// The node at a path, from `depth` on. `Ok(None)`: there is none, but one can be set.
pub(super) fn find<'n>(
    root: &'n Node,
    segments: &[String],
    depth: usize,
) -> Result<Option<&'n Node>, Refusal> {
    find_by(&MemberIndex::default(), root, (segments, depth))
}

impl<'n> Tree<'n> {
    /// As [`find`], for a whole path.
    pub(super) fn find(self, segments: &[String]) -> Result<Option<&'n Node>, Refusal> {
        find_by(self.index, self.root, (segments, 0))
    }
}

fn find_by<'n>(
    index: &MemberIndex,
    root: &'n Node,
    (segments, depth): (&[String], usize),
) -> Result<Option<&'n Node>, Refusal> {
    let mut node = root;
    for at in depth..segments.len() {
        let (path, segment) = (&segments[..at], &segments[at]);
        let below = match &node.value {
            NodeValue::Null => None,
            NodeValue::Map(_) => index.entry(node, segment),
            NodeValue::List(items) if is_members(path) => {
                let wanted = Endpoint::read(segment).ok_or_else(|| not_an_address(segment))?;
                index.member(items, &wanted)
            }
            // A member without settings, written as an address.
            NodeValue::Scalar(_) if is_member(path) => (segment == "address").then_some(node),
            NodeValue::Scalar(_) | NodeValue::List(_) => return Err(not_a_map(node, path)),
        };
        match below {
            Some(below) => node = below,
            None => return missing(node, segments, at).map_or(Ok(None), Err),
        }
    }
    Ok(Some(node))
}

/// The reason why nothing can be set below a missing node: `set` creates sections on its path, but not named entries.
pub(super) fn missing(node: &Node, segments: &[String], at: usize) -> Option<Refusal> {
    let last = segments.len() - 1;
    let is_name =
        |at: &usize| is_members(&segments[..*at]) || kind_of_names(&segments[..*at]).is_some();
    let unnamed = (at..last).find(is_name)?;
    let known = if unnamed == at { names(node) } else { Vec::new() };
    Some(absent(segments, unnamed, &known))
}

/// The names of the entries of a map, or the addresses of members.
fn names(node: &Node) -> Vec<String> {
    match &node.value {
        NodeValue::Map(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
        NodeValue::List(items) => {
            items.iter().filter_map(|item| endpoint_of(item).map(|it| it.to_string())).collect()
        }
        _ => Vec::new(),
    }
}

/// The refusal for a named entry or a key that does not exist.
pub(super) fn absent(segments: &[String], at: usize, known: &[String]) -> Refusal {
    let (path, name) = (&segments[..at], &segments[at]);
    let shown = clip(name);
    let message = if is_members(path) {
        format!("pool `{}` has no member `{shown}`", clip(&path[1]))
    } else {
        match kind_of_names(path) {
            Some(kind) => format!("there is no {kind} `{shown}`"),
            None => format!("there is nothing at {}", text(&segments[..=at])),
        }
    };
    if is_members(path) {
        // A change may take a member out of service: a wrong suggestion would do that to another one.
        return Refusal::new(message, format!("`weir pool {}` lists its members", clip(&path[1])));
    }
    let near = nearest(name, known.iter().map(String::as_str));
    let help = match near {
        Some(near) => format!("did you mean `{}`?", clip(near)),
        None if at + 1 < segments.len() => {
            format!("set all of {} first", text(&segments[..=at]))
        }
        None => "see `weir diff` and the files for what is there".to_owned(),
    };
    Refusal::new(message, help)
}

/// The refusal for a path that does not exist, with a suggestion.
pub(super) fn not_found(root: &Node, segments: &[String], depth: usize) -> Refusal {
    let mut node = Some(root);
    for at in depth..segments.len() {
        let known = node.map_or_else(Vec::new, names);
        let below = node.and_then(|node| find(node, &segments[..=at], at).ok().flatten());
        if below.is_none() {
            return absent(segments, at, &known);
        }
        node = below;
    }
    absent(segments, segments.len() - 1, &[])
}

fn not_an_address(segment: &str) -> Refusal {
    Refusal::new(
        format!("`{}` is not the address of a member", clip(segment)),
        "in a list of members write an address: /pools/web/members/10.0.0.1:80",
    )
}

/// The refusal for a path below a value that has no keys.
pub(super) fn not_a_map(node: &Node, path: &[String]) -> Refusal {
    let place = text(path);
    match &node.value {
        NodeValue::List(_) => Refusal::new(
            format!("{place} is a list, and has no keys"),
            format!("lists other than members are set as a whole: set {place}"),
        ),
        _ => Refusal::new(
            format!("{place} is not a map, and has no keys"),
            format!("set {place} as a whole"),
        ),
    }
}

/// The path in text form.
fn text(segments: &[String]) -> String {
    segments.iter().flat_map(|it| ["/".to_owned(), escaped(it)]).collect()
}
