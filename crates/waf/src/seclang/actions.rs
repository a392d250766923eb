//! Actions of rules.

use super::pattern::of_names;
use super::template::Template;
use super::variables::{Target, Variable};
use super::{IdRange, SecLangProblem, wrong, wrong_help};
use crate::transformation::Transformation;

/// The phase of a rule's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// After the request's head.
    RequestHeaders = 1,
    /// After the request's body.
    RequestBody = 2,
    /// After the response's head.
    ResponseHeaders = 3,
    /// After the response's body.
    ResponseBody = 4,
    /// After the response was sent.
    Logging = 5,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 5] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Logging,
    ];
}

/// The severity of a match, the most severe first (as in syslog).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of syslog")]
pub enum Severity {
    Emergency,
    Alert,
    Critical,
    Error,
    Warning,
    Notice,
    Info,
    Debug,
}

impl Severity {
    /// The name in SecLang.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

const NAMES: [&str; 8] =
    ["EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG"];

const SEVERITIES: [Severity; 8] = [
    Severity::Emergency,
    Severity::Alert,
    Severity::Critical,
    Severity::Error,
    Severity::Warning,
    Severity::Notice,
    Severity::Info,
    Severity::Debug,
];

/// Disruptive actions.
#[derive(Debug, Clone, PartialEq)]
pub enum Disruption {
    /// The request continues.
    Pass,
    /// The disruptive action that `SecDefaultAction` sets for the phase.
    Block,
    /// The client gets the rule's status.
    Deny,
    /// The connection is closed.
    Drop,
    /// The request continues, and rules are skipped.
    Allow(Allow),
    /// The client is redirected.
    Redirect(Template),
}

/// Rules that `allow` skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allow {
    /// All rules except those of the logging phase.
    Everything,
    /// The rules of this phase.
    Phase,
    /// The rules of the request phases.
    Request,
}

/// The state of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Enabled.
    On,
    /// Disabled.
    Off,
    /// Rules are evaluated, but do not block.
    DetectionOnly,
}

/// A change for one request by `ctl`.
#[derive(Debug, Clone)]
pub enum Control {
    /// Removes rules with these ids.
    RemoveById(IdRange),
    /// Removes rules with this tag.
    RemoveByTag(Box<str>),
    /// Removes rules with this message.
    RemoveByMessage(Box<str>),
    /// Removes a target of rules with these ids.
    RemoveTargetById(IdRange, Target),
    /// Removes a target of rules with this tag.
    RemoveTargetByTag(Box<str>, Target),
    /// Removes a target of rules with this message.
    RemoveTargetByMessage(Box<str>, Target),
    /// Whether `REQUEST_BODY` contains the body, whatever the body processor is.
    ForceRequestBodyVariable(bool),
    /// Whether request bodies are inspected.
    RequestBodyAccess(bool),
    /// Whether response bodies are inspected.
    ResponseBodyAccess(bool),
    /// The body processor: `URLENCODED`, `MULTIPART`, `JSON`, `XML`.
    RequestBodyProcessor(Box<str>),
    /// Maximum number of inspected bytes of a body.
    RequestBodyLimit(u64),
    /// Whether the request is written to the audit log.
    AuditEngine(Toggle),
    /// The parts of ModSecurity's audit log. No effect: weir's audit log has one format.
    AuditLogParts,
    /// Whether rules block.
    RuleEngine(Toggle),
}

/// The change of a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableChange {
    /// Sets the value.
    Set(Template),
    /// Adds to the value.
    Add(Template),
    /// Subtracts from the value.
    Subtract(Template),
    /// Removes the variable.
    Remove,
}

/// One `setvar` action.
#[derive(Debug, Clone, PartialEq)]
pub struct SetVariable {
    /// The collection.
    pub collection: Variable,
    /// The name in the collection.
    pub name: Template,
    /// The change.
    pub change: VariableChange,
}

/// One action of a rule.
#[derive(Debug, Clone)]
pub enum Action {
    /// The id of the rule.
    Id(u64),
    /// The phase of the rule.
    Phase(Phase),
    /// The message.
    Message(Template),
    /// The data about the match, for logs.
    LogData(Template),
    /// A tag.
    Tag(Box<str>),
    /// The severity.
    Severity(Severity),
    /// The version of the rule set.
    Version(Box<str>),
    /// The revision of the rule.
    Revision(Box<str>),
    /// A property that has no effect: maturity, accuracy.
    Remark,
    /// A disruptive action.
    Disruption(Disruption),
    /// The status of a denied request.
    Status(u16),
    /// Whether a match is written to the error log.
    Log(bool),
    /// Whether a match is written to the audit log.
    AuditLog(bool),
    /// Stores the groups of a pattern in `TX:0` to `TX:9`.
    Capture,
    /// Applies the operator after each transformation.
    MultiMatch,
    /// Combines the rule with the next one: both must match.
    Chain,
    /// Skips this number of rules.
    Skip(u32),
    /// Skips the rules up to a marker or a rule.
    SkipAfter(Box<str>),
    /// A transformation; `None`: `t:none`, which removes the previous transformations.
    Transform(Option<Transformation>),
    /// A change of a variable.
    SetVariable(SetVariable),
    /// The expiry of a stored variable.
    ExpireVariable {
        /// The collection.
        collection: Variable,
        /// The name in the collection.
        name: Template,
        /// The lifetime in seconds.
        seconds: Template,
    },
    /// Opens a stored collection under this key.
    InitCollection(Variable, Template),
    /// A change for one request.
    Control(Control),
    /// Masks values of this target in logs.
    Sanitise(Target),
}

/// Parses a list of actions.
pub(super) fn parse_list(text: &str) -> Result<Vec<Action>, SecLangProblem> {
    let mut actions = Vec::new();
    for part in parts(text)? {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let (name, value) = match part.split_once(':') {
            Some((name, value)) => (name.trim(), Some(unquoted(value.trim()))),
            None => (part, None),
        };
        actions.push(action(&name.to_ascii_lowercase(), value.as_deref())?);
    }
    Ok(actions)
}

/// Splits a list at commas, except within single quotes.
fn parts(text: &str) -> Result<Vec<&str>, SecLangProblem> {
    let (mut found, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_quoted {
        return Err(wrong("a quote ' in the actions is not closed"));
    }
    found.push(&text[start..]);
    Ok(found)
}

/// Removes the quotes, and the backslashes before quotes within the value.
fn unquoted(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        Some(inner) => inner.replace("\\'", "'"),
        None => value.to_owned(),
    }
}

fn action(name: &str, value: Option<&str>) -> Result<Action, SecLangProblem> {
    let needs = || value.ok_or_else(|| wrong(format!("`{name}` needs a value: `{name}:…`")));
    Ok(match name {
        "id" => Action::Id(needs()?.trim().parse().map_err(|_| {
            wrong_help(
                format!("`id:{}` is no number", value.unwrap_or_default()),
                "give a whole number",
            )
        })?),
        "phase" => Action::Phase(phase(needs()?)?),
        "msg" => Action::Message(Template::parse(needs()?)?),
        "logdata" => Action::LogData(Template::parse(needs()?)?),
        "tag" => Action::Tag(needs()?.into()),
        "severity" => Action::Severity(severity(needs()?)?),
        "ver" => Action::Version(needs()?.into()),
        "rev" => Action::Revision(needs()?.into()),
        "maturity" | "accuracy" => Action::Remark,
        "pass" => Action::Disruption(Disruption::Pass),
        "block" => Action::Disruption(Disruption::Block),
        "deny" => Action::Disruption(Disruption::Deny),
        "drop" => Action::Disruption(Disruption::Drop),
        "allow" => Action::Disruption(Disruption::Allow(allow(value)?)),
        "redirect" => Action::Disruption(Disruption::Redirect(Template::parse(needs()?)?)),
        "status" => Action::Status(status(needs()?)?),
        "log" => Action::Log(true),
        "nolog" => Action::Log(false),
        "auditlog" => Action::AuditLog(true),
        "noauditlog" => Action::AuditLog(false),
        "capture" => Action::Capture,
        "multimatch" => Action::MultiMatch,
        "chain" => Action::Chain,
        "skip" => Action::Skip(needs()?.parse().map_err(|_| wrong("`skip` needs a number"))?),
        "skipafter" => Action::SkipAfter(needs()?.into()),
        "t" => Action::Transform(transformation(needs()?)?),
        "setvar" => Action::SetVariable(set_variable(needs()?)?),
        "expirevar" => expire_variable(needs()?)?,
        "initcol" => init_collection(needs()?)?,
        "setsid" => Action::InitCollection(Variable::Session, Template::parse(needs()?)?),
        "setuid" => Action::InitCollection(Variable::User, Template::parse(needs()?)?),
        "ctl" => Action::Control(control(needs()?)?),
        "sanitisearg" | "sanitizearg" => masked("ARGS", needs()?)?,
        "sanitiserequestheader" | "sanitizerequestheader" => masked("REQUEST_HEADERS", needs()?)?,
        "sanitiseresponseheader" | "sanitizeresponseheader" => {
            masked("RESPONSE_HEADERS", needs()?)?
        }
        "sanitisematched" | "sanitizematched" => masked("MATCHED_VARS", "")?,
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> SecLangProblem {
    let help = match name {
        "exec" | "setrsc" | "setenv" | "deprecatevar" | "xmlns" | "append" | "prepend" => {
            "remove it: rules run no program, and change nothing but their own variables"
        }
        "proxy" => "use a pool in a rule of weir's",
        "pause" => "use `limit` with `delay` in a rule of weir's",
        _ => return wrong(format!("there is no action `{name}`")),
    };
    wrong_help(format!("the action `{name}` is not supported"), help)
}

fn phase(value: &str) -> Result<Phase, SecLangProblem> {
    Ok(match value.to_ascii_lowercase().as_str() {
        "1" => Phase::RequestHeaders,
        "2" | "request" => Phase::RequestBody,
        "3" => Phase::ResponseHeaders,
        "4" | "response" => Phase::ResponseBody,
        "5" | "logging" => Phase::Logging,
        _ => {
            return Err(wrong_help(
                format!("`phase:{value}` is no phase"),
                "give a number from 1 to 5",
            ));
        }
    })
}

fn severity(value: &str) -> Result<Severity, SecLangProblem> {
    let by_name = NAMES.iter().position(|name| name.eq_ignore_ascii_case(value));
    let index = by_name.or_else(|| value.parse::<usize>().ok());
    index
        .and_then(|index| SEVERITIES.get(index).copied())
        .ok_or_else(|| wrong(format!("`severity:{value}` is no severity, as CRITICAL or 2")))
}

fn allow(value: Option<&str>) -> Result<Allow, SecLangProblem> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None => Ok(Allow::Everything),
        Some("phase") => Ok(Allow::Phase),
        Some("request") => Ok(Allow::Request),
        Some(other) => Err(wrong(format!("`allow:{other}`: give `phase`, `request` or nothing"))),
    }
}

fn status(value: &str) -> Result<u16, SecLangProblem> {
    let status = value.parse().ok().filter(|status| (200..=599).contains(status));
    status.ok_or_else(|| wrong(format!("`status:{value}` is no status from 200 to 599")))
}

fn transformation(value: &str) -> Result<Option<Transformation>, SecLangProblem> {
    if value.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let found = Transformation::from_name(value);
    found.map(Some).ok_or_else(|| wrong(format!("there is no transformation `t:{value}`")))
}

/// Parses a collection and a name: `tx.score`.
fn member(text: &str) -> Result<(Variable, Template), SecLangProblem> {
    let (collection, name) = text
        .split_once(['.', ':'])
        .ok_or_else(|| wrong_help(format!("`{text}` names no variable"), "as in tx.score"))?;
    let variable = Variable::from_name(collection)
        .filter(|variable| *variable == Variable::Tx || variable.is_stored())
        .ok_or_else(|| {
            wrong_help(
                format!("`{collection}` is no collection that rules write"),
                "those are TX, IP, GLOBAL, SESSION and USER",
            )
        })?;
    if name.is_empty() {
        return Err(wrong(format!("`{text}` names no variable")));
    }
    Ok((variable, Template::parse(name)?))
}

fn set_variable(value: &str) -> Result<SetVariable, SecLangProblem> {
    if let Some(name) = value.strip_prefix('!') {
        let (collection, name) = member(name)?;
        return Ok(SetVariable { collection, name, change: VariableChange::Remove });
    }
    let (name, change) = match value.split_once('=') {
        // Without a value, ModSecurity sets the variable to 1.
        None => (value, VariableChange::Set(Template::parse("1")?)),
        Some((name, value)) => (
            name,
            match value.split_at_checked(1) {
                Some(("+", rest)) => VariableChange::Add(Template::parse(rest)?),
                Some(("-", rest)) => VariableChange::Subtract(Template::parse(rest)?),
                _ => VariableChange::Set(Template::parse(value)?),
            },
        ),
    };
    let (collection, name) = member(name.trim())?;
    Ok(SetVariable { collection, name, change })
}

fn expire_variable(value: &str) -> Result<Action, SecLangProblem> {
    let (name, seconds) = value
        .split_once('=')
        .ok_or_else(|| wrong("`expirevar` needs a number of seconds: `expirevar:ip.flag=60`"))?;
    let (collection, name) = member(name.trim())?;
    Ok(Action::ExpireVariable { collection, name, seconds: Template::parse(seconds)? })
}

fn init_collection(value: &str) -> Result<Action, SecLangProblem> {
    let (collection, key) = value
        .split_once('=')
        .ok_or_else(|| wrong("`initcol` needs a key: `initcol:ip=%{REMOTE_ADDR}`"))?;
    let variable = Variable::from_name(collection).filter(|variable| variable.is_stored());
    let variable = variable.ok_or_else(|| {
        wrong_help(
            format!("`initcol:{collection}`: there is no such collection"),
            "those are IP, GLOBAL, SESSION and USER",
        )
    })?;
    Ok(Action::InitCollection(variable, Template::parse(key)?))
}

fn masked(collection: &str, name: &str) -> Result<Action, SecLangProblem> {
    let text = if name.is_empty() { collection.to_owned() } else { format!("{collection}:{name}") };
    let target = Target::parse_list(&text)?.into_iter().next();
    target.map(Action::Sanitise).ok_or_else(|| wrong("there is no variable"))
}

fn toggle(value: &str) -> Result<Toggle, SecLangProblem> {
    Ok(match value.to_ascii_lowercase().as_str() {
        "on" => Toggle::On,
        "off" => Toggle::Off,
        "detectiononly" | "relevantonly" => Toggle::DetectionOnly,
        _ => return Err(wrong(format!("`{value}` is neither On nor Off"))),
    })
}

fn control(value: &str) -> Result<Control, SecLangProblem> {
    let (name, value) =
        value.split_once('=').ok_or_else(|| wrong("`ctl` needs `ctl:name=value`"))?;
    let is_on = || toggle(value).map(|toggle| toggle == Toggle::On);
    // The syntax is `WHICH;TARGET`.
    let with_target = || -> Result<(&str, Target), SecLangProblem> {
        let (which, target) = value.split_once(';').ok_or_else(|| {
            wrong_help(format!("`ctl:{name}` needs a target"), "as in 942100;ARGS:text")
        })?;
        let mut targets = Target::parse_list(target)?;
        match (targets.pop(), targets.is_empty()) {
            (Some(target), true) => Ok((which.trim(), target)),
            _ => Err(wrong(format!("`ctl:{name}` takes one target"))),
        }
    };
    Ok(match name.trim().to_ascii_lowercase().as_str() {
        "ruleremovebyid" => Control::RemoveById(IdRange::parse(value)?),
        "ruleremovebytag" => Control::RemoveByTag(value.into()),
        "ruleremovebymsg" => Control::RemoveByMessage(value.into()),
        "ruleremovetargetbyid" => {
            let (which, target) = with_target()?;
            Control::RemoveTargetById(IdRange::parse(which)?, target)
        }
        "ruleremovetargetbytag" => {
            let (which, target) = with_target()?;
            Control::RemoveTargetByTag(which.into(), target)
        }
        "ruleremovetargetbymsg" => {
            let (which, target) = with_target()?;
            Control::RemoveTargetByMessage(which.into(), target)
        }
        "forcerequestbodyvariable" => Control::ForceRequestBodyVariable(is_on()?),
        "requestbodyaccess" => Control::RequestBodyAccess(is_on()?),
        "responsebodyaccess" => Control::ResponseBodyAccess(is_on()?),
        "requestbodyprocessor" => Control::RequestBodyProcessor(processor(value)?),
        "requestbodylimit" => Control::RequestBodyLimit(
            value.parse().map_err(|_| wrong(format!("`{value}` is no number of bytes")))?,
        ),
        "auditengine" => Control::AuditEngine(toggle(value)?),
        "auditlogparts" => Control::AuditLogParts,
        "ruleengine" => Control::RuleEngine(toggle(value)?),
        other => return Err(wrong(format!("`ctl:{other}` is not supported"))),
    })
}

fn processor(value: &str) -> Result<Box<str>, SecLangProblem> {
    let upper = value.to_ascii_uppercase();
    match upper.as_str() {
        "URLENCODED" | "MULTIPART" | "JSON" | "XML" | "TEXT" | "CONTENT" => Ok(upper.into()),
        _ => Err(wrong_help(
            format!("there is no body processor `{value}`"),
            "those are URLENCODED, MULTIPART, JSON, XML, TEXT and CONTENT",
        )),
    }
}

/// Parses the pattern of a tag or message, for `SecRuleRemoveByTag` and similar directives.
pub(super) fn pattern(text: &str) -> Result<regex::bytes::Regex, SecLangProblem> {
    of_names(text)
}
