//! How requests are inspected.

use std::sync::Arc;

use weir_core::policy::WafMode;
use weir_waf::body::Limits;
use weir_waf::checks::Checks;
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
    /// How much of arguments and bodies is taken apart.
    pub limits: Limits,
    /// Bytes of a body that is inspected; a longer one is not judged.
    pub body_bytes_max: u64,
    /// Bytes that may be looked at for one request, each counted as often as it is.
    pub work_bytes_max: u64,
    /// What becomes of requests that cannot be judged.
    pub unjudged: Unjudged,
    /// Which requests the log records whole.
    pub record: Record,
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
