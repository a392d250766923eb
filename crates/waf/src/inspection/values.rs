//! The values of a message's variables.

use super::texts::TextId;
use crate::seclang::Variable;

/// A value, and its name in its collection.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name; the empty text for a variable without members.
    pub name: TextId,
    /// The value.
    pub text: TextId,
    /// The name as rules judge it that look at names, unless it is judged with another one.
    pub judged_name: Option<TextId>,
}

/// All of them, by variable.
#[derive(Debug)]
pub struct Values {
    /// What is a variable's only value, or the first.
    first: Vec<Option<Entry>>,
    /// All values of those that have more.
    all: Vec<Vec<Entry>>,
    /// It changes with the values.
    generation: u32,
}

impl Values {
    /// None.
    pub fn new() -> Self {
        let all = vec![Vec::new(); Variable::COUNT];
        Self { first: vec![None; Variable::COUNT], all, generation: 0 }
    }

    /// Puts a value in.
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

    /// The only value of a variable.
    pub fn set(&mut self, variable: Variable, text: TextId) {
        self.first[variable as usize] = None;
        self.all[variable as usize].clear();
        self.add(variable, super::texts::Texts::EMPTY, text);
    }

    /// Those of a variable that is kept as such.
    pub fn of(&self, variable: Variable) -> &[Entry] {
        let all = &self.all[variable as usize];
        if all.is_empty() { self.first[variable as usize].as_slice() } else { all }
    }

    /// Those of a variable, to change how their names are judged.
    pub fn of_mut(&mut self, variable: Variable) -> &mut [Entry] {
        self.generation += 1;
        let all = &mut self.all[variable as usize];
        if all.is_empty() { self.first[variable as usize].as_mut_slice() } else { all }
    }

    /// It changes with the values.
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

/// Which variables a variable's values are kept under, and whether their names are its values.
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
