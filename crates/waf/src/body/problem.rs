//! Problems that end the parsing of a body.

/// The reason why a body was not parsed to its end. Everything before the problem was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// More arguments than [`super::Limits::arguments_max`].
    ArgumentsLimit,
    /// A name longer than [`super::Limits::name_bytes_max`].
    NameLimit,
    /// Names of all values in JSON that are together too many times as long as the body.
    NamesLimit,
    /// A value longer than [`super::Limits::value_bytes_max`].
    ValueLimit,
    /// Nesting deeper than [`super::Limits::depth_max`].
    DepthLimit,
    /// More parts than [`super::Limits::parts_max`].
    PartsLimit,
    /// More header lines of a part than [`super::Limits::part_headers_max`].
    PartHeadersLimit,
    /// A header line longer than [`super::Limits::part_header_bytes_max`].
    PartHeaderLimit,
    /// More attributes than [`super::Limits::attributes_max`].
    AttributesLimit,
    /// Names of open elements longer than [`super::Limits::open_names_bytes_max`].
    OpenNamesLimit,
    /// A declaration longer than [`super::Limits::declaration_bytes_max`].
    DeclarationLimit,
    /// The body ends within an incomplete element of its syntax.
    Unfinished,
    /// The Content-Type is malformed, or does not belong to this processor.
    MediaType,
    /// No boundary parameter.
    BoundaryMissing,
    /// Several boundary parameters: servers use different ones.
    BoundaryRepeated,
    /// A boundary that is empty or longer than [`super::Limits::boundary_bytes_max`].
    BoundaryLength,
    /// A boundary with a byte outside RFC 2046's set, or with a blank at its end.
    BoundaryCharacter,
    /// An opening or closing quote without its counterpart.
    BoundaryQuoting,
    /// A line that begins like the boundary but continues differently, or has blanks or quotes before the boundary.
    BoundaryLine,
    /// The body has data but no boundary.
    BoundaryNever,
    /// The body ends without its final boundary.
    BoundaryFinal,
    /// A header line of a part without a colon or name, or with a forbidden byte.
    PartHeader,
    /// A part whose Content-Disposition is missing, malformed or not `form-data`.
    PartDisposition,
    /// A part without a name, or with an empty name.
    PartName,
    /// A value whose charset does not include ASCII. The charset is in the part's header or in `_charset_`.
    PartCharset,
    /// A byte that RFC 8259 does not allow at this place.
    JsonSyntax,
    /// An escape that RFC 8259 does not define, or a control character in a string.
    JsonString,
    /// A number that RFC 8259 does not allow.
    JsonNumber,
    /// Bytes other than blanks after the value.
    JsonTrailing,
    /// A JSON string or an XML text that is not UTF-8.
    Utf8,
    /// A byte that XML 1.0 does not allow at this place.
    XmlSyntax,
    /// A control character, literally or by reference.
    XmlCharacter,
    /// A malformed entity or character reference.
    XmlReference,
    /// An end tag that does not match the open element, or has no open element.
    XmlEndTag,
    /// Two attributes of the same name in one element.
    XmlAttributeRepeated,
    /// A malformed XML declaration, or one after the beginning of the document.
    XmlDeclaration,
    /// An encoding in which ASCII bytes may encode other characters, such as UTF-16 or UTF-7.
    XmlEncoding,
    /// A document type declaration that is malformed, repeated or after the first element.
    XmlDoctype,
    /// Text outside the document element, or a second document element.
    XmlOutside,
}

impl Problem {
    /// All problems.
    pub const ALL: [Self; 39] = [
        Self::ArgumentsLimit,
        Self::NameLimit,
        Self::NamesLimit,
        Self::ValueLimit,
        Self::DepthLimit,
        Self::PartsLimit,
        Self::PartHeadersLimit,
        Self::PartHeaderLimit,
        Self::AttributesLimit,
        Self::OpenNamesLimit,
        Self::DeclarationLimit,
        Self::Unfinished,
        Self::MediaType,
        Self::BoundaryMissing,
        Self::BoundaryRepeated,
        Self::BoundaryLength,
        Self::BoundaryCharacter,
        Self::BoundaryQuoting,
        Self::BoundaryLine,
        Self::BoundaryNever,
        Self::BoundaryFinal,
        Self::PartHeader,
        Self::PartDisposition,
        Self::PartName,
        Self::PartCharset,
        Self::JsonSyntax,
        Self::JsonString,
        Self::JsonNumber,
        Self::JsonTrailing,
        Self::Utf8,
        Self::XmlSyntax,
        Self::XmlCharacter,
        Self::XmlReference,
        Self::XmlEndTag,
        Self::XmlAttributeRepeated,
        Self::XmlDeclaration,
        Self::XmlEncoding,
        Self::XmlDoctype,
        Self::XmlOutside,
    ];

    /// The name. It is the same in all versions.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// A sentence for logs (REQBODY_ERROR_MSG).
    pub const fn sentence(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::ArgumentsLimit => ("arguments-limit", "Too many arguments."),
            Self::NameLimit => ("name-limit", "A name is too long."),
            Self::NamesLimit => ("names-limit", "The names of all values are too long together."),
            Self::ValueLimit => ("value-limit", "A value is too long."),
            Self::DepthLimit => ("depth-limit", "Nested too deep."),
            Self::PartsLimit => ("parts-limit", "Too many parts."),
            Self::PartHeadersLimit => ("part-headers-limit", "A part has too many header lines."),
            Self::PartHeaderLimit => ("part-header-limit", "A header line of a part is too long."),
            Self::AttributesLimit => {
                ("attributes-limit", "An XML element has too many attributes.")
            }
            Self::OpenNamesLimit => {
                ("open-names-limit", "The names of open XML elements are too long.")
            }
            Self::DeclarationLimit => (
                "declaration-limit",
                "An XML declaration, document type or processing instruction is too long.",
            ),
            Self::Unfinished => ("unfinished", "The body ends too early."),
            Self::MediaType => ("media-type", "The Content-Type is malformed or of another kind."),
            Self::BoundaryMissing => ("boundary-missing", "The Content-Type has no boundary."),
            Self::BoundaryRepeated => {
                ("boundary-repeated", "The Content-Type has several boundaries.")
            }
            Self::BoundaryLength => ("boundary-length", "The boundary is empty or too long."),
            Self::BoundaryCharacter => {
                ("boundary-character", "The boundary has a character that is not allowed.")
            }
            Self::BoundaryQuoting => ("boundary-quoting", "The boundary is not quoted properly."),
            Self::BoundaryLine => {
                ("boundary-line", "A line begins like a boundary and goes on differently.")
            }
            Self::BoundaryNever => ("boundary-never", "No boundary in the body."),
            Self::BoundaryFinal => ("boundary-final", "The final boundary is missing."),
            Self::PartHeader => ("part-header", "A header line of a part is malformed."),
            Self::PartDisposition => {
                ("part-disposition", "The Content-Disposition of a part is missing or malformed.")
            }
            Self::PartName => ("part-name", "A part has no name."),
            Self::PartCharset => ("part-charset", "A part has a charset that rules cannot read."),
            Self::JsonSyntax => ("json-syntax", "Unexpected byte in JSON."),
            Self::JsonString => {
                ("json-string", "A JSON string has an invalid escape or control character.")
            }
            Self::JsonNumber => ("json-number", "Malformed number in JSON."),
            Self::JsonTrailing => ("json-trailing", "Data after the JSON value."),
            Self::Utf8 => ("utf-8", "Text is not UTF-8."),
            Self::XmlSyntax => ("xml-syntax", "Unexpected byte in XML."),
            Self::XmlCharacter => ("xml-character", "A character that XML does not allow."),
            Self::XmlReference => ("xml-reference", "Malformed reference in XML."),
            Self::XmlEndTag => ("xml-end-tag", "An XML end tag does not match its start tag."),
            Self::XmlAttributeRepeated => {
                ("xml-attribute-repeated", "An XML attribute is repeated.")
            }
            Self::XmlDeclaration => {
                ("xml-declaration", "The XML declaration is malformed or out of place.")
            }
            Self::XmlEncoding => ("xml-encoding", "The XML is in an encoding that is not read."),
            Self::XmlDoctype => {
                ("xml-doctype", "The XML document type declaration is malformed or out of place.")
            }
            Self::XmlOutside => ("xml-outside", "Content outside of the XML document element."),
        }
    }
}

/// A problem and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The problem.
    pub problem: Problem,
    /// The number of body bytes before the problem.
    pub offset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_sentences_are_unique() {
        let names: BTreeSet<_> = Problem::ALL.iter().map(|problem| problem.name()).collect();
        let sentences: BTreeSet<_> =
            Problem::ALL.iter().map(|problem| problem.sentence()).collect();
        assert_eq!((names.len(), sentences.len()), (Problem::ALL.len(), Problem::ALL.len()));
        for problem in Problem::ALL {
            assert!(
                problem
                    .name()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(problem.sentence().ends_with('.'));
        }
    }
}
