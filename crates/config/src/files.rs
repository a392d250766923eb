//! The files of a configuration as they were read: their texts, and one tree of all sections.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::conceal::Concealed;
use crate::config::Config;
use crate::decode::{Context, Decode as _};
use crate::diagnostic::{Diagnostic, Excerpt, Severity};
use crate::host_rights;
use crate::host_uses::HostUses;
use crate::include;
use crate::overlay::{self, Change, Difference, Overlay};
use crate::parts::Parts;
use crate::places::{PlaceNames, Pointers};
use crate::rule_cache::RuleCache;
use crate::shapes::FilePath;
use crate::texts::{self, Read, Texts};
use crate::tree::{Finding, Lines, Node, NodeValue, Source, Span};
use crate::{raw, validate, writer};

/// The result of loading a configuration file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// All findings, in the order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if at least one of the findings is an error.
    pub config: Option<Config>,
    /// The keys of programs, files and sockets of this host that a change over the network would introduce.
    pub introduced: Vec<String>,
}

/// The files of a configuration, parsed but not yet checked.
#[derive(Debug, Clone)]
pub struct Files {
    texts: Texts,
    /// The sections of all files; `None`: there are none.
    root: Option<Node>,
    compiled_rules: Arc<RuleCache>,
}

impl Files {
    /// Reads a file and the files that it includes. Relative paths start at its directory. [`Self::check`] reports
    /// errors.
    pub fn read(path: &Path) -> Self {
        Self::of_main(&path.display().to_string(), texts::read(path))
    }

    /// Uses a text instead of a file. `name` is its name in diagnostics, and relative paths start at the directory of
    /// `name`.
    pub fn of_text(name: &str, text: &str) -> Self {
        Self::of_main(name, texts::given(text))
    }

    /// Uses bytes instead of a file.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self::of_main(name, texts::bytes(bytes))
    }

    fn of_main(name: &str, read: Read) -> Self {
        let mut texts = Texts::beside(name);
        let root = texts.add(name.to_owned(), read);
        let root = root.map(|root| include::include(root, &mut texts));
        Self { texts, root, compiled_rules: Arc::default() }
    }

    /// Reads the files again. Rules whose files have the same content are not compiled again.
    pub fn read_again(&self, path: &Path) -> Self {
        Self { compiled_rules: Arc::clone(&self.compiled_rules), ..Self::read(path) }
    }

    /// The names of the files: of the main file as given, and of the included ones.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.texts.files.iter().map(|file| &*file.name)
    }

    /// The names of the files, and their texts as they were read.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.files.iter().map(|file| (&*file.name, &*file.text))
    }

    /// The directory for data that must survive a restart. An overlay is stored in it, so it cannot change it.
    pub fn state_dir(&self) -> PathBuf {
        let node = self.root.as_ref().and_then(|root| root.get("state_dir"));
        let given = node.and_then(|node| FilePath::decode(node, &mut Context::default()));
        self.texts.directory.join(given.map_or_else(raw::default_state_dir, |path| path.0))
    }

    /// Checks the files with an overlay on top.
    pub fn check(&self, overlay: &Overlay) -> Loaded {
        self.check_after(overlay, None)
    }

    /// As [`Self::check`], for a change of `before` by a user on the network, who can introduce no program, file or unix socket
    /// of this host.
    pub fn check_from_network(&self, overlay: &Overlay, before: &Config) -> Loaded {
        self.check_after(overlay, Some(before))
    }

    fn check_after(&self, overlay: &Overlay, before: Option<&Config>) -> Loaded {
        let mut names = self.texts.names();
        let mut findings = self.texts.findings.clone();
        // If a file could not be read, the names defined in it would seem to be missing.
        let is_whole = !self.texts.is_incomplete;
        let mut root = self.root.as_ref().filter(|_| is_whole).map(Cow::Borrowed);
        if let Some(files) = root.as_deref()
            && !overlay.is_empty()
        {
            let (overlaid, stale) = overlay.apply(files.clone(), &mut names.pointers);
            findings.extend(stale.into_iter().map(|finding| (Severity::Warning, finding)));
            root = Some(Cow::Owned(overlaid));
        }
        let is_broken = findings.iter().any(|(severity, _)| *severity == Severity::Error);
        let names = Arc::new(names);
        let mut context = Context::new(Arc::clone(&names));
        context.compiled_rules = Arc::clone(&self.compiled_rules);
        for (severity, Finding { span, message, suggestion }) in findings {
            context.report(severity, span, message, suggestion);
        }
        let mut config = None;
        let mut introduced = Vec::new();
        if let Some(root) = root {
            let file = raw::File::decode(&root, &mut context).map(raw::File::with_nobody);
            let file = file.filter(|file| {
                host_rights::note_programs(file, &mut context);
                if let Some(before) = before {
                    let of_files = || self.host_uses();
                    introduced = host_rights::refuse_new(&before.host_uses, of_files, &mut context);
                }
                introduced.is_empty()
            });
            config = file.and_then(|file| {
                validate::configuration(&file, &self.texts.directory, &mut context)
            });
            if let Some(config) = &mut config {
                let named = std::mem::take(&mut context.named_files);
                config.parts = Parts::of(&root).with_files(named);
            }
        } else if !is_broken {
            context.error_help(
                Span::at(1, 1),
                "the configuration is empty",
                "it needs at least `virtual_servers` and `pools`: see examples/minimal.yaml",
            );
        }
        Loaded { diagnostics: self.diagnostics(context, &names), config, introduced }
    }

    /// What the files alone use of the host.
    fn host_uses(&self) -> HostUses {
        let mut context = Context::new(Arc::new(self.texts.names()));
        let file = self.root.as_ref().and_then(|root| raw::File::decode(root, &mut context));
        if let Some(file) = file {
            host_rights::note_programs(&file, &mut context);
        }
        context.host_uses
    }

    /// The value of a single document.
    fn value(&self) -> Result<Value, Vec<Diagnostic>> {
        match &self.root {
            Some(root) if self.texts.findings.is_empty() => Ok(overlay::value_of(root)),
            Some(_) | None => {
                let names = Arc::new(self.texts.names());
                let mut context = Context::new(Arc::clone(&names));
                if self.texts.findings.is_empty() {
                    context.error(Span::at(1, 1), "the document is empty");
                }
                for (severity, Finding { span, message, suggestion }) in &self.texts.findings {
                    context.report(*severity, *span, message.clone(), suggestion.clone());
                }
                Err(self.diagnostics(context, &names))
            }
        }
    }

    /// The overlay after further changes, made in order; or the findings. The resulting configuration is not checked
    /// yet.
    pub fn compose(
        &self,
        overlay: &Overlay,
        changes: &[Change],
    ) -> Result<Overlay, Vec<Diagnostic>> {
        let mut names = self.texts.names();
        let composed = overlay.compose(&self.root_or_empty(), changes, &mut names.pointers);
        composed.map_err(|findings| {
            let names = Arc::new(names);
            let mut context = Context::new(Arc::clone(&names));
            for Finding { span, message, suggestion } in findings {
                context.report(Severity::Error, span, message, suggestion);
            }
            self.diagnostics(context, &names)
        })
    }

    /// The effects of an overlay on the files.
    pub fn differences(&self, overlay: &Overlay) -> Vec<Difference> {
        overlay.differences(&self.root_or_empty(), &self.texts.names())
    }

    /// The files with the overlay as one file, without comments and `include`. It is the same configuration for any
    /// reader that finds the same other files at the same relative paths.
    pub fn merged(&self, overlay: &Overlay) -> String {
        let root = self.root_or_empty().into_owned();
        writer::write(&overlay.apply(root, &mut Pointers::default()).0)
    }

    fn root_or_empty(&self) -> Cow<'_, Node> {
        let empty = || Node { span: Span::at(1, 1), value: NodeValue::Map(Vec::new()) };
        self.root.as_ref().map_or_else(|| Cow::Owned(empty()), Cow::Borrowed)
    }

    /// Adds names, paths and lines to the findings.
    fn diagnostics(&self, context: Context, names: &PlaceNames) -> Vec<Diagnostic> {
        let (findings, dropped) = context.finish();
        // Only files with findings are searched for lines.
        let mut lines = HashMap::new();
        for (_, finding) in &findings {
            if let Some(index) = finding.span.source.index() {
                let text = self.texts.files.get(index).map_or("", |file| &file.text);
                lines.entry(index).or_insert_with(|| Lines::new(text));
            }
        }
        let mut shown: HashMap<usize, Concealed<'_>> =
            lines.iter().map(|(index, lines)| (*index, Concealed::new(lines))).collect();
        let mut diagnostics: Vec<Diagnostic> = findings
            .into_iter()
            .map(|(severity, finding)| {
                let lines = finding.span.source.index().and_then(|index| shown.get_mut(&index));
                diagnostic(names, lines, severity, finding)
            })
            .collect();
        if dropped > 0 {
            let message = format!("{dropped} more findings are not shown");
            let file = names.file(Source::MAIN);
            diagnostics.push(Diagnostic::of_file(Severity::Error, message, file));
        }
        diagnostics
    }
}

/// The value of a document. Files that it refers to are not read.
pub(crate) fn document(name: &str, bytes: Vec<u8>) -> Result<Value, Vec<Diagnostic>> {
    let mut texts = Texts::beside(name);
    let root = texts.add(name.to_owned(), texts::bytes(bytes));
    Files { texts, root, compiled_rules: Arc::default() }.value()
}

/// Adds a name, a path and a line to a finding.
fn diagnostic(
    names: &PlaceNames,
    lines: Option<&mut Concealed<'_>>,
    severity: Severity,
    finding: Finding,
) -> Diagnostic {
    let span = finding.span;
    let position = span.position();
    let line = lines.filter(|_| position.is_some()).and_then(|lines| lines.get(span.line));
    Diagnostic {
        severity,
        message: finding.message,
        file: names.file(span.source).to_owned(),
        pointer: names.pointer(span),
        position,
        excerpt: line.map(|text| Excerpt::cut(text, span.column, span.length)),
        suggestion: finding.suggestion,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_have_the_values_of_configurations() {
        let text = "a: [ 5, off, true, \"7\", 1s ]\ninclude: /nowhere.yaml\nb: { c: }\n";
        assert_eq!(
            document("change.yaml", text.into()),
            Ok(
                json!({ "a": [5, "off", true, "7", "1s"], "include": "/nowhere.yaml", "b": { "c": null } })
            )
        );
    }

    #[test]
    fn documents_with_mistakes_have_findings() {
        let check = |text: &[u8], line, expected: &str| {
            let findings = document("change.yaml", text.to_vec()).unwrap_err();
            let Diagnostic { message, file, position, .. } = &findings[0];
            assert_eq!((&**file, position.map(|it| it.line)), ("change.yaml", Some(line)));
            assert!(message.contains(expected), "{message}");
        };
        check(b"", 1, "the document is empty");
        check(b"a: 1\na: 2\n", 2, "a");
        check(b"a: [ 1\n", 2, "not valid YAML");
        check(b"a: \xff\n", 1, "the byte 0xFF is not UTF-8");
    }
}
