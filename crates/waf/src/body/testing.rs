//! Shared code of the parsers' tests: a record of the delivered values, and a check of all splits.

use super::differences::Differences;
use super::sink::Sink;
use weir_testing::Random;

/// A delivered value. The pieces of a file's content are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Argument(String, String),
    FileStart(String, String),
    FileContent(String),
    File(String, String, u64),
    PartHeader(String, String),
    Text(String),
    Attribute(String),
    Instruction(String),
}

/// Bytes as text. Different bytes have different texts.
pub(super) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

pub(super) fn argument(name: &[u8], value: &[u8]) -> Event {
    Event::Argument(shown(name), shown(value))
}

impl Sink for Vec<Event> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        self.push(argument(name, value));
    }

    fn file_start(&mut self, field: &[u8], file_name: &[u8]) {
        self.push(Event::FileStart(shown(field), shown(file_name)));
    }

    fn file_content(&mut self, bytes: &[u8]) {
        // Latin-1, so that joined pieces equal the whole.
        let piece: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        match self.last_mut() {
            Some(Event::FileContent(content)) => content.push_str(&piece),
            _ => self.push(Event::FileContent(piece)),
        }
    }

    fn file(&mut self, field: &[u8], file_name: &[u8], size_bytes: u64) {
        self.push(Event::File(shown(field), shown(file_name), size_bytes));
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) {
        self.push(Event::PartHeader(shown(part), shown(line)));
    }

    fn xml_text(&mut self, text: &[u8]) {
        self.push(Event::Text(shown(text)));
    }

    fn xml_instruction(&mut self, text: &[u8]) {
        self.push(Event::Instruction(shown(text)));
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.push(Event::Attribute(shown(value)));
    }
}

/// Parses a body whole, split in two at every position, byte by byte, and in random pieces. All must deliver the same values
/// and leave the parser in the same state, except for its buffers.
pub(super) fn check_cuts<P: Outcome>(
    body: &[u8],
    new: impl Fn() -> P,
    feed: impl Fn(&mut P, &[u8], &mut Vec<Event>),
    finish: impl Fn(&mut P, &mut Vec<Event>),
) -> (Vec<Event>, P) {
    let read = |cuts: &[usize]| {
        let (mut parser, mut events, mut start) = (new(), Vec::new(), 0);
        for cut in cuts.iter().chain([&body.len()]) {
            feed(&mut parser, &body[start..*cut], &mut events);
            start = *cut;
        }
        finish(&mut parser, &mut events);
        (events, parser)
    };
    let whole = read(&[]);
    let check = |cuts: &[usize]| {
        let (events, parser) = read(cuts);
        assert_eq!(events, whole.0, "cut at {cuts:?} of {:?}", body.escape_ascii().to_string());
        assert_eq!(
            parser.outcome(),
            whole.1.outcome(),
            "cut at {cuts:?} of {:?}",
            body.escape_ascii().to_string()
        );
    };
    (0..=body.len()).for_each(|cut| check(&[cut]));
    check(&(0..body.len()).collect::<Vec<_>>());
    let mut random = Random::new(body.len() as u64);
    for _ in 0..4 {
        let mut cuts: Vec<_> = (0..4).map(|_| random.below(body.len() + 1)).collect();
        cuts.sort_unstable();
        check(&cuts);
    }
    whole
}

/// The state of a parser that must not depend on splits.
pub(super) trait Outcome {
    fn outcome(&self) -> String;
}

pub(super) fn outcome(
    failure: Option<super::problem::Failure>,
    differences: Differences,
    more: impl std::fmt::Debug,
) -> String {
    format!("{failure:?} {:?} {more:?}", differences.iter().collect::<Vec<_>>())
}

/// Up to `bytes_max` bytes of an alphabet.
pub(super) fn noise(random: &mut Random, alphabet: &[u8], bytes_max: usize) -> Vec<u8> {
    (0..random.below(bytes_max + 1)).map(|_| alphabet[random.below(alphabet.len())]).collect()
}

/// A body with a few bytes changed, removed, inserted or repeated.
pub(super) fn mutated(random: &mut Random, body: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(body.len() + 1);
        match random.below(5) {
            0 if at < body.len() => body[at] = alphabet[random.below(alphabet.len())],
            1 if at < body.len() => drop(body.remove(at)),
            2 => body.insert(at, alphabet[random.below(alphabet.len())]),
            3 => body.truncate(at),
            _ => {
                let end = at + random.below(body.len() - at + 1).min(12);
                let piece = body[at..end].to_vec();
                let to = random.below(body.len() + 1);
                body.splice(to..to, piece);
            }
        }
    }
    body
}
