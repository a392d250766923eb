//! What schema and reference show of a key whose section depends on a type.

/// The types that take a key, as schema and reference show them.
pub(crate) struct Types {
    /// What has the type.
    pub of: &'static str,
    /// The types that take the key.
    pub takers: Vec<&'static str>,
    /// All others.
    pub others: Vec<&'static str>,
}
