//! Reads the paths to other modules of the crate in the text of a file: those of `use`, and those within code.

use syn::visit::{self, Visit};
use syn::{Attribute, UseTree, Visibility};

use super::reader::is_for_tests;

/// The paths of a file that begin with `crate`, `self` or `super`, without those in tests.
pub fn paths(file: &syn::File) -> Vec<Vec<String>> {
    let mut reader = Paths::default();
    reader.visit_file(file);
    reader.found
}

#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl Paths {
    fn add(&mut self, path: Vec<String>) {
        let first = path.first().map_or("", String::as_str);
        if matches!(first, "crate" | "self" | "super") && path.len() > 1 {
            self.found.push(path);
        }
    }

    fn add_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => self.add(before.to_vec()),
            UseTree::Name(name) => self.add(with(&name.ident)),
            UseTree::Rename(name) => self.add(with(&name.ident)),
            UseTree::Glob(_) => self.add([before, &["*".to_owned()]].concat()),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_tree(before, tree));
            }
        }
    }

    /// Reads an item with these attributes, unless it is for tests.
    fn within(&mut self, attributes: &[Attribute], read: impl FnOnce(&mut Self)) {
        if !is_for_tests(attributes) {
            read(self);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A module that shows a name of a module below it does not use that.
        if matches!(item.vis, Visibility::Inherited) {
            self.within(&item.attrs, |reader| reader.add_tree(&[], &item.tree));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    // Places of visibility are no uses.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.within(&item.attrs, |reader| visit::visit_item_mod(reader, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(&item.attrs, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(&item.attrs, |reader| visit::visit_item_impl(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(&item.attrs, |reader| visit::visit_impl_item_fn(reader, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_modules_are_read() {
        let text = "use crate::a::{B, c::{self, D as E}, *};\nuse std::fmt;\npub use self::shown::It;\n\
                    pub(super) fn f(x: &super::X) { crate::g::<crate::H>(x); other::i(); }\n\
                    #[cfg(test)]\nmod tests { use super::*; }\n#[test]\nfn t() { crate::t(); }\n";
        let found = paths(&syn::parse_str(text).expect("code"));
        let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        let expected = [
            "crate::a::B",
            "crate::a::c",
            "crate::a::c::D",
            "crate::a::*",
            "super::X",
            "crate::g",
            "crate::H",
        ];
        assert_eq!(found, expected);
    }
}
