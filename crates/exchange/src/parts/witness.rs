//! Those who look on while a request is decided about: explanations, and workers that record requests. None of the steps is
//! on the way of a request that is handed on as it came.

use weir_core::expression::{Evaluation, Facts};
use weir_core::policy::Decision;
use weir_waf::inspection::Inspection;

use crate::local::traffic::{Traffic, Verdict};
use crate::parts::arrival::Arrival;
use crate::parts::ends::Ends;
use crate::parts::failure::MemberFailure;
use crate::parts::inspected::Outcome;
use crate::parts::inspecting::Terms;

/// Looks on while a request is decided about.
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
    /// The web application firewall begins to look at it.
    Inspects(&'a Terms),
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
    /// A request that has waited looks for a member.
    Seeks(&'a Ends),
    /// A member did not serve it.
    Failed {
        /// The transaction; its attempt is the one that has failed.
        ends: &'a Ends,
        /// The member.
        member: u32,
        /// Why.
        why: MemberFailure,
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
