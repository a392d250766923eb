//! Random requests.

use weir_testing::Random;

use super::{one, words};

type Pairs = Vec<(String, String)>;

/// A request in parts that can be removed, and its response.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    pub method: String,
    pub path: String,
    pub arguments: Pairs,
    pub headers: Pairs,
    pub cookies: Pairs,
    pub content: Content,
    pub answer_headers: Pairs,
    pub answer: String,
}

/// A body.
#[derive(Debug, Clone, Default)]
pub struct Content {
    pub kind: Kind,
    pub parts: Pairs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    None,
    Form,
    Json,
    Xml,
    Multipart,
    Text,
    /// Truncated JSON.
    Broken,
}

impl Sent {
    pub fn random(random: &mut Random) -> Self {
        let content = Content::random(random);
        Self {
            method: one(random, &["GET", "POST", "PUT", "FOO"]).to_owned(),
            path: path(random),
            arguments: pairs(random, 4),
            headers: pairs(random, 3),
            cookies: pairs(random, 3),
            content,
            answer_headers: pairs(random, 2),
            answer: words::value(random),
        }
    }

    pub fn target(&self) -> String {
        match escaped_pairs(&self.arguments) {
            query if query.is_empty() => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    pub fn all_headers(&self) -> Pairs {
        let mut all = vec![("Host".to_owned(), "foo.example:80".to_owned())];
        all.extend(self.headers.clone());
        if !self.cookies.is_empty() {
            let cookies: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.push(("Cookie".to_owned(), cookies.join("; ")));
        }
        if let Some(kind) = self.content.media_type() {
            all.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        all
    }
}

impl Content {
    fn random(random: &mut Random) -> Self {
        let kinds = [
            Kind::None,
            Kind::Form,
            Kind::Form,
            Kind::Json,
            Kind::Xml,
            Kind::Multipart,
            Kind::Text,
            Kind::Broken,
        ];
        Self { kind: kinds[random.below(kinds.len())], parts: pairs(random, 3) }
    }

    fn media_type(&self) -> Option<&'static str> {
        Some(match self.kind {
            Kind::None => return None,
            Kind::Form => "application/x-www-form-urlencoded",
            Kind::Json | Kind::Broken => "application/json",
            Kind::Xml => "text/xml",
            Kind::Multipart => "multipart/form-data; boundary=bound",
            Kind::Text => "text/plain",
        })
    }

    pub fn bytes(&self) -> String {
        match self.kind {
            Kind::None => String::new(),
            Kind::Form => escaped_pairs(&self.parts),
            Kind::Json => format!("{{{}}}", self.members()),
            Kind::Broken => format!("{{{},", self.members()),
            Kind::Text => self.parts.iter().map(|(_, value)| value.as_str()).collect(),
            Kind::Xml => {
                let escaped = |text: &str| text.replace(['<', '&', '\''], "_");
                let elements = self
                    .parts
                    .iter()
                    .map(|(_, value)| format!("<e at='{}'>{}</e>", escaped(value), escaped(value)));
                format!("<r>{}</r>", elements.collect::<String>())
            }
            Kind::Multipart => {
                let parts = self.parts.iter().enumerate().map(|(index, (name, value))| {
                    let file = if index % 2 == 1 { "; filename=\"foo.php\"" } else { "" };
                    format!(
                        "--bound\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
                    )
                });
                format!("{}--bound--\r\n", parts.collect::<String>())
            }
        }
    }

    fn members(&self) -> String {
        let members: Vec<_> =
            self.parts.iter().map(|(name, value)| format!("{name:?}: {value:?}")).collect();
        members.join(", ")
    }
}

fn path(random: &mut Random) -> String {
    let parts: Vec<&str> = (0..random.below(3)).map(|_| words::word(random)).collect();
    format!("/{}", parts.join(one(random, &["/", "%2f", "."])))
}

fn pairs(random: &mut Random, max: usize) -> Pairs {
    (0..random.below(max + 1))
        .map(|_| (words::name(random).to_owned(), words::value(random)))
        .collect()
}

/// The parts in the encoding of forms. Escapes in values are not encoded again.
fn escaped_pairs(pairs: &Pairs) -> String {
    let escape = |text: &str| {
        let escaped = |char: char| match char {
            '&' | '=' | '+' | '#' | '?' | '\u{80}'.. => {
                let mut bytes = [0; 4];
                let bytes = char.encode_utf8(&mut bytes).bytes();
                bytes.map(|byte| format!("%{byte:02x}")).collect()
            }
            ' ' => "+".to_owned(),
            other => other.to_string(),
        };
        text.chars().map(escaped).collect::<String>()
    };
    let pairs: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}
