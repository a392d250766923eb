//! Reads a service's messages, with limits on size and time.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use weir_config::snapshot::{ProbeTls, Secret};

use super::answer::BODY_SIZE_MAX;
use super::connection::Connection;
use super::failure::{Failure, Step};
use super::probe_settings::ProbeSettings;

/// Maximum number of a message's characters that are reported.
const SAID_CHARS_MAX: usize = 120;

/// A connection whose answers are read in parts. All answers together have at most [`BODY_SIZE_MAX`] bytes.
pub(super) struct Wire<'a> {
    talk: &'a ProbeSettings<'a>,
    stream: Connection,
    /// Received bytes that have not been processed.
    unread: Vec<u8>,
    /// The number of bytes that may still be received.
    room: usize,
    /// The current step, for timeout messages.
    step: Step,
    is_encrypted: bool,
}

impl<'a> Wire<'a> {
    /// Connects. TLS starts at once, unless the settings start it by a command (STARTTLS).
    pub async fn open(
        talk: &'a ProbeSettings<'a>,
        tls: Option<&ProbeTls>,
    ) -> Result<Self, Failure> {
        let tls = tls.filter(|tls| !tls.is_upgrade);
        let stream = talk.connect(tls, &[]).await?;
        let (unread, room, step) = (Vec::new(), BODY_SIZE_MAX, Step::Listening);
        Ok(Self { talk, stream, unread, room, step, is_encrypted: tls.is_some() })
    }

    /// Whether others cannot read the connection: it is encrypted, or a unix socket.
    pub fn is_private(&self) -> bool {
        self.is_encrypted || self.talk.address.socket().is_none()
    }

    /// Starts TLS on the connection. Bytes that were received before are an error, because they may come from an attacker.
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

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        self.talk.deadline.within(self.step, sent).await?.map_err(|_| Failure::Closed(self.step))
    }

    /// Reads exactly this number of bytes.
    pub async fn exact(&mut self, count: usize) -> Result<Vec<u8>, Failure> {
        while self.unread.len() < count {
            // The read is not begun if it would exceed the limit.
            if count - self.unread.len() > self.room {
                return Err(too_long());
            }
            self.receive().await?;
        }
        Ok(self.unread.drain(..count).collect())
    }

    /// Reads as many bytes as the array has.
    pub async fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let bytes = self.exact(N).await?;
        bytes.try_into().map_err(|_| Failure::Malformed("too short".into()))
    }

    /// Reads a line. The result has no line ending.
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
        let received = match self.talk.deadline.within(self.step, received).await {
            // An answer in another form is an answer, too.
            Err(Failure::Timeout(..)) if !self.unread.is_empty() => {
                return Err(Failure::Malformed("the answer has begun, and does not end".into()));
            }
            received => received?,
        };
        match received {
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

/// A service's message as text for logs: short, with printable characters only, and without these secrets, which some
/// services repeat.
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
