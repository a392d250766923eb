//! From nodes to raw types: a decoder that reports everything it finds instead of stopping at the
//! first error, and that describes itself for the JSON Schema and the reference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::diagnostic::{Position, Severity};
use crate::document::{Entry, Finding, Node, NodeValue, Scalar, ScalarKind, Span};
use crate::endpoint::Endpoint;
use crate::hints::{elsewhere, meant, nearest};
use crate::host_uses::{HostUses, SOCKET};
use crate::key_types::Types;
use crate::parts::NAMED;
use crate::places::Places;
use crate::quote::clip;
use crate::rule_cache::RuleCache;
use crate::snapshot::{Address, DatedFile};
use crate::system_authorities::SystemAuthorities;

/// Maximum number of diagnostics of one file; further ones are only counted.
pub const DIAGNOSTICS_MAX: usize = 1000;

/// Maximum length of the name of a virtual server, pool or profile: it becomes a label of every metric.
pub const NAME_BYTES_MAX: usize = 128;

/// A raw value, decoded from a node. The type describes its own form.
pub(crate) trait Decode: Sized {
    /// The form of a value, in words that fit after "must be".
    fn expected() -> String;

    /// The JSON Schema of the value. Sections register themselves and return a reference.
    fn schema(registry: &mut Registry) -> Value;

    /// `None` after at least one error has been reported.
    fn decode(node: &Node, context: &mut Context) -> Option<Self>;

    /// The permitted words, if the type is a fixed set of words.
    fn words() -> &'static [&'static str] {
        &[]
    }
}

/// A value that can be a default in the schema and the reference.
pub(crate) trait ShownDefault {
    /// The value in the form of the file.
    fn shown(&self) -> Value;
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    /// The place of the value; for a default, the place of the section without the key.
    pub span: Span,
    /// Whether the file contains the key.
    pub given: bool,
}

impl<T> Spanned<T> {
    /// A default of a section that the file does not have.
    pub fn not_given(value: T) -> Self {
        Self { value, span: Span::at(1, 1), given: false }
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The findings of one file, and the decoder's position in the tree.
#[derive(Default)]
pub(crate) struct Context {
    /// What places refer to, for messages.
    places: Arc<Places>,
    path: String,
    /// A word that is permitted in place of the current scalar.
    word: Option<&'static str>,
    findings: Vec<(Severity, Finding)>,
    errors: usize,
    dropped: usize,
    /// A file was not read in time.
    pub is_late: bool,
    /// The files that the configuration names, and fingerprints of their contents.
    pub named_files: BTreeMap<String, u64>,
    /// The cache of compiled firewall rules.
    pub compiled_rules: Arc<RuleCache>,
    /// Files with contents that expire.
    pub dated: Vec<DatedFile>,
    /// The programs, files and unix sockets of the host that are named.
    pub host_uses: HostUses,
    /// The authorities of this system, once they are read.
    pub authorities: Option<Arc<SystemAuthorities>>,
    /// The servers that weir would connect to.
    pub reached: Vec<(Endpoint, Span)>,
}

impl Context {
    /// A context for a configuration with these places.
    pub fn new(places: Arc<Places>) -> Self {
        Self { places, ..Self::default() }
    }

    /// Describes another place as text that fits after "in": "line 3", "line 3 of pools.yaml". `here`: the reported place.
    pub fn place(&self, place: Span, here: Span) -> String {
        self.places.in_words(place, here.source)
    }

    /// The file of a place and the position in it; for a place in the overlay, its pointer.
    pub fn source_of(&self, place: Span) -> (String, Option<Position>) {
        let file = self.places.name(place.source);
        match self.places.pointer(place) {
            Some(pointer) => (format!("{file}:{pointer}"), None),
            None => (file.to_owned(), place.position()),
        }
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Severity::Error, span, message.into(), None);
    }

    pub fn error_help(
        &mut self,
        span: Span,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        self.report(Severity::Error, span, message.into(), Some(suggestion.into()));
    }

    pub fn warning_help(
        &mut self,
        span: Span,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        self.report(Severity::Warning, span, message.into(), Some(suggestion.into()));
    }

    pub fn report(
        &mut self,
        severity: Severity,
        span: Span,
        message: String,
        suggestion: Option<String>,
    ) {
        self.errors += usize::from(severity == Severity::Error);
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        let finding = Finding { span, message, suggestion };
        self.findings.push((severity, finding));
    }

    /// "`PATH` must be EXPECTED, found FOUND".
    pub fn mismatch(&mut self, node: &Node, expected: &str, suggestion: Option<String>) {
        let word = self.word.map_or_else(String::new, |word| format!("`{word}` or "));
        let message = format!("{} must be {word}{expected}, found {}", self.path(), found(node));
        let suggestion = suggestion.or_else(|| {
            let NodeValue::Scalar(scalar) = &node.value else { return None };
            nearest(&scalar.text, self.word).map(|word| format!("did you mean `{word}`?"))
        });
        self.report(Severity::Error, node.span, message, suggestion);
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether there are errors or warnings.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Whether further findings are only counted, so that suggestions for them would be wasted work.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= DIAGNOSTICS_MAX
    }

    /// The path of the current node, for messages: "`pools.web.members[0]`".
    pub fn path(&self) -> String {
        if self.path.is_empty() { "the configuration".into() } else { format!("`{}`", self.path) }
    }

    /// Notes a file of the host at the current path. It is known by the last keys, because names are the user's.
    pub fn uses_file(&mut self, span: Span, value: &str) {
        let without_indices =
            self.path.split('[').map(|part| part.split_once(']').map_or(part, |(_, it)| it));
        let path: String = without_indices.collect();
        let keys: Vec<&str> = path.split('.').collect();
        let key = match &keys[..] {
            [section, _, last] if NAMED.contains(section) => format!("{section}.{last}"),
            [.., above, last] => format!("{above}.{last}"),
            _ => path,
        };
        self.host_uses.add(key, value.to_owned(), span);
    }

    /// Notes a server that weir would connect to.
    pub fn reaches(&mut self, span: Span, to: &Endpoint) {
        if let Endpoint::Literal(Address::Unix(path)) = to {
            self.host_uses.add(SOCKET.to_owned(), path.display().to_string(), span);
        }
        self.reached.push((to.clone(), span));
    }

    pub fn within_key<R>(&mut self, key: &str, body: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(&clip(key));
        // The word applies to the whole value, not to its parts.
        let word = self.word.take();
        let result = body(self);
        self.word = word;
        self.path.truncate(length);
        result
    }

    /// Decodes a value that may be `word` instead, so that messages mention the word.
    pub fn or_word<R>(&mut self, word: &'static str, body: impl FnOnce(&mut Self) -> R) -> R {
        self.word = Some(word);
        let result = body(self);
        self.word = None;
        result
    }

    fn within_index<R>(&mut self, index: usize, body: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.path.len();
        write!(self.path, "[{index}]").expect("writing to a String cannot fail");
        let word = self.word.take();
        let result = body(self);
        self.word = word;
        self.path.truncate(length);
        result
    }

    /// All findings in the order of files and lines, and the number of omitted findings.
    pub fn finish(mut self) -> (Vec<(Severity, Finding)>, usize) {
        let place = |span: Span| (self.places.rank(span.source), span.line, span.column);
        self.findings.sort_by_cached_key(|(_, finding)| place(finding.span));
        (self.findings, self.dropped)
    }
}

/// The kind of a node, as text.
fn found(node: &Node) -> String {
    match &node.value {
        NodeValue::Null => "nothing".into(),
        NodeValue::List(_) => "a list".into(),
        NodeValue::Map(_) => "a map".into(),
        NodeValue::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Number => format!("the number {}", clip(&scalar.text)),
            ScalarKind::Boolean => format!("the boolean {}", scalar.text),
            ScalarKind::Text => format!("the text \"{}\"", clip(&scalar.text)),
        },
    }
}

/// The reason why a text is invalid.
pub(crate) struct Invalid {
    /// `None`: [`Decode::expected`] is a sufficient explanation.
    pub reason: Option<String>,
    pub suggestion: Option<String>,
}

impl Invalid {
    pub fn plainly() -> Self {
        Self { reason: None, suggestion: None }
    }

    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), suggestion: None }
    }

    pub fn help(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// Decodes a scalar of any kind from its text; used by all scalar types.
pub(crate) fn decode_scalar<T: Decode>(
    node: &Node,
    context: &mut Context,
    parse: impl FnOnce(&Scalar) -> Result<T, Invalid>,
) -> Option<T> {
    let NodeValue::Scalar(scalar) = &node.value else {
        let suggestion = matches!(node.value, NodeValue::Null)
            .then(|| "give it a value, or remove the key".to_owned());
        context.mismatch(node, &T::expected(), suggestion);
        return None;
    };
    match parse(scalar) {
        Ok(value) => Some(value),
        Err(Invalid { reason: None, suggestion }) => {
            context.mismatch(node, &T::expected(), suggestion);
            None
        }
        Err(Invalid { reason: Some(reason), suggestion }) => {
            let message = format!("{}: {reason}", context.path());
            context.report(Severity::Error, node.span, message, suggestion);
            None
        }
    }
}

/// Decodes a scalar that must be text: a number or a boolean must be quoted, if quotes are sufficient.
pub(crate) fn decode_text<T: Decode>(
    node: &Node,
    context: &mut Context,
    parse: impl FnOnce(&str) -> Result<T, Invalid>,
) -> Option<T> {
    decode_scalar(node, context, |scalar| match scalar.kind() {
        ScalarKind::Text => parse(&scalar.text),
        ScalarKind::Number | ScalarKind::Boolean => match parse(&scalar.text) {
            Ok(_) => Err(Invalid::plainly().help(format!("quote it: \"{}\"", clip(&scalar.text)))),
            Err(invalid) => Err(Invalid { reason: None, ..invalid }),
        },
    })
}

impl<T: Decode> Decode for Spanned<T> {
    fn expected() -> String {
        T::expected()
    }

    fn schema(registry: &mut Registry) -> Value {
        T::schema(registry)
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        T::decode(node, context).map(|value| Self { value, span: node.span, given: true })
    }

    fn words() -> &'static [&'static str] {
        T::words()
    }
}

/// A list with at least one item.
impl<T: Decode> Decode for Vec<T> {
    fn expected() -> String {
        format!("a list, each item {}", T::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "type": "array", "items": T::schema(registry), "minItems": 1 })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let items = list::<T>(node, context)?;
        if items.is_empty() {
            let message = format!("{} is empty; it needs at least one item", context.path());
            context.error(node.span, message);
        }
        Some(decode_items(items, context))
    }
}

/// The items of a list; anything else is reported.
fn list<'n, T: Decode>(node: &'n Node, context: &mut Context) -> Option<&'n [Node]> {
    if let NodeValue::List(items) = &node.value {
        return Some(items);
    }
    let suggestion = match &node.value {
        NodeValue::Scalar(scalar) => Some(suggest_list::<T>(node, &scalar.text)),
        NodeValue::Map(_) => Some("begin each item with `- `".into()),
        _ => None,
    };
    context.mismatch(node, &Vec::<T>::expected(), suggestion);
    None
}

/// A list that may be empty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List<T>(pub Vec<T>);

impl<T> std::ops::Deref for List<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Decode> Decode for List<T> {
    fn expected() -> String {
        Vec::<T>::expected()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "type": "array", "items": T::schema(registry) })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let items = list::<T>(node, context)?;
        let decoded = decode_items(items, context);
        // A list with only invalid items is not meant to be empty.
        (items.is_empty() || !decoded.is_empty()).then_some(Self(decoded))
    }
}

/// The correct form of a list, if the value is a single item or something else.
fn suggest_list<T: Decode>(node: &Node, text: &str) -> String {
    if T::decode(node, &mut Context::default()).is_some() {
        return format!("write [ {} ]", clip(text));
    }
    match (nearest(text, T::words().iter().copied()), T::words()) {
        (Some(word), _) => format!("write [ {word} ]"),
        (None, []) => "write a list: [ … ]".into(),
        (None, words) => format!("name some of [ {} ]", words.join(", ")),
    }
}

/// The valid items; the others have been reported.
fn decode_items<T: Decode>(items: &[Node], context: &mut Context) -> Vec<T> {
    items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| context.within_index(index, |context| T::decode(item, context)))
        .collect()
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OneOrMany<T>(pub Vec<T>);

impl<T: Decode> Decode for OneOrMany<T> {
    fn expected() -> String {
        format!("{}, or a list of them", T::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        let one = T::schema(registry);
        let many = Vec::<T>::schema(registry);
        json!({ "anyOf": [one, many] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match node.value {
            NodeValue::List(_) => Vec::decode(node, context).map(Self),
            _ => T::decode(node, context).map(|value| Self(vec![value])),
        }
    }
}

/// A map with keys chosen by the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedMap<T>(pub Vec<NamedItem<T>>);

impl<T> Default for NamedMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One entry of a [`NamedMap`] map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedItem<T> {
    pub name: String,
    pub name_span: Span,
    /// `None`: the entry is invalid, which was reported.
    pub value: Option<T>,
}

impl<T: Decode> Decode for NamedMap<T> {
    fn expected() -> String {
        "a map from names to their settings".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({
            "type": "object",
            "additionalProperties": T::schema(registry),
            "propertyNames": { "pattern": NAME_PATTERN, "maxLength": NAME_BYTES_MAX },
        })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            context.mismatch(node, &Self::expected(), None);
            return None;
        };
        let decoded = entries.iter().map(|entry| {
            if let Err(invalid) = check_name(&entry.key) {
                let message = format!("{}: {invalid}", context.path());
                context.error(entry.key_span, message);
            }
            NamedItem {
                name: entry.key.clone(),
                name_span: entry.key_span,
                value: context.within_key(&entry.key, |context| T::decode(&entry.value, context)),
            }
        });
        Some(Self(decoded.collect()))
    }
}

/// The schema's equivalent of [`check_name`].
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._/-]*$";

/// Checks a name. Names appear in logs, metric labels and paths of the admin listener, so few characters are permitted.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has at most {NAME_BYTES_MAX} characters"));
    }
    let sound = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'));
    if sound {
        Ok(())
    } else {
        Err(format!(
            "\"{}\" is not a name: letters, digits and `.` `_` `-` `/`, a letter or digit first",
            clip(name)
        ))
    }
}

/// A section during decoding: a map whose known keys are taken one by one.
pub(crate) struct Fields<'a> {
    span: Span,
    entries: &'a [Entry],
    /// Keys that were probably misspelt, each with the misspelt entry: they are not also reported as missing.
    misspelt: Vec<(&'static str, &'a Entry)>,
}

impl<'a> Fields<'a> {
    /// Opens a section and reports every unknown key.
    pub fn open<S: Section>(node: &'a Node, context: &mut Context) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            let suggestion = match &node.value {
                NodeValue::Scalar(scalar) if is_key_without_space::<S>(&scalar.text) => {
                    Some("put a space after the colon of a key".into())
                }
                NodeValue::Scalar(scalar)
                    if !context.path.is_empty()
                        && nearest(&scalar.text, context.word).is_none() =>
                {
                    as_only_required_key::<S>(scalar)
                }
                NodeValue::Null => Some("give it a value, or remove the key".into()),
                _ => None,
            };
            context.mismatch(node, &section_expected::<S>(), suggestion);
            return None;
        };
        let mut misspelt = Vec::new();
        for entry in entries.iter() {
            if S::KEYS.contains(&entry.key.as_str()) {
                continue;
            }
            if S::LATER.contains(&entry.key.as_str()) {
                not_supported(context, entry.key_span, &entry.key);
                continue;
            }
            let message = format!("unknown key `{}` in {}", clip(&entry.key), context.path());
            if context.is_full() {
                context.error(entry.key_span, message);
                continue;
            }
            let elsewhere = elsewhere(S::PATH, &entry.key);
            let meant = meant(&entry.key, S::KEYS.iter().copied()).filter(|_| elsewhere.is_none());
            misspelt.extend(meant.map(|meant| (meant, entry)));
            let suggestion = elsewhere.unwrap_or_else(|| suggest_key::<S>(&entry.key, meant));
            context.error_help(entry.key_span, message, suggestion);
        }
        Some(Self { span: node.span, entries, misspelt })
    }

    /// The entry of a key, or of a misspelt key if the intention is unambiguous. So all errors below a misspelt key are
    /// reported at once.
    fn entry(&self, key: &str) -> Option<&'a Entry> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.key == key) {
            return Some(entry);
        }
        let mut misspelt = self.misspelt.iter().filter(|(meant, _)| *meant == key);
        let (_, entry) = misspelt.next()?;
        misspelt.next().is_none().then_some(*entry)
    }

    /// Whether the section has the key, even misspelt.
    fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
            || self.misspelt.iter().any(|(meant, _)| *meant == key)
    }

    pub fn optional<T: Decode>(&self, key: &str, context: &mut Context) -> Option<Spanned<T>> {
        let entry = self.entry(key)?;
        context.within_key(&entry.key, |context| Spanned::decode(&entry.value, context))
    }

    pub fn required<T: Decode>(&self, key: &str, context: &mut Context) -> Option<Spanned<T>> {
        if !self.has(key) {
            let message = format!("{} lacks `{key}`", context.path());
            context.error_help(self.span, message, format!("add `{key}:` with {}", T::expected()));
            return None;
        }
        self.optional(key, context)
    }

    /// A key that is required unless another key is present. `|` separates several alternatives.
    pub fn either<T: Decode>(
        &self,
        key: &str,
        other: &str,
        context: &mut Context,
    ) -> Option<Spanned<T>> {
        if other.split('|').any(|other| self.has(other)) {
            return self.optional(key, context);
        }
        self.required(key, context)
    }

    pub fn or_default<T: Decode>(
        &self,
        key: &str,
        default: T,
        context: &mut Context,
    ) -> Spanned<T> {
        self.optional(key, context).unwrap_or(Spanned {
            value: default,
            span: self.span,
            given: false,
        })
    }
}

/// Reports a key or value of the language that this version does not support.
pub(crate) fn not_supported(context: &mut Context, span: Span, what: &str) {
    context.error_help(
        span,
        format!("`{what}` is not supported yet"),
        format!("remove `{what}`: this version of weir cannot do it"),
    );
}

/// A map with fixed keys, declared by `section!`.
pub(crate) trait Section {
    /// The path of the section: `pools.NAME.reuse`.
    const PATH: &'static str;
    /// The keys in order of declaration.
    const KEYS: &'static [&'static str];
    /// Whether each of these keys is required.
    const REQUIRED: &'static [bool];
    /// Keys that the language has and this version refuses.
    const LATER: &'static [&'static str];

    /// The values without the section in the file: its defaults.
    fn absent() -> Self;
}

/// A section of the file, or its defaults.
pub(crate) fn or_absent<S: Section + Clone>(section: Option<&Spanned<S>>) -> S {
    section.map_or_else(S::absent, |section| section.value.clone())
}

/// A missing value is valid, and gives `None`.
pub(crate) fn if_given<C, T>(
    choice: Option<&C>,
    of: impl FnOnce(&C) -> Option<T>,
) -> Option<Option<T>> {
    choice.map_or(Some(None), |choice| of(choice).map(Some))
}

/// Whether a text begins with a key of the section and a colon: `path:/x`, not `https://…`.
fn is_key_without_space<S: Section>(text: &str) -> bool {
    text.split_once(':').is_some_and(|(key, _)| S::KEYS.contains(&key))
}

/// The map that a text probably means at the place of a section with one required key: `{ to: TEXT }`.
fn as_only_required_key<S: Section>(scalar: &Scalar) -> Option<String> {
    let mut required = S::KEYS.iter().zip(S::REQUIRED).filter(|(_, is_required)| **is_required);
    let (Some((key, _)), None) = (required.next(), required.next()) else { return None };
    let is_text = scalar.kind() == ScalarKind::Text;
    is_text.then(|| format!("write `{{ {key}: {} }}`", Value::from(clip(&scalar.text))))
}

fn section_expected<S: Section>() -> String {
    /// More keys than this are cut.
    const KEYS_MAX: usize = 6;
    const KEYS_OF_MORE: usize = 4;
    let (shown, more) =
        if S::KEYS.len() <= KEYS_MAX { (S::KEYS.len(), "") } else { (KEYS_OF_MORE, ", …") };
    let keys: Vec<String> = S::KEYS.iter().take(shown).map(|key| format!("`{key}`")).collect();
    format!("a map with {}{more}", keys.join(", "))
}

fn suggest_key<S: Section>(key: &str, meant: Option<&str>) -> String {
    if let Some(known) = meant {
        return format!("did you mean `{known}`?");
    }
    if let Some((known, _)) = key.split_once(':')
        && S::KEYS.contains(&known)
    {
        return format!("put a space after the colon: `{known}: …`");
    }
    if let Some(later) = nearest(key, S::LATER.iter().copied()) {
        return format!("did you mean `{later}`? It is not supported yet");
    }
    let known: Vec<String> = S::KEYS.iter().map(|key| format!("`{key}`")).collect();
    format!("known keys: {}", known.join(", "))
}

/// All information in the declarations: schemas and reference, in the order of first use.
#[derive(Default)]
pub(crate) struct Registry {
    pub sections: Vec<SectionInfo>,
}

/// One section for the schema and the reference.
pub(crate) struct SectionInfo {
    pub name: &'static str,
    pub path: &'static str,
    pub doc: String,
    pub keys: Vec<KeyInfo>,
}

/// One key of a section.
pub(crate) struct KeyInfo {
    pub key: &'static str,
    pub doc: String,
    pub expected: String,
    pub required: bool,
    /// The key is required, unless this other key is present. `|` separates several alternatives.
    pub or_else: Option<&'static str>,
    pub default: Option<Value>,
    pub schema: Value,
    /// The types that take the key, in a section whose keys depend on a type.
    pub types: Option<Types>,
}

impl Registry {
    /// Registers a section once and returns a reference to it.
    pub fn section(
        &mut self,
        name: &'static str,
        path: &'static str,
        doc: &str,
        keys: impl FnOnce(&mut Self) -> Vec<KeyInfo>,
    ) -> Value {
        if !self.sections.iter().any(|section| section.name == name) {
            let index = self.sections.len();
            self.sections.push(SectionInfo { name, path, doc: tidy(doc), keys: Vec::new() });
            let keys = keys(self);
            self.sections[index].keys = keys;
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// The schema of a value that is one of these words, with their meanings.
pub(crate) fn words_schema(words: &[(&str, &str)]) -> Value {
    let one =
        |(word, meaning): &(&str, &str)| json!({ "const": word, "description": tidy(meaning) });
    json!({ "anyOf": words.iter().map(one).collect::<Vec<_>>() })
}

/// Converts doc comments to running text.
pub(crate) fn tidy(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
