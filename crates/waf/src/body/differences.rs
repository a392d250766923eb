//! Input that servers interpret differently.

/// Input that two common servers interpret differently, so that a rule may see one value and the application another.
/// Parsing continues. A policy may reject the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// `%` without two hexadecimal digits: unchanged, dropped or rejected.
    InvalidEscape,
    /// A repeated key in a JSON object: servers use the first, the last or both.
    DuplicateKey,
    /// An unpaired surrogate in a JSON string: replaced by U+FFFD here; unchanged or rejected by other servers.
    LoneSurrogate,
    /// A byte order mark before the JSON value: skipped or rejected.
    ByteOrderMark,
    /// `Boundary`, `Name` or `FileName` with capital letters: some servers compare names with their case.
    ParameterCase,
    /// Another parameter before the boundary: some servers then find no boundary.
    ParameterOrder,
    /// A parameter of Content-Disposition that form data does not define.
    ParameterUnknown,
    /// Blanks around `=` in Content-Disposition.
    ParameterBlanks,
    /// An unquoted boundary with characters that require quotes.
    BoundaryUnquoted,
    /// A line that begins with the boundary and continues: a boundary by RFC 2046, data for some servers.
    BoundaryPrefix,
    /// Blanks between a boundary and its line end.
    BoundaryPadding,
    /// The boundary in the middle of a line: a boundary for servers that search for it anywhere.
    BoundaryInLine,
    /// A boundary in a part's header or immediately after it.
    BoundaryEarly,
    /// A missing final boundary: some servers use the last part, others reject the body.
    FinalBoundaryMissing,
    /// Several `name` parameters in one Content-Disposition.
    NameRepeated,
    /// Several `filename` or several `filename*` parameters.
    FileNameRepeated,
    /// `filename*` in addition to `filename`: servers use either. Both are delivered.
    FileNameExtended,
    /// `filename*` without `filename`: the part is a file for some servers and a field for others. It is delivered as both.
    FileNameExtendedAlone,
    /// An empty `filename` with content: the part is a file for some servers and a field for others.
    FileNameEmpty,
    /// Several Content-Disposition lines in one part.
    DispositionRepeated,
    /// Several lines of another header in one part.
    HeaderRepeated,
    /// NUL in a part's header: the end of a name for some servers.
    NulInHeader,
    /// CR without LF in a part's header or around a boundary: a line end for some servers.
    BareCarriageReturn,
    /// A parameter in single quotes: part of the value for most servers, quotes for some.
    SingleQuotes,
    /// A backslash in a quoted parameter: an escape, or part of the value.
    Backslash,
    /// A quoted parameter without its closing quote.
    QuoteUnclosed,
    /// Content-Transfer-Encoding that changes the content: decoded by some servers, ignored by most.
    TransferEncoding,
    /// A document type declaration.
    DocumentType,
    /// An entity declared with its text, unless it is the address of a namespace or one character.
    EntityInternal,
    /// An entity that refers to another resource, or a document type that refers to one which no publisher of formats keeps.
    EntityExternal,
    /// A reference to an entity that is not predefined, and not known to do no harm. It is delivered without expansion.
    EntityReference,
}

impl Difference {
    /// All differences.
    pub const ALL: [Self; 31] = [
        Self::InvalidEscape,
        Self::DuplicateKey,
        Self::LoneSurrogate,
        Self::ByteOrderMark,
        Self::ParameterCase,
        Self::ParameterOrder,
        Self::ParameterUnknown,
        Self::ParameterBlanks,
        Self::BoundaryUnquoted,
        Self::BoundaryPrefix,
        Self::BoundaryPadding,
        Self::BoundaryInLine,
        Self::BoundaryEarly,
        Self::FinalBoundaryMissing,
        Self::NameRepeated,
        Self::FileNameRepeated,
        Self::FileNameExtended,
        Self::FileNameExtendedAlone,
        Self::FileNameEmpty,
        Self::DispositionRepeated,
        Self::HeaderRepeated,
        Self::NulInHeader,
        Self::BareCarriageReturn,
        Self::SingleQuotes,
        Self::Backslash,
        Self::QuoteUnclosed,
        Self::TransferEncoding,
        Self::DocumentType,
        Self::EntityInternal,
        Self::EntityExternal,
        Self::EntityReference,
    ];

    /// The name. It is the same in all versions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidEscape => "invalid-escape",
            Self::DuplicateKey => "duplicate-key",
            Self::LoneSurrogate => "lone-surrogate",
            Self::ByteOrderMark => "byte-order-mark",
            Self::ParameterCase => "parameter-case",
            Self::ParameterOrder => "parameter-order",
            Self::ParameterUnknown => "parameter-unknown",
            Self::ParameterBlanks => "parameter-blanks",
            Self::BoundaryUnquoted => "boundary-unquoted",
            Self::BoundaryPrefix => "boundary-prefix",
            Self::BoundaryPadding => "boundary-padding",
            Self::BoundaryInLine => "boundary-in-line",
            Self::BoundaryEarly => "boundary-early",
            Self::FinalBoundaryMissing => "final-boundary-missing",
            Self::NameRepeated => "name-repeated",
            Self::FileNameRepeated => "file-name-repeated",
            Self::FileNameExtended => "file-name-extended",
            Self::FileNameExtendedAlone => "file-name-extended-alone",
            Self::FileNameEmpty => "file-name-empty",
            Self::DispositionRepeated => "disposition-repeated",
            Self::HeaderRepeated => "header-repeated",
            Self::NulInHeader => "nul-in-header",
            Self::BareCarriageReturn => "bare-carriage-return",
            Self::SingleQuotes => "single-quotes",
            Self::Backslash => "backslash",
            Self::QuoteUnclosed => "quote-unclosed",
            Self::TransferEncoding => "transfer-encoding",
            Self::DocumentType => "document-type",
            Self::EntityInternal => "entity-internal",
            Self::EntityExternal => "entity-external",
            Self::EntityReference => "entity-reference",
        }
    }

    const fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// A set of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differences(u64);

impl Differences {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The differences in multipart bodies for which ModSecurity sets MULTIPART_STRICT_ERROR or fails.
    pub const STRICT: Self = Self::NONE
        .with(Difference::ParameterCase)
        .with(Difference::ParameterOrder)
        .with(Difference::ParameterUnknown)
        .with(Difference::BoundaryPrefix)
        .with(Difference::BoundaryPadding)
        .with(Difference::BoundaryEarly)
        .with(Difference::FinalBoundaryMissing)
        .with(Difference::NameRepeated)
        .with(Difference::FileNameRepeated)
        .with(Difference::DispositionRepeated)
        .with(Difference::HeaderRepeated)
        .with(Difference::NulInHeader)
        .with(Difference::BareCarriageReturn)
        .with(Difference::SingleQuotes)
        .with(Difference::QuoteUnclosed);

    /// The set with this difference added.
    #[must_use]
    pub const fn with(self, difference: Difference) -> Self {
        Self(self.0 | difference.bit())
    }

    /// The intersection with another set.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Adds a difference.
    pub fn add(&mut self, difference: Difference) {
        *self = self.with(difference);
    }

    /// Adds all differences of another set.
    pub fn add_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Whether the set contains a difference.
    pub const fn have(self, difference: Difference) -> bool {
        self.0 & difference.bit() != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The differences in the set.
    pub fn iter(self) -> impl Iterator<Item = Difference> {
        Difference::ALL.into_iter().filter(move |difference| self.have(*difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sets_hold_what_was_added() {
        let mut all = Differences::NONE;
        for difference in Difference::ALL {
            assert!(!all.have(difference));
            all.add(difference);
            assert_eq!(Differences::NONE.with(difference).iter().collect::<Vec<_>>(), [difference]);
        }
        assert_eq!(all.iter().count(), Difference::ALL.len());
        assert_eq!(all.and(Differences::STRICT), Differences::STRICT);
        assert!(!Differences::STRICT.have(Difference::FileNameExtended));
    }

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> =
            Difference::ALL.iter().map(|difference| difference.name()).collect();
        assert_eq!(names.len(), Difference::ALL.len());
    }
}
