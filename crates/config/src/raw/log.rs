//! `log`: what is logged, and where.

use crate::raw::waf::WafLog;
use crate::shapes::LogPath;

section! {
    /// What is logged.
    Log at "log" {
        /// One line per request.
        optional access: AccessLog;
        /// What the web application firewall finds.
        optional waf: WafLog;
    }
    later []
}

section! {
    /// The access log.
    AccessLog at "log.access" {
        /// `stdout`, or a file that lines are appended to; it is opened anew on reload.
        default to: LogPath = LogPath::Stdout;
        /// `json`: one object per line with timers and the reason why the request ended. `combined`: Apache's format. `off`: no access log.
        default format: AccessLogFormat = AccessLogFormat::Json;
    }
    later []
}

choice! {
    /// Form of an access log line.
    AccessLogFormat {
        /// One JSON object per line.
        Json = "json",
        /// The Apache combined format.
        Combined = "combined",
        /// No access log.
        Off = "off",
    }
    later [] maps []
}
