//! Where the files have their pools and the members of these, so that a change of one member does not read all others.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::Endpoint;
use weir_config::document::{Node, NodeValue};

/// The places of pools and members in one tree. Lists and maps are known by their addresses in memory, so the tree must live as
/// long as the index. Lists and maps of other trees are searched.
#[derive(Debug, Default)]
pub(crate) struct MemberIndex {
    /// The entries of `pools`, by their names.
    pools: HashMap<usize, HashMap<String, usize>>,
    /// The members of each list; the first, if an address occurs twice.
    members: HashMap<usize, HashMap<Endpoint, usize>>,
}

impl MemberIndex {
    /// The places in this tree.
    pub fn of(root: Option<&Node>) -> Self {
        let mut index = Self::default();
        let Some(NodeValue::Map(pools)) =
            root.and_then(|root| root.get("pools")).map(|it| &it.value)
        else {
            return index;
        };
        let names = pools.iter().zip(0..).map(|(entry, place)| (entry.key.clone(), place));
        index.pools.insert(address_of(pools), names.collect());
        for entry in pools.iter() {
            let Some(NodeValue::List(members)) = entry.value.get("members").map(|it| &it.value)
            else {
                continue;
            };
            let known = index.members.entry(address_of(members)).or_default();
            for (place, member) in members.iter().enumerate() {
                if let Some(endpoint) = endpoint_of(member) {
                    known.entry(endpoint).or_insert(place);
                }
            }
        }
        index
    }

    /// The value of a key in a map.
    pub fn entry<'n>(&self, map: &'n Node, key: &str) -> Option<&'n Node> {
        let NodeValue::Map(entries) = &map.value else { return None };
        match self.pools.get(&address_of(entries)) {
            Some(places) => Some(&entries[*places.get(key)?].value),
            None => map.get(key),
        }
    }

    /// The member with this address in a list of members.
    pub fn member<'n>(&self, list: &'n Arc<Vec<Node>>, wanted: &Endpoint) -> Option<&'n Node> {
        match self.members.get(&address_of(list)) {
            Some(places) => Some(&list[*places.get(wanted)?]),
            None => list.iter().find(|item| endpoint_of(item).as_ref() == Some(wanted)),
        }
    }
}

/// The address of an item of `members`.
pub(crate) fn endpoint_of(item: &Node) -> Option<Endpoint> {
    let address = match &item.value {
        NodeValue::Map(_) => item.get("address")?,
        _ => item,
    };
    match &address.value {
        NodeValue::Scalar(scalar) => Endpoint::read(&scalar.text),
        _ => None,
    }
}

/// Where a list or map is in memory.
fn address_of<T>(values: &Arc<Vec<T>>) -> usize {
    Arc::as_ptr(values).addr()
}

#[cfg(test)]
mod tests {
    use weir_config::document::{Document, SourceId};

    use super::*;

    /// The texts of the members that are found for these addresses, by pool.
    fn found(index: &MemberIndex, root: &Node, pool: &str, addresses: &[&str]) -> Vec<bool> {
        let pools = root.get("pools").expect("pools");
        let members = index.entry(pools, pool).and_then(|pool| pool.get("members"));
        let Some(NodeValue::List(list)) = members.map(|it| &it.value) else { return Vec::new() };
        let is_there = |address: &&str| {
            let endpoint = Endpoint::read(address).expect("an address");
            let member = index.member(list, &endpoint);
            assert!(member.is_none_or(|it| endpoint_of(it).as_ref() == Some(&endpoint)));
            member.is_some()
        };
        addresses.iter().map(is_there).collect()
    }

    #[test]
    fn the_places_are_those_that_a_search_finds() {
        let text = "pools:\n  a: { members: [ 10.0.0.1:80, { address: \"[::1]:80\", weight: 3 } ] }\n  \
                    b: { members: [ 10.0.0.2:80 ] }\n  c: {}\n  d:\n";
        let document = Document::read("weir.yaml".into(), SourceId::MAIN, text.into(), 0);
        let root = document.root.as_ref().expect("a tree");
        let index = MemberIndex::of(Some(root));
        assert_eq!((index.pools.len(), index.members.len()), (1, 2));
        let addresses = ["10.0.0.1:80", "10.0.0.2:80", "[0::1]:80"];
        // A changed copy is another tree.
        let mut copy = root.clone();
        if let NodeValue::Map(sections) = &mut copy.value {
            let pools = &mut Arc::make_mut(sections)[0].value;
            let NodeValue::Map(pools) = &mut pools.value else { panic!("{pools:?}") };
            Arc::make_mut(pools).remove(0);
        }
        for (pool, in_root, in_copy) in [
            ("a", vec![true, false, true], vec![]),
            ("b", vec![false, true, false], vec![false, true, false]),
            ("c", vec![], vec![]),
            ("d", vec![], vec![]),
            ("e", vec![], vec![]),
        ] {
            for index in [&index, &MemberIndex::default()] {
                assert_eq!(found(index, root, pool, &addresses), in_root, "{pool}");
                assert_eq!(found(index, &copy, pool, &addresses), in_copy, "{pool}");
            }
        }
    }
}
