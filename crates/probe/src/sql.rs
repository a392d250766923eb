//! The expected result of a query.

use weir_config::snapshot::SqlQuery;

use super::wire::said;

/// Checks whether the first value of the first row is the expected one. The error is the reason.
pub(super) fn judge(query: &SqlQuery, first: Option<&[u8]>) -> Result<(), String> {
    let Some(expected) = &query.value else { return Ok(()) };
    match first {
        Some(found) if found == expected.as_bytes() => Ok(()),
        Some(found) => Err(format!("query: `{}` where `{expected}` is expected", said(found, &[]))),
        None => Err(format!("query: no value where `{expected}` is expected")),
    }
}
