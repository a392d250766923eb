//! LDAP (RFC 4511): a bind, and a search for one entry.

use weir_config::snapshot::{LdapProbe, Secret};
use weir_core::monitor::ProbeOutcome;

use super::ber::{self, Elements};
use super::failure::{Failure, Step};
use super::probe_settings::ProbeSettings;
use super::wire::{Wire, said};

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const ENUMERATED: u8 = 0x0a;
const SEQUENCE: u8 = 0x30;
const BIND_REQUEST: u8 = 0x60;
const BIND_RESPONSE: u8 = 0x61;
const UNBIND_REQUEST: u8 = 0x42;
const SEARCH_REQUEST: u8 = 0x63;
const SEARCH_ENTRY: u8 = 0x64;
const SEARCH_DONE: u8 = 0x65;
const SEARCH_REFERENCE: u8 = 0x73;
const EXTENDED_REQUEST: u8 = 0x77;
const EXTENDED_RESPONSE: u8 = 0x78;
/// The tag of the password in a bind, and of the name in an extended request.
const CONTEXT_0: u8 = 0x80;
/// The tag of a filter for the presence of an attribute.
const FILTER_PRESENT: u8 = 0x87;

const VERSION: u32 = 3;
/// The name of the StartTLS operation (RFC 4511 section 4.14).
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Requests no attributes of the entry (RFC 4511 section 4.5.1.8).
const NO_ATTRIBUTES: &str = "1.1";
const SUCCESS: u32 = 0;
/// Maximum number of messages in the answer to a search: an entry, references, intermediate responses.
const MESSAGES_MAX: usize = 100;

/// Binds, and searches for the entry.
pub(super) async fn ask(
    talk: &ProbeSettings<'_>,
    probe: &LdapProbe,
) -> Result<ProbeOutcome, Failure> {
    let mut wire = Wire::open(talk, probe.tls.as_ref()).await?;
    let password = probe.credentials.as_ref().map(|credentials| &credentials.password);
    let secrets = password.as_slice();
    if let Some(tls) = probe.tls.as_ref().filter(|tls| tls.is_upgrade) {
        let name = ber::element(CONTEXT_0, START_TLS.as_bytes());
        wire.send(&message(1, &ber::of(EXTENDED_REQUEST, &[name]))).await?;
        let answer = receive(&mut wire, 1).await?;
        succeeded("StartTLS", &answer, EXTENDED_RESPONSE, secrets)?;
        wire = wire.upgrade(tls).await?;
    }
    wire.step(Step::LoggingIn);
    wire.send(&message(2, &bind(probe))).await?;
    let answer = receive(&mut wire, 2).await?;
    succeeded("bind", &answer, BIND_RESPONSE, secrets)?;
    wire.step(Step::Listening);
    wire.send(&message(3, &search(probe))).await?;
    let mut is_there = false;
    for _ in 0..MESSAGES_MAX {
        let answer = receive(&mut wire, 3).await?;
        match answer.tag {
            SEARCH_ENTRY => is_there = true,
            SEARCH_REFERENCE => {}
            _ => {
                succeeded("search", &answer, SEARCH_DONE, secrets)?;
                if !is_there {
                    return Err(refused("search: no such entry with this attribute".into()));
                }
                wire.send(&message(4, &ber::element(UNBIND_REQUEST, &[]))).await?;
                return Ok(ProbeOutcome::Passed);
            }
        }
    }
    Err(Failure::Malformed("the answer to a search has no end".into()))
}

fn message(id: u32, operation: &[u8]) -> Vec<u8> {
    ber::of(SEQUENCE, &[ber::number(INTEGER, id), operation.to_vec()])
}

/// A simple bind. It is anonymous without a user.
fn bind(probe: &LdapProbe) -> Vec<u8> {
    let (user, password) = match &probe.credentials {
        None => ("", ""),
        Some(credentials) => (&*credentials.user, credentials.password.expose()),
    };
    let version = ber::number(INTEGER, VERSION);
    let user = ber::element(OCTET_STRING, user.as_bytes());
    let password = ber::element(CONTEXT_0, password.as_bytes());
    ber::of(BIND_REQUEST, &[version, user, password])
}

/// A search for the base object, with the condition that it has the attribute.
fn search(probe: &LdapProbe) -> Vec<u8> {
    let nothing = ber::element(OCTET_STRING, NO_ATTRIBUTES.as_bytes());
    ber::of(
        SEARCH_REQUEST,
        &[
            ber::element(OCTET_STRING, probe.base.as_bytes()),
            // Base object only; aliases never followed; no limit on size; no limit on time; attributes with values.
            ber::number(ENUMERATED, 0),
            ber::number(ENUMERATED, 0),
            ber::number(INTEGER, 0),
            ber::number(INTEGER, 0),
            ber::element(BOOLEAN, &[0]),
            ber::element(FILTER_PRESENT, probe.attribute.as_bytes()),
            ber::of(SEQUENCE, &[nothing]),
        ],
    )
}

/// An answer: its tag and content.
#[derive(Debug)]
struct Answer {
    tag: u8,
    content: Vec<u8>,
}

/// Receives the next answer to the request with this id.
async fn receive(wire: &mut Wire<'_>, id: u32) -> Result<Answer, Failure> {
    let not_one = || Failure::Malformed("not a message of LDAP".into());
    let [tag, first] = wire.array().await?;
    if tag != SEQUENCE {
        return Err(not_one());
    }
    let length = match ber::short_length(first).ok_or_else(not_one)? {
        Ok(length) => length,
        Err(count) => ber::long_length(&wire.exact(count).await?),
    };
    let bytes = wire.exact(length).await?;
    let mut elements = Elements(&bytes);
    let found = elements.number(INTEGER).ok_or_else(not_one)?;
    let (tag, content) = elements.next().ok_or_else(not_one)?;
    if found == 0 && tag == EXTENDED_RESPONSE {
        // Notice of disconnection (RFC 4511 section 4.4.1).
        let (code, text) = result(content).ok_or_else(not_one)?;
        return Err(refused(format!("disconnected: {}", told(code, text, &[]))));
    }
    if found != id {
        return Err(Failure::Malformed("an answer to another request".into()));
    }
    Ok(Answer { tag, content: content.to_vec() })
}

/// Fails unless the answer has this tag and reports success.
fn succeeded(step: &str, answer: &Answer, tag: u8, secrets: &[&Secret]) -> Result<(), Failure> {
    let result = (answer.tag == tag).then(|| result(&answer.content)).flatten();
    let (code, text) =
        result.ok_or_else(|| Failure::Malformed(format!("not an answer to the {step}")))?;
    if code == SUCCESS {
        return Ok(());
    }
    Err(refused(format!("{step}: {}", told(code, text, secrets))))
}

/// The result code and the diagnostic message of an LDAPResult.
fn result(content: &[u8]) -> Option<(u32, &[u8])> {
    let mut parts = Elements(content);
    let code = parts.number(ENUMERATED)?;
    let _matched_name = parts.take(OCTET_STRING)?;
    Some((code, parts.take(OCTET_STRING)?))
}

/// The text of an error: `invalidCredentials (49): no such user`.
fn told(code: u32, text: &[u8], secrets: &[&Secret]) -> String {
    let name = match code {
        0 => "success",
        1 => "operationsError",
        2 => "protocolError",
        8 => "strongerAuthRequired",
        10 => "referral",
        13 => "confidentialityRequired",
        32 => "noSuchObject",
        34 => "invalidDNSyntax",
        48 => "inappropriateAuthentication",
        49 => "invalidCredentials",
        50 => "insufficientAccessRights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwillingToPerform",
        _ => "result",
    };
    match said(text, secrets) {
        text if text.is_empty() => format!("{name} ({code})"),
        text => format!("{name} ({code}): {text}"),
    }
}

fn refused(reason: String) -> Failure {
    Failure::Service("LDAP", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(base: &str) -> LdapProbe {
        LdapProbe {
            credentials: None,
            base: base.into(),
            attribute: "objectClass".into(),
            tls: None,
        }
    }

    /// The bytes that `ldapsearch -x -s base` sends.
    #[test]
    fn requests() {
        let bind = message(1, &bind(&probe("")));
        assert_eq!(bind, b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00");
        let search = message(2, &search(&probe("dc=a")));
        let expected = b"\x30\x2e\x02\x01\x02\x63\x29\x04\x04dc=a\x0a\x01\x00\x0a\x01\x00\x02\x01\x00\x02\x01\x00\
                         \x01\x01\x00\x87\x0bobjectClass\x30\x05\x04\x031.1";
        assert_eq!(search, expected);
    }

    #[test]
    fn results() {
        let check = |content: &[u8], expected: Option<&str>| {
            let result = result(content).map(|(code, text)| told(code, text, &[]));
            assert_eq!(result.as_deref(), expected);
        };
        check(b"\x0a\x01\x00\x04\x00\x04\x00", Some("success (0)"));
        check(b"\x0a\x01\x31\x04\x00\x04\x02no", Some("invalidCredentials (49): no"));
        check(b"\x0a\x01\x50\x04\x00\x04\x00\xa3\x00", Some("result (80)"));
        check(b"\x0a\x01\x00\x04\x00", None);
        check(b"\x0a\x01\x00\x04\x00\x04\x05no", None);
        check(b"\x02\x01\x00\x04\x00\x04\x00", None);
        check(b"", None);
    }
}
