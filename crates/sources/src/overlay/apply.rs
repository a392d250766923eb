//! Applies an overlay to a tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_config::document::{Entry, Finding, Node, NodeValue, Span};
use weir_config::{Endpoint, Pointers};

use super::rules::{self, Refusal, is_members};
use super::{Change, Overlay, value};
use crate::member_index::endpoint_of;

/// A change with its path as segments.
pub(super) struct Item {
    pub segments: Vec<String>,
    pub change: Arc<Change>,
}

impl Item {
    pub fn new(change: Arc<Change>) -> Self {
        Self { segments: change.path().segments(), change }
    }

    fn is_set(&self) -> bool {
        matches!(*self.change, Change::Set { .. })
    }
}

impl Overlay {
    /// The tree with the changes, and findings for changes that cannot be applied, because the files no longer contain
    /// their parents.
    pub(crate) fn apply(&self, mut root: Node, pointers: &mut Pointers) -> (Node, Vec<Finding>) {
        let items: Vec<Item> =
            self.changes.iter().map(|change| Item::new(Arc::clone(change))).collect();
        let mut application = Application { pointers, stale: Vec::new() };
        application.group(&mut root, &items, 0, Pointers::ROOT);
        let stale = application.stale;
        let skipped = stale.into_iter().map(|(pointer, refusal)| Finding {
            message: format!("this change is skipped: {}", refusal.message),
            span: Span::overlaid(pointer),
            suggestion: Some("remove it from the overlay, or mend the file".to_owned()),
        });
        (root, skipped.collect())
    }
}

/// The application of a list of changes.
pub(super) struct Application<'a> {
    pub pointers: &'a mut Pointers,
    /// Changes that cannot be applied, with the numbers of their pointers.
    pub stale: Vec<(usize, Refusal)>,
}

impl Application<'_> {
    /// Applies changes below a node. `above`: the number of the node's pointer.
    pub fn group(&mut self, node: &mut Node, items: &[Item], depth: usize, above: usize) {
        let Some(first) = items.first() else { return };
        let path = &first.segments[..depth];
        let sets = items.iter().any(Item::is_set);
        match &node.value {
            NodeValue::Null if sets => {
                *node = Node::map(Span::overlaid(above), Vec::new());
            }
            NodeValue::Scalar(_) if sets && depth == 4 && is_members(&path[..3]) => {
                let short = node.clone();
                let address = Entry { key: "address".into(), key_span: short.span, value: short };
                node.value = NodeValue::Map(Arc::new(vec![address]));
            }
            _ => {}
        }
        let is_list_of_members = is_members(path);
        match &mut node.value {
            NodeValue::Map(entries) => self.map(Arc::make_mut(entries), items, depth, above),
            NodeValue::List(list) if is_list_of_members => {
                self.members(Arc::make_mut(list), items, above);
            }
            NodeValue::Null => {}
            _ => {
                let refusal = rules::not_a_map(node, path);
                self.skip(items, above, depth, &refusal);
            }
        }
    }

    fn map(&mut self, entries: &mut Vec<Entry>, items: &[Item], depth: usize, above: usize) {
        let places = entries.iter().enumerate().map(|(index, entry)| (entry.key.clone(), index));
        let places: HashMap<String, usize> = places.collect();
        let mut removed = HashSet::new();
        for group in items.chunk_by(|one, other| one.segments[depth] == other.segments[depth]) {
            let segment = &group[0].segments[depth];
            let pointer = self.pointers.below(above, segment);
            let place = places.get(segment).copied();
            match (leaf(group, depth), place) {
                (Some(Change::Set { value, .. }), _) => {
                    let value = value::node(value, pointer, self.pointers);
                    match place {
                        Some(index) => entries[index].value = value,
                        None => entries.push(Entry {
                            key: segment.clone(),
                            key_span: Span::overlaid(pointer),
                            value,
                        }),
                    }
                }
                (Some(Change::Remove { .. }), Some(index)) => {
                    removed.insert(index);
                }
                (None, Some(index)) => {
                    self.group(&mut entries[index].value, group, depth + 1, pointer);
                }
                (Some(Change::Remove { .. }), None) => {}
                (None, None) => {
                    let empty = Node::map(Span::overlaid(pointer), Vec::new());
                    if let Some(value) = self.made(empty, group, depth, pointer) {
                        let (key, key_span) = (segment.clone(), Span::overlaid(pointer));
                        entries.push(Entry { key, key_span, value });
                    }
                }
            }
        }
        let mut index = 0;
        entries.retain(|_| {
            index += 1;
            !removed.contains(&(index - 1))
        });
    }

    /// Creates a section that the files do not have, with the changes in it.
    fn made(&mut self, empty: Node, items: &[Item], depth: usize, above: usize) -> Option<Node> {
        let nothing = Node::new(empty.span, NodeValue::Null);
        let mut possible = Vec::new();
        for item in items.iter().filter(|item| item.is_set()) {
            match rules::missing(&nothing, &item.segments, depth) {
                Some(refusal) => self.skip(std::slice::from_ref(item), above, depth + 1, &refusal),
                None => possible.push(Item::new(Arc::clone(&item.change))),
            }
        }
        if possible.is_empty() {
            return None;
        }
        let mut made = empty;
        self.group(&mut made, &possible, depth + 1, above);
        Some(made)
    }

    /// Applies changes to a pool's list of members. The path of the list has three segments.
    fn members(&mut self, list: &mut Vec<Node>, items: &[Item], above: usize) {
        const DEPTH: usize = 3;
        let places = list.iter().enumerate();
        let places: HashMap<Endpoint, usize> =
            places.filter_map(|(index, item)| Some((endpoint_of(item)?, index))).collect();
        let mut removed = HashSet::new();
        for group in items.chunk_by(|one, other| one.segments[DEPTH] == other.segments[DEPTH]) {
            let segment = &group[0].segments[DEPTH];
            let pointer = self.pointers.below(above, segment);
            let place = Endpoint::read(segment).and_then(|it| places.get(&it).copied());
            match (leaf(group, DEPTH), place) {
                (Some(Change::Set { value, .. }), _) => {
                    match (rules::member_value(segment, value), place) {
                        (Err(refusal), _) => self.stale.push((pointer, refusal)),
                        (Ok(value), Some(index)) => {
                            list[index] = value::node(&value, pointer, self.pointers);
                        }
                        (Ok(value), None) => {
                            list.push(value::node(&value, pointer, self.pointers));
                        }
                    }
                }
                (Some(Change::Remove { .. }), Some(index)) => {
                    removed.insert(index);
                }
                (Some(Change::Remove { .. }), None) => {}
                (None, Some(index)) => self.group(&mut list[index], group, DEPTH + 1, pointer),
                (None, None) => {
                    let sets = group.iter().filter(|item| item.is_set());
                    for item in sets {
                        let refusal = rules::absent(&item.segments, DEPTH, &[]);
                        self.skip(std::slice::from_ref(item), pointer, DEPTH + 1, &refusal);
                    }
                }
            }
        }
        let mut index = 0;
        list.retain(|_| {
            index += 1;
            !removed.contains(&(index - 1))
        });
    }

    /// Records the `set` changes of a group as not applicable. `above`: the number of the pointer to `depth`.
    fn skip(&mut self, items: &[Item], above: usize, depth: usize, refusal: &Refusal) {
        for item in items.iter().filter(|item| item.is_set()) {
            let segments = item.segments[depth..].iter();
            let pointer = segments.fold(above, |at, segment| self.pointers.below(at, segment));
            self.stale.push((pointer, refusal.clone()));
        }
    }
}

/// Applies changes of members of one pool to a list of some of them. Returns whether all can be applied.
pub(super) fn to_members(list: &mut Vec<Node>, changes: impl Iterator<Item = Arc<Change>>) -> bool {
    let items: Vec<Item> = changes.map(Item::new).collect();
    let mut pointers = Pointers::default();
    let mut application = Application { pointers: &mut pointers, stale: Vec::new() };
    application.members(list, &items, Pointers::ROOT);
    application.stale.is_empty()
}

/// The change of a group whose path ends here. It is then the only one of the group.
fn leaf(group: &[Item], depth: usize) -> Option<&Change> {
    group.iter().find(|item| item.segments.len() == depth + 1).map(|item| &*item.change)
}
