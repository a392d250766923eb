//! Redis, and servers with its protocol (RESP 2): AUTH, PING, ROLE.

use weir_config::snapshot::{Credentials, RedisProbe, RedisRole};
use weir_core::monitor::ProbeOutcome;

use super::failure::{Failure, Step};
use super::probe_settings::ProbeSettings;
use super::wire::{Wire, said};

/// Maximum length of an error code in a message.
const CODE_BYTES_MAX: usize = 20;

/// Logs in if credentials are configured. Then checks whether the server responds, and its role.
pub(super) async fn ask(
    talk: &ProbeSettings<'_>,
    probe: &RedisProbe,
) -> Result<ProbeOutcome, Failure> {
    let mut wire = Wire::open(talk, probe.tls.as_ref()).await?;
    if let Some(Credentials { user, password }) = &probe.credentials {
        wire.step(Step::LoggingIn);
        let user = (!user.is_empty()).then_some(&**user);
        let words: Vec<&str> =
            ["AUTH"].into_iter().chain(user).chain([password.expose()]).collect();
        wire.send(&command(&words)).await?;
        let answer = wire.line().await?;
        if answer != b"+OK" {
            // Servers repeat the words of an unknown command, such as the password, so only the error code is reported.
            let code = answer.strip_prefix(b"-").map_or("no answer of Redis".into(), |error| {
                let code = error.split(|byte| *byte == b' ').next().unwrap_or_default();
                said(&code[..code.len().min(CODE_BYTES_MAX)], &[password])
            });
            return Err(refused(&format!("AUTH: {code}")));
        }
        wire.step(Step::Listening);
    }
    wire.send(&command(&["PING"])).await?;
    let answer = wire.line().await?;
    if answer != b"+PONG" {
        return Err(unexpected("PING", &answer, probe));
    }
    let Some(wanted) = probe.role else { return Ok(ProbeOutcome::Passed) };
    wire.send(&command(&["ROLE"])).await?;
    let head = wire.line().await?;
    if !head.starts_with(b"*") {
        return Err(unexpected("ROLE", &head, probe));
    }
    // The first of several elements is a string: its length, then its text.
    let length = wire.line().await?;
    if !length.starts_with(b"$") {
        return Err(unexpected("ROLE", &length, probe));
    }
    let role = wire.line().await?;
    let wanted: &[u8] = match wanted {
        RedisRole::Master => b"master",
        RedisRole::Replica => b"slave",
    };
    if role == wanted {
        Ok(ProbeOutcome::Passed)
    } else {
        Err(refused(&format!("its role is {}", told(&role, probe))))
    }
}

/// A command as an array of strings.
fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn unexpected(command: &str, answer: &[u8], probe: &RedisProbe) -> Failure {
    let error = answer.strip_prefix(b"-").unwrap_or(answer);
    refused(&format!("{command}: {}", told(error, probe)))
}

fn told(answer: &[u8], probe: &RedisProbe) -> String {
    let password = probe.credentials.as_ref().map(|credentials| &credentials.password);
    said(answer, password.as_slice())
}

fn refused(reason: &str) -> Failure {
    Failure::Service("Redis", reason.to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn commands() {
        assert_eq!(super::command(&["PING"]), b"*1\r\n$4\r\nPING\r\n");
        let auth = super::command(&["AUTH", "ä b", "\r\nFLUSHALL\r\n"]);
        assert_eq!(auth, "*3\r\n$4\r\nAUTH\r\n$4\r\nä b\r\n$12\r\n\r\nFLUSHALL\r\n\r\n".as_bytes());
    }
}
