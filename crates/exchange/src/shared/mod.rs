//! State that all workers and the control plane share: the live state of the active configuration, and counters.

pub mod connection_ids;
pub mod counters;
pub mod live;
pub mod logins;
pub mod places;
pub mod server_tls;
pub mod shared_table;
pub mod sticky;
pub mod table_contents;
pub mod waf_rules;
