//! The values of the variables of a message.

use super::texts::TextId;
use crate::seclang::Variable;

/// A value and its name in the collection.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name. It is empty for a variable without members.
    pub name: TextId,
    /// The value.
    pub text: TextId,
    /// The name that is inspected by rules for names; `None`: the name of another entry is inspected instead, or this name
    /// exceeds the limit.
    pub judged_name: Option<TextId>,
    /// Whether the value was decoded from another value of this variable. It does not count as a value of its own.
    pub is_nested: bool,
}

/// All values, by variable.
#[derive(Debug)]
pub struct Values {
    /// The first value of each variable.
    first: Vec<Option<Entry>>,
    /// All values of variables that have several.
    all: Vec<Vec<Entry>>,
    /// The generation of the values. It changes whenever the values change.
    generation: u32,
}

impl Values {
    /// No values.
    pub fn new() -> Self {
        let all = vec![Vec::new(); Variable::COUNT];
        Self { first: vec![None; Variable::COUNT], all, generation: 0 }
    }

    /// Adds a value.
    pub fn add(&mut self, variable: Variable, name: TextId, text: TextId) {
        self.put(variable, Entry { name, text, judged_name: Some(name), is_nested: false });
    }

    /// Adds a value that was decoded from another value. It has the name of that value. `path`: the name that rules for
    /// names inspect; `None`: no other name.
    pub fn add_nested(
        &mut self,
        variable: Variable,
        name: TextId,
        path: Option<TextId>,
        text: TextId,
    ) {
        self.put(variable, Entry { name, text, judged_name: path, is_nested: true });
    }

    fn put(&mut self, variable: Variable, entry: Entry) {
        self.generation += 1;
        let (first, all) = (&mut self.first[variable as usize], &mut self.all[variable as usize]);
        match *first {
            None => *first = Some(entry),
            Some(first) if all.is_empty() => {
                all.reserve(8);
                all.extend([first, entry]);
            }
            Some(_) => all.push(entry),
        }
    }

    /// Sets the only value of a variable.
    pub fn set(&mut self, variable: Variable, text: TextId) {
        if let [only] = self.of(variable)
            && (only.name, only.text) == (super::texts::Texts::EMPTY, text)
        {
            return;
        }
        self.first[variable as usize] = None;
        self.all[variable as usize].clear();
        self.add(variable, super::texts::Texts::EMPTY, text);
    }

    /// The values of a variable with its own storage.
    pub fn of(&self, variable: Variable) -> &[Entry] {
        let all = &self.all[variable as usize];
        if all.is_empty() { self.first[variable as usize].as_slice() } else { all }
    }

    /// The values of a variable, mutable. Their inspected names may change.
    pub fn of_mut(&mut self, variable: Variable) -> &mut [Entry] {
        let Self { first, all, generation } = self;
        let all = &mut all[variable as usize][..];
        let entries = if all.is_empty() { first[variable as usize].as_mut_slice() } else { all };
        *generation += u32::from(!entries.is_empty());
        entries
    }

    /// A number that changes whenever the values change.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

/// The variables that store a variable's values, and whether the names are the values.
pub fn sources(variable: Variable) -> (&'static [Variable], bool) {
    use Variable as V;
    match variable {
        V::Args => (&[V::ArgsGet, V::ArgsPost], false),
        V::ArgsNames => (&[V::ArgsGet, V::ArgsPost], true),
        V::ArgsGetNames => (&[V::ArgsGet], true),
        V::ArgsPostNames => (&[V::ArgsPost], true),
        V::RequestHeadersNames => (&[V::RequestHeaders], true),
        V::RequestCookiesNames => (&[V::RequestCookies], true),
        V::ResponseHeadersNames => (&[V::ResponseHeaders], true),
        V::FilesNames | V::MultipartName => (&[V::Files], true),
        V::MultipartFilename => (&[V::Files], false),
        V::ArgsGet => (&[V::ArgsGet], false),
        V::ArgsPost => (&[V::ArgsPost], false),
        V::Files => (&[V::Files], false),
        V::FilesSizes => (&[V::FilesSizes], false),
        V::FilesTmpContent => (&[V::FilesTmpContent], false),
        V::MultipartPartHeaders => (&[V::MultipartPartHeaders], false),
        V::RequestHeaders => (&[V::RequestHeaders], false),
        V::RequestCookies => (&[V::RequestCookies], false),
        V::ResponseHeaders => (&[V::ResponseHeaders], false),
        V::Xml => (&[V::Xml], false),
        _ => (&[], false),
    }
}
