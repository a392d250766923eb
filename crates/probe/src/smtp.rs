//! Mail servers (RFC 5321): a greeting, EHLO, QUIT; STARTTLS (RFC 3207).

use weir_config::snapshot::SmtpProbe;
use weir_core::monitor::ProbeOutcome;

use super::failure::Failure;
use super::probe_settings::ProbeSettings;
use super::wire::{Wire, said};

/// The reply code of a server that is ready.
const READY: u16 = 220;
/// The reply code of a successful command.
const DONE: u16 = 250;

/// Waits for the greeting, and sends EHLO and QUIT.
pub(super) async fn ask(
    talk: &ProbeSettings<'_>,
    probe: &SmtpProbe,
) -> Result<ProbeOutcome, Failure> {
    let mut wire = Wire::open(talk, probe.tls.as_ref()).await?;
    expect(&mut wire, "greeting", READY).await?;
    let hello = format!("EHLO {}\r\n", probe.name);
    wire.send(hello.as_bytes()).await?;
    let extensions = expect(&mut wire, "EHLO", DONE).await?;
    if let Some(tls) = probe.tls.as_ref().filter(|tls| tls.is_upgrade) {
        if !extensions.iter().any(|line| line.eq_ignore_ascii_case(b"STARTTLS")) {
            return Err(refused("EHLO: it does not offer STARTTLS".into()));
        }
        wire.send(b"STARTTLS\r\n").await?;
        expect(&mut wire, "STARTTLS", READY).await?;
        wire = wire.upgrade(tls).await?;
        wire.send(hello.as_bytes()).await?;
        expect(&mut wire, "EHLO over TLS", DONE).await?;
    }
    wire.send(b"QUIT\r\n").await?;
    // The reply to QUIT does not matter, but if the probe disconnected before it, the server would log an error.
    let _ = reply(&mut wire).await;
    Ok(ProbeOutcome::Passed)
}

/// The lines of the reply to a command. Another code than this is an error.
async fn expect(wire: &mut Wire<'_>, command: &str, code: u16) -> Result<Vec<Vec<u8>>, Failure> {
    let (found, lines) = reply(wire).await?;
    if found == code {
        return Ok(lines);
    }
    let text = lines.first().map_or_else(String::new, |line| said(line, &[]));
    Err(refused(format!("{command}: {found} {text}")))
}

/// The code and the texts of a reply. The limit on bytes also limits the number of lines.
async fn reply(wire: &mut Wire<'_>) -> Result<(u16, Vec<Vec<u8>>), Failure> {
    let mut lines = Vec::new();
    loop {
        let line = wire.line().await?;
        let Some((code, is_last, text)) = take_apart(&line) else {
            return Err(Failure::Malformed(format!("no reply of SMTP: {}", said(&line, &[]))));
        };
        lines.push(text.to_vec());
        if is_last {
            return Ok((code, lines));
        }
    }
}

/// The code of a line, whether the line is the last of a reply, and the text.
fn take_apart(line: &[u8]) -> Option<(u16, bool, &[u8])> {
    let (code, rest) = line.split_first_chunk::<3>()?;
    let mut digits = code.iter().map(|byte| char::from(*byte).to_digit(10));
    let code = digits.try_fold(0, |code, digit| Some(code * 10 + digit?))?;
    let code = u16::try_from(code).ok().filter(|code| (200..=599).contains(code))?;
    match rest.split_first() {
        None => Some((code, true, rest)),
        Some((b' ', text)) => Some((code, true, text)),
        Some((b'-', text)) => Some((code, false, text)),
        Some(_) => None,
    }
}

fn refused(reason: String) -> Failure {
    Failure::Service("SMTP", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_replies() {
        let check = |line: &str, expected: Option<(u16, bool, &str)>| {
            let found = take_apart(line.as_bytes());
            assert_eq!(
                found,
                expected.map(|(code, last, text)| (code, last, text.as_bytes())),
                "{line}"
            );
        };
        check("220 mail.example ESMTP", Some((220, true, "mail.example ESMTP")));
        check("250-PIPELINING", Some((250, false, "PIPELINING")));
        check("250", Some((250, true, "")));
        check("25", None);
        check("2500", None);
        check("25x ok", None);
        check("099 no", None);
        check("600 no", None);
        check("", None);
    }
}
