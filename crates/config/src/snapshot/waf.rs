//! How requests are inspected.

use std::sync::Arc;

use weir_core::persistence::keys::Keys;
use weir_core::policy::WafMode;
use weir_waf::body::Limits;
use weir_waf::checks::{Checks, CookieTerms};
use weir_waf::plan::View;

/// `waf:` of a virtual server. Virtual servers that say the same share it.
#[derive(Debug, Clone)]
pub struct Waf {
    /// What becomes of what rules find, unless a policy says otherwise.
    pub mode: WafMode,
    /// The rules.
    pub view: Arc<View>,
    /// What is looked at without rules; `None`: nothing.
    pub checks: Option<Arc<Checks>>,
    /// What is done with the cookies that the application sets; `None`: nothing.
    pub cookies: Option<Arc<Cookies>>,
    /// How much of arguments and bodies is taken apart.
    pub limits: Limits,
    /// Bytes of a body that is inspected; a longer one is not judged.
    pub body_bytes_max: u64,
    /// Time in which a body that is held has to be whole.
    pub body_timeout_ms: u64,
    /// Bytes that may be looked at for one request, each counted as often as it is.
    pub work_bytes_max: u64,
    /// What becomes of requests that cannot be judged.
    pub unjudged: Unjudged,
    /// Which requests the log records whole.
    pub record: Record,
}

/// What is done with the cookies that an application sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Cookies {
    /// Which, and what.
    pub terms: CookieTerms,
    /// Keys of tags; `None`: those of [`Snapshot::own_keys`](super::Snapshot::own_keys).
    pub keys: Option<Arc<Keys>>,
}

/// What becomes of requests that cannot be judged: a limit is reached, or a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// With mode `block` their members do not get them.
    Block,
    /// They go on.
    Pass,
}

/// Which requests the log of the web application firewall records, so that they can be judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Record {
    /// None.
    #[default]
    Off,
    /// Those that it tells of.
    Told,
    /// All that are inspected; the log tells of all of them then.
    All,
}
