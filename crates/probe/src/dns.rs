//! A DNS query over UDP (RFC 1035), and its answer.

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::{DNSClass, Name, RecordType};
use weir_config::snapshot::{DnsProbe, DnsRcode, DnsRecord};
use weir_core::monitor::ProbeOutcome;

use super::answer::BODY_SIZE_MAX;
use super::failure::{Deadline, Failure, Step};
use super::udp::DatagramSettings;

/// Sends a query and waits for its answer. Other datagrams are ignored. An attacker who cannot see the query must guess its
/// id and its port.
pub(super) async fn ask(
    way: &DatagramSettings,
    probe: &DnsProbe,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let question = question(probe)?;
    let bytes = question.to_vec().map_err(|error| Failure::Dns(error.to_string()))?;
    let socket = way.send(&bytes, deadline).await?;
    let mut received = vec![0; BODY_SIZE_MAX];
    let mut is_foreign = false;
    loop {
        let length = match deadline.within(Step::Listening, socket.recv(&mut received)).await {
            // The member has answered, but not as a DNS server does.
            Err(Failure::Timeout(..)) if is_foreign => {
                return Err(Failure::Dns("its datagrams are no answers to the query".into()));
            }
            received => received?.map_err(Failure::connecting)?,
        };
        match Message::from_vec(&received[..length]) {
            Ok(answer) if is_answer(&answer, &question) => return judge(&answer, probe),
            _ => is_foreign = true,
        }
    }
}

/// The query, with a random id.
fn question(probe: &DnsProbe) -> Result<Message, Failure> {
    let name = Name::from_ascii(&*probe.name);
    let mut name = name.map_err(|error| Failure::Dns(error.to_string()))?;
    name.set_fqdn(true);
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, record_type(probe.record)));
    Ok(message)
}

/// Whether a message is an answer to this query. A server that refuses a query may omit the question.
fn is_answer(answer: &Message, question: &Message) -> bool {
    let (found, asked) = (&answer.metadata, &question.metadata);
    let is_refusal = answer.queries.is_empty() && found.response_code != ResponseCode::NoError;
    found.id == asked.id
        && found.message_type == MessageType::Response
        && found.op_code == OpCode::Query
        && (is_refusal || answer.queries == question.queries)
}

/// Checks whether the answer is the expected one.
fn judge(answer: &Message, probe: &DnsProbe) -> Result<ProbeOutcome, Failure> {
    let (found, expected) = (answer.metadata.response_code, response_code(probe.rcode));
    if found != expected {
        let found = rcode_text(found);
        return Err(Failure::Dns(format!("{found} where {} is expected", rcode_text(expected))));
    }
    let Some(value) = &probe.value else {
        return Ok(ProbeOutcome::Passed);
    };
    let wanted = record_type(probe.record);
    let is_it = |text: String| match probe.record {
        DnsRecord::Txt => *text == **value,
        _ => bare(&text).eq_ignore_ascii_case(bare(value)),
    };
    let mut of_type = answer
        .answers
        .iter()
        .filter(|record| record.record_type() == wanted && record.dns_class == DNSClass::IN);
    if of_type.any(|record| is_it(record.data.to_string())) {
        return Ok(ProbeOutcome::Passed);
    }
    let cut = match answer.metadata.truncation {
        true => "; the answer was truncated (TC): ask for fewer records, or leave out `value`",
        false => "",
    };
    Err(Failure::Dns(format!("no {wanted} record is `{value}`{cut}")))
}

/// A value without the trailing dot of an absolute name.
fn bare(value: &str) -> &str {
    value.strip_suffix('.').unwrap_or(value)
}

fn record_type(record: DnsRecord) -> RecordType {
    match record {
        DnsRecord::A => RecordType::A,
        DnsRecord::Aaaa => RecordType::AAAA,
        DnsRecord::Cname => RecordType::CNAME,
        DnsRecord::Mx => RecordType::MX,
        DnsRecord::Ns => RecordType::NS,
        DnsRecord::Ptr => RecordType::PTR,
        DnsRecord::Soa => RecordType::SOA,
        DnsRecord::Srv => RecordType::SRV,
        DnsRecord::Txt => RecordType::TXT,
    }
}

fn response_code(rcode: DnsRcode) -> ResponseCode {
    match rcode {
        DnsRcode::NoError => ResponseCode::NoError,
        DnsRcode::NxDomain => ResponseCode::NXDomain,
        DnsRcode::Refused => ResponseCode::Refused,
        DnsRcode::ServFail => ResponseCode::ServFail,
        DnsRcode::NotImp => ResponseCode::NotImp,
    }
}

/// The name of a response code in the IANA registry.
fn rcode_text(code: ResponseCode) -> String {
    match code {
        ResponseCode::NoError => "NOERROR".into(),
        ResponseCode::FormErr => "FORMERR".into(),
        ResponseCode::ServFail => "SERVFAIL".into(),
        ResponseCode::NXDomain => "NXDOMAIN".into(),
        ResponseCode::NotImp => "NOTIMP".into(),
        ResponseCode::Refused => "REFUSED".into(),
        other => format!("code {}", u16::from(other)),
    }
}
