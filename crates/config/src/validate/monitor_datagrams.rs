//! Monitors of datagrams: `udp` and `dns`.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::monitor_answer::{body_match, drain_answer};
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::raw::monitor::{self as raw, DnsRcode, DnsRecord, UdpAnswer};
use crate::scalar::Text;
use crate::snapshot::{self, DnsProbe, UdpProbe};

/// Maximum payload of a datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Maximum length of a name (RFC 1035 section 2.3.4), as text without the final dot.
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of a label.
const LABEL_BYTES_MAX: usize = 63;

pub(super) fn udp(raw: &raw::Monitor, span: Span, context: &mut Context) -> Option<UdpProbe> {
    let Some(send) = &raw.send else {
        let message = "a monitor of type udp needs `send`: a member only answers requests";
        context.error_help(span, message, "add `send: text`, or `send: { hex: \"00 01\" }`");
        return None;
    };
    let bytes = send.value.bytes()?;
    if bytes.len() > DATAGRAM_BYTES_MAX {
        let message = format!(
            "`send` has {} bytes, and a datagram at most {DATAGRAM_BYTES_MAX}",
            bytes.len()
        );
        context.error(send.span, message);
        return None;
    }
    Some(UdpProbe {
        send: bytes.into(),
        receive: body_match(raw.receive.as_ref(), context)?,
        drain_on: match &raw.drain_on {
            None => None,
            Some(drain_on) => drain_answer(drain_on, context)?.body,
        },
        is_silence_fine: raw.answer.value == UdpAnswer::Optional,
    })
}

pub(super) fn dns(raw: &raw::Monitor, span: Span, context: &mut Context) -> Option<DnsProbe> {
    let Some(name) = &raw.name else {
        let message = "a monitor of type dns needs the name that it asks for";
        context.error_help(span, message, "add `name: shop.example`");
        return None;
    };
    if let Some(reason) = wrong_name(&name.value.0) {
        context.error(name.span, format!("not a name of DNS: {reason}"));
        return None;
    }
    if let (Some(value), DnsRcode::Nxdomain) = (&raw.value, raw.rcode.value) {
        let message = "`value` cannot be used with `rcode: NXDOMAIN`: a name that does not exist has no records";
        context.error_help(value.span, message, "remove one of them");
        return None;
    }
    let record = record(raw.record.value);
    let value = match &raw.value {
        None => None,
        Some(text) => Some(value(text, raw.record.value, context)?.into()),
    };
    Some(DnsProbe {
        name: name.value.0.as_str().into(),
        record,
        rcode: rcode(raw.rcode.value),
        value,
    })
}

/// The error in a name, if any. `.` is the root.
fn wrong_name(name: &str) -> Option<String> {
    if name == "." {
        return None;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_BYTES_MAX {
        return Some(format!("it has more than {NAME_BYTES_MAX} bytes"));
    }
    if name.bytes().any(|byte| !byte.is_ascii_graphic() || b"\\\"".contains(&byte)) {
        return Some("it has a character other than letters, digits and signs of ASCII".into());
    }
    let mut labels = name.split('.');
    if labels.any(|label| label.is_empty() || label.len() > LABEL_BYTES_MAX) {
        return Some(format!("a label between its dots has 1 to {LABEL_BYTES_MAX} bytes"));
    }
    None
}

/// A record's value; addresses in canonical form.
fn value(text: &Spanned<Text>, record: DnsRecord, context: &mut Context) -> Option<String> {
    let written = text.value.0.as_str();
    let (address, help) = match record {
        DnsRecord::A => (
            written.parse().ok().map(|address: Ipv4Addr| address.to_string()),
            "write an IPv4 address, or set `record`",
        ),
        DnsRecord::Aaaa => (
            written.parse().ok().map(|address: Ipv6Addr| address.to_string()),
            "write an IPv6 address, or set `record`",
        ),
        _ => return Some(written.to_owned()),
    };
    if address.is_none() {
        let message = "`value` is not valid for this record type";
        context.error_help(text.span, message, help);
    }
    address
}

fn record(raw: DnsRecord) -> snapshot::DnsRecord {
    match raw {
        DnsRecord::A => snapshot::DnsRecord::A,
        DnsRecord::Aaaa => snapshot::DnsRecord::Aaaa,
        DnsRecord::Cname => snapshot::DnsRecord::Cname,
        DnsRecord::Mx => snapshot::DnsRecord::Mx,
        DnsRecord::Ns => snapshot::DnsRecord::Ns,
        DnsRecord::Ptr => snapshot::DnsRecord::Ptr,
        DnsRecord::Soa => snapshot::DnsRecord::Soa,
        DnsRecord::Srv => snapshot::DnsRecord::Srv,
        DnsRecord::Txt => snapshot::DnsRecord::Txt,
    }
}

fn rcode(raw: DnsRcode) -> snapshot::DnsRcode {
    match raw {
        DnsRcode::Noerror => snapshot::DnsRcode::NoError,
        DnsRcode::Nxdomain => snapshot::DnsRcode::NxDomain,
        DnsRcode::Refused => snapshot::DnsRcode::Refused,
        DnsRcode::Servfail => snapshot::DnsRcode::ServFail,
        DnsRcode::Notimp => snapshot::DnsRcode::NotImp,
    }
}
