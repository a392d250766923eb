//! Describes the decisions of a dry run while they are made.

use weir_api::explanation::{Considered, Firewall, PolicyTold};
use weir_core::clock::Clock;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::shared::live::LiveTable;

use crate::masks::Masks;
use crate::rules::{self, RuleTexts};
use crate::{decisions, firewall};

/// Describes the decisions of a dry run.
pub struct DecisionWitness<'a> {
    /// The live state before the request.
    live: &'a LiveTable,
    masks: &'a Masks,
    clock: Clock,
    /// The decisions of virtual servers.
    pub considered: Vec<Considered>,
    /// Policies for the response.
    pub response_policies: Vec<PolicyTold>,
    /// The findings of the firewall.
    pub firewall: Option<Firewall>,
}

impl<'a> DecisionWitness<'a> {
    /// Without any decision yet. `live`: the state before the request.
    pub fn new(live: &'a LiveTable, masks: &'a Masks, clock: Clock) -> Self {
        let (considered, response_policies) = (Vec::new(), Vec::new());
        Self { live, masks, clock, considered, response_policies, firewall: None }
    }
}

impl Witness for DecisionWitness<'_> {
    fn note(&mut self, step: Step<'_, '_>) {
        match step {
            Step::Decided(mut decided) => {
                let masks = self.masks;
                self.considered.push(decisions::told(&mut decided, self.live, self.clock, masks));
                let snapshot = decided.traffic.snapshot();
                let telling = RuleTexts { snapshot, masks, followed: &[] };
                let policies = &decided.traffic.settings().policies;
                self.response_policies =
                    rules::for_response(policies, decided.evaluation, &telling);
            }
            Step::Inspected { terms, inspection, outcome, status } => {
                let result = (outcome, status);
                self.firewall = Some(firewall::told(inspection, terms.mode, result, self.masks));
            }
            // The dry run itself records the search for a member, and no member fails there.
            Step::Inspects(_) | Step::Seeks(_) | Step::Failed { .. } => {}
        }
    }
}
