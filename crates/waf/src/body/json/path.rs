//! The position in a JSON value: the open arrays and objects, and the name of a leaf at this position.

use super::super::limits;
use crate::hash::hash;
use std::collections::BTreeSet;

/// The format of names of array elements.
///
/// CRS 4 fits both formats: its regression tests send few arrays (`{"array":["php","test"]}`,
/// `{"roles__contained_by":["admin","user"]}`) and expect no name with an index, and the only JSON name in its rules is
/// `json.profile`. ModSecurity's format is the default, because exclusions in SecLang use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonNames {
    /// `json.a.array_0.b`. The name of an empty key is `empty-key`.
    #[default]
    ModSecurity,
    /// `json.a.0.b`. In addition, `json.a` is an argument with the number of elements as its value.
    Coraza,
}

/// The name of the top-level value.
pub(super) const TOP: &[u8] = b"json";

/// An open array or object.
#[derive(Debug, Clone)]
enum Container {
    /// Hashes of the keys so far, by a fixed 64-bit function. A repeated key is always detected. A forged collision only
    /// causes a wrong report of a repeated key.
    Object(BTreeSet<u64>),
    Array(u64),
}

#[derive(Debug, Clone)]
struct Open {
    container: Container,
    /// The length of the name of this array or object.
    name_bytes: usize,
}

/// The path from the top to the current value.
#[derive(Debug, Clone)]
pub(super) struct Path {
    names: JsonNames,
    name: Vec<u8>,
    name_bytes_max: u32,
    open: Vec<Open>,
}

/// A closed array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClosedContainer {
    /// The number of its elements or keys.
    pub(super) elements: u64,
    pub(super) is_array: bool,
}

/// The result of adding a key to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddedKey {
    /// Whether the whole name is within its limit.
    pub(super) fits: bool,
    /// Whether the object already contains this key.
    pub(super) is_repeated: bool,
}

impl Path {
    pub(super) fn new(names: JsonNames, name_bytes_max: u32) -> Self {
        Self { names, name: TOP.to_vec(), name_bytes_max, open: Vec::new() }
    }

    /// The name of the current value.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_in_array(&self) -> bool {
        matches!(self.open.last(), Some(Open { container: Container::Array(_), .. }))
    }

    /// Opens the current value, an array or object.
    pub(super) fn open(&mut self, is_array: bool) {
        let container =
            if is_array { Container::Array(0) } else { Container::Object(BTreeSet::new()) };
        self.open.push(Open { container, name_bytes: self.name.len() });
    }

    /// Closes the innermost array or object if it has this kind. The closed one becomes the current value.
    pub(super) fn close(&mut self, is_array: bool) -> Option<ClosedContainer> {
        if self.is_in_array() != is_array {
            return None;
        }
        let open = self.open.pop()?;
        self.name.truncate(open.name_bytes);
        let elements = match open.container {
            Container::Object(keys) => keys.len() as u64,
            Container::Array(elements) => elements,
        };
        Some(ClosedContainer { elements, is_array })
    }

    /// Moves to the next element of the innermost array. Returns whether its name fits. Does nothing outside arrays.
    pub(super) fn element(&mut self) -> bool {
        let Some(Open { container: Container::Array(elements), name_bytes }) = self.open.last_mut()
        else {
            return true;
        };
        let index = *elements;
        *elements += 1;
        self.name.truncate(*name_bytes);
        let segment = match self.names {
            JsonNames::ModSecurity => format!(".array_{index}"),
            JsonNames::Coraza => format!(".{index}"),
        };
        self.push(segment.as_bytes())
    }

    /// Moves to the value of a key in the innermost object.
    pub(super) fn key(&mut self, key: &[u8]) -> AddedKey {
        let mut is_repeated = false;
        if let Some(Open { container: Container::Object(keys), name_bytes }) = self.open.last_mut()
        {
            is_repeated = !keys.insert(hash(key));
            self.name.truncate(*name_bytes);
        }
        let key = if key.is_empty() && self.names == JsonNames::ModSecurity {
            b"empty-key".as_slice()
        } else {
            key
        };
        AddedKey { fits: self.push(b".") && self.push(key), is_repeated }
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        limits::append(&mut self.name, bytes, self.name_bytes_max) == bytes.len()
    }
}
