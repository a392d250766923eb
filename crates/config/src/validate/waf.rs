//! Inspection by the web application firewall: rules are compiled once, and shared by sections with the same settings.

mod checks;
pub(super) mod cookies;
mod exclusions;
mod openapi;
mod responses;
mod settings;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_core::policy::{Action, Policy};
use weir_waf::body::Limits;
use weir_waf::checks::Checks;
use weir_waf::checks::declared::Interface;
use weir_waf::exclusion::Exclusion;
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{RuleSet, Settings};
use weir_waf::seclang::Problem;

use self::checks::WantedChecks;
use self::cookies::WantedCookies;
use super::names::{by_name, find};
use super::policy;
use crate::decode::{Context, NamedItem, Spanned};
use crate::diagnostic::Severity;
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw::policy::WafMode;
use crate::raw::{self as all, waf as raw};
use crate::rule_files::{self, BUILTIN};
use crate::snapshot::{Record, Responses, UnjudgedAction, Waf};

/// Maximum number of rule problems that are shown at one place.
const PROBLEMS_SHOWN_MAX: usize = 10;

/// Paths of the file, relative to the configuration's directory.
type Paths = Vec<PathBuf>;
/// Rule files, and values that their rules do not inspect.
type Sources = (Paths, Vec<Exclusion>);
/// Names and values, sorted by name.
type Variables = Vec<(String, String)>;

/// The profiles, and the results so far; `None` for invalid ones, which were reported.
pub(super) struct WafProfiles<'a> {
    profiles: &'a [NamedItem<raw::Waf>],
    by_name: BTreeMap<&'a str, usize>,
    directory: &'a Path,
    record: Record,
    pub(super) used: HashSet<usize>,
    of_profile: HashMap<usize, Option<Arc<Waf>>>,
    rules: HashMap<Sources, Option<Arc<RuleSet>>>,
    views: HashMap<(Sources, Variables), Option<Arc<CommonTexts>>>,
    interfaces: HashMap<PathBuf, Option<Interface>>,
    made: HashMap<WafSettings, Arc<Waf>>,
}

/// All settings of a section.
#[derive(PartialEq, Eq, Hash)]
struct WafSettings {
    profile: Option<String>,
    sources: Sources,
    variables: Variables,
    checks: WantedChecks,
    cookies: WantedCookies,
    mode: WafMode,
    arguments_max: Option<u32>,
    depth_max: Option<u16>,
    body_bytes_max: u64,
    files_bytes_max: u64,
    body_timeout_ms: u64,
    responses: Option<Arc<Responses>>,
    work_bytes_max: u64,
    time_max_ms: u64,
    unjudged: raw::Unjudged,
}

impl<'a> WafProfiles<'a> {
    pub fn new(profiles: &'a [NamedItem<raw::Waf>], directory: &'a Path, file: &all::File) -> Self {
        Self {
            profiles,
            by_name: by_name(profiles),
            directory,
            record: record(file),
            used: HashSet::new(),
            of_profile: HashMap::new(),
            rules: HashMap::new(),
            views: HashMap::new(),
            interfaces: HashMap::new(),
            made: HashMap::new(),
        }
    }

    /// The inspection of a virtual server, if it is valid.
    pub fn of(
        &mut self,
        choice: &Spanned<ProfileOr<raw::Waf>>,
        context: &mut Context,
    ) -> Option<Arc<Waf>> {
        let name = match &choice.value {
            ProfileOr::Inline(raw) => return self.waf(raw, None, context),
            ProfileOr::Name(name) => name,
        };
        let name = Spanned { value: name.clone(), span: choice.span, given: true };
        let index = find("waf profile", &self.by_name, &name, context)?;
        if self.used.insert(index) {
            let profile = &self.profiles[index];
            let raw = profile.value.as_ref();
            let made = raw.and_then(|raw| self.waf(raw, Some(&profile.name), context));
            self.of_profile.insert(index, made);
        }
        self.of_profile.get(&index).cloned().flatten()
    }

    fn waf(
        &mut self,
        raw: &raw::Waf,
        profile: Option<&str>,
        context: &mut Context,
    ) -> Option<Arc<Waf>> {
        let variables = settings::variables(raw, context);
        let checks = checks::wanted(raw, self.directory, context);
        let policy = checks.as_ref().and_then(Option::as_ref).map(|(policy, _)| policy);
        let cookies = cookies::wanted(raw, self.directory, policy, context);
        let responses = responses::wanted(raw, context);
        let exclusions = exclusions::wanted(raw, context);
        let wanted = WafSettings {
            profile: profile.map(str::to_owned),
            sources: (self.paths(raw), exclusions?),
            variables: variables?,
            checks: checks?,
            cookies: cookies?,
            mode: raw.mode.as_ref()?.value,
            arguments_max: raw.arguments_max.as_ref().map(|count| count.value.0),
            depth_max: raw.depth_max.as_ref().map(|depth| depth.value.0),
            body_bytes_max: raw.body_size_max.value.0,
            files_bytes_max: raw.files_size_max.value.0,
            body_timeout_ms: raw.body_timeout.0,
            responses: responses?,
            work_bytes_max: raw.work_max.value.0,
            time_max_ms: raw.time_max.0,
            unjudged: raw.unjudged.value,
        };
        if let Some(made) = self.made.get(&wanted) {
            return Some(Arc::clone(made));
        }
        let view = self.view(raw, &wanted, context);
        if let Some(common) = &view {
            responses::warn_of_no_effect(raw, common.view(), context);
        }
        let interface = match &wanted.checks {
            Some((_, Some(path))) => Some(self.interface(raw, path, context)?),
            _ => None,
        };
        let cookies = match &wanted.cookies {
            Some((terms, _)) => Some(cookies::with_keys(raw, terms, self.directory, context)?),
            None => None,
        };
        let wanted_waf = wanted.with(view?, interface);
        let made = Arc::new(Waf { record: self.record, cookies, ..wanted_waf });
        self.made.insert(wanted, Arc::clone(&made));
        Some(made)
    }

    /// The description of an application, which is read once.
    fn interface(
        &mut self,
        raw: &raw::Waf,
        path: &Path,
        context: &mut Context,
    ) -> Option<Interface> {
        if let Some(known) = self.interfaces.get(path) {
            return known.clone();
        }
        let read = checks::interface(raw, self.directory, context);
        self.interfaces.insert(path.to_owned(), read.clone());
        read
    }

    fn paths(&self, raw: &raw::Waf) -> Paths {
        let Some(rules) = &raw.rules else {
            return vec![BUILTIN.into()];
        };
        let rules = rules.value.0.iter().map(|path| &path.value.0);
        rules.map(|path| resolved(path, self.directory)).collect()
    }

    /// The rules with the settings of a section.
    fn view(
        &mut self,
        raw: &raw::Waf,
        wanted: &WafSettings,
        context: &mut Context,
    ) -> Option<Arc<CommonTexts>> {
        let key = (wanted.sources.clone(), wanted.variables.clone());
        if let Some(view) = self.views.get(&key) {
            return view.clone();
        }
        let span = place(raw);
        let view = self.rules(raw, &wanted.sources, context).and_then(|rules| {
            settings::warn_of_no_effect(raw, &rules, context);
            exclusions::warn_of_no_effect(raw, &rules, context);
            let settings = Settings { variables: wanted.variables.clone() };
            match context.compiled_rules.view(&rules, &settings) {
                Ok(common) => {
                    report(&common.view().warnings, Severity::Warning, span, context);
                    Some(common)
                }
                Err(problems) => {
                    report(&problems, Severity::Error, span, context);
                    None
                }
            }
        });
        self.views.insert(key, view.clone());
        view
    }

    fn rules(
        &mut self,
        raw: &raw::Waf,
        sources: &Sources,
        context: &mut Context,
    ) -> Option<Arc<RuleSet>> {
        if let Some(rules) = self.rules.get(sources) {
            return rules.clone();
        }
        let rules = compile(raw, self.directory, &sources.1, context);
        self.rules.insert(sources.clone(), rules.clone());
        rules
    }
}

impl WafSettings {
    fn with(&self, common: Arc<CommonTexts>, interface: Option<Interface>) -> Waf {
        let of_rules = common.view().rules().settings.limits();
        let limits = Limits {
            arguments_max: self.arguments_max.unwrap_or(of_rules.arguments_max),
            depth_max: self.depth_max.unwrap_or(of_rules.depth_max),
            ..of_rules
        };
        let checks = self.checks.as_ref().map(|(policy, _)| {
            let policy = policy.clone();
            Arc::new(Checks { policy, interface })
        });
        Waf {
            mode: policy::inspection(self.mode),
            common,
            profile: self.profile.as_deref().map(Arc::from),
            exclusions: self.sources.1.clone(),
            checks,
            cookies: None,
            limits,
            body_bytes_max: self.body_bytes_max,
            files_bytes_max: self.files_bytes_max,
            body_timeout_ms: self.body_timeout_ms,
            responses: self.responses.clone(),
            work_bytes_max: self.work_bytes_max,
            time_max_ms: self.time_max_ms,
            unjudged: match self.unjudged {
                raw::Unjudged::Block => UnjudgedAction::Block,
                raw::Unjudged::Pass => UnjudgedAction::Pass,
            },
            record: Record::Off,
        }
    }
}

/// Reads and compiles the rules of a section; errors are reported at the place of their paths.
fn compile(
    raw: &raw::Waf,
    directory: &Path,
    exclusions: &[Exclusion],
    context: &mut Context,
) -> Option<Arc<RuleSet>> {
    // One late file is already an error, so no further files are read: their timeouts could add up.
    if context.is_late {
        return None;
    }
    let mut files = Vec::new();
    let mut is_sound = true;
    match &raw.rules {
        None => files = weir_waf::builtin::paths(),
        Some(rules) => {
            for path in &rules.value.0 {
                match rule_files::of_path(&resolved(&path.value.0, directory)) {
                    Ok(found) => files.extend(found),
                    Err(message) => {
                        let help = "name files of rules, folders of CRS, or `builtin`; \
                                    a relative path starts at the configuration's directory";
                        context.error_help(path.span, message, help);
                        is_sound = false;
                    }
                }
            }
        }
    }
    if !is_sound {
        return None;
    }
    let (files, mut disk) = exclusions::before(exclusions, files);
    let compiled = context.compiled_rules.rules(&files, &mut disk);
    context.is_late = disk.is_late;
    context.named_files.append(&mut disk.read);
    compiled.map_err(|problems| report(&problems, Severity::Error, place(raw), context)).ok()
}

/// A path relative to the configuration's directory; the word for the built-in rules stays unchanged.
fn resolved(path: &Path, directory: &Path) -> PathBuf {
    if path == Path::new(BUILTIN) { path.to_owned() } else { directory.join(path) }
}

/// The place for problems of the rules.
fn place(raw: &raw::Waf) -> Span {
    let of_mode = || raw.mode.as_ref().map_or(Span::at(1, 1), |mode| mode.span);
    raw.rules.as_ref().map_or_else(of_mode, |rules| rules.span)
}

/// Reports problems of rules, each with its file and line.
fn report(problems: &[Problem], severity: Severity, span: Span, context: &mut Context) {
    for problem in problems.iter().take(PROBLEMS_SHOWN_MAX) {
        let message = format!("{}: {}", problem.place, problem.message);
        context.report(severity, span, message, problem.help.clone());
    }
    let more = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX);
    if more > 0 {
        context.report(severity, span, format!("… and {more} more"), None);
    }
}

/// The requests that the log records.
fn record(file: &all::File) -> Record {
    let log = file.log.as_ref().and_then(|log| log.value.waf.as_ref());
    match log.map(|log| log.value.record.value) {
        None | Some(raw::Record::Off) => Record::Off,
        Some(raw::Record::Told) => Record::Told,
        Some(raw::Record::All) => Record::All,
    }
}

/// Warns of policies that enable a firewall without configuration.
pub(super) fn warn_of_policies(
    raw: &all::VirtualServer,
    followed: &[Arc<Policy>],
    context: &mut Context,
) {
    if raw.waf.is_some() {
        return;
    }
    let inspects = |policy: &Policy| {
        let mut actions = policy.request.all().iter().flat_map(|rule| &rule.actions);
        actions.any(|action| matches!(action, Action::Inspection(_)))
    };
    let inspecting: HashSet<&str> =
        followed.iter().filter(|policy| inspects(policy)).map(|policy| &*policy.name).collect();
    for name in raw.policies.iter().flat_map(|policies| policies.iter()) {
        if inspecting.contains(name.value.0.as_str()) {
            let message = format!(
                "`waf` of the policy `{}` does nothing here: this virtual server has no `waf`",
                clip(&name.value.0)
            );
            let help = "add `waf` with the mode for all other requests, such as `off`";
            context.warning_help(name.span, message, help);
        }
    }
}
