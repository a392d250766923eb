//! Content-Type values (RFC 9110 section 8.3.1), and the choice of the body processor.

/// The parser of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Processor {
    /// `application/x-www-form-urlencoded`.
    UrlEncoded,
    /// `multipart/form-data`.
    Multipart,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// Text of unknown format: its content decides which parsers are used, and there are no problems. Only rules select it.
    Text,
    /// A body whose bytes decide: as [`Self::Text`], unless they are recognisably in a binary format. Only rules select it.
    Content,
    /// No parser: the body has no arguments.
    #[default]
    None,
}

impl Processor {
    /// All processors.
    pub const ALL: [Self; 7] = [
        Self::UrlEncoded,
        Self::Multipart,
        Self::Json,
        Self::Xml,
        Self::Text,
        Self::Content,
        Self::None,
    ];

    /// The name in REQBODY_PROCESSOR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UrlEncoded => "URLENCODED",
            Self::Multipart => "MULTIPART",
            Self::Json => "JSON",
            Self::Xml => "XML",
            Self::Text => "TEXT",
            Self::Content => "CONTENT",
            Self::None => "",
        }
    }

    /// The processor with this name, as in `ctl:requestBodyProcessor`, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|processor| name.eq_ignore_ascii_case(processor.name().as_bytes()))
    }

    /// The processor for a Content-Type value.
    ///
    /// The beginning of the value decides, as in ModSecurity and in rules 200000, 200001 and 200006 of its recommended
    /// configuration. So a value with unusual text after the type (`application/json, text/plain`) selects the parser of the
    /// type, because the application may do the same. In addition, further JSON types and all types with `+json` or `+xml`
    /// are recognised.
    pub fn of(content_type: &[u8]) -> Self {
        let start: Vec<u8> =
            content_type.iter().take(ESSENCE_BYTES_MAX).map(u8::to_ascii_lowercase).collect();
        let begins =
            |prefixes: &[&str]| prefixes.iter().any(|prefix| start.starts_with(prefix.as_bytes()));
        if begins(&["multipart/form-data"]) {
            Self::Multipart
        } else if begins(&["application/x-www-form-urlencoded"]) {
            Self::UrlEncoded
        } else if begins(&["text/xml", "application/xml", "application/soap+xml"]) {
            Self::Xml
        } else if begins(&JSON) {
            Self::Json
        } else {
            match suffix(&start) {
                Some(suffix) if suffix.starts_with(b"json") => Self::Json,
                Some(suffix) if suffix.starts_with(b"xml") => Self::Xml,
                _ => Self::None,
            }
        }
    }
}

/// JSON types, by the beginning of their names.
const JSON: [&str; 5] = [
    "application/json",
    "application/x-json",
    "text/json",
    "text/x-json",
    "application/csp-report",
];

/// Maximum number of bytes that [`Processor::of`] searches for a suffix such as `+json`.
const ESSENCE_BYTES_MAX: usize = 256;

/// The part of a type after its last `+`.
fn suffix(start: &[u8]) -> Option<&[u8]> {
    let (_, behind) = token(start)?;
    let subtype = behind.strip_prefix(b"/")?;
    let end = subtype.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(subtype.len());
    let subtype = subtype.get(..end)?;
    let plus = subtype.iter().rposition(|byte| *byte == b'+')?;
    subtype.get(plus + 1..)
}

/// Maximum number of parameters of a Content-Type.
pub const PARAMETERS_MAX: usize = 16;

/// A parsed Content-Type value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// The type, as received.
    pub kind: &'a [u8],
    /// The subtype, as received.
    pub subtype: &'a [u8],
    /// The parameters, in order.
    pub parameters: Vec<Parameter<'a>>,
}

/// A parameter of a Content-Type value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// The name, as received.
    pub name: &'a [u8],
    /// The value, without quotes and escapes.
    pub value: Vec<u8>,
}

impl<'a> MediaType<'a> {
    /// Parses a value strictly: no blanks around `=`, no empty parameter, nothing after the last parameter. `None`: the
    /// value is malformed or has more than [`PARAMETERS_MAX`] parameters.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let (kind, rest) = token(value)?;
        let (subtype, mut rest) = token(rest.strip_prefix(b"/")?)?;
        let mut parameters = Vec::new();
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return Some(Self { kind, subtype, parameters });
            }
            if parameters.len() >= PARAMETERS_MAX {
                return None;
            }
            let (name, behind) = token(rest.strip_prefix(b";")?.trim_ascii_start())?;
            let (value, behind) = parameter_value(behind.strip_prefix(b"=")?)?;
            parameters.push(Parameter { name, value });
            rest = behind;
        }
    }

    /// The value of a parameter; `None`: it is missing or repeated.
    pub fn parameter(&self, name: &[u8]) -> Option<&[u8]> {
        let mut found =
            self.parameters.iter().filter(|parameter| parameter.name.eq_ignore_ascii_case(name));
        let first = found.next()?;
        found.next().is_none().then_some(first.value.as_slice())
    }

    /// The type and subtype, in lower case.
    pub fn essence(&self) -> String {
        let text = [self.kind, b"/", self.subtype].concat();
        String::from_utf8_lossy(&text).to_ascii_lowercase()
    }

    /// Whether the value has this type and subtype, in any case.
    pub fn is(&self, kind: &[u8], subtype: &[u8]) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.subtype.eq_ignore_ascii_case(subtype)
    }
}

fn parameter_value(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = bytes.strip_prefix(b"\"") else {
        let (value, rest) = token(bytes)?;
        return Some((value.to_vec(), rest));
    };
    let mut value = Vec::new();
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some((value, behind)),
            [b'\\', byte, behind @ ..] if is_text(*byte) => {
                value.push(*byte);
                behind
            }
            [byte, behind @ ..] if is_text(*byte) && *byte != b'\\' => {
                value.push(*byte);
                behind
            }
            _ => return None,
        };
    }
}

/// Whether the byte may occur in a quoted string, directly or after a backslash.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn token(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(bytes.len());
    (end > 0).then(|| bytes.split_at(end))
}

/// Whether the byte may occur in a token (RFC 9110 section 5.6.2).
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_chosen() {
        for (content_type, expected) in [
            ("", Processor::None),
            ("text/plain", Processor::None),
            ("application/octet-stream", Processor::None),
            ("application/x-www-form-urlencoded", Processor::UrlEncoded),
            ("Application/X-WWW-Form-Urlencoded; charset=utf-8", Processor::UrlEncoded),
            ("multipart/form-data; boundary=a", Processor::Multipart),
            ("multipart/form-data", Processor::Multipart),
            ("multipart/mixed; boundary=a", Processor::None),
            ("application/json", Processor::Json),
            ("application/JSON;charset=utf-8", Processor::Json),
            ("application/json, text/plain", Processor::Json),
            ("application/cloudevents+json", Processor::Json),
            ("application/cloudevents-batch+json; charset=utf-8", Processor::Json),
            ("application/a+b+json", Processor::Json),
            ("text/json", Processor::Json),
            ("text/x-json; charset=utf-8", Processor::Json),
            ("application/x-json", Processor::Json),
            ("application/csp-report", Processor::Json),
            ("application/grpc+json", Processor::Json),
            ("model/gltf+json", Processor::Json),
            ("image/svg+xml", Processor::Xml),
            ("application/graphql", Processor::None),
            ("text/plain; a=application/b+json", Processor::None),
            ("application/a b+json", Processor::None),
            ("text/xml", Processor::Xml),
            ("text/xml; charset=utf-8", Processor::Xml),
            ("application/xml", Processor::Xml),
            ("application/soap+xml; action=x", Processor::Xml),
            ("application/atom+xml", Processor::Xml),
        ] {
            assert_eq!(Processor::of(content_type.as_bytes()), expected, "{content_type}");
        }
        for processor in Processor::ALL {
            assert_eq!(
                Processor::named(processor.name().to_ascii_lowercase().as_bytes()),
                Some(processor)
            );
        }
        assert_eq!(Processor::named(b"YAML"), None);
    }

    #[test]
    fn values_are_taken_apart() {
        for (value, expected) in [
            ("text/plain", Some(("text", "plain", &[][..]))),
            (" text/plain\t", Some(("text", "plain", &[]))),
            ("text/plain;a=b", Some(("text", "plain", &[("a", "b")]))),
            (
                "text/plain ; a=b ;c=\"d;\\\"e\\f\"",
                Some(("text", "plain", &[("a", "b"), ("c", "d;\"ef")])),
            ),
            ("text/plain; a=\"\"", Some(("text", "plain", &[("a", "")]))),
            ("", None),
            ("text", None),
            ("text/", None),
            ("/plain", None),
            ("text/plain;", None),
            ("text/plain; a", None),
            ("text/plain; a=", None),
            ("text/plain; a =b", None),
            ("text/plain; a= b", None),
            ("text/plain; a=\"b", None),
            ("text/plain; a=\"b\\", None),
            ("text/plain; a=\"b\"c", None),
            ("text/plain; a=\"b\0\"", None),
            ("text/plain a=b", None),
            ("text/plain, text/html", None),
        ] {
            let parsed = MediaType::parse(value.as_bytes());
            let seen = parsed.as_ref().map(|parsed| {
                let parameters: Vec<_> =
                    parsed.parameters.iter().map(|p| (p.name, p.value.as_slice())).collect();
                (parsed.kind, parsed.subtype, parameters)
            });
            let expected = expected.map(|(kind, subtype, parameters)| {
                let parameters: Vec<_> = parameters
                    .iter()
                    .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                    .collect();
                (kind.as_bytes(), subtype.as_bytes(), parameters)
            });
            assert_eq!(seen, expected, "{value:?}");
        }
    }

    #[test]
    fn a_parameter_is_there_once() {
        let parsed = MediaType::parse(b"Multipart/Form-Data; Boundary=x; a=1; A=2").unwrap();
        assert!(parsed.is(b"multipart", b"form-data") && !parsed.is(b"multipart", b"mixed"));
        assert_eq!(
            (parsed.parameter(b"boundary"), parsed.parameter(b"a"), parsed.parameter(b"b")),
            (Some(&b"x"[..]), None, None)
        );
    }

    #[test]
    fn parameters_are_limited() {
        let value = |count| format!("a/b{}", ";a=1".repeat(count));
        assert!(MediaType::parse(value(PARAMETERS_MAX).as_bytes()).is_some());
        assert!(MediaType::parse(value(PARAMETERS_MAX + 1).as_bytes()).is_none());
    }
}
