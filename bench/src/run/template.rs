//! Configurations from their templates in `bench/peers`.
//!
//! `@WORD@` is replaced by the word's value. The lines between `@EACH MEMBER@` and `@END@` are repeated for every
//! member, and those between `@EACH SERVER@` and `@END@` for every virtual server. In repeated lines, `@INDEX@` counts
//! from 1, and `@ADDRESS@`, `@IP@` and `@PORT@` come from the address. The lines between `@IF A B@` and `@END IF@` are
//! kept if feature A or feature B is wanted; this block may be inside a repeated block.

use std::net::SocketAddr;

/// The values for a template.
#[derive(Debug)]
pub struct Values<'a> {
    /// Pairs of word and value.
    pub words: &'a [(&'a str, String)],
    /// The virtual servers.
    pub servers: &'a [SocketAddr],
    /// The members.
    pub members: &'a [SocketAddr],
    /// The wanted features.
    pub features: &'a [&'a str],
}

/// Fills a template.
pub fn fill(template: &str, values: &Values<'_>) -> String {
    let mut text = String::new();
    let template = of_features(template, values.features);
    let mut lines = template.into_iter();
    while let Some(line) = lines.next() {
        let addresses = match line.trim() {
            "@EACH SERVER@" => values.servers,
            "@EACH MEMBER@" => values.members,
            _ => {
                text += &replaced(line, values.words);
                text.push('\n');
                continue;
            }
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "@END@").collect();
        for (index, address) in addresses.iter().enumerate() {
            let words = [
                ("INDEX", (index + 1).to_string()),
                ("ADDRESS", address.to_string()),
                ("IP", address.ip().to_string()),
                ("PORT", address.port().to_string()),
            ];
            for line in &block {
                text += &replaced(&replaced(line, &words), values.words);
                text.push('\n');
            }
        }
    }
    text
}

/// Resolves the `@IF@` blocks: the lines of the template that apply with these features.
fn of_features<'t>(template: &'t str, features: &[&str]) -> Vec<&'t str> {
    let mut is_shown = true;
    let mut lines = Vec::new();
    for line in template.lines() {
        let mark = line.trim();
        if mark == "@END IF@" {
            is_shown = true;
        } else if let Some(any) = mark.strip_prefix("@IF ").and_then(|m| m.strip_suffix('@')) {
            is_shown = any.split(' ').any(|one| features.contains(&one));
        } else if is_shown {
            lines.push(line);
        }
    }
    lines
}

fn replaced(line: &str, words: &[(&str, String)]) -> String {
    words.iter().fold(line.to_owned(), |line, (word, value)| {
        if line.contains('@') { line.replace(&format!("@{word}@"), value) } else { line }
    })
}

/// The first `@WORD@` without a value.
#[cfg(test)]
pub fn unfilled(text: &str) -> Option<&str> {
    let is_word = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ')
    };
    // A part is a word only between two at signs.
    text.lines().find_map(|line| {
        let parts: Vec<&str> = line.split('@').collect();
        let inner = parts.len().saturating_sub(1);
        parts.get(1..inner)?.iter().copied().find(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling() {
        let addresses: Vec<SocketAddr> =
            ["127.0.0.1:80", "127.0.0.2:81"].map(|text| text.parse().expect("an address")).into();
        let values = Values {
            words: &[("WORKERS", "3".into())],
            servers: &addresses[..1],
            members: &addresses,
            features: &["URI", "TLS"],
        };
        let check = |template, expected: &str| assert_eq!(fill(template, &values), expected);
        check("workers @WORKERS@;\n", "workers 3;\n");
        check(
            "a\n  @EACH MEMBER@\n  m@INDEX@ @ADDRESS@\n@END@\nb\n",
            "a\n  m1 127.0.0.1:80\n  m2 127.0.0.2:81\nb\n",
        );
        check("@EACH SERVER@\n@IP@ @PORT@ @WORKERS@\n\n@END@\n", "127.0.0.1 80 3\n\n");
        check("mail x@y.z @OTHER@\n", "mail x@y.z @OTHER@\n");
        check("a\n@IF URI ALL@\nb\n@END IF@\n@IF ALL@\nc\n@END IF@\nd\n", "a\nb\nd\n");
        check("@IF TLS@\na\n@END IF@\n@IF GZIP@\nb\n@END IF@\n", "a\n");
        check("@EACH SERVER@\na\n  @IF URI@\n@PORT@\n  @END IF@\n@END@\n", "a\n80\n");
    }

    #[test]
    fn unfilled_words() {
        let check = |text, expected| assert_eq!(unfilled(text), expected, "{text}");
        check("a\nb @OTHER@ c\n", Some("OTHER"));
        check("@EACH POOL@\n", Some("EACH POOL"));
        check("x@y.z, \"@type\": a\n", None);
        check("@\n@\n", None);
    }
}
