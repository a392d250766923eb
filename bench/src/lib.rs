//! The comparative performance report: load generator, origin server, test bed, report.
#![deny(unsafe_code)]

mod body_reader;
pub mod catalogue;
pub mod compare;
mod datagram;
mod disturbance;
pub mod load;
pub mod origin;
mod packets;
mod pinning;
pub mod record;
pub mod relay;
pub mod report;
pub mod run;
pub mod run_files;
