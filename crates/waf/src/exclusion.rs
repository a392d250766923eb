//! Exclusions: a rule does not inspect a given value in requests for given paths.
//!
//! Exclusions are compiled to rules that run before all others ([`rules_of`]). Each of these rules removes a target of
//! another rule for the current request.

use std::fmt::Write as _;

use crate::seclang;

/// The pseudo file name of the exclusion rules, among the rule files.
pub const FILE: &str = "exclusions";

/// Maximum number of exclusions of a rule set.
pub const EXCLUSIONS_MAX: usize = 1_000;

/// The id of the first generated rule; higher than the ids of rule sets.
const FIRST_ID: u64 = 99_000_000_000;

/// The suffix of a path that stands for all paths below it.
const BELOW: &str = "/*";

/// A path, or all paths below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Whether the place is all paths that begin with `path`, which then ends with a slash.
    pub is_prefix: bool,
    /// The path, as in `REQUEST_FILENAME`.
    pub path: String,
}

impl Place {
    /// Parses `/path` or `/folder/*`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, is_prefix) = match text.strip_suffix(BELOW) {
            Some(folder) => (format!("{folder}/"), true),
            None => (text.to_owned(), false),
        };
        if !path.starts_with('/') {
            return Err("a path begins with `/`".into());
        }
        match path.chars().find(|char| !is_plain(*char)) {
            None => Ok(Self { is_prefix, path }),
            Some(char) => Err(format!("a path has no character `{}` here", char.escape_default())),
        }
    }

    /// The place for a decoded path. If a part of it cannot be written literally in a rule, the folder above that part is
    /// used.
    pub fn of_path(path: &str) -> Self {
        match path.find(|char: char| !is_plain(char)) {
            None if path.starts_with('/') => Self { is_prefix: false, path: path.to_owned() },
            None => Self { is_prefix: true, path: "/".into() },
            Some(at) => {
                let end = path[..at].rfind('/').map_or(0, |slash| slash + 1);
                let path = if end == 0 { "/".into() } else { path[..end].to_owned() };
                Self { is_prefix: true, path }
            }
        }
    }

    /// The folder that contains this place; `None`: there is no folder above.
    pub fn folder(&self) -> Option<Self> {
        let path = if self.is_prefix { &self.path[..self.path.len() - 1] } else { &self.path };
        let end = path.rfind('/')? + 1;
        Some(Self { is_prefix: true, path: path[..end].to_owned() })
    }

    /// The depth: the number of slashes.
    pub fn depth(&self) -> usize {
        self.path.bytes().filter(|byte| *byte == b'/').count()
    }

    /// Whether this place contains another one.
    pub fn has(&self, other: &Self) -> bool {
        if self.is_prefix {
            other.path.starts_with(&self.path)
        } else {
            !other.is_prefix && self.path == other.path
        }
    }

    /// The operator of the generated rule.
    pub fn operator(&self) -> String {
        let name = if self.is_prefix { "beginsWith" } else { "streq" };
        format!("@{name} {}", self.path)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.path)?;
        formatter.write_str(if self.is_prefix { "*" } else { "" })
    }
}

/// Whether a character needs no escape in rules and paths.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "/._-~!$&()+,;=:@".contains(char)
}

/// Whether an exclusion can name a variable: clients send the variable, and its name needs no quotes.
pub fn is_variable(variable: &str) -> bool {
    let is_derived = variable.starts_with("TX") || variable.starts_with("MATCHED_VAR");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:[]@".contains(&byte);
    !is_derived
        && !variable.is_empty()
        && !variable.ends_with(':')
        && variable.bytes().all(is_plain)
}

/// A number in a pattern of names.
const DIGITS: &str = "[0-9]+";

/// The pattern of names that differ from a variable's name only in numbers: `ARGS:/^row\.[0-9]+\.text$/`. `None`: its name has
/// no number, or an exclusion cannot name it.
pub fn pattern_of(variable: &str) -> Option<String> {
    let (collection, name) = variable.split_once(':')?;
    if !is_variable(variable) || !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut pattern = format!("{collection}:/^");
    let mut is_in_number = false;
    for char in name.chars() {
        match (char.is_ascii_digit(), is_in_number) {
            (true, true) => {}
            (true, false) => pattern += DIGITS,
            (false, _) => {
                if ".[]".contains(char) {
                    pattern.push('\\');
                }
                pattern.push(char);
            }
        }
        is_in_number = char.is_ascii_digit();
    }
    Some(pattern + "$/")
}

/// Whether this is a pattern of names, in the form that [`pattern_of`] makes.
pub fn is_pattern(variable: &str) -> bool {
    let Some((collection, pattern)) = variable.split_once(":/^") else { return false };
    let Some(pattern) = pattern.strip_suffix("$/") else { return false };
    // The name of which it is made: the first number stands for all.
    let mut name = pattern.replace(DIGITS, "0");
    for char in [".", "[", "]"] {
        let count = name.matches(char).count();
        if name.matches(&format!("\\{char}")).count() != count {
            return false;
        }
        name = name.replace(&format!("\\{char}"), char);
    }
    pattern_of(&format!("{collection}:{name}")).as_deref() == Some(variable)
}

/// A value that a rule does not inspect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exclusion {
    /// The id of the rule.
    pub rule: u64,
    /// The variable, in the syntax of rules: `ARGS:text`; or a pattern of names ([`is_pattern`]).
    pub variable: String,
    /// The paths of the requests.
    pub place: Place,
}

impl Exclusion {
    /// The generated rule, with this id.
    pub fn rule_text(&self, id: u64) -> String {
        let Self { rule, variable, place } = self;
        format!(
            "SecRule REQUEST_FILENAME \"{}\" \\\n    \
             \"id:{id},phase:1,t:none,nolog,pass,ctl:ruleRemoveTargetById={rule};{variable}\"\n",
            place.operator(),
        )
    }

    /// Checks that an exclusion can name the variable. The error is the reason why it cannot.
    pub fn check(&self) -> Result<(), String> {
        if !is_variable(&self.variable) && !is_pattern(&self.variable) {
            return Err("an exclusion names a variable that a client sends, without quotes".into());
        }
        match seclang::parse(FILE, &self.rule_text(FIRST_ID)) {
            Ok(_) => Ok(()),
            Err(problems) => {
                Err(problems.into_iter().next().map_or_else(String::new, |it| it.message))
            }
        }
    }
}

/// The text of the generated rules.
pub fn rules_of(exclusions: &[Exclusion]) -> String {
    let mut text = String::new();
    for (exclusion, id) in exclusions.iter().zip(FIRST_ID..) {
        // Writing to a String cannot fail.
        let _ = text.write_str(&exclusion.rule_text(id));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_written() {
        for (text, expected) in [
            ("/a/b", Ok((false, "/a/b"))),
            ("/a/*", Ok((true, "/a/"))),
            ("/*", Ok((true, "/"))),
            ("a", Err("a path begins with `/`")),
            ("", Err("a path begins with `/`")),
            ("/a*b", Err("a path has no character `*` here")),
            ("/a\"b", Err("a path has no character `\\\"` here")),
            ("/a\nb", Err("a path has no character `\\n` here")),
        ] {
            let place = Place::parse(text);
            let found = place.as_ref().map(|it| (it.is_prefix, it.path.as_str()));
            assert_eq!(found.map_err(String::as_str), expected, "{text:?}");
            assert!(place.is_err() || place.is_ok_and(|place| place.to_string() == text));
        }
    }

    #[test]
    fn places_have_folders() {
        let mut place = Some(Place { is_prefix: false, path: "/a/b/c".into() });
        let mut above = Vec::new();
        while let Some(here) = place {
            above.push(here.path.clone());
            place = here.folder();
        }
        assert_eq!(above, ["/a/b/c", "/a/b/", "/a/", "/"]);
    }

    #[test]
    fn patterns_are_of_names_with_numbers() {
        for (variable, expected) in [
            ("ARGS:row.12.text", Some("ARGS:/^row\\.[0-9]+\\.text$/")),
            ("ARGS:a[0][b7]", Some("ARGS:/^a\\[[0-9]+\\]\\[b[0-9]+\\]$/")),
            ("REQUEST_COOKIES:wp-settings-1", Some("REQUEST_COOKIES:/^wp-settings-[0-9]+$/")),
            ("ARGS:text", None),
            ("ARGS", None),
            ("ARGS:a\"1", None),
            ("TX:1", None),
        ] {
            let pattern = pattern_of(variable);
            assert_eq!(pattern.as_deref(), expected, "{variable}");
            let Some(pattern) = pattern else { continue };
            assert!(is_pattern(&pattern), "{pattern}");
            let place = Place { is_prefix: false, path: "/".into() };
            let exclusion = Exclusion { rule: 1, variable: pattern, place };
            assert_eq!(exclusion.check(), Ok(()));
        }
        for wrong in [
            "ARGS:/^a$/",
            "ARGS:/^.[0-9]+$/",
            "ARGS:/^a[0-9]+/",
            "ARGS:/^(a)[0-9]+$/",
            "ARGS:/^a[0-9]+,b$/",
        ] {
            assert!(!is_pattern(wrong), "{wrong}");
        }
    }

    #[test]
    fn variables_are_those_that_rules_can_name() {
        for (variable, expected) in [
            ("ARGS:text", true),
            ("REQUEST_COOKIES:a.b", true),
            ("REQUEST_BODY", true),
            ("ARGS", true),
            ("ARGS:", false),
            ("", false),
            ("TX:score", false),
            ("ARGS:a\"", false),
            ("NOTHING:a", false),
        ] {
            let place = Place { is_prefix: false, path: "/".into() };
            let exclusion = Exclusion { rule: 1, variable: variable.into(), place };
            assert_eq!(exclusion.check().is_ok(), expected, "{variable}: {:?}", exclusion.check());
        }
    }
}
