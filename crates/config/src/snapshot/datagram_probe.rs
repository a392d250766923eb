//! Probes by datagrams.

use std::sync::Arc;

use super::probe_answer::BodyMatch;

/// Sent and expected data of a udp monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpProbe {
    /// The datagram.
    pub send: Arc<[u8]>,
    /// The required content of the answer; `None`: any answer.
    pub receive: Option<BodyMatch>,
    /// Content that requests a drain; checked before `receive`.
    pub drain_on: Option<BodyMatch>,
    /// Whether a missing answer counts as a pass.
    pub is_silence_fine: bool,
}

/// The query and expected answer of a dns monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsProbe {
    /// The queried name.
    pub name: Arc<str>,
    /// The type of the records.
    pub record: DnsRecord,
    /// The required response code of the answer.
    pub rcode: DnsRcode,
    /// The required value of any of the records, as text.
    pub value: Option<Arc<str>>,
}

/// Types of DNS records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the names of the registry")]
pub enum DnsRecord {
    A,
    Aaaa,
    Cname,
    Mx,
    Ns,
    Ptr,
    Soa,
    Srv,
    Txt,
}

/// Response codes of DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the names of the registry")]
pub enum DnsRcode {
    NoError,
    NxDomain,
    Refused,
    ServFail,
    NotImp,
}
