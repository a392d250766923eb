//! Numbers for the names of variables that rules write.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::hash::hash;
use crate::seclang::NamePattern;

/// The number of a name, in its collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

/// The names of variables that rules use, in lower case.
#[derive(Debug)]
pub struct Symbols {
    by_name: HashMap<Box<[u8]>, Symbol, BuildHasherDefault<NameHasher>>,
    names: Vec<Box<[u8]>>,
    /// The names that the patterns of targets select.
    by_pattern: Vec<(Box<str>, Box<[Symbol]>)>,
}

/// Maximum length of a name that is converted to lower case without an allocation.
const SHORT_NAME_BYTES_MAX: usize = 64;

/// Passes on a name in lower case.
pub fn in_lower_case<T>(name: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [0; SHORT_NAME_BYTES_MAX];
    match short.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            then(lower)
        }
        None => then(&name.to_ascii_lowercase()),
    }
}

impl Default for Symbols {
    /// The names of captured groups are first, so that the number of each equals its digit.
    fn default() -> Self {
        let (by_name, names, by_pattern) = Default::default();
        let mut symbols = Self { by_name, names, by_pattern };
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
        in_lower_case(name, |lower| self.get_lower(lower))
    }

    /// The number of a name in lower case; `None`: no rule uses it.
    pub fn get_lower(&self, name: &[u8]) -> Option<Symbol> {
        self.by_name.get(name).copied()
    }

    /// Looks up the names that a pattern selects, so that no request evaluates the pattern on known names.
    pub fn select(&mut self, pattern: &NamePattern) {
        if self.selected(pattern).is_none() {
            let all = (0u32..).zip(&self.names);
            let those = all.filter(|(_, name)| pattern.is_match(name));
            let those = those.map(|(number, _)| Symbol(number)).collect();
            self.by_pattern.push((pattern.as_str().into(), those));
        }
    }

    /// The numbers of the names that a pattern selects, in order; `None`: the pattern was not looked up.
    pub fn selected(&self, pattern: &NamePattern) -> Option<&[Symbol]> {
        let mut all = self.by_pattern.iter();
        all.find(|(known, _)| **known == *pattern.as_str()).map(|(_, symbols)| &**symbols)
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

/// The hash of a name without a secret. It is sufficient, because only rules add names.
#[derive(Debug, Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(32) ^ hash(bytes);
    }

    /// The hash of the bytes includes their number.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Files, RuleSet};
    use crate::seclang::Selector;

    const RULE: &str = r#"SecRule TX:/^header_/ "@rx ." "id:1,phase:1,pass,\
setvar:tx.header_a=1,setvar:tx.other=1,setvar:tx.Header_B=1,setvar:tx.my_header_c=1"
"#;

    struct OneFile;

    impl Files for OneFile {
        fn find(&mut self, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Ok(RULE.as_bytes().to_vec())
        }
    }

    #[test]
    fn names_are_found_in_any_case_and_by_the_patterns_of_targets() {
        let rules = RuleSet::compile(&["rules".into()], &mut OneFile).expect("rules");
        let symbols = &rules.symbols;
        assert_eq!(symbols.get(b"HEADER_b"), symbols.get(b"header_b"));
        assert!(symbols.get(b"header_b").is_some() && symbols.get(b"header_d").is_none());
        assert!(symbols.get(&[b'X'; 1_000]).is_none());
        let target = &rules.rules[0].links[0].targets[0];
        let Selector::Pattern(pattern) = &target.selector else { panic!("{target:?}") };
        let selected = symbols.selected(pattern).expect("a known pattern");
        let names: Vec<&[u8]> = selected.iter().map(|symbol| symbols.name(*symbol)).collect();
        assert_eq!(names, [b"header_a", b"header_b"]);
    }
}
