//! What is known of OWASP CRS: the rules of level 1 that deny legitimate requests of most applications.
//!
//! `examples/waf/crs-exclusions.conf` has an exclusion for each of them. A test compares the two.

use crate::plan::{CompiledRule, RuleSet};
use crate::seclang::{Selector, Target, TargetKind, Variable};

/// The file with exclusions, which is part of weir's examples.
pub const EXCLUSIONS_FILE: &str = "examples/waf/crs-exclusions.conf";

/// The word by which CRS names itself in `SecComponentSignature`.
const SIGNATURE: &str = "OWASP_CRS";

/// A rule that denies legitimate requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFalsePositive {
    /// The id of the rule.
    pub rule: u64,
    /// The legitimate requests.
    pub denies: &'static str,
}

/// The rules, ordered by id.
pub const KNOWN: [KnownFalsePositive; 6] = [
    KnownFalsePositive {
        rule: 920_120,
        denies: "names of files with an apostrophe or a semicolon",
    },
    KnownFalsePositive { rule: 930_100, denies: "relative links in texts" },
    KnownFalsePositive { rule: 930_110, denies: "relative links in texts" },
    KnownFalsePositive { rule: 931_120, denies: "addresses that end in a question mark" },
    KnownFalsePositive { rule: 941_160, denies: "HTML with videos of other sites" },
    KnownFalsePositive { rule: 942_100, denies: "comparisons of numbers in searches and filters" },
];

/// The known rules of a rule set that have no exclusion as in the file. Empty: it is not CRS, or the exclusions are there.
pub fn open(rules: &RuleSet) -> Vec<KnownFalsePositive> {
    if !rules.signatures.iter().any(|name| name.contains(SIGNATURE)) {
        return Vec::new();
    }
    let is_open =
        |known: &KnownFalsePositive| rules.rule(known.rule).is_some_and(|rule| !is_excluded(rule));
    KNOWN.into_iter().filter(is_open).collect()
}

impl KnownFalsePositive {
    /// The known rule with this id.
    pub fn of(id: u64) -> Option<Self> {
        KNOWN.into_iter().find(|known| known.rule == id)
    }

    /// The hint at a finding of this rule.
    pub fn hint(&self) -> String {
        format!("CRS denies {} by this rule: {EXCLUSIONS_FILE} has an exclusion", self.denies)
    }
}

/// The known rule with this id, if it is open in this rule set.
pub fn known(rules: &RuleSet, id: u64) -> Option<KnownFalsePositive> {
    open(rules).into_iter().find(|known| known.rule == id)
}

/// Whether fields or files are excluded from a rule. CRS itself excludes only cookies and headers.
fn is_excluded(rule: &CompiledRule) -> bool {
    let is_of_fields = |target: &Target| {
        target.kind == TargetKind::Excluded
            && match target.variable {
                Variable::Files => matches!(target.selector, Selector::All),
                Variable::Args => !matches!(target.selector, Selector::All),
                _ => false,
            }
    };
    rule.links.iter().any(|link| link.targets.iter().any(is_of_fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Files;

    struct Texts(Vec<(&'static str, String)>);

    impl Files for Texts {
        fn find(&mut self, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
            let found = self.0.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| text.clone().into_bytes()).ok_or_else(|| path.to_owned())
        }
    }

    /// Rules with the ids and targets of CRS.
    fn like_crs(signature: &str) -> String {
        let mut text = format!("SecComponentSignature \"{signature}\"\n");
        for known in KNOWN {
            text += &format!(
                "SecRule FILES|ARGS|!REQUEST_COOKIES:/__utm/|REQUEST_COOKIES \"@rx x\" \"id:{},phase:2,deny\"\n",
                known.rule
            );
        }
        text
    }

    #[test]
    fn the_file_of_exclusions_closes_all_of_them() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(EXCLUSIONS_FILE);
        let file = std::fs::read_to_string(path).expect("the file");
        let open_of = |signature: &str, more: &str| {
            let files = vec![("crs", like_crs(signature)), ("more", more.to_owned())];
            let paths = files.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
            open(&RuleSet::compile(&paths, &mut Texts(files)).expect("rules"))
        };
        assert_eq!(open_of("OWASP_CRS/4.29.0-dev", ""), KNOWN);
        assert_eq!(open_of("OWASP_CRS/4.29.0-dev", &file), []);
        assert_eq!(open_of("other", ""), []);
        // A rule of the file that is not listed here would not be told.
        let listed: std::collections::BTreeSet<u64> =
            KNOWN.iter().map(|known| known.rule).collect();
        let words = file.lines().filter_map(|line| line.strip_prefix("SecRuleUpdateTargetById "));
        let in_file: std::collections::BTreeSet<u64> =
            words.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect();
        assert_eq!(in_file, listed);
    }
}
