//! The events of certificates.

use std::fmt;

/// Receives the events of certificates. Subject and predicate form a sentence: `certificate for shop.example has come from
/// ca.example and is in use`. No call waits.
pub trait Events: fmt::Debug + Send + Sync {
    /// A normal event.
    fn info(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display);

    /// An event that the operator should check. Traffic is served.
    fn warning(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display);

    /// A requested action failed.
    fn error(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display);
}
