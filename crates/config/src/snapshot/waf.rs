//! How requests are inspected.

use std::sync::Arc;

use weir_core::persistence::keys::Keys;
use weir_core::policy::WafMode;
use weir_http::cookie_attributes::CookieAttributes;
use weir_waf::body::Limits;
use weir_waf::checks::{Checks, CookieTerms};
use weir_waf::exclusion::Exclusion;
use weir_waf::inspection::CommonTexts;

/// `waf:` of a virtual server. Virtual servers that say the same share it.
#[derive(Debug, Clone)]
pub struct Waf {
    /// The mode, unless a policy sets another.
    pub mode: WafMode,
    /// The rules, with cached results for texts that requests have in common.
    pub common: Arc<CommonTexts>,
    /// The profile that the settings come from; `None`: they are defined in the virtual server.
    pub profile: Option<Arc<str>>,
    /// Values that rules do not inspect; `common` already includes these exclusions.
    pub exclusions: Vec<Exclusion>,
    /// Checks without rules; `None`: no checks.
    pub checks: Option<Arc<Checks>>,
    /// Protection of the application's cookies; `None`: not protected.
    pub cookies: Option<Arc<Cookies>>,
    /// How responses are inspected; `None`: they are not.
    pub responses: Option<Arc<Responses>>,
    /// How much of arguments and bodies is taken apart.
    pub limits: Limits,
    /// Bytes of a body that is inspected; a longer one is not judged.
    pub body_bytes_max: u64,
    /// Time in which a body that is held has to be whole.
    pub body_timeout_ms: u64,
    /// Bytes that may be looked at for one request, each counted as often as it is.
    pub work_bytes_max: u64,
    /// Time of the processor that rules may take for one request.
    pub time_max_ms: u64,
    /// The treatment of requests that cannot be judged.
    pub unjudged: Unjudged,
    /// Which requests the log records whole.
    pub record: Record,
}

/// Which responses are inspected, and how far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Responses {
    /// Inspected bytes of a body; the rest passes as it arrives.
    pub bytes_max: usize,
    /// Media types of bodies that are looked at, in lower case: `text/html`, or `text/*`.
    pub types: Vec<Box<str>>,
}

impl Responses {
    /// Whether bodies of this Content-Type are looked at.
    pub fn look_at(&self, content_type: &[u8]) -> bool {
        let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii().to_ascii_lowercase();
        self.types.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => essence.starts_with(prefix.as_bytes()),
            None => essence == wanted.as_bytes(),
        })
    }
}

/// Protection of an application's cookies.
#[derive(Debug, Clone, PartialEq)]
pub struct Cookies {
    /// Which are sealed.
    pub terms: CookieTerms,
    /// Attributes that are added to them.
    pub attributes: CookieAttributes,
    /// Keys of tags; `None`: [`Snapshot::own_keys`](super::Snapshot::own_keys).
    pub keys: Option<Arc<Keys>>,
}

/// The treatment of requests that cannot be judged: a limit is reached, or a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// With mode `block` their members do not get them.
    Block,
    /// They are forwarded.
    Pass,
}

/// Which requests the log of the web application firewall records, so that they can be judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Record {
    /// None.
    #[default]
    Off,
    /// Requests with a finding.
    Told,
    /// All inspected requests; then all of them are in the log.
    All,
}
