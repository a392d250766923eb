//! Reads the definitions in the text of a file.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Fields, Generics, Ident, Item as Syntax, Meta, Type};

use super::paths::paths;
use super::{File, Item, Kind};

/// Reads one file.
pub fn read(path: &str, text: &str) -> File {
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut words = Words::default();
    words.take(tokens.clone());
    let syntax: syn::File = syn::parse2(tokens).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut file = File {
        path: path.to_owned(),
        lines: text.lines().count(),
        is_test: is_test_path(path),
        unsafe_lines: words.unsafe_lines,
        forbids_unsafe: syntax.attrs.iter().any(forbids_unsafe),
        items: Vec::new(),
        test_modules: Vec::new(),
        paths: paths(&syntax),
        words: words.words,
    };
    let mut reader = Reader { test: file.is_test, of: None, file: &mut file };
    reader.visit_file(&syntax);
    file
}

/// Whether the file contains only tests, benchmarks or their helpers.
fn is_test_path(path: &str) -> bool {
    let of_tests = ["tests/", "fuzz/", "simulation/"].iter().any(|folder| path.starts_with(folder));
    of_tests || path.contains("/tests/") || path.contains("/benches/")
}

/// The identifiers, and the words of string literals.
#[derive(Default)]
struct Words {
    words: BTreeSet<String>,
    unsafe_lines: Vec<usize>,
}

impl Words {
    fn take(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) if is_comment(&group) => {}
                TokenTree::Group(group) => self.take(group.stream()),
                TokenTree::Ident(word) => {
                    if word == "unsafe" {
                        self.unsafe_lines.push(word.span().start().line);
                    }
                    self.words.insert(word.to_string());
                }
                TokenTree::Literal(text) => self.take_text(&text.to_string()),
                TokenTree::Punct(_) => {}
            }
        }
    }

    fn take_text(&mut self, text: &str) {
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        self.words.extend(text.split(|character| !is_part(character)).map(str::to_owned));
    }
}

/// Whether an attribute is a doc comment: the parser sees `[doc = "..."]`.
fn is_comment(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(word)) if word == "doc")
}

fn forbids_unsafe(attribute: &Attribute) -> bool {
    attribute.path().is_ident("forbid")
        && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "unsafe_code")
}

/// Whether these attributes compile an item only for tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test")
        }
        _ => false,
    })
}

/// The file name in a `path` attribute.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = &attribute.meta.require_name_value().ok()?.value;
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}

struct Reader<'a> {
    file: &'a mut File,
    /// Whether the current item is only for tests.
    test: bool,
    /// The type or trait whose members are being read.
    of: Option<String>,
}

impl Reader<'_> {
    fn add(&mut self, name: &Ident, kind: Kind, whole: Span) {
        self.file.items.push(Item {
            name: name.to_string(),
            kind,
            of: self.of.clone(),
            field_type: None,
            changes: None,
            line: name.span().start().line,
            last_line: whole.end().line,
            is_test: self.test,
        });
    }

    /// Reads the content of an item with these attributes. `of` is the type whose members it contains, if any.
    fn within(
        &mut self,
        attributes: &[Attribute],
        of: Option<String>,
        read: impl FnOnce(&mut Self),
    ) {
        let test = self.test || is_for_tests(attributes);
        let outer = (std::mem::replace(&mut self.test, test), std::mem::replace(&mut self.of, of));
        read(self);
        (self.test, self.of) = outer;
    }

    fn add_fields(&mut self, fields: &Fields) {
        for field in fields {
            if let Some(name) = &field.ident {
                self.add(name, Kind::Part, field.span());
                let added = self.file.items.last_mut().expect("it was added");
                added.field_type = Some(name_of(&field.ty).unwrap_or_default());
            }
        }
    }

    /// Records a module that has its own file.
    fn declare(&mut self, module: &syn::ItemMod) {
        if !self.test && !is_for_tests(&module.attrs) {
            return;
        }
        let (folder, _) = self.file.path.rsplit_once('/').unwrap_or_default();
        let name = match path_attribute(&module.attrs) {
            Some(path) => format!("{folder}/{}", path.trim_end_matches(".rs")),
            None if is_root_of_folder(&self.file.path) => format!("{folder}/{}", module.ident),
            None => format!("{}/{}", self.file.module(), module.ident),
        };
        self.file.test_modules.push(name);
    }
}

/// Whether the modules of this file are in its own folder, not in a folder with its name.
fn is_root_of_folder(path: &str) -> bool {
    ["/lib.rs", "/main.rs", "/mod.rs"].iter().any(|name| path.ends_with(name))
}

/// The name of the type of an `impl`.
fn name_of(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Reference(reference) => name_of(&reference.elem),
        Type::Group(group) => name_of(&group.elem),
        _ => None,
    }
}

/// The name of an argument's type, if the function may change the argument for its caller.
fn changed(argument: &syn::FnArg) -> Option<String> {
    let syn::FnArg::Typed(argument) = argument else { return None };
    match &*argument.ty {
        Type::Reference(reference) if reference.mutability.is_some() => name_of(&reference.elem),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Syntax) {
        match item {
            Syntax::Const(item) => self.add(&item.ident, Kind::Other, item.span()),
            Syntax::Static(item) => self.add(&item.ident, Kind::Other, item.span()),
            Syntax::Type(item) => self.add(&item.ident, Kind::Type, item.span()),
            Syntax::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.add(name, Kind::Other, item.span());
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.add(&module.ident, Kind::Module, module.span());
        if module.content.is_none() {
            self.declare(module);
        }
        self.within(&module.attrs, None, |reader| visit::visit_item_mod(reader, module));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(&function.attrs, None, |reader| {
            reader.add(&function.sig.ident, Kind::Function, function.block.span());
            let added = reader.file.items.last_mut().expect("it was added");
            added.changes = function.sig.inputs.first().and_then(changed);
            visit::visit_item_fn(reader, function);
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.within(&item.attrs, None, |reader| {
            reader.add(&item.ident, Kind::Struct(item.fields.len()), item.span());
            reader.of = Some(item.ident.to_string());
            reader.add_fields(&item.fields);
        });
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.within(&item.attrs, None, |reader| {
            reader.add(&item.ident, Kind::Type, item.span());
            reader.of = Some(item.ident.to_string());
            for variant in &item.variants {
                reader.add(&variant.ident, Kind::Part, variant.span());
            }
        });
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.ident, Kind::Type, item.span());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(&item.attrs, None, |reader| {
            reader.add(&item.ident, Kind::Type, item.span());
            reader.of = Some(item.ident.to_string());
            visit::visit_item_trait(reader, item);
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.add(&function.sig.ident, Kind::TraitMethod, function.span());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let kind = if block.trait_.is_some() { Kind::TraitMethod } else { Kind::Method };
        self.within(&block.attrs, name_of(&block.self_ty), |reader| {
            for item in &block.items {
                reader.add_member(item, kind);
            }
        });
    }

    // These contain no named items.
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generics(&mut self, _: &'ast Generics) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

impl Reader<'_> {
    fn add_member(&mut self, item: &syn::ImplItem, kind: Kind) {
        match item {
            syn::ImplItem::Fn(function) => {
                let test = self.test || is_for_tests(&function.attrs);
                let outer = std::mem::replace(&mut self.test, test);
                self.add(&function.sig.ident, kind, function.block.span());
                let of = self.of.take();
                visit::visit_block(self, &function.block);
                (self.test, self.of) = (outer, of);
            }
            syn::ImplItem::Const(item) => self.add(&item.ident, Kind::Other, item.span()),
            syn::ImplItem::Type(item) => self.add(&item.ident, Kind::Other, item.span()),
            _ => {}
        }
    }
}
