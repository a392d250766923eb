//! What rules do.

use super::pattern::of_names;
use super::template::Template;
use super::variables::{Target, Variable};
use super::{IdRange, Wrong, wrong, wrong_help};
use crate::transformation::Transformation;

/// When a rule is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Behind the request's head.
    RequestHeaders = 1,
    /// Behind the request's body.
    RequestBody = 2,
    /// Behind the response's head.
    ResponseHeaders = 3,
    /// Behind the response's body.
    ResponseBody = 4,
    /// When all is over.
    Logging = 5,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Logging,
    ];
}

/// How bad what a rule finds is, the worst first (as syslog has it).
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
    /// Its name in the language.
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

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Disruption {
    /// It goes on.
    Pass,
    /// What `SecDefaultAction` says for the phase.
    Block,
    /// It is answered with the rule's status.
    Deny,
    /// Its connection is closed.
    Drop,
    /// It goes on, and rules are passed over.
    Allow(Allow),
    /// It is redirected.
    Redirect(Template),
}

/// Which rules are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allow {
    /// All but those of the logging phase.
    Everything,
    /// Those of this phase.
    Phase,
    /// Those of the request.
    Request,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// It is done.
    On,
    /// It is not.
    Off,
    /// Rules are evaluated, and nothing is blocked.
    DetectionOnly,
}

/// What `ctl` changes for one request.
#[derive(Debug, Clone)]
pub enum Control {
    /// Rules of these numbers are removed.
    RemoveById(IdRange),
    /// Rules with this tag are removed.
    RemoveByTag(Box<str>),
    /// Rules with this message are removed.
    RemoveByMessage(Box<str>),
    /// Targets of rules of these numbers are removed.
    RemoveTargetById(IdRange, Target),
    /// Targets of rules with this tag are removed.
    RemoveTargetByTag(Box<str>, Target),
    /// Targets of rules with this message are removed.
    RemoveTargetByMessage(Box<str>, Target),
    /// `REQUEST_BODY` has the body, whatever takes it apart.
    ForceRequestBodyVariable(bool),
    /// Whether bodies of requests are looked at.
    RequestBodyAccess(bool),
    /// Whether bodies of responses are looked at.
    ResponseBodyAccess(bool),
    /// What takes the body apart: `URLENCODED`, `MULTIPART`, `JSON`, `XML`.
    RequestBodyProcessor(Box<str>),
    /// Most bytes of a body that are looked at.
    RequestBodyLimit(u64),
    /// Whether the request is in the audit log.
    AuditEngine(Toggle),
    /// Parts of ModSecurity's audit log: weir's has one form.
    AuditLogParts,
    /// Whether rules block.
    RuleEngine(Toggle),
}

/// A variable's new value.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableChange {
    /// This one.
    Set(Template),
    /// So much more.
    Add(Template),
    /// So much less.
    Subtract(Template),
    /// None.
    Remove,
}

/// One `setvar`.
#[derive(Debug, Clone, PartialEq)]
pub struct SetVariable {
    /// Where.
    pub collection: Variable,
    /// Which.
    pub name: Template,
    /// How.
    pub change: VariableChange,
}

/// One of the things that a rule does or is.
#[derive(Debug, Clone)]
pub enum Action {
    /// Its number.
    Id(u64),
    /// Its phase.
    Phase(Phase),
    /// Its message.
    Message(Template),
    /// What is logged of what it found.
    LogData(Template),
    /// A tag.
    Tag(Box<str>),
    /// Its severity.
    Severity(Severity),
    /// Its version.
    Version(Box<str>),
    /// Its revision.
    Revision(Box<str>),
    /// Properties that only people read: maturity, accuracy.
    Remark,
    /// What becomes of the request.
    Disruption(Disruption),
    /// With which status.
    Status(u16),
    /// Whether it is in the error log.
    Log(bool),
    /// Whether it is in the audit log.
    AuditLog(bool),
    /// Groups of a pattern go to `TX:0` to `TX:9`.
    Capture,
    /// It is evaluated behind every transformation.
    MultiMatch,
    /// It only holds together with the next one.
    Chain,
    /// So many rules are passed over.
    Skip(u32),
    /// Rules up to a marker, or a rule, are passed over.
    SkipAfter(Box<str>),
    /// A transformation; `None` for `t:none`, which removes those before it.
    Transform(Option<Transformation>),
    /// A variable's change.
    SetVariable(SetVariable),
    /// A stored variable is forgotten after so many seconds.
    ExpireVariable {
        /// Where.
        collection: Variable,
        /// Which.
        name: Template,
        /// When.
        seconds: Template,
    },
    /// A stored collection is opened under this key.
    InitCollection(Variable, Template),
    /// A change for this request.
    Control(Control),
    /// Values of these are masked in logs.
    Sanitise(Target),
}

/// Reads a list of actions.
pub(super) fn parse_list(text: &str) -> Result<Vec<Action>, Wrong> {
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

/// The parts between commas; a comma within single quotes separates nothing.
fn parts(text: &str) -> Result<Vec<&str>, Wrong> {
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

/// Without its quotes, and the backslashes before quotes within them.
fn unquoted(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        Some(inner) => inner.replace("\\'", "'"),
        None => value.to_owned(),
    }
}

fn action(name: &str, value: Option<&str>) -> Result<Action, Wrong> {
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

fn unknown(name: &str) -> Wrong {
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

fn phase(value: &str) -> Result<Phase, Wrong> {
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

fn severity(value: &str) -> Result<Severity, Wrong> {
    let by_name = NAMES.iter().position(|name| name.eq_ignore_ascii_case(value));
    let index = by_name.or_else(|| value.parse::<usize>().ok());
    index
        .and_then(|index| SEVERITIES.get(index).copied())
        .ok_or_else(|| wrong(format!("`severity:{value}` is no severity, as CRITICAL or 2")))
}

fn allow(value: Option<&str>) -> Result<Allow, Wrong> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None => Ok(Allow::Everything),
        Some("phase") => Ok(Allow::Phase),
        Some("request") => Ok(Allow::Request),
        Some(other) => Err(wrong(format!("`allow:{other}`: give `phase`, `request` or nothing"))),
    }
}

fn status(value: &str) -> Result<u16, Wrong> {
    let status = value.parse().ok().filter(|status| (200..=599).contains(status));
    status.ok_or_else(|| wrong(format!("`status:{value}` is no status from 200 to 599")))
}

fn transformation(value: &str) -> Result<Option<Transformation>, Wrong> {
    if value.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let found = Transformation::from_name(value);
    found.map(Some).ok_or_else(|| wrong(format!("there is no transformation `t:{value}`")))
}

/// A collection and a name in it: `tx.score`.
fn member(text: &str) -> Result<(Variable, Template), Wrong> {
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

fn set_variable(value: &str) -> Result<SetVariable, Wrong> {
    if let Some(name) = value.strip_prefix('!') {
        let (collection, name) = member(name)?;
        return Ok(SetVariable { collection, name, change: VariableChange::Remove });
    }
    let (name, change) = match value.split_once('=') {
        // ModSecurity sets it to 1.
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

fn expire_variable(value: &str) -> Result<Action, Wrong> {
    let (name, seconds) = value
        .split_once('=')
        .ok_or_else(|| wrong("`expirevar` needs a number of seconds: `expirevar:ip.flag=60`"))?;
    let (collection, name) = member(name.trim())?;
    Ok(Action::ExpireVariable { collection, name, seconds: Template::parse(seconds)? })
}

fn init_collection(value: &str) -> Result<Action, Wrong> {
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

fn masked(collection: &str, name: &str) -> Result<Action, Wrong> {
    let text = if name.is_empty() { collection.to_owned() } else { format!("{collection}:{name}") };
    let target = Target::parse_list(&text)?.into_iter().next();
    target.map(Action::Sanitise).ok_or_else(|| wrong("there is no variable"))
}

fn toggle(value: &str) -> Result<Toggle, Wrong> {
    Ok(match value.to_ascii_lowercase().as_str() {
        "on" => Toggle::On,
        "off" => Toggle::Off,
        "detectiononly" | "relevantonly" => Toggle::DetectionOnly,
        _ => return Err(wrong(format!("`{value}` is neither On nor Off"))),
    })
}

fn control(value: &str) -> Result<Control, Wrong> {
    let (name, value) =
        value.split_once('=').ok_or_else(|| wrong("`ctl` needs `ctl:name=value`"))?;
    let is_on = || toggle(value).map(|toggle| toggle == Toggle::On);
    // `WHICH;TARGET`
    let with_target = || -> Result<(&str, Target), Wrong> {
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

fn processor(value: &str) -> Result<Box<str>, Wrong> {
    let upper = value.to_ascii_uppercase();
    match upper.as_str() {
        "URLENCODED" | "MULTIPART" | "JSON" | "XML" | "TEXT" => Ok(upper.into()),
        _ => Err(wrong_help(
            format!("there is no body processor `{value}`"),
            "those are URLENCODED, MULTIPART, JSON, XML and TEXT",
        )),
    }
}

/// A tag or message of `SecRuleRemoveByTag` and its like: a pattern.
pub(super) fn pattern(text: &str) -> Result<regex::bytes::Regex, Wrong> {
    of_names(text)
}
