//! Observation of decisions about a request. For workers, the calls here are empty and are optimised away.

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;
use weir_waf::inspection::Inspection;

use crate::local::traffic::{Traffic, Verdict};
use crate::parts::arrival::Arrival;
use crate::parts::inspected::Outcome;
use crate::parts::inspecting::Terms;

/// Observes decisions about a request. Implemented by explanations.
pub trait Witness {
    /// A step of the decision; it must not be changed.
    #[inline(always)]
    fn note(&mut self, step: Step<'_, '_>) {
        let _ = step;
    }
}

/// A step of the decision.
pub enum Step<'a, 'e> {
    /// A virtual server has decided about a request: limits, policies, pool and persistence.
    Decided(Decided<'a, 'e>),
    /// The web application firewall has a result.
    Inspected {
        /// The settings of the inspection.
        terms: &'a Terms,
        /// The findings.
        inspection: &'a Inspection,
        /// The result.
        outcome: Outcome,
        /// The status of the answer; 0: the request continues.
        status: u16,
    },
}

/// The decision of a virtual server about a request, and its input.
pub struct Decided<'a, 'e> {
    /// The request.
    pub arrival: &'a Arrival<'a>,
    /// The settings that decided.
    pub traffic: &'a Traffic,
    /// The values of expressions.
    pub facts: &'a Facts<'a>,
    /// The evaluation state, for further expressions.
    pub evaluation: &'a mut Evaluation<'e>,
    /// The decision of the policies.
    pub decision: &'a Decision,
    /// The resulting verdict.
    pub verdict: &'a Verdict,
}
