//! Detection rates of a rule set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use weir_waf::plan::View;

use crate::corpus::Category;
use crate::send::{Outcome, Sent, run};

/// A part of a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub part: usize,
    pub whole: usize,
}

impl Share {
    pub fn percent(self) -> f64 {
        if self.whole == 0 { 0.0 } else { self.part as f64 * 100.0 / self.whole as f64 }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{:.2}% ({} of {})", self.percent(), self.part, self.whole)
    }
}

/// Inspects all requests, on all processors.
pub fn run_all(view: &Arc<View>, requests: &[Sent]) -> Vec<Outcome> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let chunk = requests.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let handles: Vec<_> = requests
            .chunks(chunk)
            .map(|part| scope.spawn(|| part.iter().map(|it| run(view, it)).collect::<Vec<_>>()))
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("a thread")).collect()
    })
}

pub fn denied(outcomes: &[Outcome]) -> Share {
    let part = outcomes.iter().filter(|outcome| outcome.denied.is_some()).count();
    Share { part, whole: outcomes.len() }
}

/// A value in the usual places of attacks: in the query and in a form.
pub fn as_requests(value: &[u8]) -> [Sent; 2] {
    [Sent::query("/search", &[("q", value)]), Sent::form("/search", &[("q", value)])]
}

/// The detection rates of one rule set.
#[derive(Debug, Default)]
pub struct Figures {
    /// The share of denied attacks, by category.
    pub attacks: BTreeMap<String, Share>,
    pub all: Share,
    /// The share of denied harmless strings.
    pub harmless: Share,
    /// Attacks that pass in the query or in the form.
    pub missed: Vec<(String, Vec<u8>)>,
    /// Denied harmless strings, with the rules that matched.
    pub wrong: Vec<(Vec<u8>, Vec<u64>)>,
}

pub fn of_strings(view: &Arc<View>, categories: &[Category]) -> Figures {
    let mut figures = Figures::default();
    for category in categories {
        let requests: Vec<Sent> =
            category.attacks.iter().flat_map(|value| as_requests(value)).collect();
        let outcomes = run_all(view, &requests);
        let share = denied(&outcomes);
        figures.all.part += share.part;
        figures.all.whole += share.whole;
        figures.attacks.insert(category.name.clone(), share);
        for (value, both) in category.attacks.iter().zip(outcomes.chunks(2)) {
            if both.iter().any(|outcome| outcome.denied.is_none()) {
                figures.missed.push((category.name.clone(), value.clone()));
            }
        }
        let requests: Vec<Sent> =
            category.harmless.iter().flat_map(|value| as_requests(value)).collect();
        let outcomes = run_all(view, &requests);
        let share = denied(&outcomes);
        figures.harmless.part += share.part;
        figures.harmless.whole += share.whole;
        for (value, both) in category.harmless.iter().zip(outcomes.chunks(2)) {
            if let Some(outcome) = both.iter().find(|outcome| outcome.denied.is_some()) {
                figures.wrong.push((value.clone(), outcome.ids.clone()));
            }
        }
    }
    figures
}
