//! Random rules, and requests with texts that the rules search for, so that many rules match.

mod actions;
mod operators;
mod patterns;
mod request;
mod rules;
mod targets;
mod words;

pub use request::Sent;
pub use rules::{Directive, Link, WORD_FILE, WORD_FILE_TEXT};

use weir_testing::Random;

/// Number of requests per rule file.
const REQUESTS: usize = 5;

/// Rules, settings and requests.
#[derive(Debug, Clone)]
pub struct Case {
    pub settings: Vec<(String, String)>,
    pub directives: Vec<Directive>,
    pub sent: Vec<Sent>,
}

impl Case {
    /// The case for this seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let random = &mut random;
        let directives = rules::all(random);
        let settings = settings(random);
        let sent = (0..REQUESTS).map(|_| Sent::random(random)).collect();
        Self { settings, directives, sent }
    }

    /// The text of the rule file.
    pub fn rules(&self) -> String {
        self.directives.iter().map(|directive| format!("{directive}\n")).collect()
    }
}

/// Settings of a virtual server: its paranoia level, and further variables of `TX`.
fn settings(random: &mut Random) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for name in ["pl", "score", "flag", "word", "limit", "other", "made_bar"] {
        if random.percent(20) {
            let value = one(random, &["1", "2", "0", "foo", "bar", "-1", "foo bar"]);
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    settings
}

/// A random element.
fn one<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[random.below(of.len())]
}
