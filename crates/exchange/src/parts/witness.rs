//! Those who look on while a request is decided about. Workers do not: for them every call here is empty, and compiled away.

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;
use weir_waf::inspection::Inspection;

use crate::local::traffic::{Traffic, Verdict};
use crate::parts::arrival::Arrival;
use crate::parts::inspected::Outcome;
use crate::parts::inspecting::Terms;

/// Looks on while a request is decided about. An explanation does.
pub trait Witness {
    /// A step was taken. It is not to be changed.
    #[inline(always)]
    fn note(&mut self, step: Step<'_, '_>) {
        let _ = step;
    }
}

/// A step that was taken.
pub enum Step<'a, 'e> {
    /// A virtual server has decided about a request: limits, policies, pool and persistence.
    Decided(Decided<'a, 'e>),
    /// The web application firewall is done with it.
    Inspected {
        /// How it was inspected.
        terms: &'a Terms,
        /// What was found.
        inspection: &'a Inspection,
        /// The result.
        outcome: Outcome,
        /// The status that it was answered with; 0: it goes on.
        status: u16,
    },
}

/// What a virtual server has decided about a request, and all that it has looked at.
pub struct Decided<'a, 'e> {
    /// The request.
    pub arrival: &'a Arrival<'a>,
    /// What has decided.
    pub traffic: &'a Traffic,
    /// The values of expressions.
    pub facts: &'a Facts<'a>,
    /// The same, for further expressions.
    pub evaluation: &'a mut Evaluation<'e>,
    /// What policies have decided.
    pub decision: &'a Decision,
    /// What follows from all that.
    pub verdict: &'a Verdict,
}
