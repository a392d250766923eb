//! Temporary.
pub struct Fingerprint; impl Fingerprint { pub fn as_str(&self)->&str{""} }
pub fn detect_sql(_: &[u8]) -> Option<Fingerprint> { None }
pub fn detect_script(_: &[u8]) -> bool { false }
