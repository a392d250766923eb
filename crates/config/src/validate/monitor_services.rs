//! Monitors of databases, mail servers, directories and RADIUS.

use std::path::Path;

use super::monitor_secrets::{credentials, password, secret};
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::raw::monitor as raw;
use crate::scalar::Text;
use crate::snapshot::{
    Credentials, LdapProbe, ProbeTls, RadiusProbe, RadiusReply, RedisProbe, RedisRole, Secret,
    SmtpProbe, SqlProbe, SqlQuery,
};

/// Maximum size of a query.
const QUERY_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a RADIUS attribute (RFC 2865 section 5).
const RADIUS_USER_BYTES_MAX: usize = 253;
/// Maximum length of a RADIUS password (RFC 2865 section 5.2).
const RADIUS_PASSWORD_BYTES_MAX: usize = 128;
/// Maximum length of a name in EHLO (RFC 5321 section 4.5.3.1.2).
const SMTP_NAME_BYTES_MAX: usize = 255;

pub(super) fn redis(
    raw: &raw::Monitor,
    tls: Option<ProbeTls>,
    directory: &Path,
    context: &mut Context,
) -> Option<RedisProbe> {
    let credentials = match &raw.user {
        Some(_) => credentials(raw, directory, context)?,
        // The password of the default user.
        None => password(raw, directory, context)?
            .map(|password| Credentials { user: "".into(), password }),
    };
    let role = raw.role.as_ref().map(|role| match role.value {
        raw::RedisRole::Master => RedisRole::Master,
        raw::RedisRole::Replica => RedisRole::Replica,
    });
    Some(RedisProbe { credentials, role, tls })
}

pub(super) fn smtp(
    raw: &raw::Monitor,
    tls: Option<ProbeTls>,
    context: &mut Context,
) -> Option<SmtpProbe> {
    let name = raw.name.as_ref().map_or("localhost", |name| &name.value.0);
    let is_sound = name.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(given) = raw.name.as_ref().filter(|_| !is_sound || name.len() > SMTP_NAME_BYTES_MAX)
    {
        let message = "not a name for EHLO: it has 1 to 255 letters, digits and signs of ASCII";
        context.error_help(
            given.span,
            message,
            "write a host name, or an address as `[192.0.2.1]`",
        );
        return None;
    }
    Some(SmtpProbe { name: name.into(), tls })
}

pub(super) fn ldap(
    raw: &raw::Monitor,
    tls: Option<ProbeTls>,
    directory: &Path,
    context: &mut Context,
) -> Option<LdapProbe> {
    let credentials = credentials(raw, directory, context)?;
    let attribute = raw.attribute.value.0.as_str();
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_".contains(&byte);
    if !attribute.bytes().all(is_sound) {
        let message = "not the name of an attribute: letters, digits, `-`, `.` and `;`";
        context.error(raw.attribute.span, message);
        return None;
    }
    let base = raw.base.as_ref().map_or("", |base| &base.value.0);
    Some(LdapProbe { credentials, base: base.into(), attribute: attribute.into(), tls })
}

pub(super) fn sql(
    raw: &raw::Monitor,
    tls: Option<ProbeTls>,
    directory: &Path,
    context: &mut Context,
) -> Option<SqlProbe> {
    let password = password(raw, directory, context)?;
    let texts = [("user", &raw.user), ("database", &raw.database), ("query", &raw.query)];
    for (key, text) in texts {
        let Some(text) = text else { continue };
        if text.value.0.contains('\0') {
            context.error(text.span, format!("`{key}` cannot have a NUL in it"));
            return None;
        }
    }
    let Some(user) = &raw.user else {
        need_user(raw, password.is_some(), context)?;
        return Some(SqlProbe { user: None, database: None, query: None, tls });
    };
    let query = match (&raw.query, &raw.value) {
        (Some(query), value) => Some(self::query(query, value.as_ref(), context)?),
        (None, None) => None,
        (None, Some(value)) => {
            let message = "`value` is for the answer to `query`, which is missing";
            context.error_help(value.span, message, "add `query`, or remove it");
            return None;
        }
    };
    // Without a password: the server may accept the user without one.
    let password = password.unwrap_or(Secret::new(""));
    let user = Credentials { user: user.value.0.as_str().into(), password };
    let database = raw.database.as_ref().map(|database| database.value.0.as_str().into());
    Some(SqlProbe { user: Some(user), database, query, tls })
}

/// Reports a login without a user.
fn need_user(raw: &raw::Monitor, has_password: bool, context: &mut Context) -> Option<()> {
    let password = (raw.password.as_ref().map(|key| key.span))
        .or(raw.password_file.as_ref().map(|key| key.span));
    let keys = [
        ("password", password.filter(|_| has_password)),
        ("database", raw.database.as_ref().map(|key| key.span)),
        ("query", raw.query.as_ref().map(|key| key.span)),
        ("value", raw.value.as_ref().map(|key| key.span)),
    ];
    let given = keys.iter().find_map(|(key, span)| span.map(|span| (key, span)));
    let Some((key, span)) = given else { return Some(()) };
    let message = format!("`{key}` has no effect without a user: the monitor does not log in");
    context.error_help(span, message, "add `user`, or remove it");
    None
}

fn query(
    text: &Spanned<Text>,
    value: Option<&Spanned<Text>>,
    context: &mut Context,
) -> Option<SqlQuery> {
    if text.value.0.len() > QUERY_BYTES_MAX {
        let message = format!("a query of a monitor has at most {} KiB", QUERY_BYTES_MAX >> 10);
        context.error(text.span, message);
        return None;
    }
    let value = value.map(|value| value.value.0.as_str().into());
    Some(SqlQuery { text: text.value.0.as_str().into(), value })
}

pub(super) fn radius(
    raw: &raw::Monitor,
    span: Span,
    directory: &Path,
    context: &mut Context,
) -> Option<RadiusProbe> {
    let credentials = credentials(raw, directory, context)?;
    let shared = (raw.secret.as_ref(), raw.secret_file.as_ref());
    let secret = secret(shared, "secret", directory, context)?;
    let (Some(credentials), Some(secret)) = (credentials, secret) else {
        let message =
            "a monitor of type radius needs `user` with a password, and the `secret` of the server";
        let help = "add `user`, `password` and `secret`, or the files of the secrets";
        context.error_help(span, message, help);
        return None;
    };
    let password_bytes = credentials.password.expose().len();
    let limits = [
        (
            "user",
            raw.user.as_ref().map(|key| key.span),
            credentials.user.len(),
            RADIUS_USER_BYTES_MAX,
        ),
        ("password", Some(span), password_bytes, RADIUS_PASSWORD_BYTES_MAX),
    ];
    for (key, span, bytes, bytes_max) in limits {
        if let Some(span) = span.filter(|_| bytes > bytes_max) {
            let message =
                format!("`{key}` has {bytes} bytes, and RADIUS takes at most {bytes_max}");
            context.error(span, message);
            return None;
        }
    }
    let reply = match raw.reply.value {
        raw::RadiusReply::Accept => RadiusReply::Accept,
        raw::RadiusReply::Reject => RadiusReply::Reject,
        raw::RadiusReply::Any => RadiusReply::Any,
    };
    Some(RadiusProbe { credentials, secret, reply })
}
