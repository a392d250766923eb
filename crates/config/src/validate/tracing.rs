//! `tracing` of the file and of a virtual server.

use std::path::Path;
use std::sync::Arc;

use weir_core::expression::AddressSet;

use super::files::read_text;
use super::tls::TlsProfiles;
use crate::decode::{Context, Section as _, Spanned, or_absent};
use crate::document::Span;
use crate::quote::clip;
use crate::raw;
use crate::raw::tls::PoolTls;
use crate::shapes::{FieldName, FilePath};
use crate::snapshot::{self, Secret, TraceExport, Tracing};

/// Maximum size of a file with header fields.
const HEADERS_BYTES_MAX: u64 = 16 << 10;

/// The export settings; `None`: spans are not exported, or there is an error.
pub(super) fn exporting(
    file: &raw::File,
    directory: &Path,
    context: &mut Context,
) -> Option<TraceExport> {
    let Some(raw) = &file.exporting else {
        refuse_servers(file, context);
        return None;
    };
    // The decoder has reported the missing value.
    let otlp = raw.otlp.as_ref()?;
    let url = otlp.value.0.clone();
    let tls = match (&raw.tls, url.is_secure) {
        (Some(tls), false) => {
            let message = "`tls` has no effect: the collector is reached without TLS";
            context.error_help(tls.span, message, "write `https://` in `otlp`, or remove `tls`");
            return None;
        }
        (None, false) => None,
        (given, true) => {
            let absent = Spanned { value: PoolTls::absent(), span: otlp.span, given: false };
            let settings = given.as_ref().unwrap_or(&absent);
            Some(TlsProfiles::new(&[], directory).of_pool(settings, (false, false), context)?)
        }
    };
    let headers = headers(&raw.value, directory, context)?;
    if !headers.is_empty() && !is_private(&url) {
        let message = "headers with secrets go to the collector without TLS";
        context.warning_help(otlp.span, message, "write `https://` if the network is not trusted");
    }
    Some(TraceExport {
        url,
        tls,
        headers,
        service_name: raw.service_name.value.0.as_str().into(),
        timeout_ms: raw.timeout.value.0,
        interval_ms: raw.interval.value.0,
    })
}

/// Whether header fields sent to this URL cannot be read on the way.
fn is_private(url: &snapshot::HttpUrl) -> bool {
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    url.is_secure || url.host == "localhost" || url.host.parse().is_ok_and(is_loopback)
}

/// Warns of virtual servers with traces but without a collector.
fn refuse_servers(file: &raw::File, context: &mut Context) {
    let servers = file.virtual_servers.iter().flat_map(|servers| &servers.value.0);
    for tracing in servers.filter_map(|item| item.value.as_ref()?.tracing.as_ref()) {
        let message = "the traces go nowhere: the file has no `tracing`";
        let help = "add `tracing: { otlp: \"http://COLLECTOR:4318/v1/traces\" }` to the file";
        context.error_help(tracing.span, message, help);
    }
}

/// The trace settings of a virtual server; `None`: its requests are not traced.
pub(super) fn of_server(server: &raw::VirtualServer) -> Option<Arc<Tracing>> {
    let raw = server.tracing.as_ref()?;
    let address = or_absent(server.client_address.as_ref());
    let proxies = address.trust.as_ref();
    let trust = raw.trust.as_ref().or(proxies);
    let networks = trust.into_iter().flat_map(|trust| trust.iter());
    Some(Arc::new(Tracing {
        sample: raw.sample.value.0,
        trust: AddressSet::new(networks.map(|network| network.value.0)),
    }))
}

/// All additional header fields.
fn headers(
    raw: &raw::tracing::Exporting,
    directory: &Path,
    context: &mut Context,
) -> Option<Vec<(Arc<str>, Secret)>> {
    let mut headers = Vec::new();
    let mut is_sound = true;
    for (name, value) in raw.headers.iter().flat_map(|headers| &headers.value.0) {
        match field(&name.value, value.value.0.expose()) {
            Ok(field) => headers.push(field),
            Err(why) => {
                let message = format!("the header `{}`: {why}", clip(&name.value.0));
                context.error(name.span, message);
                is_sound = false;
            }
        }
    }
    if let Some(file) = &raw.headers_file {
        headers.extend(read_headers(file, directory, context)?);
    }
    is_sound.then_some(headers)
}

/// Reads header fields from a file, one per line. Error messages do not show their values.
fn read_headers(
    file: &Spanned<FilePath>,
    directory: &Path,
    context: &mut Context,
) -> Option<Vec<(Arc<str>, Secret)>> {
    let text = read_text(file, directory, HEADERS_BYTES_MAX, context)?;
    let shown = file.value.0.display();
    let mut refuse = |span: Span, why: String| context.error(span, format!("{shown} {why}"));
    let mut headers = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let found = line.split_once(':').ok_or("is not of the form `Name: value`");
        let found = found.and_then(|(name, value)| {
            if !weir_http::is_token(name.as_bytes()) {
                return Err("has no header name before its `:`");
            }
            field(&FieldName(name.to_owned()), value.trim())
        });
        match found {
            Ok(field) => headers.push(field),
            Err(why) => {
                refuse(file.span, format!("line {number} {why}"));
                return None;
            }
        }
    }
    Some(headers)
}

/// Checks that a header field may be sent.
fn field(name: &FieldName, value: &str) -> Result<(Arc<str>, Secret), &'static str> {
    const OWN: [&str; 3] = ["content-type", "user-agent", "expect"];
    let lower = name.0.to_ascii_lowercase();
    if name.is_framing().is_some() || OWN.contains(&&*lower) || lower.contains('*') {
        return Err("weir sets it itself, or it cannot be set");
    }
    if !value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err("has a value with characters that are not allowed in a header");
    }
    Ok((lower.as_str().into(), Secret::new(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resolutions;

    const REST: &str = "pools: { p: { members: [ 127.0.0.1:1 ] } }\n";

    fn check(tracing: &str, server: &str) -> Result<snapshot::Snapshot, String> {
        let text = format!(
            "{tracing}\nvirtual_servers: {{ v: {{ listen: \"127.0.0.1:80\", pool: p, {server} }} }}\n{REST}"
        );
        let outcome = crate::parse("test.yaml", &text);
        let said: Vec<String> = outcome.diagnostics.iter().map(|it| it.message.clone()).collect();
        let config = outcome.config.ok_or_else(|| said.join("; "))?;
        Ok(config.snapshot(&Resolutions::default()))
    }

    #[test]
    fn the_defaults() {
        let snapshot =
            check("tracing: { otlp: \"http://a.example:4318\" }", "tracing: {}").unwrap();
        let exporting = snapshot.log.spans_to.as_deref().expect("it is given");
        assert_eq!(exporting.url.to_string(), "http://a.example:4318/v1/traces");
        assert_eq!((exporting.timeout_ms, exporting.interval_ms), (10_000, 2_000));
        assert_eq!(&*exporting.service_name, "weir");
        assert!(exporting.tls.is_none() && exporting.headers.is_empty());
        let tracing = snapshot.virtual_servers[0].tracing.as_deref().expect("it is given");
        assert_eq!(tracing.sample, 1_000);
        assert!(tracing.trust.is_empty());
        let snapshot = check("", "").unwrap();
        assert!(snapshot.log.spans_to.is_none() && snapshot.virtual_servers[0].tracing.is_none());
    }

    #[test]
    fn who_is_trusted() {
        let of = |server: &str| {
            let snapshot = check("tracing: { otlp: \"http://127.0.0.1\" }", server).unwrap();
            let tracing = snapshot.virtual_servers[0].tracing.clone().expect("it is given");
            [[10, 0, 0, 1], [192, 0, 2, 1]].map(|ip| tracing.trust.contains(ip.into()))
        };
        let proxies = "client_address: { trust: [ 10.0.0.0/8 ] }";
        assert_eq!(of(&format!("{proxies}, tracing: {{ sample: 100% }}")), [true, false]);
        assert_eq!(of(&format!("{proxies}, tracing: {{ trust: [ 192.0.2.1 ] }}")), [false, true]);
        assert_eq!(of("tracing: {}"), [false, false]);
    }

    #[test]
    fn mistakes() {
        let otlp = "tracing: { otlp: \"http://127.0.0.1:4318\"";
        for (tracing, server, expected) in [
            ("", "tracing: {}", "the traces go nowhere"),
            ("tracing: {}", "", "`otlp`"),
            ("tracing: { otlp: \"a:4318\" }", "", "does not begin with"),
            (&format!("{otlp}, tls: {{ verify: false }} }}"), "", "without TLS"),
            (&format!("{otlp}, headers: {{ Host: a }} }}"), "", "weir sets it itself"),
            (&format!("{otlp}, headers: {{ X-A: \"a\\nb\" }} }}"), "", "characters"),
            (&format!("{otlp}, headers_file: /missing/a }}"), "", "/missing/a"),
            (&format!("{otlp} }}"), "type: tcp, tracing: {}", "tracing"),
            (&format!("{otlp} }}"), "tracing: { sample: 0% }", "percentage"),
        ] {
            let error = check(tracing, server).map(drop).unwrap_err();
            assert!(error.contains(expected), "{tracing} {server}: {error}");
        }
    }

    #[test]
    fn fields_come_from_both_places() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("headers");
        let with = |content: &str| {
            std::fs::write(&path, content).unwrap();
            let text = format!(
                "tracing: {{ otlp: \"http://127.0.0.1\", headers: {{ X-Tenant: a }}, headers_file: {} }}",
                path.display()
            );
            check(&text, "")
        };
        let snapshot = with("Authorization: Bearer x:y\n\nx-b:2\n").unwrap();
        let headers = &snapshot.log.spans_to.as_ref().unwrap().headers;
        let shown: Vec<_> = headers.iter().map(|(name, it)| (&**name, it.expose())).collect();
        assert_eq!(shown, [("x-tenant", "a"), ("authorization", "Bearer x:y"), ("x-b", "2")]);
        for content in ["hunter2\n", "a b: hunter2\n", "host: hunter2\n", "a: hunter2\u{e9}"] {
            let error = with(content).map(drop).unwrap_err();
            assert!(error.contains("line 1") && !error.contains("hunter2"), "{error}");
        }
    }
}
