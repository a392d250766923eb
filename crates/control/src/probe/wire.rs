//! Reads a service's messages, bounded in size and time.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use weir_config::snapshot::{ProbeTls, Secret};

use super::answer::BODY_SIZE_MAX;
use super::connection::Connection;
use super::failure::{Failure, Step};
use super::talk::Talk;

/// Characters of a service's message that are shown.
const SAID_CHARS_MAX: usize = 120;

/// A connection whose answers are read piece by piece. All of them together have at most [`BODY_SIZE_MAX`] bytes.
pub(super) struct Wire<'a> {
    talk: &'a Talk<'a>,
    stream: Connection,
    /// Received bytes that were not used yet.
    unread: Vec<u8>,
    /// Bytes that may still come.
    room: usize,
    /// The step for timeout messages.
    step: Step,
    is_encrypted: bool,
}

impl<'a> Wire<'a> {
    /// Connects; with TLS from the start if there shall be, and not only later.
    pub async fn open(talk: &'a Talk<'a>, tls: Option<&ProbeTls>) -> Result<Self, Failure> {
        let tls = tls.filter(|tls| !tls.is_upgrade);
        let stream = talk.connect(tls, &[]).await?;
        let (unread, room, step) = (Vec::new(), BODY_SIZE_MAX, Step::Listening);
        Ok(Self { talk, stream, unread, room, step, is_encrypted: tls.is_some() })
    }

    /// Whether the connection is encrypted.
    pub fn is_private(&self) -> bool {
        self.is_encrypted || self.talk.address.socket().is_none()
    }

    /// Continues with TLS. Earlier unencrypted bytes may come from an attacker, so they are dropped.
    pub async fn upgrade(mut self, tls: &ProbeTls) -> Result<Self, Failure> {
        if !self.unread.is_empty() {
            return Err(Failure::Malformed("more came before TLS began".into()));
        }
        self.stream = self.talk.encrypt(self.stream, tls, &[]).await?;
        self.is_encrypted = true;
        Ok(self)
    }

    /// Sets the current step.
    pub fn step(&mut self, step: Step) {
        self.step = step;
    }

    /// Says something.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        self.talk.deadline.within(self.step, sent).await?.map_err(|_| Failure::Closed(self.step))
    }

    /// The next bytes, exactly this many.
    pub async fn exact(&mut self, count: usize) -> Result<Vec<u8>, Failure> {
        while self.unread.len() < count {
            // Not even begun, where it could not end.
            if count - self.unread.len() > self.room {
                return Err(too_long());
            }
            self.receive().await?;
        }
        Ok(self.unread.drain(..count).collect())
    }

    /// The next bytes, as many as the array has.
    pub async fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let bytes = self.exact(N).await?;
        bytes.try_into().map_err(|_| Failure::Malformed("too short".into()))
    }

    /// The next line, without its end.
    pub async fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.unread) {
                let mut line: Vec<u8> = self.unread.drain(..=end).collect();
                line.pop();
                line.pop_if(|last| *last == b'\r');
                return Ok(line);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), Failure> {
        if self.room == 0 {
            return Err(too_long());
        }
        let mut part = (&mut self.stream).take(self.room as u64);
        let received = part.read_buf(&mut self.unread);
        match self.talk.deadline.within(self.step, received).await? {
            Ok(length) if length > 0 => {
                self.room -= length;
                Ok(())
            }
            _ => Err(Failure::Closed(self.step)),
        }
    }
}

fn too_long() -> Failure {
    Failure::Malformed(format!("more than {} KiB", BODY_SIZE_MAX >> 10))
}

/// A service's message as text for logs: short, of visible characters, and without these secrets, which some services
/// repeat.
pub(super) fn said(bytes: &[u8], secrets: &[&Secret]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    for secret in secrets.iter().filter(|secret| !secret.expose().is_empty()) {
        text = text.replace(secret.expose(), "***");
    }
    let mut shown: String = text.chars().take(SAID_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_services() {
        let secret = Secret::new("hunter2");
        let check = |bytes: &[u8], expected: &str| assert_eq!(said(bytes, &[&secret]), expected);
        check(b"no", "no");
        check(b"", "");
        check(
            b"a\r\n\x1b[2J\xff",
            r"a\r\n\u{1b}[2J\u{fffd}".replace("\\u{fffd}", "\u{fffd}").as_str(),
        );
        check(b"unknown command `AUTH hunter2`", "unknown command `AUTH ***`");
        check(&[b'x'; 121], &("x".repeat(120) + "…"));
    }
}
