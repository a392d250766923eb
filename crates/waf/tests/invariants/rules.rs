//! Invariants of rule files.

use std::sync::Arc;

use weir_waf::plan::{Files, RuleSet, Settings, View};
use weir_waf::seclang::{Problem, parse};

const FILE: &str = "rules.conf";

/// A rule file, with a file of words beside it.
pub struct InMemory<'a>(pub &'a str);

impl Files for InMemory<'_> {
    fn find(&mut self, _: &str, pattern: &str) -> Vec<String> {
        vec![pattern.to_owned()]
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            FILE => Ok(self.0.as_bytes().to_vec()),
            "words.data" => Ok(b"foo\n# comment\n10.0.0.1\n".to_vec()),
            _ => Err("there is no such file".into()),
        }
    }
}

/// Compiles a rule file.
pub fn compiled(text: &str) -> Result<Arc<RuleSet>, Vec<Problem>> {
    RuleSet::compile(&[FILE.to_owned()], &mut InMemory(text)).map(Arc::new)
}

/// Checks a text: it is refused, and the problems have valid places, or its rules can be used.
pub fn check(text: &str) {
    let lines = text.lines().count().max(1) as u32;
    let has_places = |problems: &[Problem]| {
        assert!(!problems.is_empty(), "refused without a reason");
        for problem in problems {
            // An included file has its own line numbers.
            let is_other = *problem.place.file != *FILE;
            let is_within = is_other || (1..=lines).contains(&problem.place.line);
            assert!(is_within && !problem.message.is_empty(), "{problem}");
        }
    };
    if let Err(problems) = parse(FILE, text) {
        has_places(&problems);
        assert!(problems.iter().all(|problem| *problem.place.file == *FILE));
    }
    let rules = match compiled(text) {
        Err(problems) => return has_places(&problems),
        Ok(rules) => rules,
    };
    let settings = Settings { variables: vec![("pl".into(), "1".into())] };
    match View::new(Arc::clone(&rules), &settings) {
        Err(problems) => has_places(&problems),
        Ok(view) => {
            let plain = Arc::new(View::plain(rules, &settings));
            super::requests::check_with([&Arc::new(view), &plain], super::requests::REQUEST);
        }
    }
}
