//! XML 1.0, parsed strictly, without validation and without recursion.
//!
//! Text between two tags is delivered as one piece, including CDATA sections and references, as an application reads the
//! text of an element. ModSecurity joins the texts of the whole document in `XML:/*`; Coraza delivers each piece, and splits
//! text at comments and CDATA sections. Blanks at the ends of a piece are dropped, as in Coraza. Processing
//! instructions are delivered as they are, comments are not.
//!
//! Entities are never expanded: a reference is left unchanged, and recorded unless it is to an entity that does no harm.

mod characters;
mod collected_text;
mod declaration;
mod definitions;
mod doctype;
mod elements;
mod markup;
mod reference;

use super::charset::Charset;
use super::differences::{Difference, Differences};
use super::limits::{self, Limits};
use super::problem::{Failure, Problem};
use super::sink::Sink;
use characters::{is_blank, is_forbidden};
use collected_text::{CollectedText, Kind};
use declaration::{CompleteInstruction, Instruction};
pub use definitions::{is_plain_text, is_published};
use doctype::{Doctype, HarmlessEntities};
use elements::Elements;
use markup::{Action, Markup};
use reference::Reference;

/// An incremental parser.
#[derive(Debug, Clone)]
pub struct Xml {
    limits: Limits,
    /// The charset that the head of the request states.
    charset: Charset,
    state: State,
    elements: Elements,
    /// Whether the document element has begun.
    has_root: bool,
    has_doctype: bool,
    /// The entities of the document type that do no harm.
    known: HarmlessEntities,
    /// The offset of the document's start, after a byte order mark.
    start: u64,
    /// The offset of the current markup's start.
    markup_start: u64,
    collected: CollectedText,
    name: Vec<u8>,
    reference: Vec<u8>,
    instruction: Instruction,
    /// Whether the last byte was CR; its LF is already counted.
    after_cr: bool,
    offset: u64,
    differences: Differences,
    failure: Option<Failure>,
}

/// The syntactic position of the next byte.
#[derive(Debug, Clone)]
enum State {
    /// The beginning, with the number of bytes of a byte order mark read so far.
    Start(usize),
    /// Text, after this number of `]`.
    Content(u8),
    /// Between `<` and `>`.
    Markup(Markup),
    /// An attribute's value.
    Value {
        quote: u8,
    },
    /// After `&`, in text or in a value with this quote.
    Reference {
        quote: Option<u8>,
    },
    Doctype(Box<Doctype>),
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Xml {
    /// A parser before the first byte.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            charset: Charset::default(),
            state: State::Start(0),
            elements: Elements::default(),
            has_root: false,
            has_doctype: false,
            known: HarmlessEntities::default(),
            start: 0,
            markup_start: 0,
            collected: CollectedText::new(&limits),
            name: Vec::new(),
            reference: Vec::new(),
            instruction: Instruction::default(),
            after_cr: false,
            offset: 0,
            differences: Differences::NONE,
            failure: None,
        }
    }

    /// States the charset of the bytes.
    pub(super) fn set_charset(&mut self, charset: Charset) {
        self.charset = charset;
        if matches!(charset, Charset::Ascii | Charset::Pairs { .. }) {
            self.collected.set_encoding(declaration::Encoding::Bytes);
        }
    }

    /// Parses the next piece of the body, which may be split anywhere.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Sink) {
        let mut rest = bytes;
        while self.failure.is_none() && !rest.is_empty() {
            let (run, others) = rest.split_at(self.plain(rest));
            if !run.is_empty() {
                if let Err(problem) = self.run(run) {
                    self.fail(problem, to);
                }
                rest = others;
            } else if let Some((byte, others)) = others.split_first() {
                match self.byte(*byte, to) {
                    Ok(()) => self.offset += 1,
                    Err(problem) => self.fail(problem, to),
                }
                rest = others;
            }
        }
    }

    /// Ends the body. An empty body is valid.
    pub fn finish(&mut self, to: &mut impl Sink) {
        let is_whole =
            self.has_root && self.elements.depth() == 0 && matches!(self.state, State::Content(_));
        if self.failure.is_none() && self.offset > 0 && !is_whole {
            self.fail(Problem::Unfinished, to);
        }
    }

    /// The problem that ended the parsing, if any.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The differences found so far.
    pub fn differences(&self) -> Differences {
        let mut differences = self.differences;
        if let State::Doctype(doctype) = &self.state {
            differences.add_all(doctype.differences());
        }
        differences
    }

    /// The number of literal bytes of text or of a value at the start of the input.
    fn plain(&self, bytes: &[u8]) -> usize {
        let end = match self.state {
            _ if self.after_cr => Some(0),
            State::Content(0) if self.elements.depth() > 0 => bytes
                .iter()
                .position(|byte| matches!(byte, b'<' | b'&' | b']' | b'\r') || is_forbidden(*byte)),
            State::Value { quote } => bytes
                .iter()
                .position(|byte| *byte == quote || matches!(byte, b'<' | b'&' | 0..b' ')),
            State::Markup(markup) => markup.skips(bytes),
            _ => Some(0),
        };
        end.unwrap_or(bytes.len())
    }

    /// Adds literal bytes.
    fn run(&mut self, run: &[u8]) -> Result<(), Problem> {
        let (taken, limit) = match self.state {
            State::Value { .. } => {
                (self.collected.append(Kind::Attribute, run), Problem::ValueLimit)
            }
            State::Markup(markup) if markup.is_name() => (
                limits::append(&mut self.name, run, self.limits.name_bytes_max),
                Problem::NameLimit,
            ),
            State::Markup(Markup::CData(_)) | State::Content(_) => {
                (self.collected.append(Kind::Text, run), Problem::ValueLimit)
            }
            _ => (run.len(), Problem::ValueLimit),
        };
        self.offset += taken as u64;
        if taken < run.len() { Err(limit) } else { Ok(()) }
    }

    fn byte(&mut self, byte: u8, to: &mut impl Sink) -> Result<(), Problem> {
        if is_forbidden(byte) {
            return Err(if self.offset < 4 && byte == 0 {
                Problem::XmlEncoding
            } else {
                Problem::XmlCharacter
            });
        }
        // CR and CR LF are line ends, and become LF (section 2.11).
        let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
        let in_data = matches!(
            self.state,
            State::Content(_) | State::Value { .. } | State::Markup(Markup::CData(_))
        );
        let byte = match byte {
            b'\n' if after_cr && in_data => return Ok(()),
            b'\r' => b'\n',
            _ => byte,
        };
        match &mut self.state {
            State::Start(_) => self.begin(byte),
            State::Content(brackets) => {
                let brackets = *brackets;
                self.content(byte, brackets)
            }
            State::Value { quote } => {
                let quote = *quote;
                self.value(byte, quote, to)
            }
            State::Reference { quote } => {
                let quote = *quote;
                self.referred(byte, quote)
            }
            State::Markup(markup) => {
                let markup = *markup;
                self.markup(markup, byte, to)
            }
            State::Doctype(doctype) => {
                let step = doctype.byte(byte);
                self.doctype(step)
            }
        }
    }

    /// Parses the first bytes of the document.
    fn begin(&mut self, byte: u8) -> Result<(), Problem> {
        let State::Start(seen) = self.state else { return Ok(()) };
        if BYTE_ORDER_MARK.get(seen) == Some(&byte) {
            self.state = State::Start(seen + 1);
            self.start = seen as u64 + 1;
            return Ok(());
        }
        if matches!(seen, 1 | 2) || byte >= 0xfe {
            return Err(Problem::XmlEncoding);
        }
        self.state = State::Content(0);
        self.content(byte, 0)
    }

    fn content(&mut self, byte: u8, brackets: u8) -> Result<(), Problem> {
        if byte == b'<' {
            self.markup_start = self.offset;
            self.state = State::Markup(Markup::Open);
            return Ok(());
        }
        if self.elements.depth() == 0 {
            return if is_blank(byte) { Ok(()) } else { Err(Problem::XmlOutside) };
        }
        self.state = match byte {
            b'&' => return self.begin_reference(None),
            b']' => State::Content(brackets.saturating_add(1).min(2)),
            // Section 2.4: `]]>` is allowed only at the end of a CDATA section, not in text.
            b'>' if brackets == 2 => return Err(Problem::XmlSyntax),
            _ => State::Content(0),
        };
        self.collected.push(Kind::Text, &[byte])
    }

    fn value(&mut self, byte: u8, quote: u8, to: &mut impl Sink) -> Result<(), Problem> {
        if byte == quote {
            self.state = State::Markup(Markup::AfterValue);
            return self.collected.deliver_attribute(to);
        }
        // Literal blanks become spaces (section 3.3.3). Blanks from references are unchanged.
        let byte = match byte {
            b'<' => return Err(Problem::XmlSyntax),
            b'&' => return self.begin_reference(Some(quote)),
            _ if is_blank(byte) => b' ',
            _ => byte,
        };
        self.collected.push(Kind::Attribute, &[byte])
    }

    fn begin_reference(&mut self, quote: Option<u8>) -> Result<(), Problem> {
        self.reference.clear();
        self.state = State::Reference { quote };
        Ok(())
    }

    fn referred(&mut self, byte: u8, quote: Option<u8>) -> Result<(), Problem> {
        if byte != b';' {
            let is_part = byte == b'#' || characters::is_name_byte(byte);
            let room = limits::append(&mut self.reference, &[byte], self.limits.name_bytes_max);
            return match (is_part, room) {
                (false, _) => Err(Problem::XmlReference),
                (true, 0) => Err(Problem::NameLimit),
                (true, _) => Ok(()),
            };
        }
        let reference = std::mem::take(&mut self.reference);
        self.state = quote.map_or(State::Content(0), |quote| State::Value { quote });
        let kind = if quote.is_some() { Kind::Attribute } else { Kind::Text };
        let mut buffer = [0; 4];
        let text: &[u8] = match reference::read(&reference) {
            Reference::Character(character) => character.encode_utf8(&mut buffer).as_bytes(),
            Reference::Forbidden => return Err(Problem::XmlCharacter),
            Reference::Malformed => return Err(Problem::XmlReference),
            Reference::Entity => {
                if !self.known.has(&reference) {
                    self.differences.add(Difference::EntityReference);
                }
                self.collected.push(kind, b"&")?;
                self.collected.push(kind, &reference)?;
                b";"
            }
        };
        self.collected.push(kind, text)
    }

    /// Parses a byte of markup.
    fn markup(&mut self, markup: Markup, byte: u8, to: &mut impl Sink) -> Result<(), Problem> {
        let mut markup = markup;
        loop {
            let step = markup.step(byte)?;
            self.state = State::Markup(step.next);
            self.act(step.action, byte, to)?;
            if !step.again {
                return Ok(());
            }
            markup = step.next;
        }
    }

    fn act(&mut self, action: Action, byte: u8, to: &mut impl Sink) -> Result<(), Problem> {
        match action {
            Action::Nothing => {}
            Action::TagNameStarts => {
                self.collected.deliver_text(to)?;
                self.name.clear();
                return self.push_name(byte);
            }
            Action::NameStarts => {
                self.name.clear();
                return self.push_name(byte);
            }
            Action::Name => return self.push_name(byte),
            Action::Element => return self.open_element(),
            Action::Attribute => return self.begin_attribute(),
            Action::EndElement if !self.elements.innermost_is(&self.name) => {
                return Err(Problem::XmlEndTag);
            }
            Action::EndElement => {}
            Action::Target => {
                return self.instruction.begin(&self.name, self.markup_start == self.start);
            }
            Action::TagEnds | Action::Ends => self.state = State::Content(0),
            Action::ElementEnds => {
                self.elements.close();
                self.state = State::Content(0);
            }
            Action::ValueStarts => self.state = State::Value { quote: byte },
            Action::CDataStarts if self.elements.depth() == 0 => return Err(Problem::XmlOutside),
            Action::CDataStarts => {}
            Action::Text(brackets) => {
                self.collected
                    .push(Kind::Text, b"]]".get(..usize::from(brackets)).unwrap_or_default())?;
                return self.collected.push(Kind::Text, &[byte]);
            }
            Action::DoctypeStarts if self.has_root || self.has_doctype => {
                return Err(Problem::XmlDoctype);
            }
            Action::DoctypeStarts => {
                self.has_doctype = true;
                self.state = State::Doctype(Box::new(Doctype::new()));
            }
            Action::Instruction => return self.instruction_byte(byte),
            Action::InstructionEnds => return self.end_instruction(to),
        }
        Ok(())
    }

    fn push_name(&mut self, byte: u8) -> Result<(), Problem> {
        let taken = limits::append(&mut self.name, &[byte], self.limits.name_bytes_max);
        if taken == 0 { Err(Problem::NameLimit) } else { Ok(()) }
    }

    fn open_element(&mut self) -> Result<(), Problem> {
        self.collected.check_encoding(&self.name)?;
        if self.elements.depth() == 0 && self.has_root {
            return Err(Problem::XmlOutside);
        }
        self.has_root = true;
        self.elements.open(&self.name, &self.limits)
    }

    fn begin_attribute(&mut self) -> Result<(), Problem> {
        self.collected.check_encoding(&self.name)?;
        self.elements.attribute(&self.name, &self.limits)
    }

    fn instruction_byte(&mut self, byte: u8) -> Result<(), Problem> {
        self.instruction.byte(byte);
        self.check_declaration_size()
    }

    fn end_instruction(&mut self, to: &mut impl Sink) -> Result<(), Problem> {
        self.state = State::Content(0);
        match self.instruction.end(self.charset)? {
            CompleteInstruction::Declaration(encoding) => self.collected.set_encoding(encoding),
            CompleteInstruction::Other(text) => self.collected.deliver_instruction(&text, to)?,
        }
        Ok(())
    }

    fn check_declaration_size(&self) -> Result<(), Problem> {
        let is_long =
            self.offset - self.markup_start > u64::from(self.limits.declaration_bytes_max);
        if is_long { Err(Problem::DeclarationLimit) } else { Ok(()) }
    }

    fn doctype(&mut self, step: doctype::Step) -> Result<(), Problem> {
        self.check_declaration_size()?;
        match step {
            doctype::Step::More => Ok(()),
            doctype::Step::Wrong => Err(Problem::XmlDoctype),
            doctype::Step::End => {
                self.differences = self.differences();
                if let State::Doctype(doctype) =
                    std::mem::replace(&mut self.state, State::Content(0))
                {
                    self.known = doctype.known();
                }
                Ok(())
            }
        }
    }

    /// Ends the parsing with a problem. A partial text or value is delivered.
    fn fail(&mut self, problem: Problem, to: &mut impl Sink) {
        self.differences = self.differences();
        self.failure = Some(Failure { problem, offset: self.offset });
        self.collected.deliver_rest(self.instruction.rest(), to);
    }
}

#[cfg(test)]
mod tests;
