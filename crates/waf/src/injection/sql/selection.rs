//! Operands of SELECT: the probability that the following words are a selection and not prose ("select a size from the
//! list").

use super::token::Class;
use super::tokens::Tokens;

/// The confidence that a sequence of tokens is SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Weight {
    /// No SQL.
    None,
    /// Valid, but also an English phrase.
    Phrase,
    /// Valid, and unusual in prose.
    Likely,
    /// Only possible in SQL.
    Sure,
}

/// The parts of a selection so far.
#[derive(Default)]
struct Parts {
    from: bool,
    /// Whether `*`, a number or a text is selected.
    value: bool,
    /// Whether an operand is complete, so that an operator or the end must follow.
    complete: bool,
    /// Whether an alias was parsed, so that no further word may follow.
    alias: bool,
    /// Whether a name has an underscore or a dot, or a word is a function for facts about the session.
    unusual_name: bool,
}

impl Parts {
    fn weight_at_end(&self, terminated: bool) -> Weight {
        match (self.from, terminated) {
            (true, true) => Weight::Sure,
            (true, false) if self.value || self.unusual_name => Weight::Sure,
            (true, false) => Weight::Likely,
            (false, true) if self.unusual_name => Weight::Sure,
            (false, terminated) if self.value || terminated => Weight::Likely,
            (false, _) => Weight::Phrase,
        }
    }

    /// Parses a name: a column, a table, or the alias of the preceding operand. Two consecutive aliases are prose.
    fn name(&mut self, name: &[u8], class: Class, after_dot: bool) -> Option<Weight> {
        if class == Class::Catalog && self.from && !self.complete {
            return Some(Weight::Sure);
        }
        self.unusual_name |= name.iter().any(|byte| matches!(byte, b'_' | b'.' | b'$'));
        self.unusual_name |= class == Class::Function && !self.complete;
        if self.complete && self.alias && !after_dot {
            return Some(Weight::None);
        }
        self.alias = self.complete && !after_dot;
        self.complete = true;
        None
    }

    fn complete_with_value(&mut self) -> Option<Weight> {
        self.value = true;
        self.complete = true;
        None
    }

    fn restart(&mut self) {
        self.complete = false;
        self.alias = false;
    }
}

/// Parses the tokens after SELECT, until the result is certain or the input ends.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Weight {
    let mut parts = Parts::default();
    let mut previous = Class::Select;
    loop {
        let token = tokens.next();
        let verdict = match token.class {
            Class::Open if previous.is_name() || !parts.complete => {
                parts.restart();
                None
            }
            Class::Close if previous == Class::Open => parts.complete_with_value(),
            class if class.is_name() && (parts.complete || !is_call(class, tokens)) => {
                parts.name(tokens.bytes(&token), class, previous == Class::Dot)
            }
            class if parts.complete => after_operand(class, previous, &mut parts, tokens),
            class => operand(class, previous, &mut parts),
        };
        if let Some(weight) = verdict {
            return weight;
        }
        previous = token.class;
    }
}

/// Whether a known function is called. In prose, a blank precedes the parenthesis.
fn is_call(function: Class, tokens: &Tokens<'_>) -> bool {
    let next = tokens.peek();
    let is_sure = matches!(function, Class::Weapon | Class::Function);
    next.class == Class::Open && (is_sure || (function == Class::Formula && !next.gap))
}

/// Parses a token in place of an operand, except names without a call.
fn operand(class: Class, previous: Class, parts: &mut Parts) -> Option<Weight> {
    match class {
        Class::All | Class::Sign | Class::Not => None,
        Class::Star | Class::Number | Class::Text | Class::Constant => parts.complete_with_value(),
        Class::Weapon | Class::Function | Class::Formula | Class::Variable => Some(Weight::Sure),
        Class::Case => {
            parts.unusual_name = true;
            None
        }
        Class::When if parts.unusual_name => Some(Weight::Sure),
        Class::Select if previous == Class::Open => Some(Weight::Sure),
        _ => Some(Weight::None),
    }
}

/// Parses a token in place of an operator, or the next part of the query.
fn after_operand(
    class: Class,
    previous: Class,
    parts: &mut Parts,
    tokens: &mut Tokens<'_>,
) -> Option<Weight> {
    let next = tokens.peek().class;
    match class {
        Class::Close | Class::Dot => {}
        Class::Text if previous == Class::Text => {}
        Class::As | Class::Cast => parts.alias = false,
        Class::Not if matches!(next, Class::Compare | Class::In | Class::Between) => {}
        Class::From => {
            parts.from = true;
            parts.restart();
            return (next == Class::Open).then_some(Weight::Sure);
        }
        Class::Comma | Class::Compare | Class::Sign | Class::Star | Class::Arithmetic => {
            parts.restart()
        }
        Class::Bitwise | Class::Logic | Class::Assign => parts.restart(),
        Class::When | Class::CaseEnd if parts.unusual_name => return Some(Weight::Sure),
        Class::Union => return Some(union_weight(tokens)),
        Class::Into if matches!(next, Class::File | Class::Variable) => return Some(Weight::Sure),
        Class::Where | Class::Limit | Class::Sort if parts.from => {
            return Some(clause_weight(tokens));
        }
        Class::Semicolon | Class::Comment => return Some(parts.weight_at_end(true)),
        Class::End => return Some(parts.weight_at_end(false)),
        _ => return Some(Weight::None),
    }
    None
}

/// The weight of UNION after a selection: certain if another selection follows.
fn union_weight(tokens: &mut Tokens<'_>) -> Weight {
    while tokens.take(Class::All) || tokens.take(Class::Open) {}
    if matches!(tokens.peek().class, Class::Select | Class::Values) {
        Weight::Sure
    } else {
        Weight::None
    }
}

/// The weight of WHERE, LIMIT or ORDER after FROM: certain if an operand follows, and then no word.
fn clause_weight(tokens: &mut Tokens<'_>) -> Weight {
    tokens.take(Class::By);
    while tokens.take(Class::Open) || tokens.take(Class::Not) {}
    let operand = tokens.next().class;
    let then = tokens.peek().class;
    let is_operand = operand.is_name()
        || matches!(
            operand,
            Class::Number
                | Class::Text
                | Class::Variable
                | Class::Exists
                | Class::Select
                | Class::Constant
        );
    if is_operand && (then.may_follow_operand() || operand == Class::Select) {
        Weight::Sure
    } else {
        Weight::None
    }
}
