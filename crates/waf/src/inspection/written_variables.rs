//! The variables that rules write.

use crate::hash::hash;
use crate::plan::{Symbol, Symbols, View, in_lower_case};
use crate::seclang::{Selector, Target, Variable};
use crate::value::Value;

/// Maximum number of variables whose names are built at run time.
const MADE_MAX: usize = 1_024;

/// The values of these variables in one request.
#[derive(Debug)]
pub struct WrittenVariables {
    /// The variables of `TX`, by the numbers of their names.
    tx: Box<[Slot]>,
    /// The variables of stored collections.
    stored: Vec<(Variable, Box<[u8]>, Value)>,
    /// The variables of `TX` whose names no rule contains.
    made: Vec<BuiltVariable>,
}

/// A variable of `TX` whose name was built at run time.
#[derive(Debug)]
struct BuiltVariable {
    /// The hash of the name. It is compared first, because rules build dozens of names with the same beginning.
    hash: u64,
    /// The name in lower case.
    name: Box<[u8]>,
    value: Value,
}

/// A variable of `TX` whose name rules contain. Initial values are not copied, because all workers would write to the same
/// reference counts.
#[derive(Debug)]
enum Slot {
    /// The value at the start of each request.
    Initial,
    Set(Value),
    Removed,
}

impl Slot {
    fn of(value: Option<Value>) -> Self {
        value.map_or(Self::Removed, Self::Set)
    }
}

impl WrittenVariables {
    /// The values at the start of a request.
    pub fn new(view: &View) -> Self {
        let tx = (0..view.rules.symbols.len()).map(|_| Slot::Initial).collect();
        let mut written = Self { tx, stored: Vec::new(), made: Vec::new() };
        for (name, value) in &view.unnamed {
            written.set_named(Variable::Tx, name, Some(value.clone()), view);
        }
        written
    }

    /// The value of a variable whose name rules contain.
    pub fn get<'a>(
        &'a self,
        collection: Variable,
        symbol: Symbol,
        view: &'a View,
    ) -> Option<&'a Value> {
        if collection != Variable::Tx {
            return self.get_named(collection, view.rules.symbols.name(symbol), view);
        }
        match self.tx.get(symbol.0 as usize)? {
            Slot::Initial => view.initial.get(symbol.0 as usize)?.as_ref(),
            Slot::Set(value) => Some(value),
            Slot::Removed => None,
        }
    }

    /// The value of a variable with any name.
    pub fn get_named<'a>(
        &'a self,
        collection: Variable,
        name: &[u8],
        view: &'a View,
    ) -> Option<&'a Value> {
        if collection != Variable::Tx {
            let mut all = self.stored.iter();
            let found =
                all.find(|(of, known, _)| *of == collection && known.eq_ignore_ascii_case(name));
            return found.map(|(_, _, value)| value);
        }
        in_lower_case(name, |name| match view.rules.symbols.get_lower(name) {
            Some(symbol) => self.get(Variable::Tx, symbol, view),
            None => {
                let place = self.made_at(hash(name), name)?;
                self.made.get(place).map(|it| &it.value)
            }
        })
    }

    /// Sets or removes the value of a variable whose name rules contain.
    pub fn set(&mut self, collection: Variable, symbol: Symbol, value: Option<Value>, view: &View) {
        if collection != Variable::Tx {
            self.set_named(collection, view.rules.symbols.name(symbol), value, view);
            return;
        }
        if let Some(place) = self.tx.get_mut(symbol.0 as usize) {
            *place = Slot::of(value);
        }
    }

    /// Sets or removes the value of a variable with any name. Returns `false` if the maximum number of variables is reached.
    pub fn set_named(
        &mut self,
        collection: Variable,
        name: &[u8],
        value: Option<Value>,
        view: &View,
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
        in_lower_case(name, |name| match view.rules.symbols.get_lower(name) {
            Some(symbol) => {
                self.set(collection, symbol, value, view);
                true
            }
            None => self.set_made(name, value),
        })
    }

    /// Sets or removes the value of a variable of `TX` whose name no rule contains. The name is in lower case.
    fn set_made(&mut self, name: &[u8], value: Option<Value>) -> bool {
        let hash = hash(name);
        match (self.made_at(hash, name), value) {
            (Some(at), Some(value)) => self.made[at].value = value,
            (Some(at), None) => drop(self.made.remove(at)),
            (None, Some(value)) if self.made.len() < MADE_MAX => {
                self.made.push(BuiltVariable { hash, name: name.into(), value });
            }
            (None, Some(_)) => return false,
            (None, None) => {}
        }
        true
    }

    fn made_at(&self, hash: u64, name: &[u8]) -> Option<usize> {
        self.made.iter().position(|it| it.hash == hash && *it.name == *name)
    }

    /// Sets the groups of a pattern, in `TX:0` to `TX:9`; all others are removed.
    pub fn set_groups(&mut self, values: impl Iterator<Item = Value>) {
        let mut values = values.map(Some).chain(std::iter::repeat(None));
        for (place, value) in self.tx.iter_mut().take(Symbols::GROUPS).zip(&mut values) {
            *place = Slot::of(value);
        }
    }

    /// Passes on the variables that a target selects and that have a value, with their names.
    pub fn select<'a>(
        &'a self,
        target: &Target,
        view: &'a View,
        mut found: impl FnMut(&'a [u8], &'a Value),
    ) {
        let (collection, selector, symbols) =
            (target.variable, &target.selector, &view.rules.symbols);
        if collection != Variable::Tx {
            let of = self.stored.iter().filter(|(of, _, _)| *of == collection);
            let those = of.filter(|(_, name, _)| selector.takes(name));
            return those.for_each(|(_, name, value)| found(name, value));
        }
        let mut known = |symbol: Symbol| {
            if let Some(value) = self.get(collection, symbol, view) {
                found(symbols.name(symbol), value);
            }
        };
        let selected = match selector {
            Selector::Pattern(pattern) => symbols.selected(pattern),
            _ => None,
        };
        match selected {
            Some(those) => those.iter().for_each(|symbol| known(*symbol)),
            None => {
                let all = (0..symbols.len() as u32).map(Symbol);
                all.filter(|symbol| selector.takes(symbols.name(*symbol))).for_each(known);
            }
        }
        let made = self.made.iter().filter(|it| selector.takes(&it.name));
        made.for_each(|it| found(&it.name, &it.value));
    }
}
