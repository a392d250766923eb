//! The keys of each type of monitor.

use crate::decode::{Context, Decode as _, Spanned};
use crate::raw::monitor::{Monitor, MonitorType};
use crate::tree::Span;

impl MonitorType {
    /// The word in the file.
    pub(super) fn word(self) -> &'static str {
        // In the order of the variants.
        Self::words()[self as usize]
    }
}

/// Types with TLS if a key requires it.
const TLS_BY_KEY: &[MonitorType] = &[
    MonitorType::Tcp,
    MonitorType::Redis,
    MonitorType::Smtp,
    MonitorType::Ldap,
    MonitorType::Mysql,
    MonitorType::Postgresql,
];

/// Whether a monitor of this type uses TLS if a key requires it.
pub(super) fn has_tls_by_key(kind: MonitorType) -> bool {
    TLS_BY_KEY.contains(&kind)
}

/// Reports keys that the monitor's type would ignore.
pub(super) fn refuse_foreign_keys(raw: &Monitor, kind: MonitorType, context: &mut Context) {
    for (key, span, fitting) in keys(raw) {
        let is_tls = matches!(key, "verify" | "host");
        let is_without_port = key == "port" && kind != MonitorType::Icmp;
        if fitting.contains(&kind) || is_without_port || is_tls && has_tls_by_key(kind) {
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

/// The keys of only some types: the key, its place if it is given, and its types. `verify` and `host` require TLS too.
fn keys(raw: &Monitor) -> [(&'static str, Option<Span>, &'static [MonitorType]); 31] {
    use MonitorType::{
        Dns, Grpc, Grpcs, Http, Https, Ldap, Mysql, Postgresql, Radius, Redis, Script, Smtp, Tcp,
        Udp,
    };
    const HTTP: &[MonitorType] = &[Http, Https];
    const USER: &[MonitorType] = &[Http, Https, Redis, Ldap, Mysql, Postgresql, Radius];
    const SQL: &[MonitorType] = &[Mysql, Postgresql];
    [
        ("path", given(&raw.path), HTTP),
        ("method", given(&raw.method), HTTP),
        ("headers", there(raw.headers.as_ref()), HTTP),
        ("body", there(raw.body.as_ref()), HTTP),
        ("expect", there(raw.expect.as_ref()), HTTP),
        ("user", there(raw.user.as_ref()), USER),
        ("password", there(raw.password.as_ref()), USER),
        ("password_file", there(raw.password_file.as_ref()), USER),
        // For all types except icmp.
        ("port", there(raw.port.as_ref()), &[Tcp]),
        ("host", there(raw.host.as_ref()), &[Http, Https, Grpc, Grpcs]),
        ("tls", given(&raw.tls), TLS_BY_KEY),
        ("starttls", given(&raw.starttls), &[Smtp, Ldap]),
        ("verify", given(&raw.verify), &[Https, Grpcs]),
        ("send", there(raw.send.as_ref()), &[Tcp, Udp]),
        ("receive", there(raw.receive.as_ref()), &[Tcp, Udp]),
        ("drain_on", there(raw.drain_on.as_ref()), &[Http, Https, Tcp, Udp]),
        ("service", there(raw.service.as_ref()), &[Grpc, Grpcs]),
        ("command", there(raw.command.as_ref()), &[Script]),
        ("answer", given(&raw.answer), &[Udp]),
        ("name", there(raw.name.as_ref()), &[Dns, Smtp]),
        ("record", given(&raw.record), &[Dns]),
        ("rcode", given(&raw.rcode), &[Dns]),
        ("value", there(raw.value.as_ref()), &[Dns, Mysql, Postgresql]),
        ("role", there(raw.role.as_ref()), &[Redis]),
        ("base", there(raw.base.as_ref()), &[Ldap]),
        ("attribute", given(&raw.attribute), &[Ldap]),
        ("database", there(raw.database.as_ref()), SQL),
        ("query", there(raw.query.as_ref()), SQL),
        ("secret", there(raw.secret.as_ref()), &[Radius]),
        ("secret_file", there(raw.secret_file.as_ref()), &[Radius]),
        ("reply", given(&raw.reply), &[Radius]),
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
