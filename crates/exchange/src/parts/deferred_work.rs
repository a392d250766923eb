//! Work to do after the current call has returned.

use std::rc::Rc;

use weir_core::policy::Subrequest;
use weir_http::edits::RequestEdits;

use crate::arena::{ClientKey, ExchangeKey};
use crate::local::pool::{LocalPool, Preference};
use crate::local::table::LocalServer;
use crate::parts::inspection_job::InspectionJob;
use crate::parts::request_trace::RequestTrace;

/// Work to do after the current call has returned.
pub enum DeferredWork {
    /// Continues with a client that has sent data already.
    Client(ClientKey),
    /// Begins a request of weir's own.
    Begin(Box<SubrequestOrder>),
    /// Goes on with an inspection elsewhere.
    Inspect(Box<InspectionJob>),
    /// Ends a request of weir's own whose response is no longer needed.
    Leave {
        /// The request.
        child: ExchangeKey,
        /// Whether its member has exceeded the time.
        is_late: bool,
    },
}

/// A request of weir's own to be sent.
pub struct SubrequestOrder {
    /// The action for which it is made.
    pub action: Subrequest,
    /// The transaction that waits for the response; `None`: none waits.
    pub parent: Option<ExchangeKey>,
    /// The virtual server of the request that it belongs to.
    pub server: Rc<LocalServer>,
    /// The destination.
    pub pool: Rc<LocalPool>,
    /// The preference for a member.
    pub preference: Preference,
    /// The head in the form in which a client would send it.
    pub text: Vec<u8>,
    /// The body, regardless of the head; `None`: no body.
    pub body: Option<Vec<u8>>,
    /// What weir changes in the head.
    pub edits: RequestEdits,
    /// The trace context that it belongs to.
    pub traced: Option<Box<RequestTrace>>,
}
