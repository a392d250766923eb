//! Case of ASCII letters. Other letters are unchanged: their case depends on the charset, which is not known here.

use super::scan;

/// Converts to lower case.
pub(super) fn lower(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any(input, |byte| byte.is_ascii_uppercase()) {
        return false;
    }
    output.extend_from_slice(input);
    output.make_ascii_lowercase();
    true
}

/// Converts to upper case.
pub(super) fn upper(input: &[u8], output: &mut Vec<u8>) -> bool {
    if !scan::any(input, |byte| byte.is_ascii_lowercase()) {
        return false;
    }
    output.extend_from_slice(input);
    output.make_ascii_uppercase();
    true
}
