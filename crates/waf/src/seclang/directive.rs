//! SecLang directives.

use regex::bytes::Regex;

use super::actions::{self, Action};
use super::operator::{Operator, OperatorKind};
use super::problem::Place;
use super::variables::Target;
use super::{SecLangProblem, words, wrong, wrong_help};

/// A directive and its place.
#[derive(Debug, Clone)]
pub struct Directive {
    /// The place.
    pub place: Place,
    /// The directive.
    pub kind: DirectiveKind,
}

/// The kinds of directives.
#[derive(Debug, Clone)]
pub enum DirectiveKind {
    /// `SecRule` and `SecAction`.
    Rule(Rule),
    /// `SecMarker`: a target of `skipAfter`.
    Marker(Box<str>),
    /// `SecDefaultAction`.
    DefaultAction(Vec<Action>),
    /// `SecComponentSignature`: the name of a rule set.
    ComponentSignature(Box<str>),
    /// `SecRuleUpdateTargetById`.
    UpdateTargetById(IdRange, Vec<Target>),
    /// `SecRuleUpdateTargetByTag`.
    UpdateTargetByTag(Regex, Vec<Target>),
    /// `SecRuleUpdateTargetByMsg`.
    UpdateTargetByMessage(Regex, Vec<Target>),
    /// `SecRuleUpdateActionById`.
    UpdateActionById(u64, Vec<Action>),
    /// `SecRuleRemoveById`.
    RemoveById(Vec<IdRange>),
    /// `SecRuleRemoveByTag`.
    RemoveByTag(Regex),
    /// `SecRuleRemoveByMsg`.
    RemoveByMessage(Regex),
    /// `Include`: a file, or a pattern of files. `true`: the directive is valid without any file.
    Include(Box<str>, bool),
    /// An engine setting.
    Setting(Setting),
}

/// A setting of `modsecurity.conf`.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// `SecArgumentSeparator`.
    ArgumentSeparator(u8),
    /// `SecCollectionTimeout`, in seconds.
    CollectionTimeout(u64),
    /// `SecArgumentsLimit`.
    ArgumentsLimit(usize),
    /// `SecRequestBodyJsonDepthLimit`.
    JsonDepthLimit(usize),
}

/// A rule. `SecAction` is a rule that always matches.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The inspected and excluded targets; empty for `SecAction`.
    pub targets: Vec<Target>,
    /// The operator.
    pub operator: Operator,
    /// The actions.
    pub actions: Vec<Action>,
    /// The next rule of the chain, which must also match.
    pub chained: Option<Box<Rule>>,
}

impl Rule {
    fn has_chain(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Chain))
    }

    /// The last rule of the chain.
    fn last(&mut self) -> &mut Self {
        // The check is separate because the borrow checker rejects returning the reference of an `if let`.
        if self.chained.is_some() {
            match &mut self.chained {
                Some(next) => next.last(),
                None => unreachable!("it was there"),
            }
        } else {
            self
        }
    }
}

/// A range of rule ids, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The first id.
    pub first: u64,
    /// The last id.
    pub last: u64,
}

impl IdRange {
    /// Whether the range includes this id.
    pub fn has(&self, id: u64) -> bool {
        (self.first..=self.last).contains(&id)
    }

    /// Parses `942100` or `942000-942999`.
    pub(super) fn parse(text: &str) -> Result<Self, SecLangProblem> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(wrong_help(
                format!("`{text}` is no number of a rule"),
                "as in 942100 or 942000-942999",
            )),
        }
    }
}

/// Maximum length of a chain.
const CHAIN_RULES_MAX: usize = 32;

/// Adds a rule to the open chain. Returns the complete directive, if any, and the chain that is still open.
pub(super) fn chained(
    open: Option<Directive>,
    directive: Directive,
) -> Result<(Option<Directive>, Option<Directive>), SecLangProblem> {
    let Directive { place, kind } = directive;
    let (rule, mut open) = match (kind, open) {
        (DirectiveKind::Rule(rule), Some(open)) => (rule, open),
        (DirectiveKind::Rule(rule), None) => {
            let waits = rule.has_chain();
            let directive = Directive { place, kind: DirectiveKind::Rule(rule) };
            return Ok(if waits { (None, Some(directive)) } else { (Some(directive), None) });
        }
        (kind, None) => return Ok((Some(Directive { place, kind }), None)),
        (_, Some(open)) => {
            return Err(wrong_help(
                format!("the rule at {} has `chain`, and no rule follows it", open.place),
                "put the rule that it is chained to right behind it",
            ));
        }
    };
    let waits = rule.has_chain();
    let DirectiveKind::Rule(first) = &mut open.kind else {
        return Err(wrong("only rules are chained"));
    };
    if has_what_only_the_first_has(&rule) {
        return Err(wrong_help(
            "a chained rule has an `id`, a `phase`, a disruptive action or a skip",
            "they belong to the first rule of the chain",
        ));
    }
    let mut length = 1;
    let mut at = &*first;
    while let Some(next) = &at.chained {
        (length, at) = (length + 1, next);
    }
    if length >= CHAIN_RULES_MAX {
        return Err(wrong(format!("a chain has more than {CHAIN_RULES_MAX} rules")));
    }
    first.last().chained = Some(Box::new(rule));
    Ok(if waits { (None, Some(open)) } else { (Some(open), None) })
}

fn has_what_only_the_first_has(rule: &Rule) -> bool {
    rule.actions.iter().any(|action| {
        matches!(
            action,
            Action::Id(_)
                | Action::Phase(_)
                | Action::Disruption(_)
                | Action::Skip(_)
                | Action::SkipAfter(_)
        )
    })
}

/// Parses a directive.
pub(super) fn parse(text: &str, place: &Place) -> Result<Directive, SecLangProblem> {
    let words = words::split(text)?;
    let (name, arguments) = words.split_first().ok_or_else(|| wrong("there is no directive"))?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Ok(Directive { place: place.clone(), kind: kind(name, &arguments)? })
}

fn kind(name: &str, arguments: &[&str]) -> Result<DirectiveKind, SecLangProblem> {
    let lower = name.to_ascii_lowercase();
    Ok(match (lower.as_str(), arguments) {
        ("secrule", [targets, operator]) => rule(targets, operator, "")?,
        ("secrule", [targets, operator, actions]) => rule(targets, operator, actions)?,
        ("secrule", _) => {
            return Err(wrong_help(
                "`SecRule` takes variables, an operator and actions",
                "a part with blanks in it stands in quotes",
            ));
        }
        ("secaction", [actions]) => DirectiveKind::Rule(Rule {
            targets: Vec::new(),
            operator: Operator { is_negated: false, kind: OperatorKind::UnconditionalMatch },
            actions: actions::parse_list(actions)?,
            chained: None,
        }),
        ("secmarker", [label]) => DirectiveKind::Marker((*label).into()),
        ("secdefaultaction", [actions]) => DirectiveKind::DefaultAction(default_action(actions)?),
        ("seccomponentsignature", [text]) => DirectiveKind::ComponentSignature((*text).into()),
        ("secruleupdatetargetbyid", [id, targets]) => {
            DirectiveKind::UpdateTargetById(IdRange::parse(id)?, Target::parse_list(targets)?)
        }
        ("secruleupdatetargetbytag", [tag, targets]) => {
            DirectiveKind::UpdateTargetByTag(actions::pattern(tag)?, Target::parse_list(targets)?)
        }
        ("secruleupdatetargetbymsg", [message, targets]) => DirectiveKind::UpdateTargetByMessage(
            actions::pattern(message)?,
            Target::parse_list(targets)?,
        ),
        ("secruleupdateactionbyid", [id, list]) => {
            DirectiveKind::UpdateActionById(IdRange::parse(id)?.first, actions::parse_list(list)?)
        }
        ("secruleremovebyid", ids) if !ids.is_empty() => DirectiveKind::RemoveById(ranges(ids)?),
        ("secruleremovebytag", [tag]) => DirectiveKind::RemoveByTag(actions::pattern(tag)?),
        ("secruleremovebymsg", [text]) => DirectiveKind::RemoveByMessage(actions::pattern(text)?),
        ("include", [path]) => DirectiveKind::Include((*path).into(), false),
        ("includeoptional", [path]) => DirectiveKind::Include((*path).into(), true),
        _ => DirectiveKind::Setting(setting(name, &lower, arguments)?),
    })
}

fn rule(targets: &str, operator: &str, list: &str) -> Result<DirectiveKind, SecLangProblem> {
    let targets = Target::parse_list(targets)?;
    let operator = Operator::parse(operator)?;
    Ok(DirectiveKind::Rule(Rule {
        targets,
        operator,
        actions: actions::parse_list(list)?,
        chained: None,
    }))
}

fn ranges(arguments: &[&str]) -> Result<Vec<IdRange>, SecLangProblem> {
    let parts = arguments.iter().flat_map(|argument| argument.split([' ', ',']));
    parts.filter(|part| !part.is_empty()).map(IdRange::parse).collect()
}

fn default_action(text: &str) -> Result<Vec<Action>, SecLangProblem> {
    let actions = actions::parse_list(text)?;
    let has_phase = actions.iter().any(|action| matches!(action, Action::Phase(_)));
    if !has_phase {
        return Err(wrong_help("`SecDefaultAction` names no phase", "add `phase:2`"));
    }
    let is_foreign = |action: &&Action| {
        !matches!(
            action,
            Action::Phase(_)
                | Action::Disruption(_)
                | Action::Status(_)
                | Action::Log(_)
                | Action::AuditLog(_)
                | Action::Transform(_)
                | Action::Capture
        )
    };
    if actions.iter().any(|action| is_foreign(&action)) {
        return Err(wrong("`SecDefaultAction` has an action that only a rule can have"));
    }
    Ok(actions)
}

fn setting(name: &str, lower: &str, arguments: &[&str]) -> Result<Setting, SecLangProblem> {
    let number = || {
        let number = arguments.first().and_then(|text| text.parse::<u64>().ok());
        number.ok_or_else(|| wrong(format!("`{name}` needs a whole number")))
    };
    let count = || number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    Ok(match lower {
        "secargumentseparator" => match arguments {
            [separator] if separator.len() == 1 => {
                Setting::ArgumentSeparator(separator.as_bytes()[0])
            }
            _ => return Err(wrong(format!("`{name}` needs one character"))),
        },
        "seccollectiontimeout" => Setting::CollectionTimeout(number()?),
        "secargumentslimit" => Setting::ArgumentsLimit(count()?),
        "secrequestbodyjsondepthlimit" => Setting::JsonDepthLimit(count()?),
        _ => return Err(elsewhere(name, lower)),
    })
}

/// The problem of a directive that is replaced by a key of weir's configuration, or is unsupported.
fn elsewhere(name: &str, lower: &str) -> SecLangProblem {
    let help = match lower {
        "secruleengine" => "remove it, and set `mode: off`, `detect` or `block` in `waf`",
        "secrequestbodyaccess"
        | "secrequestbodylimit"
        | "secrequestbodynofileslimit"
        | "secrequestbodyinmemorylimit"
        | "secrequestbodylimitaction" => "remove it, and see `body` in `waf`",
        "secresponsebodyaccess"
        | "secresponsebodymimetype"
        | "secresponsebodylimit"
        | "secresponsebodylimitaction" => "remove it, and see `response` in `waf`",
        "secauditengine"
        | "secauditlog"
        | "secauditlog2"
        | "secauditlogformat"
        | "secauditlogtype"
        | "secauditlogparts"
        | "secauditlogstoragedir"
        | "secauditlogrelevantstatus"
        | "secdebuglog"
        | "secdebugloglevel" => "remove it, and see `log` in `waf`",
        "secserversignature"
        | "secstatusengine"
        | "sectmpdir"
        | "secdatadir"
        | "secuploaddir"
        | "secuploadkeepfiles"
        | "secuploadfilemode"
        | "secuploadfilelimit"
        | "secunicodemapfile"
        | "seccookieformat"
        | "secwebappid"
        | "secsensorid"
        | "secpcrematchlimit"
        | "secpcrematchlimitrecursion"
        | "secxmlexternalentity" => "remove it: weir needs no such setting",
        _ if lower.starts_with("sec") => "weir has no such directive",
        _ => "a rule file has directives of SecLang, which begin with Sec",
    };
    wrong_help(format!("`{name}` is not supported"), help)
}
