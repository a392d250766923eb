//! Operators according to the reference manual.

use std::net::IpAddr;

use weir_waf::injection::{detect_definition, detect_script, detect_sql};
use weir_waf::seclang::{Operator, OperatorKind as O, Pattern, Template};

use super::machine::Machine;
use super::number;
use super::program::{Whole, Words};

/// Maximum number of captured groups.
const GROUPS_MAX: usize = 10;

/// The captured texts.
pub type Captured = Vec<Vec<u8>>;

impl Machine<'_> {
    /// Compares a value, ignoring negation. Returns the captured texts if the operator matches.
    pub fn compare(
        &mut self,
        whole: &Whole,
        operator: &Operator,
        value: &[u8],
    ) -> Option<Captured> {
        // The manual defines captures only for patterns. Other operators capture the whole value.
        let is = |holds: bool| holds.then(|| vec![value.to_vec()]);
        match &operator.kind {
            O::Rx(pattern) => self.rx(pattern, value),
            O::RxTemplate(template) => {
                // As in ModSecurity 3, the values of variables are part of the pattern.
                let pattern = self.expand(whole, template);
                match Pattern::new(&String::from_utf8_lossy(&pattern)) {
                    Ok(pattern) => self.rx(&pattern, value),
                    Err(_) => {
                        self.is_unreadable = true;
                        None
                    }
                }
            }
            O::Pm(words) => pm(&Words::new(words.iter().map(|word| &**word)), value),
            O::PmFromFile(names) => {
                let folder = whole.file.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
                let [name] = names.as_slice() else { unreachable!("no test has several files") };
                let path = format!("{}{name}", folder.unwrap_or_default());
                pm(self.program.files.get(&path).expect("a file of words"), value)
            }
            O::Eq(wanted) => is(number(value) == self.wanted(whole, wanted)),
            O::Ge(wanted) => is(number(value) >= self.wanted(whole, wanted)),
            O::Gt(wanted) => is(number(value) > self.wanted(whole, wanted)),
            O::Le(wanted) => is(number(value) <= self.wanted(whole, wanted)),
            O::Lt(wanted) => is(number(value) < self.wanted(whole, wanted)),
            O::Streq(text) => is(self.expand(whole, text) == value),
            O::Within(text) => is(has(&self.expand(whole, text), value)),
            O::Contains(text) => is(has(value, &self.expand(whole, text))),
            O::ContainsWord(text) => is(has_word(value, &self.expand(whole, text))),
            O::BeginsWith(text) => is(value.starts_with(&self.expand(whole, text))),
            O::EndsWith(text) => is(value.ends_with(&self.expand(whole, text))),
            O::ValidateByteRange(allowed) => {
                let is_allowed =
                    |byte: &u8| allowed[usize::from(byte / 64)] & (1 << (byte % 64)) != 0;
                is(!value.iter().all(is_allowed))
            }
            O::ValidateUrlEncoding => is(has_bad_escape(value)),
            O::ValidateUtf8Encoding => is(std::str::from_utf8(value).is_err()),
            O::IpMatch(networks) => is(is_in(value, networks)),
            O::IpMatchFromFile(_) | O::Elsewhere(_) => unreachable!("no test has it"),
            O::DetectSqli => detect_sql(value).map(|fingerprint| vec![fingerprint.as_str().into()]),
            O::DetectXss => is(detect_script(value)),
            O::DetectXxe => detect_definition(value).map(|definition| vec![definition.to_vec()]),
            O::UnconditionalMatch => is(true),
            O::NoMatch => is(false),
        }
    }

    fn rx(&mut self, pattern: &Pattern, value: &[u8]) -> Option<Captured> {
        let Some(groups) = pattern.groups(value, GROUPS_MAX) else {
            // The match needs too many steps.
            self.is_unreadable = true;
            return None;
        };
        let text = |group: Option<std::ops::Range<usize>>| group.map_or(&[][..], |it| &value[it]);
        Some(groups?.into_iter().map(|group| text(group).to_vec()).collect())
    }

    fn wanted(&mut self, whole: &Whole, template: &Template) -> i64 {
        number(&self.expand(whole, template))
    }
}

/// The word that ends first, as in an automaton that reads byte by byte. If several words end there, the longest.
fn pm(words: &Words, value: &[u8]) -> Option<Captured> {
    let found = |end| Some((end, words.at_end_of(&value[..end])?.len()));
    let (end, length) = (1..=value.len()).find_map(found)?;
    Some(vec![value[end - length..end].to_vec()])
}

fn has(text: &[u8], part: &[u8]) -> bool {
    (0..=text.len()).any(|at| text[at..].starts_with(part))
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    (0..=text.len()).any(|at| {
        text[at..].starts_with(word)
            && !text[..at].last().is_some_and(is_of_word)
            && !text[at + word.len()..].first().is_some_and(is_of_word)
    })
}

fn has_bad_escape(value: &[u8]) -> bool {
    let is_digit = |at: usize| value.get(at).is_some_and(u8::is_ascii_hexdigit);
    (0..value.len()).any(|at| value[at] == b'%' && !(is_digit(at + 1) && is_digit(at + 2)))
}

fn is_in(value: &[u8], networks: &[(IpAddr, u8)]) -> bool {
    let text = String::from_utf8_lossy(value).into_owned();
    let Ok(address) = text.trim().parse::<IpAddr>() else { return false };
    let bits = |address: IpAddr| -> Vec<bool> {
        let bytes = match address.to_canonical() {
            IpAddr::V4(it) => it.octets().to_vec(),
            IpAddr::V6(it) => it.octets().to_vec(),
        };
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
    };
    networks.iter().any(|(network, length)| {
        let (address, network) = (bits(address), bits(*network));
        let length = usize::from(*length);
        address.len() == network.len() && address[..length] == network[..length]
    })
}
