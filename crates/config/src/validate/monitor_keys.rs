//! Which keys belong to which type of monitor.

use crate::decode::{Context, Decode as _, Spanned};
use crate::raw::monitor::{Monitor, MonitorType};
use crate::tree::Span;

impl MonitorType {
    /// As it is written.
    pub(super) fn word(self) -> &'static str {
        // In the order of the variants.
        Self::words()[self as usize]
    }
}

/// Types that speak TLS where a key says so.
const TLS_BY_KEY: &[MonitorType] = &[MonitorType::Tcp];

/// Whether a monitor of this type speaks TLS where a key says so.
pub(super) fn has_tls_by_key(kind: MonitorType) -> bool {
    TLS_BY_KEY.contains(&kind)
}

/// A key that the monitor's type would ignore is a mistake.
pub(super) fn refuse_foreign_keys(raw: &Monitor, kind: MonitorType, context: &mut Context) {
    for (key, span, fitting) in keys(raw) {
        let is_tls = matches!(key, "verify" | "host");
        if fitting.contains(&kind) || is_tls && has_tls_by_key(kind) {
            continue;
        }
        if let Some(span) = span {
            context.error_help(
                span,
                format!("`{key}` does not apply to a monitor of type {}", kind.word()),
                format!("remove it, or use `type: {}`", fitting[0].word()),
            );
        }
    }
}

/// The keys that some types have, where they stand if they do, and those types. `verify` and `host` belong to TLS, too.
fn keys(raw: &Monitor) -> [(&'static str, Option<Span>, &'static [MonitorType]); 21] {
    use MonitorType::{Dns, Grpc, Grpcs, Http, Https, Script, Tcp, Udp};
    const HTTP: &[MonitorType] = &[Http, Https];
    const USER: &[MonitorType] = HTTP;
    [
        ("path", given(&raw.path), HTTP),
        ("method", given(&raw.method), HTTP),
        ("headers", there(raw.headers.as_ref()), HTTP),
        ("body", there(raw.body.as_ref()), HTTP),
        ("expect", there(raw.expect.as_ref()), HTTP),
        ("user", there(raw.user.as_ref()), USER),
        ("password", there(raw.password.as_ref()), USER),
        ("password_file", there(raw.password_file.as_ref()), USER),
        ("host", there(raw.host.as_ref()), &[Http, Https, Grpc, Grpcs]),
        ("tls", given(&raw.tls), TLS_BY_KEY),
        ("verify", given(&raw.verify), &[Https, Grpcs]),
        ("send", there(raw.send.as_ref()), &[Tcp, Udp]),
        ("receive", there(raw.receive.as_ref()), &[Tcp, Udp]),
        ("drain_on", there(raw.drain_on.as_ref()), &[Http, Https, Tcp, Udp]),
        ("service", there(raw.service.as_ref()), &[Grpc, Grpcs]),
        ("command", there(raw.command.as_ref()), &[Script]),
        ("answer", given(&raw.answer), &[Udp]),
        ("name", there(raw.name.as_ref()), &[Dns]),
        ("record", given(&raw.record), &[Dns]),
        ("rcode", given(&raw.rcode), &[Dns]),
        ("value", there(raw.value.as_ref()), &[Dns]),
    ]
}

fn there<T>(key: Option<&Spanned<T>>) -> Option<Span> {
    key.map(|key| key.span)
}

fn given<T>(key: &Spanned<T>) -> Option<Span> {
    key.given.then_some(key.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_types() {
        let words = [MonitorType::Http, MonitorType::Tcp, MonitorType::Dns].map(MonitorType::word);
        assert_eq!(words, ["http", "tcp", "dns"]);
    }
}
