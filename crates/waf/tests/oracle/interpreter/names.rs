//! The names of `TX` variables in rules.

use weir_waf::seclang::{
    Action, Disruption, OperatorKind, Piece, Rule, Selector, Target, Template, Variable,
    VariableChange,
};

use super::program::Item;

pub fn all(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let Item::Rule(whole) = item else { continue };
        whole.links.iter().for_each(|link| of_rule(link, &mut names));
    }
    names.sort();
    names.dedup();
    names
}

fn of_rule(rule: &Rule, names: &mut Vec<String>) {
    for Target { variable, selector, .. } in &rule.targets {
        if let (Variable::Tx, Selector::Name(name)) = (variable, selector) {
            names.push(name.to_lowercase());
        }
    }
    use OperatorKind as O;
    match &rule.operator.kind {
        O::RxTemplate(text) | O::Eq(text) | O::Ge(text) | O::Gt(text) | O::Le(text) => {
            of_template(text, names);
        }
        O::Lt(text) | O::Streq(text) | O::Within(text) | O::Contains(text) => {
            of_template(text, names);
        }
        O::ContainsWord(text) | O::BeginsWith(text) | O::EndsWith(text) => {
            of_template(text, names);
        }
        _ => {}
    }
    for action in &rule.actions {
        match action {
            Action::Message(text)
            | Action::LogData(text)
            | Action::Disruption(Disruption::Redirect(text)) => of_template(text, names),
            Action::SetVariable(set) => {
                if let (Variable::Tx, Some(name)) = (set.collection, set.name.as_text()) {
                    names.push(name.to_lowercase());
                }
                of_template(&set.name, names);
                match &set.change {
                    VariableChange::Set(text)
                    | VariableChange::Add(text)
                    | VariableChange::Subtract(text) => of_template(text, names),
                    VariableChange::Remove => {}
                }
            }
            _ => {}
        }
    }
}

fn of_template(template: &Template, names: &mut Vec<String>) {
    for piece in &template.0 {
        if let Piece::Variable(Variable::Tx, Some(name)) = piece {
            names.push(name.to_lowercase());
        }
    }
}
