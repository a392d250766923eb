//! Files with contents that expire: they are noted, and reported when they expire soon.

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64;
use rustls_pki_types::CertificateDer;
use serde_json::Value;
use weir_tls::period::Period;

use crate::decode::{Context, Spanned};
use crate::shapes::FilePath;
use crate::snapshot::{DatedFile, DatedKind};

/// The current time in seconds since 1970.
pub(super) fn now_unix_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// Notes a file with these contents, and warns if one expires soon. `warns`: no other warning is made about it.
pub(super) fn note(
    file: &Spanned<FilePath>,
    (kind, warns): (DatedKind, bool),
    periods: &[Period],
    context: &mut Context,
) {
    let ends = periods.iter().filter_map(|it| Some((it.until_unix_s?, &it.name)));
    let (Some((until_unix_s, name)), Some(last)) =
        (ends.clone().min(), ends.map(|(until, _)| until).max())
    else {
        return;
    };
    let noted = DatedFile {
        path: file.value.0.to_string_lossy().into(),
        kind,
        name: name.as_str().into(),
        until_unix_s,
        last_until_unix_s: last,
    };
    // Several virtual servers may use a file, and several certificates an OCSP response.
    let is_same = |it: &&mut DatedFile| it.path == noted.path && it.kind == noted.kind;
    if let Some(known) = context.dated.iter_mut().find(is_same) {
        known.last_until_unix_s = known.last_until_unix_s.max(noted.last_until_unix_s);
        if known.until_unix_s <= noted.until_unix_s {
            return;
        }
        (known.until_unix_s, known.name) = (noted.until_unix_s, noted.name.clone());
    }
    let now_unix_s = now_unix_s();
    if warns && noted.is_due(now_unix_s) {
        context.warning_help(file.span, noted.told(now_unix_s), kind.help());
    }
    if warns && let Some(early) = periods.iter().find(|it| it.from_unix_s > now_unix_s) {
        let message = format!("{}: {} is not valid yet", noted.path, early.name);
        context.warning_help(file.span, message, "the file or the clock of this host is wrong");
    }
    if !context.dated.iter().any(|it| it.path == noted.path && it.kind == noted.kind) {
        context.dated.push(noted);
    }
}

/// The expiry of the keys in a key set: `exp`, or that of their certificate (`x5c`).
pub(super) fn of_token_keys(text: &[u8]) -> Vec<Period> {
    let Ok(Value::Object(set)) = serde_json::from_slice(text) else { return Vec::new() };
    let keys = set.get("keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten().enumerate();
    keys.filter_map(|(index, key)| {
        let name = match key.get("kid").and_then(Value::as_str) {
            Some(id) if id.bytes().all(|byte| byte.is_ascii_graphic()) => id.to_owned(),
            _ => (index + 1).to_string(),
        };
        let until_unix_s = match key.get("exp").and_then(Value::as_i64) {
            Some(until) => until,
            None => end_of_certificate(key)?,
        };
        Some(Period { name, from_unix_s: 0, until_unix_s: Some(until_unix_s) })
    })
    .collect()
}

fn end_of_certificate(key: &Value) -> Option<i64> {
    let first = key.get("x5c")?.as_array()?.first()?.as_str()?;
    let der = CertificateDer::from(BASE64.decode(first.as_bytes()).ok()?);
    Period::of_certificates(&[der]).first()?.until_unix_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(name: &str, days: i64) -> Period {
        let now = now_unix_s();
        let until_unix_s = Some(now + days * 24 * 60 * 60 + 60);
        Period { name: name.into(), from_unix_s: 0, until_unix_s }
    }

    #[test]
    fn what_expires_soon_is_told_and_noted() {
        let file = |path: &str| Spanned {
            value: FilePath(path.into()),
            span: crate::document::Span::at(1, 1),
            given: true,
        };
        let mut context = Context::default();
        let list = (DatedKind::RevocationList, true);
        note(&file("fine.pem"), list, &[period("CN=a", 20)], &mut context);
        note(&file("soon.pem"), list, &[period("CN=a", 40), period("CN=b", 13)], &mut context);
        // Another virtual server uses the same file.
        note(&file("soon.pem"), list, &[period("CN=a", 40), period("CN=b", 13)], &mut context);
        // A little less than eleven days.
        note(&file("over.pem"), list, &[period("CN=a", -11)], &mut context);
        note(
            &file("quiet.pem"),
            (DatedKind::Certificate, false),
            &[period("CN=a", 1)],
            &mut context,
        );
        let endless = Period { until_unix_s: None, ..period("CN=a", 1) };
        note(&file("endless.pem"), list, &[endless], &mut context);
        let early = Period { from_unix_s: now_unix_s() + 100, ..period("CN=a", 90) };
        note(&file("early.pem"), list, &[early], &mut context);
        let noted: Vec<_> = context.dated.iter().map(|it| (&*it.path, &*it.name)).collect();
        let expected = [
            ("fine.pem", "CN=a"),
            ("soon.pem", "CN=b"),
            ("over.pem", "CN=a"),
            ("quiet.pem", "CN=a"),
            ("early.pem", "CN=a"),
        ];
        assert_eq!(noted, expected);
        let (findings, _) = context.finish();
        let told: Vec<_> = findings.iter().map(|(_, finding)| &*finding.message).collect();
        assert_eq!(
            told,
            [
                "soon.pem: the revocation list (CRL) of CN=b expires in 13 days",
                "over.pem: the revocation list (CRL) of CN=a has expired 10 days ago",
                "early.pem: CN=a is not valid yet",
            ]
        );
    }

    #[test]
    fn token_keys_have_times() {
        let certificate = include_bytes!("../../../../examples/tls/root.crt");
        let certificate = weir_tls::identity::read_authorities(certificate).expect("one");
        let until = Period::of_certificates(&certificate)[0].until_unix_s;
        let chain = BASE64.encode(&certificate[0]);
        let text = format!(
            r#"{{"keys":[{{"kid":"a","exp":77}},{{"kid":"b"}},{{"x5c":["{chain}"]}},{{"x5c":["!"]}}]}}"#
        );
        let found = of_token_keys(text.as_bytes());
        let found: Vec<_> = found.iter().map(|it| (&*it.name, it.until_unix_s)).collect();
        assert_eq!(found, [("a", Some(77)), ("3", until)]);
        assert_eq!(of_token_keys(b"[]"), []);
    }
}
