//! What a stage says of a request.

use weir_core::policy::Decision;

use crate::parts::inspection::Block;
use crate::parts::request_decisions::EndWithoutMember;
use crate::parts::stages::Wait;
use crate::parts::weir_response::WeirResponse;

/// What a stage says of a request. The exchange carries it out.
pub enum StageResult {
    /// It goes on to the next stage.
    On,
    /// It waits. Except for its body, it comes to this stage again.
    Wait(Wait),
    /// It is not allowed, and gets this response. All decisions about it are dropped.
    Refuse {
        /// The reason, for the access log.
        mark: String,
        /// The response.
        response: WeirResponse<'static>,
    },
    /// It ends as was decided with its head.
    End(EndWithoutMember, Box<Decision>),
    /// The firewall has blocked it by its head. What was to follow the inspection does not take place.
    BlockHead(Block),
    /// The firewall has blocked it by its body.
    BlockBody(Block),
}
