//! What SELECT takes: how far the words after it are a selection rather than prose ("select a size from the list").

use super::token::Class;
use super::tokens::Tokens;

/// How surely a sequence of tokens is SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Weight {
    /// It is not.
    None,
    /// It is valid, but so is a phrase in English.
    Phrase,
    /// It is valid, and unusual in prose.
    Likely,
    /// Only SQL looks like this.
    Sure,
}

/// Parts of a selection that were passed.
#[derive(Default)]
struct Parts {
    from: bool,
    /// `*`, or a number or text, was selected.
    value: bool,
    commas: bool,
    /// An operand was complete: an operator or the end must follow.
    complete: bool,
    /// An alias was passed: no further word may follow.
    alias: bool,
    /// A name with an underscore or a dot in it, or a word for facts about the session.
    unusual_name: bool,
}

impl Parts {
    fn weight_at_end(&self, terminated: bool) -> Weight {
        match (self.from, terminated) {
            (true, true) => Weight::Sure,
            (true, false) if self.value || self.unusual_name => Weight::Sure,
            (true, false) => Weight::Likely,
            (false, true) if self.unusual_name => Weight::Sure,
            (false, _) if self.value => Weight::Likely,
            (false, true) => Weight::Likely,
            (false, false) => Weight::Phrase,
        }
    }

    /// A name, where one may stand. False: prose.
    fn name(&mut self, after_dot: bool) -> bool {
        let sound = after_dot || !self.complete || !self.alias;
        self.alias = self.complete && !after_dot;
        self.complete = true;
        sound
    }

    fn operand(&mut self) -> bool {
        let sound = !self.complete;
        self.complete = true;
        sound
    }

    fn restart(&mut self) {
        self.complete = false;
        self.alias = false;
    }
}

/// Reads what follows SELECT, up to the point where it is sure, or is no SQL, or ends.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Weight {
    let mut parts = Parts::default();
    let mut previous = Class::Select;
    loop {
        let token = tokens.next();
        let calls = tokens.peek().class == Class::Open;
        match token.class {
            Class::All if !parts.complete => {}
            Class::Open if !parts.complete => {}
            Class::Open if previous.is_name() => parts.restart(),
            Class::Close if parts.complete || previous == Class::Open => parts.complete = true,
            Class::Star if !parts.complete => {
                parts.value = true;
                parts.complete = true;
            }
            Class::Weapon | Class::Function if calls && !parts.complete => return Weight::Sure,
            Class::Formula if calls && !parts.complete && !tokens.peek().gap => {
                return Weight::Sure;
            }
            Class::Variable if !parts.complete => return Weight::Sure,
            Class::Function if !parts.complete => {
                parts.unusual_name = true;
                parts.complete = true;
            }
            Class::Catalog if parts.from && !parts.complete => return Weight::Sure,
            Class::Number | Class::Text | Class::Constant => {
                parts.value = true;
                let follows_text = previous == Class::Text && token.class == Class::Text;
                if !parts.operand() && !follows_text {
                    return Weight::None;
                }
            }
            Class::Case if !parts.complete => parts.unusual_name = true,
            Class::When | Class::CaseEnd if parts.unusual_name => return Weight::Sure,
            Class::Select if previous == Class::Open => return Weight::Sure,
            Class::Union if parts.complete => return union_weight(tokens),
            Class::Into
                if parts.complete
                    && matches!(tokens.peek().class, Class::File | Class::Variable) =>
            {
                return Weight::Sure;
            }
            Class::From if parts.complete => {
                parts.from = true;
                parts.restart();
                if tokens.peek().class == Class::Open {
                    return Weight::Sure;
                }
            }
            Class::Where | Class::Limit | Class::Sort if parts.from && parts.complete => {
                return clause_weight(tokens);
            }
            Class::Comma if parts.complete => {
                parts.commas = true;
                parts.restart();
            }
            Class::As if parts.complete => parts.alias = false,
            Class::Cast if parts.complete => parts.alias = false,
            Class::Dot if parts.complete => {}
            Class::Compare
            | Class::Sign
            | Class::Arithmetic
            | Class::Bitwise
            | Class::Logic
            | Class::Assign
                if parts.complete =>
            {
                parts.restart()
            }
            Class::Star if parts.complete => parts.restart(),
            Class::Sign | Class::Not if !parts.complete => {}
            Class::Not
                if matches!(tokens.peek().class, Class::Compare | Class::In | Class::Between) => {}
            Class::Semicolon | Class::Comment if parts.complete => {
                return parts.weight_at_end(true);
            }
            Class::End if parts.complete => return parts.weight_at_end(false),
            class if class.is_name() => {
                parts.unusual_name |=
                    tokens.bytes(&token).iter().any(|byte| matches!(byte, b'_' | b'.' | b'$'));
                if !parts.name(previous == Class::Dot) {
                    return Weight::None;
                }
            }
            _ => return Weight::None,
        }
        previous = token.class;
    }
}

/// UNION after a selection: sure if another selection follows.
fn union_weight(tokens: &mut Tokens<'_>) -> Weight {
    while tokens.take(Class::All) || tokens.take(Class::Open) {}
    if matches!(tokens.peek().class, Class::Select | Class::Values) {
        Weight::Sure
    } else {
        Weight::None
    }
}

/// WHERE, LIMIT or ORDER after FROM: sure if an operand follows and then no word.
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
