//! Masks the secrets of a request in all texts.

use std::borrow::Cow;
use std::sync::LazyLock;

use weir_core::expression::{PartRead, ValueRead};
use weir_http::cookies::request_cookies;
use weir_http::message::RequestHead;
use weir_http::query;
use weir_http::secret_names::{CredentialFields, is_secret_name};
use weir_telemetry::redaction::message::recorded_field;
use weir_telemetry::redaction::within::secrets_in;
use weir_telemetry::redaction::{MASK, Secrets, target, with_credentials};

/// Maximum number of characters shown of one text.
const TEXT_CHARACTERS_MAX: usize = 500;

/// The secrets of a request.
#[derive(Debug, Default)]
pub struct Masks {
    values: Vec<Vec<u8>>,
    /// The fields in which the configuration finds credentials.
    fields: CredentialFields,
    /// Not all secrets are known, so all texts are masked.
    is_all: bool,
}

/// Masks all texts.
pub static ALL: LazyLock<Masks> = LazyLock::new(|| Masks { is_all: true, ..Masks::default() });

impl Masks {
    /// The secrets of a request: the values of credentials, cookies and secret parameters. `fields`: the fields in which the
    /// configuration finds credentials.
    pub fn of(head: &RequestHead, input: &[u8], fields: &CredentialFields) -> Self {
        let mut values: Vec<Vec<u8>> = Vec::new();
        for field in head.fields.iter() {
            let (name, value) = (field.name.of(input), field.value.of(input));
            if fields.is_secret(name) && !name.eq_ignore_ascii_case(b"cookie") {
                values.extend(with_credentials(value).map(<[u8]>::to_vec));
            }
            values.extend(secrets_in(value, fields).into_iter().map(Cow::into_owned));
        }
        let cookies = request_cookies(&head.fields, input);
        values.extend(cookies.map(|cookie| cookie.value.of(input).to_vec()));
        for pair in head.query(input).unwrap_or_default().split(|byte| *byte == b'&') {
            values.extend(secret_of_pair(pair).into_iter().flatten());
            values.extend(secrets_in(pair, fields).into_iter().map(Cow::into_owned));
        }
        let parts = head.target.of(input).split(|byte| matches!(byte, b'/' | b';' | b'?' | b'&'));
        values.extend(parts.flat_map(|part| secret_of_pair(part).into_iter().flatten()));
        Self { values, fields: fields.clone(), is_all: false }
    }

    /// The fields in which the configuration finds credentials.
    pub fn fields(&self) -> &CredentialFields {
        &self.fields
    }

    /// Adds a secret value.
    pub fn add(&mut self, value: Vec<u8>) {
        self.values.push(value);
    }

    /// A text without secrets, truncated.
    pub fn text(&self, text: &[u8]) -> String {
        if self.is_all && !text.is_empty() {
            return String::from_utf8_lossy(MASK).into_owned();
        }
        let secrets = self.secrets();
        clipped(&secrets.without(text))
    }

    /// A text that may have parts of the request, without secrets, truncated.
    pub fn value(&self, text: &[u8]) -> String {
        match self.is_all {
            true => self.text(text),
            false => clipped(&self.secrets().shown_text(text)),
        }
    }

    /// A request target, or a URL, without secrets.
    pub fn target(&self, text: &[u8]) -> String {
        self.text(&target(text))
    }

    /// The value of a field without secrets.
    pub fn field(&self, name: &[u8], value: &[u8]) -> String {
        clipped(&recorded_field(name, value, &self.secrets()))
    }

    /// A value that a condition reads, without secrets.
    pub fn value_read(&self, read: &ValueRead) -> Option<String> {
        let value = read.value.as_deref()?;
        let is_secret = match &read.part {
            PartRead::Header(name) => self.fields.is_secret(name.as_bytes()),
            PartRead::Query(name) => is_secret_name(name.as_bytes()),
            PartRead::Cookie => true,
            PartRead::Claim | PartRead::Other => false,
        };
        match is_secret && !value.is_empty() {
            true => Some(String::from_utf8_lossy(MASK).into_owned()),
            false => Some(self.target(value)),
        }
    }

    fn secrets(&self) -> Secrets<'_> {
        Secrets::from_values(self.values.iter().map(Vec::as_slice), &self.fields)
    }
}

/// The value of `name=value` if the name means a secret: as written, and decoded.
fn secret_of_pair(pair: &[u8]) -> Option<[Vec<u8>; 2]> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    is_secret_name(name).then(|| {
        let mut decoded = Vec::new();
        query::decode(value, &mut decoded);
        [value.to_vec(), decoded]
    })
}

fn clipped(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        None => text.into_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use weir_http::h1::{HeadLimits, parse_request};
    use weir_http::path::TargetForm;

    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let input = b"GET /a;jsessionid=ABCDEF123?token=t%20value&q=plain HTTP/1.1\r\nHost: a\r\n\
            Authorization: Bearer abcdefgh\r\nCookie: sid=s3cret; b=otherone\r\nX-Api-Key: keykey\r\nX-Who: whoami\r\n\r\n";
        let limits = HeadLimits { head_size_max: 4096, headers_max: 20 };
        let mut head = RequestHead::new();
        parse_request(input, &limits, TargetForm::default(), &mut head).expect("a request");
        let fields = CredentialFields::new(["x-who"].into_iter());
        let masks = Masks::of(&head, input, &fields);
        for secret in [
            "abcdefgh",
            "s3cret",
            "otherone",
            "keykey",
            "whoami",
            "t value",
            "t%20value",
            "ABCDEF123",
        ] {
            let text = format!("x {secret} y");
            assert_eq!(masks.text(text.as_bytes()), "x *** y", "{secret}");
        }
        assert_eq!(masks.text(b"plain"), "plain");
        assert_eq!(masks.field(b"Cookie", b"sid=s3cret; b=c"), "sid=***; b=***");
        assert_eq!(masks.field(b"X-Copied", b"Bearer abcdefgh"), "***");
        assert_eq!(masks.field(b"X-Who", b"whoami"), "***");
        assert_eq!(masks.field(b"Accept", b"*/*"), "*/*");
        let read = |part, value: &str| ValueRead {
            name: "x".into(),
            part,
            value: Some(value.as_bytes().to_vec()),
        };
        assert_eq!(masks.value_read(&read(PartRead::Cookie, "x")).as_deref(), Some("***"));
        assert_eq!(
            masks.value_read(&read(PartRead::Header("x-api-key".into()), "k")).as_deref(),
            Some("***")
        );
        assert_eq!(
            masks.value_read(&read(PartRead::Query("pin".into()), "1")).as_deref(),
            Some("***")
        );
        assert_eq!(
            masks.value_read(&read(PartRead::Other, "/a?token=x")).as_deref(),
            Some("/a?token=***")
        );
        assert_eq!(masks.value_read(&read(PartRead::Cookie, "")).as_deref(), Some(""));
    }

    #[test]
    fn long_texts_are_cut() {
        let masks = Masks::default();
        let text = masks.text("ü".repeat(2_000).as_bytes());
        assert_eq!(text.chars().count(), TEXT_CHARACTERS_MAX + 1);
    }
}
