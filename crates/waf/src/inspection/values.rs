//! The values of a message's variables.

use super::texts::TextId;
use crate::seclang::Variable;

/// A value, with its name in its collection.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name; the empty text for a variable without members.
    pub name: TextId,
    /// The value.
    pub text: TextId,
    /// The name as seen by rules that examine names; `None`: another entry's name stands for it.
    pub judged_name: Option<TextId>,
}

/// All values, by variable.
#[derive(Debug)]
pub struct Values {
    /// The only or first value of each variable.
    first: Vec<Option<Entry>>,
    /// All values of variables that have more than one.
    all: Vec<Vec<Entry>>,
    /// Changes whenever the values change.
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
        self.generation += 1;
        let entry = Entry { name, text, judged_name: Some(name) };
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
        self.first[variable as usize] = None;
        self.all[variable as usize].clear();
        self.add(variable, super::texts::Texts::EMPTY, text);
    }

    /// Values of a variable with its own storage.
    pub fn of(&self, variable: Variable) -> &[Entry] {
        let all = &self.all[variable as usize];
        if all.is_empty() { self.first[variable as usize].as_slice() } else { all }
    }

    /// The same values, mutable: their judged names may change.
    pub fn of_mut(&mut self, variable: Variable) -> &mut [Entry] {
        self.generation += 1;
        let all = &mut self.all[variable as usize];
        if all.is_empty() { self.first[variable as usize].as_mut_slice() } else { all }
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
        V::MultipartPartHeaders => (&[V::MultipartPartHeaders], false),
        V::RequestHeaders => (&[V::RequestHeaders], false),
        V::RequestCookies => (&[V::RequestCookies], false),
        V::ResponseHeaders => (&[V::ResponseHeaders], false),
        V::Xml => (&[V::Xml], false),
        _ => (&[], false),
    }
}
