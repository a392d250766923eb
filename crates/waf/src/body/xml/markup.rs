//! State machine for the bytes between `<` and `>`, except in document types.

use super::super::problem::Problem;
use super::characters::{is_blank, is_forbidden, is_name_byte, starts_name};

/// The position of the next byte in the markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    /// After `<`.
    Open,
    /// After `</`.
    EndOpen,
    /// After `<!`.
    Bang,
    /// In a keyword after `<!`, with the rest of the keyword.
    Keyword(&'static [u8], Keyword),
    StartName,
    EndName,
    /// After the name of an end tag.
    EndTag,
    /// In a start tag, where an attribute may begin.
    InTag,
    AttributeName,
    /// After the name of an attribute.
    Equals,
    /// After `=`.
    Quote,
    /// After the closing quote.
    AfterValue,
    /// After the `/` of an empty element.
    Empty,
    /// In a comment, after this number of dashes.
    Comment(u8),
    /// In a CDATA section, after this number of brackets that may end the section.
    CData(u8),
    /// After `<?`.
    InstructionOpen,
    InstructionName,
    /// In a processing instruction, with whether the last byte was `?`.
    Instruction(bool),
}

/// The keyword after `<!`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    Comment,
    CData,
    Doctype,
}

/// The action for a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    /// The byte begins the name of a tag.
    TagNameStarts,
    /// The byte begins the name of an attribute or instruction.
    NameStarts,
    /// The byte is part of a name.
    Name,
    /// The name of a start tag is complete.
    Element,
    /// The name of an attribute is complete.
    Attribute,
    /// The name of an end tag is complete.
    EndElement,
    /// The name of a processing instruction is complete.
    Target,
    /// A start tag ends.
    TagEnds,
    /// An end tag or the tag of an empty element ends.
    ElementEnds,
    /// The byte is the opening quote of a value.
    ValueStarts,
    CDataStarts,
    /// The byte is text, and so is this number of brackets before it.
    Text(u8),
    /// A comment or CDATA section ends.
    Ends,
    DoctypeStarts,
    /// The byte is part of a processing instruction.
    Instruction,
    InstructionEnds,
}

/// The transition for a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) next: Markup,
    pub(super) action: Action,
    /// Whether the byte is parsed again at the next position.
    pub(super) again: bool,
}

impl Markup {
    pub(super) fn step(self, byte: u8) -> Result<Step, Problem> {
        let (next, action) = match self {
            Self::Open | Self::EndOpen | Self::Bang | Self::Keyword(..) => self.opening(byte)?,
            Self::Comment(_) | Self::CData(_) => self.section(byte)?,
            Self::InstructionOpen | Self::InstructionName | Self::Instruction(_) => {
                return self.instruction(byte);
            }
            Self::StartName | Self::EndName | Self::AttributeName if is_name_byte(byte) => {
                (self, Action::Name)
            }
            Self::StartName => {
                return Ok(Step { next: Self::InTag, action: Action::Element, again: true });
            }
            Self::EndName => {
                return Ok(Step { next: Self::EndTag, action: Action::EndElement, again: true });
            }
            Self::AttributeName => {
                return Ok(Step { next: Self::Equals, action: Action::Attribute, again: true });
            }
            Self::EndTag | Self::Equals | Self::Quote | Self::InTag if is_blank(byte) => {
                (self, Action::Nothing)
            }
            Self::AfterValue if is_blank(byte) => (Self::InTag, Action::Nothing),
            Self::EndTag | Self::Empty if byte == b'>' => (self, Action::ElementEnds),
            Self::InTag | Self::AfterValue if byte == b'>' => (self, Action::TagEnds),
            Self::InTag | Self::AfterValue if byte == b'/' => (Self::Empty, Action::Nothing),
            Self::InTag if starts_name(byte) => (Self::AttributeName, Action::NameStarts),
            Self::Equals if byte == b'=' => (Self::Quote, Action::Nothing),
            Self::Quote if matches!(byte, b'"' | b'\'') => (self, Action::ValueStarts),
            Self::EndTag
            | Self::Equals
            | Self::Quote
            | Self::InTag
            | Self::AfterValue
            | Self::Empty => {
                return Err(Problem::XmlSyntax);
            }
        };
        Ok(Step { next, action, again: false })
    }

    fn opening(self, byte: u8) -> Result<(Self, Action), Problem> {
        match (self, byte) {
            (Self::Open, b'/') => Ok((Self::EndOpen, Action::Nothing)),
            (Self::Open, b'!') => Ok((Self::Bang, Action::Nothing)),
            (Self::Open, b'?') => Ok((Self::InstructionOpen, Action::Nothing)),
            (Self::Open, _) if starts_name(byte) => Ok((Self::StartName, Action::TagNameStarts)),
            (Self::EndOpen, _) if starts_name(byte) => Ok((Self::EndName, Action::TagNameStarts)),
            (Self::Bang, b'-') => Ok((Self::Keyword(b"-", Keyword::Comment), Action::Nothing)),
            (Self::Bang, b'[') => Ok((Self::Keyword(b"CDATA[", Keyword::CData), Action::Nothing)),
            (Self::Bang, b'D') => Ok((Self::Keyword(b"OCTYPE", Keyword::Doctype), Action::Nothing)),
            (Self::Keyword(rest, keyword), _) => match (rest.split_first(), keyword) {
                (Some((expected, _)), _) if *expected != byte => Err(Problem::XmlSyntax),
                (Some((_, rest @ [_, ..])), _) => {
                    Ok((Self::Keyword(rest, keyword), Action::Nothing))
                }
                (_, Keyword::Comment) => Ok((Self::Comment(0), Action::Nothing)),
                (_, Keyword::CData) => Ok((Self::CData(0), Action::CDataStarts)),
                (_, Keyword::Doctype) => Ok((self, Action::DoctypeStarts)),
            },
            _ => Err(Problem::XmlSyntax),
        }
    }

    fn section(self, byte: u8) -> Result<(Self, Action), Problem> {
        match (self, byte) {
            (Self::Comment(2) | Self::CData(2), b'>') => Ok((self, Action::Ends)),
            // Section 2.5: comments must not contain `--`.
            (Self::Comment(2), _) => Err(Problem::XmlSyntax),
            (Self::Comment(dashes), b'-') => Ok((Self::Comment(dashes + 1), Action::Nothing)),
            (Self::Comment(_), _) => Ok((Self::Comment(0), Action::Nothing)),
            (Self::CData(brackets @ (0 | 1)), b']') => {
                Ok((Self::CData(brackets + 1), Action::Nothing))
            }
            // The first bracket is text, and the others may still end the section. All brackets are the same byte.
            (Self::CData(_), b']') => Ok((self, Action::Text(0))),
            (Self::CData(brackets), _) => Ok((Self::CData(0), Action::Text(brackets))),
            _ => Err(Problem::XmlSyntax),
        }
    }

    fn instruction(self, byte: u8) -> Result<Step, Problem> {
        let (next, action, again) = match (self, byte) {
            (Self::InstructionOpen, _) if starts_name(byte) => {
                (Self::InstructionName, Action::NameStarts, false)
            }
            (Self::InstructionName, _) if is_name_byte(byte) => (self, Action::Name, false),
            (Self::InstructionName, _) if byte == b'?' || is_blank(byte) => {
                (Self::Instruction(false), Action::Target, true)
            }
            (Self::Instruction(true), b'>') => (self, Action::InstructionEnds, false),
            (Self::Instruction(_), _) => {
                (Self::Instruction(byte == b'?'), Action::Instruction, false)
            }
            _ => return Err(Problem::XmlSyntax),
        };
        Ok(Step { next, action, again })
    }

    /// Whether the position is within a name.
    pub(super) fn is_name(self) -> bool {
        matches!(
            self,
            Self::StartName | Self::EndName | Self::AttributeName | Self::InstructionName
        )
    }

    /// The number of bytes that do not change the position, or are part of a name or of the text of a CDATA section; `None`:
    /// all of them.
    pub(super) fn skips(self, bytes: &[u8]) -> Option<usize> {
        match self {
            _ if self.is_name() => bytes.iter().position(|byte| !is_name_byte(*byte)),
            Self::Comment(0) => bytes.iter().position(|byte| *byte == b'-' || is_forbidden(*byte)),
            Self::CData(0) => {
                bytes.iter().position(|byte| matches!(byte, b']' | b'\r') || is_forbidden(*byte))
            }
            _ => Some(0),
        }
    }
}
