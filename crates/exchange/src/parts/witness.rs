//! Observation of decisions about a request, by explanations and by workers that record requests. No step is on the path of
//! a request that is forwarded unchanged.

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;
use weir_waf::inspection::Inspection;

use crate::local::traffic::{RoutingVerdict, Traffic};
use crate::parts::arrival::Arrival;
use crate::parts::failure::MemberFailure;
use crate::parts::inspection::Terms;
use crate::parts::inspection_report::InspectionOutcome;
use crate::parts::transaction_ends::TransactionEnds;

/// Observes decisions about a request.
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
    Decided(ServerDecision<'a, 'e>),
    /// The web application firewall begins to inspect the request.
    Inspects(&'a Terms),
    /// The web application firewall has a result.
    Inspected {
        /// The settings of the inspection.
        terms: &'a Terms,
        /// The findings.
        inspection: &'a Inspection,
        /// The result.
        outcome: InspectionOutcome,
        /// The status of the answer; 0: the request continues.
        status: u16,
    },
    /// The search for a member begins for a request that has waited.
    Seeks(&'a TransactionEnds),
    /// A member failed to serve the request.
    Failed {
        /// The transaction; its current attempt has failed.
        ends: &'a TransactionEnds,
        /// The member.
        member: u32,
        /// The reason.
        why: MemberFailure,
    },
}

/// The decision of a virtual server about a request, and its input.
pub struct ServerDecision<'a, 'e> {
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
    pub verdict: &'a RoutingVerdict,
}
