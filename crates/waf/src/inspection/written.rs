//! The variables that rules write.

use crate::plan::{Symbol, Symbols};
use crate::seclang::Variable;
use crate::value::Value;

/// Maximum number of variables whose names are built at run time.
const MADE_MAX: usize = 1_024;

/// The values of these variables in one request.
#[derive(Debug)]
pub struct Written {
    /// The variables of `TX`, by the numbers of their names.
    tx: Vec<Option<Value>>,
    /// The variables of stored collections.
    stored: Vec<(Variable, Box<[u8]>, Value)>,
    /// The variables of `TX` whose names no rule contains.
    made: Vec<Made>,
}

/// A variable of `TX` whose name was built at run time.
#[derive(Debug)]
struct Made {
    /// The hash of the name. It is compared first, because rules build dozens of names with the same beginning.
    hash: u32,
    /// The name in lower case.
    name: Box<[u8]>,
    value: Value,
}

impl Written {
    /// No values.
    pub fn new(symbols: &Symbols) -> Self {
        Self { tx: vec![None; symbols.len()], stored: Vec::new(), made: Vec::new() }
    }

    /// The value of a variable whose name rules contain.
    pub fn get(&self, collection: Variable, symbol: Symbol, symbols: &Symbols) -> Option<&Value> {
        if collection == Variable::Tx {
            return self.tx.get(symbol.0 as usize)?.as_ref();
        }
        self.get_named(collection, symbols.name(symbol), symbols)
    }

    /// The value of a variable with any name.
    pub fn get_named(
        &self,
        collection: Variable,
        name: &[u8],
        symbols: &Symbols,
    ) -> Option<&Value> {
        if collection != Variable::Tx {
            let mut all = self.stored.iter();
            let found =
                all.find(|(of, known, _)| *of == collection && known.eq_ignore_ascii_case(name));
            return found.map(|(_, _, value)| value);
        }
        if let Some(symbol) = symbols.get(name) {
            return self.tx.get(symbol.0 as usize)?.as_ref();
        }
        self.made_at(hash(name), name).and_then(|at| self.made.get(at)).map(|it| &it.value)
    }

    /// Sets or removes the value of a variable whose name rules contain.
    pub fn set(
        &mut self,
        collection: Variable,
        symbol: Symbol,
        value: Option<Value>,
        symbols: &Symbols,
    ) {
        if collection != Variable::Tx {
            self.set_named(collection, symbols.name(symbol), value, symbols);
            return;
        }
        if let Some(place) = self.tx.get_mut(symbol.0 as usize) {
            *place = value;
        }
    }

    /// Sets or removes the value of a variable with any name. Returns `false` if the maximum number of variables is reached.
    pub fn set_named(
        &mut self,
        collection: Variable,
        name: &[u8],
        value: Option<Value>,
        symbols: &Symbols,
    ) -> bool {
        if collection != Variable::Tx {
            let is_it =
                |of: Variable, known: &[u8]| of == collection && known.eq_ignore_ascii_case(name);
            self.stored.retain(|(of, known, _)| !is_it(*of, known));
            let Some(value) = value else { return true };
            let has_room = self.stored.len() < MADE_MAX;
            if has_room {
                self.stored.push((collection, name.to_ascii_lowercase().into(), value));
            }
            return has_room;
        }
        if let Some(symbol) = symbols.get(name) {
            self.set(collection, symbol, value, symbols);
            return true;
        }
        let hash = hash(name);
        match (self.made_at(hash, name), value) {
            (Some(at), Some(value)) => self.made[at].value = value,
            (Some(at), None) => drop(self.made.remove(at)),
            (None, Some(value)) if self.made.len() < MADE_MAX => {
                self.made.push(Made { hash, name: name.to_ascii_lowercase().into(), value });
            }
            (None, Some(_)) => return false,
            (None, None) => {}
        }
        true
    }

    fn made_at(&self, hash: u32, name: &[u8]) -> Option<usize> {
        let is_it = |it: &Made| it.hash == hash && it.name.eq_ignore_ascii_case(name);
        self.made.iter().position(is_it)
    }

    /// The groups of a pattern, in `TX:0` to `TX:9`.
    pub fn groups_mut(&mut self) -> &mut [Option<Value>] {
        self.tx.get_mut(..Symbols::GROUPS).unwrap_or_default()
    }

    /// The variables of a collection that have a value, with their names.
    pub fn all<'a>(
        &'a self,
        collection: Variable,
        symbols: &'a Symbols,
    ) -> Box<dyn Iterator<Item = (&'a [u8], &'a Value)> + 'a> {
        if collection != Variable::Tx {
            let of = self.stored.iter().filter(move |(of, _, _)| *of == collection);
            return Box::new(of.map(|(_, name, value)| (&**name, value)));
        }
        let known = self.tx.iter().enumerate().filter_map(|(index, value)| {
            Some((symbols.name(Symbol(index as u32)), value.as_ref()?))
        });
        Box::new(known.chain(self.made.iter().map(|it| (&*it.name, &it.value))))
    }
}

/// FNV-1a of the name in lower case.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    })
}
