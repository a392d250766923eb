//! The comparative performance report: load generator, origin server, test bed, report.
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod compare;
pub mod load;
pub mod record;
pub mod report;
