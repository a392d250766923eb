//! Compilation of operators, and the derivation of their needs.

use super::Compiler;
use super::drafts::Draft;
use crate::plan::facts::{self, NeedsByKind};
use crate::plan::literals::{self, PatternNeeds};
use crate::plan::operators::{self, Comparison, Relation, TextComparison};
use crate::seclang::{Operator, OperatorKind, Pattern, Template};

/// Maximum size of a file of words or networks, in bytes.
const FILE_BYTES_MAX: usize = 16 << 20;

impl Compiler<'_> {
    /// Compiles an operator, and derives its needs: properties of every text that it matches.
    pub(super) fn operator(
        &mut self,
        operator: &Operator,
        draft: &Draft,
    ) -> Result<(Comparison, Option<NeedsByKind>), String> {
        use OperatorKind as Kind;
        let mut number =
            |relation, text: &Template| Comparison::Number(relation, self.template(text, draft));
        let kind = match &operator.kind {
            Kind::Rx(pattern) => {
                let needs = needs_of(pattern);
                return Ok((Comparison::Rx(pattern.clone()), Some(needs)));
            }
            Kind::Pm(words) => return pm(words),
            Kind::PmFromFile(names) => return pm(&self.words_of(names, draft)?),
            Kind::RxTemplate(text) => Comparison::RxTemplate(self.template(text, draft)),
            Kind::Eq(text) => number(Relation::Equal, text),
            Kind::Ge(text) => number(Relation::AtLeast, text),
            Kind::Gt(text) => number(Relation::Above, text),
            Kind::Le(text) => number(Relation::AtMost, text),
            Kind::Lt(text) => number(Relation::Below, text),
            Kind::Streq(text) => self.text(TextComparison::Equal, text, draft),
            Kind::Within(text) => self.text(TextComparison::Within, text, draft),
            Kind::Contains(text) => self.text(TextComparison::Contains, text, draft),
            Kind::ContainsWord(text) => self.text(TextComparison::ContainsWord, text, draft),
            Kind::BeginsWith(text) => self.text(TextComparison::BeginsWith, text, draft),
            Kind::EndsWith(text) => self.text(TextComparison::EndsWith, text, draft),
            Kind::ValidateByteRange(allowed) => Comparison::ByteRange(*allowed),
            Kind::ValidateUrlEncoding => Comparison::UrlEncoding,
            Kind::ValidateUtf8Encoding => Comparison::Utf8Encoding,
            Kind::IpMatch(networks) => Comparison::Addresses(networks.clone().into()),
            Kind::IpMatchFromFile(names) => {
                let mut networks = Vec::new();
                for line in self.words_of(names, draft)? {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    networks.push(crate::seclang::network(&text)?);
                }
                Comparison::Addresses(networks.into())
            }
            Kind::DetectSqli => Comparison::Sqli,
            Kind::DetectXss => Comparison::Xss,
            Kind::DetectXxe => Comparison::Xxe,
            Kind::UnconditionalMatch => Comparison::Always,
            Kind::NoMatch => Comparison::Never,
            Kind::Elsewhere(_) => Comparison::Never,
        };
        let needs = operators::bytes_needed(&kind).map(|bytes| {
            let needs = PatternNeeds { sets: vec![bytes], ..PatternNeeds::default() };
            facts::kinds().map(|_| Some(needs.clone())).collect()
        });
        Ok((kind, needs))
    }

    fn text(&mut self, how: TextComparison, text: &Template, draft: &Draft) -> Comparison {
        Comparison::Text(how, self.template(text, draft))
    }

    /// The lines of files beside the rule's file, without comments.
    fn words_of(&mut self, names: &[Box<str>], draft: &Draft) -> Result<Vec<Box<[u8]>>, String> {
        let mut words = Vec::new();
        for name in names {
            let found = self.files.find(&draft.place.file, name);
            let [path] = found.as_slice() else {
                return Err(format!("there is no file `{name}` beside `{}`", draft.place.file));
            };
            let bytes =
                self.files.read(path).map_err(|it| format!("`{path}` cannot be read: {it}"))?;
            if bytes.len() > FILE_BYTES_MAX {
                return Err(format!("`{path}` is larger than {FILE_BYTES_MAX} bytes"));
            }
            if let Some(line) = byte_order_mark(&bytes) {
                return Err(format!(
                    "`{path}` has a byte order mark (EF BB BF) in line {line}, and its word would never match"
                ));
            }
            for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
                let word = line.trim_ascii();
                if word.is_empty() || word.starts_with(b"#") {
                    continue;
                }
                if let Some(what) = unseen(word) {
                    return Err(format!(
                        "`{path}`: line {number} has {what}, and its word would never match: each word stands \
                         on a line of its own, which ends with LF or CR LF"
                    ));
                }
                words.push(word.into());
            }
        }
        Ok(words)
    }
}

/// Something in a word that nobody sees: a control character, or a blank of Unicode at its ends.
fn unseen(word: &[u8]) -> Option<&'static str> {
    if word.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Some("a control character");
    }
    let text = std::str::from_utf8(word).ok()?;
    let is_blank =
        |it: char| it.is_whitespace() || matches!(it, '\u{200b}'..='\u{200f}' | '\u{2060}');
    let has_line_end = text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    (has_line_end || text.trim_matches(is_blank) != text).then_some("a blank that nobody sees")
}

/// The line of a byte order mark, or of the first line of UTF-16.
fn byte_order_mark(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some(1);
    }
    let at = memchr::memmem::find(bytes, b"\xef\xbb\xbf")?;
    Some(1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count())
}

fn pm(words: &[Box<[u8]>]) -> Result<(Comparison, Option<NeedsByKind>), String> {
    let needs = PatternNeeds {
        length_min: words.iter().map(|word| word.len()).min().unwrap_or(0),
        literals: words.iter().map(|word| word.to_ascii_lowercase().into()).collect(),
        sets: Vec::new(),
    };
    let needs = facts::kinds().map(|_| Some(needs.clone())).collect();
    Ok((Comparison::Pm(operators::words(words)?), Some(needs)))
}

/// The needs of a pattern, for texts of each kind.
pub(in crate::plan) fn needs_of(pattern: &Pattern) -> NeedsByKind {
    let anything = || facts::kinds().map(|_| Some(PatternNeeds::default())).collect();
    let Pattern::Linear(regex) = pattern else { return anything() };
    let hir = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(true)
        .build()
        .parse(regex.as_str());
    // The pattern is parsed with the same settings as it was compiled. An operator whose pattern is not analysed is always
    // evaluated.
    match hir {
        Ok(hir) => facts::kinds().map(|absent| literals::needs(&hir, &absent)).collect(),
        Err(_) => anything(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_nobody_can_match_are_known() {
        for (word, expected) in [
            ("alpha", false),
            ("two words", false),
            ("tab\tinside", false),
            ("größe", false),
            ("alpha\rbeta", true),
            ("alpha\u{b}", true),
            ("nul\0", true),
            ("alpha\u{a0}", true),
            ("\u{200b}alpha", true),
            ("alpha\u{2028}beta", true),
        ] {
            assert_eq!(unseen(word.as_bytes()).is_some(), expected, "{word:?}");
        }
        assert_eq!(unseen(b"\xff\xfe is no text"), None);
    }
}
