//! `log`: targets of lines.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::log_format;
use super::tls::TlsProfiles;
use super::tracing;
use crate::decode::{Context, Section as _, Spanned, or_absent};
use crate::endpoint::Endpoint;
use crate::raw::log::SyslogTransport;
use crate::raw::log_format::LogFormatOr;
use crate::raw::tls::PoolTls;
use crate::raw::{self, AccessLogFormat};
use crate::scalar::Duration;
use crate::shapes::LogPath;
use crate::snapshot::{
    AccessFormat, Address, LogSettings, LogTarget, RecentRequests, Syslog, SyslogServer, SyslogTls,
};

pub(super) fn settings(file: &raw::File, directory: &Path, context: &mut Context) -> LogSettings {
    let section = or_absent(file.log.as_ref());
    let access = or_absent(section.access.as_ref());
    let access_to = log_target(&access.to, directory, context);
    let waf = section.waf.as_ref().and_then(|waf| waf.to.as_ref());
    let waf_to = waf.map(|to| log_target(to, directory, context));
    let audit = section.audit.as_ref().and_then(|audit| audit.to.as_ref());
    let audit_to = audit.map(|to| log_target(to, directory, context));
    let (access_format, given_format) = match &access.format.value {
        LogFormatOr::Word(AccessLogFormat::Json) => (AccessFormat::Json, None),
        LogFormatOr::Word(AccessLogFormat::Combined) => (AccessFormat::Combined, None),
        LogFormatOr::Word(AccessLogFormat::Off) => (AccessFormat::Off, None),
        LogFormatOr::Given(given) => (AccessFormat::Given, log_format::given(given, context)),
    };
    LogSettings {
        access_format,
        given_format,
        waf_to: waf_to.unwrap_or_else(|| access_to.clone()),
        access_to,
        audit_to,
        spans_to: tracing::exporting(file, directory, context).map(Arc::new),
        recent_requests: file.recent_requests.as_ref().map(|it| recent_requests(&it.value)),
    }
}

fn recent_requests(section: &raw::RecentRequests) -> RecentRequests {
    RecentRequests {
        keep: section.keep.value.0,
        share: section.sample.value.value().map_or(0, |share| share.0),
        slow_us: section.slow.value.value().map(|Duration(time_ms)| time_ms * 1_000),
    }
}

fn log_target(to: &Spanned<LogPath>, directory: &Path, context: &mut Context) -> LogTarget {
    match &to.value {
        LogPath::Stdout => LogTarget::Stdout,
        LogPath::File(path) => {
            let path = directory.join(path);
            if path.is_dir() {
                let message = format!("{} is a directory, not a file", path.display());
                let help = "name a file in it, such as access.log";
                context.error_help(to.span, message, help);
            }
            LogTarget::File(path)
        }
        LogPath::Syslog(syslog) => match &syslog.syslog {
            Some(server) => {
                LogTarget::Syslog(syslog_server(&server.value, syslog, directory, context))
            }
            // The decoder has reported the missing value.
            None => LogTarget::Stdout,
        },
    }
}

/// Maximum length of a program name (RFC 5424 section 6).
const SYSLOG_TAG_BYTES_MAX: usize = 48;

/// The port of syslog over UDP and, by convention, over TCP.
const SYSLOG_PORT: u16 = 514;

/// The port of syslog over TLS (RFC 5425 section 4.1).
const SYSLOG_TLS_PORT: u16 = 6_514;

/// A syslog server over TLS.
fn by_tls(
    host: &str,
    server: String,
    raw: &raw::log::Syslog,
    directory: &Path,
    context: &mut Context,
) -> SyslogServer {
    let absent = Spanned { value: PoolTls::absent(), span: raw.transport.span, given: false };
    let settings = raw.tls.as_ref().unwrap_or(&absent);
    let made = TlsProfiles::new(&[], directory).of_pool(settings, (false, false), context);
    // The mistake was reported.
    let Some(tls) = made else { return SyslogServer::Tcp(server) };
    let name = tls.server_name.clone().unwrap_or_else(|| host.into());
    SyslogServer::Tls(SyslogTls { server, name, tls: Arc::new(tls) })
}

fn syslog_server(
    server: &Endpoint,
    raw: &raw::log::Syslog,
    directory: &Path,
    context: &mut Context,
) -> Syslog {
    let is_tls = raw.transport.value == SyslogTransport::Tls;
    if let Some(tls) = raw.tls.as_ref().filter(|_| !is_tls) {
        let message = "`tls` has no effect: the server is reached without TLS";
        context.error_help(tls.span, message, "add `transport: tls`, or remove `tls`");
    }
    let port = |port: u16| match port {
        0 if is_tls => SYSLOG_TLS_PORT,
        0 => SYSLOG_PORT,
        port => port,
    };
    let mut by_network = |host: &str, server: String| match raw.transport.value {
        SyslogTransport::Udp => SyslogServer::Udp(server),
        SyslogTransport::Tcp => SyslogServer::Tcp(server),
        SyslogTransport::Tls => by_tls(host, server, raw, directory, context),
    };
    let server = match server {
        Endpoint::Literal(Address::Unix(path)) => {
            if raw.transport.given {
                let message = "`transport` does not apply to a unix socket: it takes datagrams";
                context.error_help(raw.transport.span, message, "remove it");
            }
            SyslogServer::Unix(path.clone())
        }
        Endpoint::Literal(Address::Socket(address) | Address::Udp(address)) => {
            let server = SocketAddr::new(address.ip(), port(address.port())).to_string();
            by_network(&address.ip().to_string(), server)
        }
        Endpoint::Name { host, port: given } => {
            by_network(host, format!("{host}:{}", port(*given)))
        }
    };
    let tag = raw.tag.as_ref();
    if let Some(tag) = tag.filter(|tag| tag.value.0.len() > SYSLOG_TAG_BYTES_MAX) {
        let message = format!(
            "`tag` has {} bytes; a message of syslog has room for {SYSLOG_TAG_BYTES_MAX}",
            tag.value.0.len()
        );
        context.error(tag.span, message);
    }
    let tag = tag.map_or("weir", |tag| &tag.value.0).to_owned();
    Syslog { server, facility: raw.facility.value.number(), tag }
}
