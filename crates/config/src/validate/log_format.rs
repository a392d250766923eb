//! `log.access.format`: custom formats.

use std::sync::Arc;

use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::hints::nearest;
use crate::quote::clip;
use crate::raw::log_format::LogFormat as RawFormat;
use crate::scalar::Text;
use crate::snapshot::{LogField, LogFormat, LogLine, LogPiece};

/// Maximum number of fields in a line.
const FIELDS_MAX: usize = 64;
/// Maximum number of header fields in a line.
const HEADERS_MAX: usize = 16;
/// Maximum size of a line's format.
const TEXT_BYTES_MAX: usize = 4_096;

/// Field names of other products.
const OTHERS_NAMES: &[(&str, &str)] = &[
    ("remote_addr", "client_ip"),
    ("remote_port", "client"),
    ("remote_user", "user"),
    ("realip_remote_addr", "peer"),
    ("time_iso8601", "time"),
    ("time_local", "time_combined"),
    ("request_method", "method"),
    ("request_uri", "target"),
    ("uri", "target"),
    ("server_protocol", "version"),
    ("http_referer", "referer"),
    ("http_user_agent", "user_agent"),
    ("http_host", "host"),
    ("request_length", "bytes_received"),
    ("request_time", "total_us"),
    ("upstream_addr", "member"),
    ("upstream_connect_time", "connect_us"),
    ("upstream_header_time", "first_byte_us"),
    ("upstream_response_time", "total_us"),
    ("upstream_status", "status"),
    ("ssl_protocol", "tls_version"),
    ("ssl_cipher", "tls_cipher"),
    ("ssl_server_name", "server_name"),
    ("server_port", "virtual_server"),
    ("backend", "pool"),
    ("server", "member"),
    ("frontend", "virtual_server"),
    ("path", "target"),
    ("id", "request_id"),
    ("duration", "total_us"),
];

/// The custom format, if it is valid.
pub(super) fn given(raw: &RawFormat, context: &mut Context) -> Option<Arc<LogFormat>> {
    let mut headers = Vec::new();
    let line = match (&raw.json, &raw.text) {
        (Some(json), None) => {
            let mut fields = Vec::new();
            for name in json.iter() {
                let field = field(&name.value.0, name.span, &mut headers, context)?;
                if fields.contains(&field) {
                    let message = format!("`{}` occurs twice in one line", clip(&name.value.0));
                    context.error_help(name.span, message, "remove one of them");
                    return None;
                }
                fields.push(field);
            }
            are_told_apart(&json.value, &fields, &headers, context).then_some(())?;
            is_bounded(fields.len(), headers.len(), json.span, context)
                .then_some(LogLine::Json(fields))?
        }
        (None, Some(text)) => {
            let pieces = pieces(text, &mut headers, context)?;
            is_bounded(pieces.len(), headers.len(), text.span, context)
                .then_some(LogLine::Text(pieces))?
        }
        (Some(_), Some(text)) => {
            let message = "`text` cannot be used with `json`: a line has one form";
            context.error_help(text.span, message, "remove one of them");
            return None;
        }
        // The decoder has reported it.
        (None, None) => return None,
    };
    Some(Arc::new(LogFormat { line, headers }))
}

/// Whether no key of a JSON object occurs twice: the key of a header field is its name, so a field with the name of
/// another value would let clients forge that value.
fn are_told_apart(
    names: &[Spanned<Text>],
    fields: &[LogField],
    headers: &[Box<str>],
    context: &mut Context,
) -> bool {
    let own = |header: &str| LogField::NAMED.iter().find(|(name, _)| *name == header);
    for (name, field) in names.iter().zip(fields) {
        let LogField::Header(place) = field else { continue };
        let Some(header) = headers.get(usize::from(*place)) else { continue };
        if own(header).is_some_and(|(_, own)| fields.contains(own)) {
            let message = format!("the header and `{header}` would have the same key");
            let help = "remove one of them, or write a line of `text`";
            context.error_help(name.span, message, help);
            return false;
        }
    }
    true
}

fn is_bounded(pieces: usize, headers: usize, span: Span, context: &mut Context) -> bool {
    if pieces == 0 {
        context.error_help(span, "the line has no fields", "name at least one, such as `time`");
    } else if headers > HEADERS_MAX {
        let message = format!("more than {HEADERS_MAX} headers in a line of the access log");
        context.error_help(span, message, "leave some out");
    } else if pieces > 2 * FIELDS_MAX + 1 {
        let message = format!("more than {FIELDS_MAX} fields in a line of the access log");
        context.error_help(span, message, "leave some out");
    } else {
        return true;
    }
    false
}

/// The pieces of a text line.
fn pieces(
    text: &Spanned<Text>,
    headers: &mut Vec<Box<str>>,
    context: &mut Context,
) -> Option<Vec<LogPiece>> {
    let (span, text) = (text.span, &text.value.0);
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a line of the access log has {TEXT_BYTES_MAX} bytes at most here");
        context.error_help(span, message, "shorten it");
        return None;
    }
    if text.chars().any(|char| char.is_control() && char != '\t') {
        let help = "write it in one line; each line of the log ends by itself";
        context.error_help(span, "a control character in a line of the access log", help);
        return None;
    }
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text.as_str());
    while let Some((before, behind)) = rest.split_once('$') {
        literal.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            literal.push('$');
            rest = behind;
        } else if let Some((name, behind)) =
            behind.strip_prefix('{').and_then(|behind| behind.split_once('}'))
        {
            if !literal.is_empty() {
                pieces.push(LogPiece::Literal(std::mem::take(&mut literal).into_bytes().into()));
            }
            let field = field(name, span, headers, context)?;
            // The text of this field contains a space, and clients cannot influence it.
            let keeps_spaces = field == LogField::TimeCombined;
            pieces.push(LogPiece::Field { field, keeps_spaces });
            rest = behind;
        } else {
            let message = "a `$` that begins no `${FIELD}`";
            context.error_help(span, message, "write ${status} for a field, $$ for a dollar sign");
            return None;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(LogPiece::Literal(literal.into_bytes().into()));
    }
    mark_quoted(&mut pieces);
    Some(pieces)
}

/// Marks fields between quotation marks, whose spaces stay unescaped.
fn mark_quoted(pieces: &mut [LogPiece]) {
    let marks_of = |piece: &LogPiece| match piece {
        LogPiece::Literal(literal) => literal.iter().filter(|byte| **byte == b'"').count(),
        LogPiece::Field { .. } => 0,
    };
    let all: usize = pieces.iter().map(marks_of).sum();
    let mut before = 0;
    for piece in pieces {
        before += marks_of(piece);
        if let LogPiece::Field { keeps_spaces, .. } = piece {
            *keeps_spaces |= before % 2 == 1 && before < all;
        }
    }
}

/// The field with this name.
fn field(
    name: &str,
    span: Span,
    headers: &mut Vec<Box<str>>,
    context: &mut Context,
) -> Option<LogField> {
    let name = name.trim();
    if let Some((_, field)) = LogField::NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*field);
    }
    let quoted = name.strip_prefix("request.headers[").and_then(|rest| rest.strip_suffix(']'));
    let header = quoted.and_then(|quoted| {
        let inside = |quote: char| quoted.strip_prefix(quote)?.strip_suffix(quote);
        inside('\'').or_else(|| inside('"'))
    });
    if let Some(header) = header.filter(|header| weir_http::is_token(header.as_bytes())) {
        let header = header.to_ascii_lowercase();
        let place = headers.iter().position(|known| **known == *header).unwrap_or_else(|| {
            headers.push(header.into());
            headers.len() - 1
        });
        // A line with more than 16 is refused.
        return Some(LogField::Header(u8::try_from(place).unwrap_or(u8::MAX)));
    }
    let plain = name.trim_start_matches('$').strip_prefix("req.").unwrap_or(name);
    let message = format!("the access log has no field `{}`", clip(name));
    let help = match OTHERS_NAMES.iter().find(|(other, _)| *other == plain) {
        Some((_, ours)) => format!("write `{ours}`"),
        None => match plain.strip_prefix("http_") {
            Some(header) => format!("write request.headers['{}']", header.replace('_', "-")),
            None => match nearest(plain, LogField::NAMED.iter().map(|(name, _)| *name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let names: Vec<_> = LogField::NAMED.iter().map(|(name, _)| *name).collect();
                    format!("the fields are {} and request.headers['NAME']", names.join(", "))
                }
            },
        },
    };
    context.error_help(span, message, help);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_between_quotation_marks_keep_their_spaces() {
        for (text, expected) in [
            ("${user}", &[false][..]),
            ("[${time_combined}] ${user}", &[true, false]),
            ("${user} \"${method} ${target}\" ${host}", &[false, true, true, false]),
            ("\"${user}\" \"x\" ${host}\"", &[true, false]),
            ("\"a\"\"${user}\"", &[true]),
            ("'${user}' [${host}]", &[false, false]),
            // Unterminated.
            ("\"${user}", &[false]),
            ("\"${user}\" \"${host}", &[true, false]),
        ] {
            let yaml = format!(
                "log: {{ access: {{ format: {{ text: '{}' }} }} }}\n\
                 virtual_servers: {{ v: {{ listen: \"127.0.0.1:8080\", pool: p }} }}\n\
                 pools: {{ p: {{ members: [ \"127.0.0.1:1\" ] }} }}\n",
                text.replace('\'', "''")
            );
            let config = crate::parse("test.yaml", &yaml).config.expect(text);
            let snapshot = config.snapshot(&crate::Resolutions::default());
            let format = snapshot.log.given_format.clone().expect("a format");
            let LogLine::Text(pieces) = &format.line else { panic!("{text}") };
            let kept: Vec<bool> = pieces
                .iter()
                .filter_map(|piece| match piece {
                    LogPiece::Field { keeps_spaces, .. } => Some(*keeps_spaces),
                    LogPiece::Literal(_) => None,
                })
                .collect();
            assert_eq!(kept, expected, "{text}");
        }
    }
}
