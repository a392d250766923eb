//! The directives in order, after all changes by later directives.

use std::collections::{BTreeSet, HashMap};

use weir_waf::seclang::{
    Action, Directive, DirectiveKind, Disruption, Phase, Piece, Rule, Selector, Setting, Severity,
    Target, TargetKind, Template, Variable,
};

/// An item of the program. Items are executed in order.
pub enum Item {
    Rule(Box<Whole>),
    Marker(Box<str>),
}

/// A rule and its chain.
#[derive(Clone)]
pub struct Whole {
    pub id: u64,
    pub phase: Phase,
    /// The rule and its chained rules.
    pub links: Vec<Rule>,
    pub defaults: Vec<Action>,
    /// The path of the rule's file. Files of words are beside it.
    pub file: String,
}

/// Words in lower case, grouped by their last byte.
#[derive(Default)]
pub struct Words(HashMap<u8, Vec<Box<[u8]>>>);

impl Words {
    /// Parses the lines of a file, without comments.
    pub fn of_file(bytes: &[u8]) -> Self {
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        Self::new(lines.filter(|line| !line.starts_with(b"#")))
    }

    pub fn new<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut all = Self::default();
        for word in words {
            if let Some(last) = word.last() {
                all.0.entry(last.to_ascii_lowercase()).or_default().push(word.into());
            }
        }
        all
    }

    /// The longest word at the end of a text.
    pub fn at_end_of(&self, text: &[u8]) -> Option<&[u8]> {
        let words = self.0.get(&text.last()?.to_ascii_lowercase())?.iter();
        let is_end = |word: &&[u8]| {
            let start = text.len().checked_sub(word.len());
            start.is_some_and(|start| text[start..].eq_ignore_ascii_case(word))
        };
        words.map(|word| &**word).filter(is_end).max_by_key(|word| word.len())
    }
}

pub struct Program {
    pub items: Vec<Item>,
    pub separator: u8,
    /// The words from files, by path.
    pub files: HashMap<String, Words>,
    /// The names of `TX` variables that occur in rules.
    pub names: Vec<String>,
    /// Rules that read members of `TX` without naming them. The language defines no order for these members.
    pub unordered: BTreeSet<u64>,
}

impl Program {
    pub fn new(directives: &[Directive], files: HashMap<String, Words>) -> Self {
        let mut program = Self {
            items: Vec::new(),
            separator: b'&',
            files,
            names: Vec::new(),
            unordered: BTreeSet::new(),
        };
        let mut defaults: HashMap<Phase, Vec<Action>> = HashMap::new();
        for directive in directives {
            program.take(directive, &mut defaults);
        }
        program.names = super::names::all(&program.items);
        program
    }

    fn take(&mut self, directive: &Directive, defaults: &mut HashMap<Phase, Vec<Action>>) {
        match &directive.kind {
            DirectiveKind::Rule(rule) => {
                let phase = phase(&rule.actions);
                if has_no_order(rule) {
                    self.unordered.insert(id(&rule.actions));
                }
                let mut links = Vec::new();
                let mut at = Some(rule);
                while let Some(rule) = at {
                    links.push(rule.clone());
                    at = rule.chained.as_deref();
                }
                self.items.push(Item::Rule(Box::new(Whole {
                    id: id(&rule.actions),
                    phase,
                    links,
                    defaults: defaults.get(&phase).cloned().unwrap_or_default(),
                    file: directive.place.file.to_string(),
                })));
            }
            DirectiveKind::Marker(label) => self.items.push(Item::Marker(label.clone())),
            DirectiveKind::DefaultAction(actions) => {
                defaults.insert(phase(actions), actions.clone());
            }
            DirectiveKind::Setting(Setting::ArgumentSeparator(byte)) => self.separator = *byte,
            DirectiveKind::RemoveById(ranges) => {
                self.remove(|rule| ranges.iter().any(|range| range.has(rule.id)));
            }
            DirectiveKind::RemoveByTag(tag) => {
                self.remove(|rule| rule.tags().any(|it| tag.is_match(it.as_bytes())));
            }
            DirectiveKind::RemoveByMessage(text) => self.remove(|rule| {
                rule.plain_message().is_some_and(|message| text.is_match(message.as_bytes()))
            }),
            DirectiveKind::UpdateTargetById(range, targets) => {
                self.update(targets, |rule| range.has(rule.id));
            }
            DirectiveKind::UpdateTargetByTag(tag, targets) => {
                self.update(targets, |rule| rule.tags().any(|it| tag.is_match(it.as_bytes())));
            }
            DirectiveKind::UpdateTargetByMessage(text, targets) => self.update(targets, |rule| {
                rule.plain_message().is_some_and(|message| text.is_match(message.as_bytes()))
            }),
            _ => {}
        }
    }

    fn remove(&mut self, is_it: impl Fn(&Whole) -> bool) {
        self.items.retain(|item| !matches!(item, Item::Rule(rule) if is_it(rule)));
    }

    fn update(&mut self, targets: &[Target], is_it: impl Fn(&Whole) -> bool) {
        for item in &mut self.items {
            if let Item::Rule(rule) = item
                && is_it(rule)
            {
                // An action has no targets, and cannot be given any.
                if !rule.links[0].targets.is_empty() {
                    rule.links[0].targets.extend_from_slice(targets);
                }
            }
        }
    }
}

fn id(actions: &[Action]) -> u64 {
    let id = actions.iter().find_map(|action| match action {
        Action::Id(id) => Some(*id),
        _ => None,
    });
    id.unwrap_or_default()
}

fn phase(actions: &[Action]) -> Phase {
    let phase = actions.iter().find_map(|action| match action {
        Action::Phase(phase) => Some(*phase),
        _ => None,
    });
    phase.unwrap_or(Phase::RequestBody)
}

impl Whole {
    /// The phase's default actions, followed by the actions of the first rule.
    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.defaults.iter().chain(&self.links[0].actions)
    }

    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.links[0].actions.iter().filter_map(|action| match action {
            Action::Tag(tag) => Some(&**tag),
            _ => None,
        })
    }

    /// The first message in the chain.
    pub fn message(&self) -> Option<&Template> {
        self.links.iter().flat_map(|link| &link.actions).find_map(|action| match action {
            Action::Message(text) => Some(text),
            _ => None,
        })
    }

    pub fn log_data(&self) -> Option<&Template> {
        self.links.iter().flat_map(|link| &link.actions).find_map(|action| match action {
            Action::LogData(text) => Some(text),
            _ => None,
        })
    }

    /// The message of the first rule, as in the file.
    pub fn plain_message(&self) -> Option<String> {
        let mut plain = String::new();
        for piece in &self.links[0].actions.iter().find_map(message_of)?.0 {
            let Piece::Text(text) = piece else { continue };
            plain.push_str(text);
        }
        Some(plain)
    }

    pub fn severity(&self) -> Option<Severity> {
        let of = |action: &Action| match action {
            Action::Severity(severity) => Some(*severity),
            _ => None,
        };
        self.links.iter().flat_map(|link| &link.actions).filter_map(of).next_back()
    }

    /// Whether matches are written to the error log, and to the audit log.
    pub fn logging(&self) -> (bool, bool) {
        let (mut is_logged, mut is_audited) = (true, true);
        for action in self.actions() {
            match action {
                Action::Log(it) => (is_logged, is_audited) = (*it, *it),
                Action::AuditLog(it) => is_audited = *it,
                _ => {}
            }
        }
        (is_logged, is_audited)
    }

    pub fn disruption(&self) -> Disruption {
        let last = |actions: &[Action]| {
            actions.iter().rev().find_map(|action| match action {
                Action::Disruption(it) => Some(it.clone()),
                _ => None,
            })
        };
        let default = last(&self.defaults).unwrap_or(Disruption::Pass);
        match last(&self.links[0].actions).unwrap_or(Disruption::Block) {
            Disruption::Block => default,
            own => own,
        }
    }

    pub fn status(&self) -> u16 {
        let of = |action: &Action| match action {
            Action::Status(status) => Some(*status),
            _ => None,
        };
        self.actions().filter_map(of).last().unwrap_or(403)
    }

    pub fn skip(&self) -> Option<&Action> {
        self.links[0]
            .actions
            .iter()
            .find(|action| matches!(action, Action::Skip(_) | Action::SkipAfter(_)))
    }
}

fn message_of(action: &Action) -> Option<&Template> {
    match action {
        Action::Message(text) => Some(text),
        _ => None,
    }
}

fn has_no_order(rule: &Rule) -> bool {
    rule.targets.iter().any(|target| {
        target.kind == TargetKind::Values
            && target.variable == Variable::Tx
            && !matches!(target.selector, Selector::Name(_))
    })
}
