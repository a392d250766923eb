//! Inspection of requests by the web application firewall.

use std::sync::Arc;

use weir_core::persistence::keys::Keys;
use weir_core::policy::WafMode;
use weir_http::cookie_attributes::CookieAttributes;
use weir_waf::body::Limits;
use weir_waf::checks::{Checks, CookieTerms};
use weir_waf::exclusion::Exclusion;
use weir_waf::inspection::CommonTexts;

/// `waf:` of a virtual server. Virtual servers with the same settings share it.
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
    /// The inspection of responses; `None`: no inspection.
    pub responses: Option<Arc<Responses>>,
    /// Limits on the parsing of arguments and bodies.
    pub limits: Limits,
    /// Maximum size of an inspected body; a request with a longer body is not judged.
    pub body_bytes_max: u64,
    /// Maximum size of the files of a multipart body that do not count toward its size.
    pub files_bytes_max: u64,
    /// Timeout for receiving the whole body that is held for inspection.
    pub body_timeout_ms: u64,
    /// Maximum number of inspected bytes per request; a byte counts each time it is inspected.
    pub work_bytes_max: u64,
    /// Maximum CPU time of rules per request.
    pub time_max_ms: u64,
    /// The treatment of requests that cannot be judged.
    pub unjudged: UnjudgedAction,
    /// The requests that the log records completely.
    pub record: Record,
}

/// The inspected responses, and the limits of their inspection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Responses {
    /// Maximum number of inspected bytes of a body; the rest is forwarded as it arrives.
    pub bytes_max: usize,
    /// Media types of inspected bodies, in lower case: `text/html`, or `text/*`.
    pub types: Vec<Box<str>>,
}

impl Responses {
    /// Whether bodies with this `Content-Type` are inspected.
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
    /// The cookies to seal.
    pub terms: CookieTerms,
    /// The attributes that are added to cookies.
    pub attributes: CookieAttributes,
    /// The application to which the cookies belong; `None`: the virtual server.
    pub application: Option<Arc<str>>,
    /// Keys of tags; `None`: [`Snapshot::own_keys`](super::Snapshot::own_keys).
    pub keys: Option<Arc<Keys>>,
}

/// The treatment of requests that cannot be judged: a limit is reached, or a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnjudgedAction {
    /// In mode `block`, members do not get them.
    Block,
    /// They are forwarded.
    Pass,
}

/// The requests that the firewall's log records completely, so that they can be judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Record {
    /// No requests.
    #[default]
    Off,
    /// Requests with a finding.
    Told,
    /// All inspected requests; the log then contains all of them.
    All,
}
