//! Persistence by a value in responses.

use weir_core::expression::ResponseFacts;

use crate::edge::Edge;
use crate::local::traffic::Traffic;
use crate::parts::request_context::RequestContext;

/// Stores the value in a member's response, if persistence uses it.
pub fn learn(
    at: &mut impl Edge,
    traffic: &Traffic,
    context: &RequestContext,
    member: u32,
    response: ResponseFacts<'_>,
) {
    let sticky = context.stickiness.as_ref().map(|stickiness| &*stickiness.sticky);
    let Some((text, places)) = sticky.and_then(|sticky| sticky.learn()) else { return };
    let clock = at.turn().clock;
    let around = traffic.around((at.tools().sources, clock), context.known());
    let Some(facts) = context.facts(response, &around) else { return };
    let mut value = at.tools().scratch.take();
    let mut fields = traffic.fields();
    let mut evaluation = fields.begin(facts);
    evaluation.set_user(context.user());
    evaluation.render(text, &mut value);
    if !value.is_empty() {
        places.remember(places.key_of_bytes(&value), member, clock.now_ms());
    }
    at.tools().scratch.give(value);
}
