//! What all workers and the control plane know of the configuration in force: its live state, and what is counted.

pub mod connection_ids;
pub mod counters;
pub mod live;
pub mod logins;
pub mod places;
pub mod server_tls;
pub mod shared_table;
pub mod sticky;
pub mod waf_rules;
