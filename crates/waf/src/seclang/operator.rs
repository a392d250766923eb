//! SecLang operators.

use std::net::IpAddr;

use super::pattern::{Pattern, no_pattern};
use super::template::Template;
use super::{SecLangProblem, wrong, wrong_help};

/// An operator with its argument.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Whether the operator is negated: `!@…`.
    pub is_negated: bool,
    /// The operator.
    pub kind: OperatorKind,
}

/// The kinds of operators, as conditions on the value.
#[derive(Debug, Clone)]
pub enum OperatorKind {
    /// Matches a regular expression.
    Rx(Pattern),
    /// Matches a regular expression that contains variables.
    RxTemplate(Template),
    /// Contains one of these words, ignoring case.
    Pm(Vec<Box<[u8]>>),
    /// Contains one of the words from these files, one word per line.
    PmFromFile(Vec<Box<str>>),
    /// Equals this number.
    Eq(Template),
    /// Is greater than or equal to this number.
    Ge(Template),
    /// Is greater than this number.
    Gt(Template),
    /// Is less than or equal to this number.
    Le(Template),
    /// Is less than this number.
    Lt(Template),
    /// Equals this text.
    Streq(Template),
    /// Is part of this text.
    Within(Template),
    /// Contains this text.
    Contains(Template),
    /// Contains this text without an adjacent letter, digit or underscore.
    ContainsWord(Template),
    /// Begins with this text.
    BeginsWith(Template),
    /// Ends with this text.
    EndsWith(Template),
    /// Contains a byte outside this set. One bit for each byte.
    ValidateByteRange([u64; 4]),
    /// Contains invalid percent-encoding.
    ValidateUrlEncoding,
    /// Is not valid UTF-8.
    ValidateUtf8Encoding,
    /// Is an address in one of these networks.
    IpMatch(Vec<(IpAddr, u8)>),
    /// Is an address in one of the networks from these files.
    IpMatchFromFile(Vec<Box<str>>),
    /// Is SQL injection.
    DetectSqli,
    /// Is cross-site scripting.
    DetectXss,
    /// Has a definition of XML that does harm. It is an operator of weir's own.
    DetectXxe,
    /// Always matches.
    UnconditionalMatch,
    /// Never matches.
    NoMatch,
    /// An operator that needs an external service. A rule with it can only be loaded if the rule is never evaluated.
    Elsewhere(Box<str>),
}

impl Operator {
    /// Parses `@rx …`, `!@eq 0`, or a pattern without an operator.
    pub(super) fn parse(text: &str) -> Result<Self, SecLangProblem> {
        let (is_negated, rest) = match text.strip_prefix('!') {
            // A pattern may begin with an exclamation mark only after a negation.
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (name, argument) = match rest.strip_prefix('@') {
            None => ("rx", rest),
            Some(rest) => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (&rest[..end], rest[end..].trim_start())
            }
        };
        Ok(Self { is_negated, kind: kind(name, argument)? })
    }
}

fn kind(name: &str, argument: &str) -> Result<OperatorKind, SecLangProblem> {
    let template = || Template::parse(argument);
    let files = || -> Result<Vec<Box<str>>, SecLangProblem> {
        let files: Vec<_> = argument.split_whitespace().map(Into::into).collect();
        if files.is_empty() { Err(wrong(format!("`@{name}` names no file"))) } else { Ok(files) }
    };
    Ok(match name.to_ascii_lowercase().as_str() {
        "rx" if argument.contains("%{") => OperatorKind::RxTemplate(template()?),
        "rx" => OperatorKind::Rx(Pattern::new(argument).map_err(no_pattern)?),
        "pm" => OperatorKind::Pm(words(argument)?),
        "pmfromfile" | "pmf" => OperatorKind::PmFromFile(files()?),
        "eq" => OperatorKind::Eq(number(argument)?),
        "ge" => OperatorKind::Ge(number(argument)?),
        "gt" => OperatorKind::Gt(number(argument)?),
        "le" => OperatorKind::Le(number(argument)?),
        "lt" => OperatorKind::Lt(number(argument)?),
        "streq" => OperatorKind::Streq(template()?),
        "within" => OperatorKind::Within(template()?),
        "contains" | "strmatch" => OperatorKind::Contains(template()?),
        "containsword" => OperatorKind::ContainsWord(template()?),
        "beginswith" => OperatorKind::BeginsWith(template()?),
        "endswith" => OperatorKind::EndsWith(template()?),
        "validatebyterange" => OperatorKind::ValidateByteRange(byte_range(argument)?),
        "validateurlencoding" => OperatorKind::ValidateUrlEncoding,
        "validateutf8encoding" => OperatorKind::ValidateUtf8Encoding,
        "ipmatch" => {
            OperatorKind::IpMatch(argument.split(',').map(network).collect::<Result<_, _>>()?)
        }
        "ipmatchfromfile" | "ipmatchf" => OperatorKind::IpMatchFromFile(files()?),
        "detectsqli" => OperatorKind::DetectSqli,
        "detectxss" => OperatorKind::DetectXss,
        "detectxxe" => OperatorKind::DetectXxe,
        "unconditionalmatch" => OperatorKind::UnconditionalMatch,
        "nomatch" => OperatorKind::NoMatch,
        "rbl" | "geolookup" | "gsblookup" => OperatorKind::Elsewhere(name.into()),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> SecLangProblem {
    let help = match name.to_ascii_lowercase().as_str() {
        "inspectfile" | "fuzzyhash" => {
            "weir runs no program and looks at no file while it judges a request"
        }
        "rsub" => "rules change no request here; use `rewrite` in a rule of weir's",
        "pmfromfileurl" | "ipmatchfromfileurl" => "fetch the file beforehand, and name it",
        _ => return (format!("there is no operator `@{name}`"), None),
    };
    wrong_help(format!("the operator `@{name}` is not supported"), help)
}

fn number(argument: &str) -> Result<Template, SecLangProblem> {
    let template = Template::parse(argument)?;
    match template.as_text() {
        Some(text) if text.trim().parse::<i64>().is_err() => {
            Err(wrong(format!("`{argument}` is no whole number")))
        }
        _ => Ok(template),
    }
}

/// Parses the words of `@pm`. Bytes may be written as `|41 42|`, as in Snort.
fn words(argument: &str) -> Result<Vec<Box<[u8]>>, SecLangProblem> {
    let mut found = Vec::new();
    for word in argument.split_whitespace() {
        found.push(snort(word)?);
    }
    if found.is_empty() { Err(wrong("`@pm` has no words")) } else { Ok(found) }
}

fn snort(word: &str) -> Result<Box<[u8]>, SecLangProblem> {
    let parts: Vec<&str> = word.split('|').collect();
    let is_hex = |text: &str| {
        !text.is_empty()
            && text.len().is_multiple_of(2)
            && text.bytes().all(|it| it.is_ascii_hexdigit())
    };
    // Every second part is between two bars.
    if parts.len().is_multiple_of(2) || !parts.iter().skip(1).step_by(2).all(|part| is_hex(part)) {
        return Ok(word.as_bytes().into());
    }
    let mut bytes = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if index % 2 == 0 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        for pair in part.as_bytes().chunks_exact(2) {
            let digits = std::str::from_utf8(pair).map_err(|_| wrong("no hexadecimal digits"))?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong("no hexadecimal digits"))?);
        }
    }
    Ok(bytes.into())
}

fn byte_range(argument: &str) -> Result<[u64; 4], SecLangProblem> {
    let byte = |text: &str| {
        text.trim().parse::<u8>().map_err(|_| wrong(format!("`{text}` is no byte from 0 to 255")))
    };
    let mut allowed = [0u64; 4];
    for part in argument.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (byte(first)?, byte(last)?);
        if first > last {
            return Err(wrong(format!("`{part}` ends before it begins")));
        }
        for byte in first..=last {
            allowed[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }
    Ok(allowed)
}

/// Parses an address, or a network with a prefix length.
pub(crate) fn network(text: &str) -> Result<(IpAddr, u8), SecLangProblem> {
    let no_network = || wrong(format!("`{}` is no IP address or network", text.trim()));
    let (address, length) = match text.trim().split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text.trim(), None),
    };
    let address: IpAddr = address.parse().map_err(|_| no_network())?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => whole,
        Some(length) => length.parse().ok().filter(|it| *it <= whole).ok_or_else(no_network)?,
    };
    Ok((address, length))
}
