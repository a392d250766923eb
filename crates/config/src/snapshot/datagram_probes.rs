//! What monitors say and expect by datagrams.

use std::net::IpAddr;
use std::sync::Arc;

use weir_core::monitor::dns::Question;

use super::BodyMatch;

/// What a udp monitor says and expects.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpProbe {
    /// The datagram.
    pub send: Arc<str>,
    /// What the first that comes must have; `None`: none needs to come.
    pub receive: Option<BodyMatch>,
}

/// What a dns monitor asks and expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsProbe {
    /// What is asked.
    pub question: Question,
    /// The response code.
    pub code: u8,
    /// An address that the answer must have.
    pub address: Option<IpAddr>,
}
