//! Random rule files.

use std::fmt;

use weir_testing::Random;

use super::{actions, one, operators, targets};

/// The name of the file with words for rules.
pub const WORD_FILE: &str = "words.data";
pub const WORD_FILE_TEXT: &str = "# words\nfoobar\nselect\n\nunion\nab\n";
/// The first rule id.
const FIRST_ID: u64 = 100;

/// A directive.
#[derive(Debug, Clone)]
pub enum Directive {
    Line(String),
    /// A rule and its chained rules.
    Rule(Vec<Link>),
}

/// A rule, alone or in a chain; without targets, a `SecAction`.
#[derive(Debug, Clone)]
pub struct Link {
    pub targets: Vec<String>,
    pub operator: String,
    pub actions: Vec<String>,
}

impl fmt::Display for Directive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = match self {
            Self::Line(line) => return formatter.write_str(line),
            Self::Rule(links) => links,
        };
        for (index, link) in links.iter().enumerate() {
            let mut actions = link.actions.clone();
            if index + 1 < links.len() {
                actions.push("chain".to_owned());
            }
            let actions = actions.join(",");
            let indent = if index > 0 { "\n  " } else { "" };
            let operator = link.operator.replace('"', "\\\"");
            match link.targets.join("|") {
                targets if targets.is_empty() => {
                    write!(formatter, "{indent}SecAction \"{actions}\"")?;
                }
                targets => {
                    write!(formatter, "{indent}SecRule {targets} \"{operator}\" \"{actions}\"")?;
                }
            }
        }
        Ok(())
    }
}

pub fn all(random: &mut Random) -> Vec<Directive> {
    let mut rules = Writer { id: FIRST_ID, ..Writer::default() };
    if random.percent(30) {
        rules.defaults(random);
    }
    let count = 2 + random.below(12);
    for _ in 0..count {
        rules.something(random);
    }
    while let Some(label) = rules.open.pop() {
        rules.line(format!("SecMarker {label}"));
    }
    if random.percent(20) {
        rules.update(random);
    }
    if random.percent(30) {
        rules.last_word();
    }
    rules.directives
}

#[derive(Default)]
struct Writer {
    directives: Vec<Directive>,
    id: u64,
    label: usize,
    /// Labels of markers that are not written yet.
    open: Vec<String>,
    /// The targets and transformations of previous rules.
    looks: Vec<(Vec<String>, Vec<String>)>,
}

impl Writer {
    fn line(&mut self, line: String) {
        self.directives.push(Directive::Line(line));
    }

    fn defaults(&mut self, random: &mut Random) {
        let phase = 1 + random.below(2);
        let what =
            one(random, &["deny,status:401", "pass", "deny,nolog", "drop", "pass,t:lowercase"]);
        self.line(format!("SecDefaultAction \"phase:{phase},log,auditlog,{what}\""));
    }

    fn something(&mut self, random: &mut Random) {
        match random.below(20) {
            0 | 1 => self.action(random),
            2 => self.default_of_variable(random),
            3..=5 => self.gate(random),
            6 if !self.open.is_empty() => {
                let label = self.open.remove(random.below(self.open.len()));
                self.line(format!("SecMarker {label}"));
            }
            7 => self.update(random),
            8 => self.unordered(random),
            _ => self.rule(random),
        }
    }

    fn first_actions(&mut self, random: &mut Random) -> Vec<String> {
        self.id += 1;
        let phase = one(random, &["1", "1", "2", "2", "2", "2", "2", "3", "4", "5"]);
        vec![format!("id:{}", self.id), format!("phase:{phase}")]
    }

    /// Adds a `SecAction`, as in setup files.
    fn action(&mut self, random: &mut Random) {
        let mut list = self.first_actions(random);
        list.extend(["pass", "nolog"].map(str::to_owned));
        for _ in 0..=random.below(2) {
            list.push(actions::set_variable(random));
        }
        self.single(Vec::new(), "", list);
    }

    /// Adds a default that is set if the variable is missing.
    fn default_of_variable(&mut self, random: &mut Random) {
        let mut list = self.first_actions(random);
        let name = one(random, &["pl", "score", "limit", "word", "flag"]);
        let value = one(random, &["0", "1", "2", "foo"]);
        list.extend(["pass", "nolog"].map(str::to_owned));
        list.push(format!("setvar:'tx.{name}={value}'"));
        self.single(vec![format!("&TX:{name}")], "@eq 0", list);
    }

    /// Adds a gate that skips rules above the paranoia level.
    fn gate(&mut self, random: &mut Random) {
        let mut list = self.first_actions(random);
        list.extend(["pass", "nolog"].map(str::to_owned));
        let skip = match random.below(10) {
            0 => format!("skip:{}", 1 + random.below(3)),
            1..=3 if !self.open.is_empty() => {
                format!("skipAfter:{}", self.open[random.below(self.open.len())])
            }
            _ => {
                self.label += 1;
                self.open.push(format!("END-{}", self.label));
                format!("skipAfter:END-{}", self.label)
            }
        };
        list.push(skip);
        let target = format!("TX:{}", one(random, &["pl", "pl", "pl", "score", "flag", "limit"]));
        let mut links = vec![Link {
            targets: vec![target],
            operator: operators::of_gate(random),
            actions: list,
        }];
        if random.percent(10) {
            links.push(self.link(random, true));
        }
        self.directives.push(Directive::Rule(links));
    }

    /// Adds a rule that records final values, including those of denied requests.
    fn last_word(&mut self) {
        self.id += 1;
        let told = "msg:'%{tx.pl} %{tx.score} %{tx.flag} %{tx.limit} %{tx.word} %{tx.a}'";
        let list = [&format!("id:{}", self.id), "phase:5", "pass", told].map(str::to_owned);
        self.single(Vec::new(), "", list.into());
    }

    /// Adds a rule on unnamed members of `TX`. These have no order, so no part of the rule depends on their order.
    fn unordered(&mut self, random: &mut Random) {
        let mut list = self.first_actions(random);
        list.extend(["pass", "t:none", "msg:'plain'"].map(str::to_owned));
        list.push(
            one(random, &["setvar:'tx.score=+1'", "setvar:'tx.flag=1'", "tag:beta"]).to_owned(),
        );
        let target = one(random, &["TX", "TX:/^made_/", "TX:/o/", "&TX:/^made_/", "&TX"]);
        let mut targets = vec![target.to_owned()];
        if random.percent(30) {
            targets.push(one(random, &["!TX:/^made/", "!TX:score", "!TX:/[0-9]/"]).to_owned());
        }
        let operator = match random.below(3) {
            0 => operators::of_gate(random),
            _ => format!("@rx {}", one(random, &["foo", "[0-9]", "^.$", "(?i)ba|fo", "x"])),
        };
        self.single(targets, &operator, list);
    }

    fn rule(&mut self, random: &mut Random) {
        let mut first = self.link(random, false);
        let mut list = self.first_actions(random);
        list.extend(actions::disruption(random));
        for (percent, action) in [
            (15, "nolog"),
            (5, "noauditlog"),
            (5, "auditlog"),
            (4, "skip:1"),
            (40, "tag:alpha"),
            (40, "tag:beta"),
            (20, "severity:CRITICAL"),
            (20, "severity:NOTICE"),
        ] {
            if random.percent(percent) {
                list.push(action.to_owned());
            }
        }
        for name in ["msg", "logdata"] {
            if random.percent(60) {
                list.push(format!("{name}:'{}'", actions::told(random)));
            }
        }
        list.append(&mut first.actions);
        let mut links = vec![Link { actions: list, ..first }];
        while random.percent(25) {
            links.push(self.link(random, true));
        }
        self.directives.push(Directive::Rule(links));
    }

    /// Targets and transformations, often those of a previous rule.
    fn look(&mut self, random: &mut Random, is_chained: bool) -> (Vec<String>, Vec<String>) {
        if !self.looks.is_empty() && random.percent(30) {
            return self.looks[random.below(self.looks.len())].clone();
        }
        let targets = targets::targets(random, is_chained);
        let transformations = actions::transformations(random);
        // In a rule outside of chains, variables about previous matches are empty.
        if !is_chained {
            self.looks.push((targets.clone(), transformations.clone()));
        }
        (targets, transformations)
    }

    /// A condition and its actions.
    fn link(&mut self, random: &mut Random, is_chained: bool) -> Link {
        let (targets, mut list) = self.look(random, is_chained);
        if random.percent(30) {
            list.push("capture".to_owned());
        }
        if random.percent(12) {
            list.push("multiMatch".to_owned());
        }
        for _ in 0..random.below(3) {
            list.push(actions::set_variable(random));
        }
        if random.percent(15) {
            // Some previous rules, and more of the later rules.
            let near = self.id.saturating_sub(2)..self.id + 6;
            list.push(actions::control(random, near));
        }
        Link { targets, operator: operators::operator(random), actions: list }
    }

    fn single(&mut self, targets: Vec<String>, operator: &str, actions: Vec<String>) {
        let link = Link { targets, operator: operator.to_owned(), actions };
        self.directives.push(Directive::Rule(vec![link]));
    }

    /// Adds a change of previous rules.
    fn update(&mut self, random: &mut Random) {
        let id = FIRST_ID + random.below(15) as u64;
        let target = if random.percent(70) {
            targets::excluded(random)
        } else {
            targets::collection(random)
        };
        let tag = actions::tag(random);
        let line = match random.below(6) {
            0 => format!("SecRuleRemoveById {id}"),
            1 => format!("SecRuleRemoveByTag {tag}"),
            2 => format!("SecRuleUpdateTargetByTag {tag} {target}"),
            3 => format!("SecRuleUpdateTargetById {id}-{} {target}", id + 3),
            _ => format!("SecRuleUpdateTargetById {id} {target}"),
        };
        self.line(line);
    }
}
