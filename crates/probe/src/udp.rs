//! Probes by datagrams. Each probe has its own connected socket, so it receives only datagrams from the member, and the ICMP
//! error of a closed port.

use std::io;
use std::net::SocketAddr;

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::net::UdpSocket;
use weir_config::snapshot::{ProxyVersion, UdpProbe};
use weir_core::monitor::ProbeOutcome;
use weir_event_loop::sockets::{Source, bind_source, of_datagrams};
use weir_http::proxy_protocol::{ProxyHeader, write_v2};

use super::answer::{BODY_SIZE_MAX, has};
use super::failure::{Deadline, Failure, Step};

/// The settings for a probe's datagrams.
pub(super) struct DatagramSettings {
    pub address: SocketAddr,
    pub source: Option<Source>,
    /// The PROXY header that the member expects at the start of a session.
    pub proxy_protocol: Option<ProxyVersion>,
}

impl DatagramSettings {
    /// Sends a datagram from a new socket, which receives the answer.
    pub async fn send(&self, bytes: &[u8], deadline: Deadline) -> Result<UdpSocket, Failure> {
        let socket = connect(self.address, self.source).map_err(Failure::connecting)?;
        let mut out = Vec::new();
        // Version 1 does not support datagrams, so members do not expect it.
        if self.proxy_protocol == Some(ProxyVersion::V2) {
            write_v2(&ProxyHeader::Local, false, &mut out)
                .map_err(|error| Failure::Local(io::Error::other(error.to_string())))?;
        }
        out.extend_from_slice(bytes);
        let sent = deadline.within(Step::Listening, socket.send(&out)).await?;
        sent.map_err(Failure::connecting)?;
        Ok(socket)
    }
}

/// Sends a datagram, and judges the first datagram that returns.
pub(super) async fn ask(
    way: &DatagramSettings,
    probe: &UdpProbe,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let socket = way.send(&probe.send, deadline).await?;
    // The maximum size of a datagram.
    let mut answer = vec![0; BODY_SIZE_MAX];
    let length = match deadline.within(Step::Listening, socket.recv(&mut answer)).await {
        Err(Failure::Timeout(..)) if probe.is_silence_fine => return Ok(ProbeOutcome::Passed),
        received => received?.map_err(Failure::connecting)?,
    };
    let answer = &answer[..length];
    if probe.drain_on.as_ref().is_some_and(|asking| has(answer, asking)) {
        return Ok(ProbeOutcome::Drain);
    }
    match &probe.receive {
        Some(expected) if !has(answer, expected) => Err(Failure::Answer),
        _ => Ok(ProbeOutcome::Passed),
    }
}

/// A socket that is connected to this address. The kernel selects the port, from the source's range if that has one.
pub(super) fn connect(address: SocketAddr, source: Option<Source>) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if let Some(source) = source {
        bind_source(&socket, source)?;
    }
    net::connect(&socket, &address).map_err(of_datagrams)?;
    UdpSocket::from_std(socket.into())
}
