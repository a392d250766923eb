//! Reduces a case with different outcomes.

use crate::compare::{Comparison, compare};
use crate::generator::{Case, Directive, Link, Sent};

/// Removes parts as long as the outcomes still differ.
pub fn shrunk(mut case: Case, mut what: String) -> (Case, String) {
    'again: loop {
        for smaller in reductions(&case) {
            if let Comparison::Different(still) = compare(&smaller) {
                (case, what) = (smaller, still);
                continue 'again;
            }
        }
        return (case, what);
    }
}

/// The variants of a case with one part removed.
fn reductions(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        all.push(smaller);
    };
    for at in 0..case.directives.len() {
        with(&|it| drop(it.directives.remove(at)));
    }
    for at in 0..case.settings.len() {
        with(&|it| drop(it.settings.remove(at)));
    }
    for at in 0..case.sent.len() {
        with(&|it| drop(it.sent.remove(at)));
    }
    if let [sent] = case.sent.as_slice() {
        within_request(case, sent, &mut all);
    }
    for at in 0..case.directives.len() {
        within_rule(case, at, &mut all);
    }
    all
}

fn within_request(case: &Case, sent: &Sent, all: &mut Vec<Case>) {
    let mut with = |change: &dyn Fn(&mut Sent)| {
        let mut smaller = case.clone();
        smaller.sent.iter_mut().for_each(change);
        all.push(smaller);
    };
    for at in 0..sent.arguments.len() {
        with(&|it| drop(it.arguments.remove(at)));
    }
    for at in 0..sent.headers.len() {
        with(&|it| drop(it.headers.remove(at)));
    }
    for at in 0..sent.cookies.len() {
        with(&|it| drop(it.cookies.remove(at)));
    }
    for at in 0..sent.answer_headers.len() {
        with(&|it| drop(it.answer_headers.remove(at)));
    }
    for at in 0..sent.content.parts.len() {
        with(&|it| drop(it.content.parts.remove(at)));
    }
    if sent.content.kind != Default::default() {
        with(&|it| it.content = Default::default());
    }
    if sent.path != "/" {
        with(&|it| it.path = "/".into());
    }
}

/// Adds the variants of a case with a chained rule, a target or an action removed.
fn within_rule(case: &Case, at: usize, all: &mut Vec<Case>) {
    let Directive::Rule(links) = &case.directives[at] else { return };
    let mut with = |change: &dyn Fn(&mut Vec<Link>)| {
        let mut smaller = case.clone();
        let Directive::Rule(links) = &mut smaller.directives[at] else { return };
        change(links);
        all.push(smaller);
    };
    for link in 1..links.len() {
        with(&|links| drop(links.remove(link)));
    }
    for (link, of) in links.iter().enumerate() {
        // Without targets, the rule would be another directive.
        for target in 0..of.targets.len() * usize::from(of.targets.len() > 1) {
            with(&|links| drop(links[link].targets.remove(target)));
        }
        for action in 0..of.actions.len() {
            if !of.actions[action].starts_with("id:") {
                with(&|links| drop(links[link].actions.remove(action)));
            }
        }
    }
}
