//! Classes of bytes. All bytes of non-ASCII characters count as letters; `collected.rs` checks the encoding.

/// Whether the byte is white space (XML 1.0 production 3).
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether the byte may start a name: NameStartChar (production 4).
pub(super) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':' | 0x80..)
}

/// Whether the byte may occur in a name: NameChar (production 4a).
pub(super) fn is_name_byte(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

/// Whether the byte is not allowed: not a Char (production 2).
pub(super) fn is_forbidden(byte: u8) -> bool {
    byte < b' ' && !is_blank(byte)
}

/// Whether the character is allowed: Char (production 2).
pub(super) fn is_char(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{1_0000}'..)
}
