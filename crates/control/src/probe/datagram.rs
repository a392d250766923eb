//! Probes by datagrams: something is sent, and what comes back is judged.

use std::io;
use std::time::Duration;

use tokio::net::UdpSocket;
use weir_config::snapshot::{Address, DnsProbe, ProxyVersion, UdpProbe};
use weir_core::monitor::Outcome;
use weir_core::monitor::dns::Mismatch;
use weir_event_loop::Source;
use weir_event_loop::sockets::connect_datagrams;
use weir_http::proxy_protocol::{ProxyHeader, write_v2};

use super::answer::has;
use super::{BODY_SIZE_MAX, Deadline, Failure, Step};
use crate::random::random;

/// So long a host has to say that nobody is at a port, where no answer is expected.
const UNREACHABLE_WAIT: Duration = Duration::from_millis(300);

/// Where a probe goes.
pub(super) struct Way<'a> {
    pub address: &'a Address,
    pub source: Option<Source>,
    pub proxy_protocol: Option<ProxyVersion>,
}

impl Way<'_> {
    fn open(&self) -> Result<UdpSocket, Failure> {
        let to = self
            .address
            .socket()
            .ok_or_else(|| Failure::Local(io::Error::other("a unix socket takes no datagrams")))?;
        let socket = connect_datagrams(to, self.source)
            .map_err(|error| Failure::connecting(error.into()))?;
        UdpSocket::from_std(socket.into()).map_err(Failure::Local)
    }

    async fn send(&self, socket: &UdpSocket, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = Vec::new();
        if self.proxy_protocol.is_some() {
            write_v2(&ProxyHeader::Local, false, &mut out)
                .map_err(|error| Failure::Local(io::Error::other(error.to_string())))?;
        }
        out.extend_from_slice(bytes);
        socket.send(&out).await.map_err(Failure::connecting)?;
        Ok(())
    }
}

/// Sends what is to be sent. Any answer with what is expected passes; without that, anything but an unreachable port.
pub(super) async fn ask(
    way: &Way<'_>,
    probe: &UdpProbe,
    deadline: Deadline,
) -> Result<Outcome, Failure> {
    let socket = way.open()?;
    way.send(&socket, probe.send.as_bytes()).await?;
    let mut buffer = vec![0; BODY_SIZE_MAX];
    let Some(expected) = &probe.receive else {
        let wait = UNREACHABLE_WAIT.min(deadline.limit);
        return match tokio::time::timeout(wait, socket.recv(&mut buffer)).await {
            Ok(Err(error)) => Err(Failure::connecting(error)),
            Ok(Ok(_)) | Err(_) => Ok(Outcome::Passed),
        };
    };
    let received = deadline.within(Step::Listening, socket.recv(&mut buffer)).await?;
    let length = received.map_err(Failure::connecting)?;
    if has(&buffer[..length], expected) { Ok(Outcome::Passed) } else { Err(Failure::Answer) }
}

/// Asks for a name. Answers to other questions are passed over.
pub(super) async fn ask_dns(
    way: &Way<'_>,
    probe: &DnsProbe,
    deadline: Deadline,
) -> Result<Outcome, Failure> {
    let socket = way.open()?;
    let id = random() as u16;
    way.send(&socket, &probe.question.datagram(id)).await?;
    let mut buffer = vec![0; BODY_SIZE_MAX];
    loop {
        let received = deadline.within(Step::Listening, socket.recv(&mut buffer)).await?;
        let length = received.map_err(Failure::connecting)?;
        match probe.question.judge(&buffer[..length], id, probe.code, probe.address) {
            Ok(()) => return Ok(Outcome::Passed),
            Err(Mismatch::Foreign) => {}
            Err(Mismatch::Malformed) => return Err(Failure::Malformed("no answer of DNS".into())),
            Err(Mismatch::Code(code)) => return Err(Failure::ResponseCode(code)),
            Err(Mismatch::Record) => return Err(Failure::Answer),
        }
    }
}
