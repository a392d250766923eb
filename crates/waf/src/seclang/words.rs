//! Splits a directive into words, which are separated by blanks or quoted.

use super::{SecLangProblem, wrong_help};

/// Splits a directive into its words. Within single or double quotes, a backslash before the same quote escapes the quote.
/// Any other backslash is literal, as in regular expressions.
pub fn split(text: &str) -> Result<Vec<String>, SecLangProblem> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => quoted(&rest[1..], first)?,
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn quoted(text: &str, quote: char) -> Result<(String, &str), SecLangProblem> {
    let mut word = String::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.peek() {
                Some((_, next)) if *next == quote => {
                    word.push(quote);
                    chars.next();
                }
                // The second of two backslashes does not begin an escape.
                Some((_, '\\')) => {
                    word.push_str("\\\\");
                    chars.next();
                }
                _ => word.push('\\'),
            },
            _ if char == quote => return Ok((word, &text[at + 1..])),
            _ => word.push(char),
        }
    }
    Err(wrong_help(
        format!("a quote {quote} is not closed"),
        "close it, or end the line before with a backslash",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_directives() {
        for (text, expected) in [
            ("", &[][..]),
            ("SecRuleEngine On", &["SecRuleEngine", "On"]),
            ("  A  \"b c\"  d ", &["A", "b c", "d"]),
            (r#"A "b \"c\" \d \\" e"#, &["A", r#"b "c" \d \\"#, "e"]),
            (r#"A 'b "c" \' d'"#, &["A", r#"b "c" ' d"#]),
            (r#"A """#, &["A", ""]),
        ] {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        for text in ["A \"b", "A 'b", r#"A "b \""#] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
