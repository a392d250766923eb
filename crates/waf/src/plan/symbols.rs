//! Numbers for the names of variables that rules write.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of a name, in its collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

/// The names of variables that rules use, in lower case.
#[derive(Debug)]
pub struct Symbols {
    by_name: HashMap<Box<[u8]>, Symbol, BuildHasherDefault<NameHasher>>,
    names: Vec<Box<[u8]>>,
}

impl Default for Symbols {
    /// The names of captured groups are first, so that the number of each equals its digit.
    fn default() -> Self {
        let mut symbols = Self { by_name: HashMap::default(), names: Vec::new() };
        for digit in b'0'..=b'9' {
            symbols.intern(&[digit]);
        }
        symbols
    }
}

impl Symbols {
    /// The number of groups of a match that have names.
    pub const GROUPS: usize = 10;

    /// The number of a name. An unknown name is added.
    pub fn intern(&mut self, name: &[u8]) -> Symbol {
        let name = name.to_ascii_lowercase();
        if let Some(symbol) = self.by_name.get(name.as_slice()) {
            return *symbol;
        }
        let symbol = Symbol(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.clone().into());
        self.by_name.insert(name.into(), symbol);
        symbol
    }

    /// The number of a name; `None`: no rule uses it.
    pub fn get(&self, name: &[u8]) -> Option<Symbol> {
        if name.iter().any(u8::is_ascii_uppercase) {
            return self.by_name.get(name.to_ascii_lowercase().as_slice()).copied();
        }
        self.by_name.get(name).copied()
    }

    /// The name with this number.
    pub fn name(&self, symbol: Symbol) -> &[u8] {
        self.names.get(symbol.0 as usize).map_or(&[], |name| name)
    }

    /// All names, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.names.iter().map(|name| &**name)
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}

/// FNV-1a. It is sufficient, because names are short and only rules add names.
#[derive(Debug)]
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
