//! The values of a configuration, merged from all its sources: what is checked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conceal::ConcealedLines;
use crate::config::Config;
use crate::decode::{Context, Decode as _};
use crate::diagnostic::{Diagnostic, Excerpt, Severity};
use crate::document::{Document, Finding, Lines, Node, SourceId, Span};
use crate::host_rights;
use crate::host_uses::HostUses;
use crate::parts::Parts;
use crate::places::Places;
use crate::rule_cache::RuleCache;
use crate::source_keys::INCLUDE;
use crate::{raw, validate};

/// The result of checking a configuration.
#[derive(Debug, Clone)]
pub struct LoadResult {
    /// All findings, in the order of documents and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if at least one of the findings is an error.
    pub config: Option<Config>,
    /// The keys of programs, files and sockets of this host that a change over the network would introduce.
    pub introduced: Vec<String>,
}

/// The values of all sources, with their places and the findings of reading and merging them.
#[derive(Debug, Clone, Default)]
pub struct MergedValues {
    /// The values; `None`: there are none.
    pub root: Option<Node>,
    /// What the places of the values refer to.
    pub places: Places,
    /// Findings of reading and merging.
    pub findings: Vec<(Severity, Finding)>,
    /// Whether a part could not be read. Names that it defines would seem to be missing, so nothing more is checked.
    pub is_incomplete: bool,
    /// The directory for relative paths.
    pub directory: PathBuf,
    /// Compiled rules of checks before this one.
    pub compiled_rules: Arc<RuleCache>,
}

impl MergedValues {
    /// Nothing yet, with this directory for relative paths.
    pub fn new(directory: PathBuf, compiled_rules: Arc<RuleCache>) -> Self {
        Self { directory, compiled_rules, ..Self::default() }
    }

    /// The values of a single document, which cannot include others.
    pub(crate) fn of_one(document: Document) -> Self {
        let directory = Path::new(&document.name).parent().unwrap_or(Path::new(""));
        let mut merged = Self::new(directory.to_owned(), Arc::default());
        merged.is_incomplete = document.is_unknown();
        let findings = document.findings.iter().cloned();
        merged.findings.extend(findings.map(|finding| (Severity::Error, finding)));
        merged.root = document.root.clone();
        merged.places.documents.push(Arc::new(document));
        let include = merged.root.as_ref().and_then(|root| root.get(INCLUDE));
        let finding = include.map(|node| {
            let message = format!("`{INCLUDE}`: a text by itself cannot include files");
            Finding::new(node.span, message).help("write their sections into it")
        });
        merged.findings.extend(finding.map(|finding| (Severity::Error, finding)));
        merged
    }

    /// The values; without any: an empty map.
    pub fn values(&self) -> Node {
        self.root.clone().unwrap_or_else(|| Node::map(Span::at(1, 1), Vec::new()))
    }

    /// Checks the values.
    pub fn check(self) -> LoadResult {
        self.check_after(None)
    }

    /// As [`Self::check`], for a change of `before` by a user on the network, who can introduce no program, file or unix socket
    /// of this host. `of_host`: the values of the sources that only users of this host can change.
    pub fn check_from_network(self, before: &Config, of_host: &Self) -> LoadResult {
        self.check_after(Some((before, of_host)))
    }

    fn check_after(self, rights: Option<(&Config, &Self)>) -> LoadResult {
        let Self { root, places, findings, is_incomplete, directory, compiled_rules } = self;
        let root = root.filter(|_| !is_incomplete);
        let is_broken = findings.iter().any(|(severity, _)| *severity == Severity::Error);
        let places = Arc::new(places);
        let mut context = Context::new(Arc::clone(&places));
        context.compiled_rules = compiled_rules;
        report(findings, &mut context);
        let mut config = None;
        let mut introduced = Vec::new();
        if let Some(root) = root {
            let file = raw::File::decode(&root, &mut context).map(raw::File::with_nobody);
            let file = file.filter(|file| {
                host_rights::note_programs(file, &mut context);
                if let Some((before, of_host)) = rights {
                    let of_host = || of_host.host_uses();
                    introduced = host_rights::refuse_new(&before.host_uses, of_host, &mut context);
                }
                introduced.is_empty()
            });
            config = file.and_then(|file| validate::configuration(&file, &directory, &mut context));
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
        LoadResult { diagnostics: diagnostics(context, &places), config, introduced }
    }

    /// What the values use of the host.
    fn host_uses(&self) -> HostUses {
        let mut context = Context::new(Arc::new(self.places.clone()));
        let file = self.root.as_ref().and_then(|root| raw::File::decode(root, &mut context));
        if let Some(file) = file {
            host_rights::note_programs(&file, &mut context);
        }
        context.host_uses
    }
}

/// Findings as diagnostics, in the order of documents and lines.
pub fn describe(findings: Vec<(Severity, Finding)>, places: Places) -> Vec<Diagnostic> {
    let places = Arc::new(places);
    let mut context = Context::new(Arc::clone(&places));
    report(findings, &mut context);
    diagnostics(context, &places)
}

fn report(findings: Vec<(Severity, Finding)>, context: &mut Context) {
    for (severity, Finding { span, message, suggestion }) in findings {
        context.report(severity, span, message, suggestion);
    }
}

/// Adds names, paths and lines to the findings.
fn diagnostics(context: Context, places: &Places) -> Vec<Diagnostic> {
    let (findings, dropped) = context.finish();
    // Only documents with findings are searched for lines.
    let mut lines = HashMap::new();
    for (_, finding) in &findings {
        let source = finding.span.source;
        if let Some(document) = places.document(source) {
            lines.entry(source).or_insert_with(|| Lines::new(&document.text));
        }
    }
    let mut shown: HashMap<SourceId, ConcealedLines<'_>> =
        lines.iter().map(|(source, lines)| (*source, ConcealedLines::new(lines))).collect();
    let mut diagnostics: Vec<Diagnostic> = findings
        .into_iter()
        .map(|(severity, finding)| {
            diagnostic(places, shown.get_mut(&finding.span.source), severity, finding)
        })
        .collect();
    if dropped > 0 {
        let message = format!("{dropped} more findings are not shown");
        let file = places.name(SourceId::MAIN);
        diagnostics.push(Diagnostic::of_file(Severity::Error, message, file));
    }
    diagnostics
}

/// Adds a name, a path and a line to a finding.
fn diagnostic(
    places: &Places,
    lines: Option<&mut ConcealedLines<'_>>,
    severity: Severity,
    finding: Finding,
) -> Diagnostic {
    let span = finding.span;
    let position = span.position();
    let line = lines.filter(|_| position.is_some()).and_then(|lines| lines.get(span.line));
    Diagnostic {
        severity,
        message: finding.message,
        file: places.name(span.source).to_owned(),
        pointer: places.pointer(span),
        position,
        excerpt: line.map(|text| Excerpt::cut(text, span.column, span.length)),
        suggestion: finding.suggestion,
    }
}
