//! A single probe: connects to a member, sends a request, judges the answer. It has no state; the caller keeps the results.
//!
//! [`Probe::run`] probes once. Each protocol is a module whose function `ask` gets a connection (or, for datagrams, the
//! settings of a socket) and a deadline.
//!
//! **Architecture invariant:** schedules, health and verdicts are not here.

#![forbid(unsafe_code)]

mod answer;
mod ber;
mod connection;
mod dns;
mod failure;
mod grpc;
mod http;
mod icmp;
mod ldap;
mod mysql;
mod postgresql;
mod probe_settings;
mod radius;
mod redis;
mod scram;
mod script;
mod smtp;
mod sql;
mod subject;
mod tcp;
mod udp;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_config::snapshot::{Address, Monitor, MonitorKind, ProxyVersion, Source};
use weir_core::monitor::ProbeOutcome;
use weir_event_loop::sockets;
use weir_outgoing::tls::TlsClients;

pub use failure::{Failure, Step};
pub use icmp::obstacle as icmp_obstacle;
pub use subject::Subject;

use failure::Deadline;
use probe_settings::ProbeSettings;

/// The target and settings of one monitor, computed once.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The member's address, with the monitor's port if it has one.
    pub address: Address,
    /// The local address of the probe's connection.
    pub source: Option<sockets::Source>,
    /// The names of the pool and the member, for scripts.
    pub subject: Subject,
    /// The name for the Host field and for TLS, without a port.
    pub host: Arc<str>,
    /// The PROXY header that the member expects first, on its own port.
    pub proxy_protocol: Option<ProxyVersion>,
    /// The probe and its schedule.
    pub monitor: Monitor,
}

impl Probe {
    /// The probe of a monitor for the member at `address`. `name`: the member's host name in the file, if it has one.
    pub fn new(
        address: &Address,
        name: Option<&Arc<str>>,
        source: &Source,
        subject: Subject,
        proxy_protocol: Option<ProxyVersion>,
        monitor: &Monitor,
    ) -> Self {
        let member = address;
        let address = match (address, monitor.port) {
            (Address::Socket(socket), Some(port)) => {
                Address::Socket(SocketAddr::new(socket.ip(), port))
            }
            _ => address.clone(),
        };
        let host = match (name, &address) {
            (Some(name), _) => Arc::clone(name),
            (None, Address::Socket(socket) | Address::Udp(socket)) => {
                socket.ip().to_string().into()
            }
            (None, Address::Unix(_)) => "localhost".into(),
        };
        let source = source_of(source, &address);
        // Another port belongs to another service, which may not expect the PROXY header.
        let proxy_protocol = proxy_protocol.filter(|_| address == *member);
        Self { address, source, subject, host, proxy_protocol, monitor: monitor.clone() }
    }

    /// The type of this monitor in the file.
    pub fn kind_name(&self) -> &'static str {
        match &self.monitor.kind {
            MonitorKind::Tcp(_) => "tcp",
            MonitorKind::Http(http) if http.tls.is_some() => "https",
            MonitorKind::Http(_) => "http",
            MonitorKind::Grpc(grpc) if grpc.tls.is_some() => "grpcs",
            MonitorKind::Grpc(_) => "grpc",
            MonitorKind::Script(_) => "script",
            MonitorKind::Udp(_) => "udp",
            MonitorKind::Dns(_) => "dns",
            MonitorKind::Icmp => "icmp",
            MonitorKind::Redis(_) => "redis",
            MonitorKind::Smtp(_) => "smtp",
            MonitorKind::Ldap(_) => "ldap",
            MonitorKind::Mysql(_) => "mysql",
            MonitorKind::Postgresql(_) => "postgresql",
            MonitorKind::Radius(_) => "radius",
        }
    }

    /// Probes once, within the monitor's timeout. The member passes, or requests a drain.
    pub async fn run(&self, tls: &TlsClients) -> Result<ProbeOutcome, Failure> {
        /// The protocol that the server must select by ALPN for gRPC over TLS.
        const HTTP_2: &[&[u8]] = &[b"h2"];
        let deadline = Deadline::after(Duration::from_millis(self.monitor.schedule.timeout_ms));
        let talk = self.talk(tls, deadline);
        match &self.monitor.kind {
            MonitorKind::Script(script) => {
                script::run(script, &self.subject, &self.address, deadline).await
            }
            MonitorKind::Udp(udp) => udp::ask(&self.way()?, udp, deadline).await,
            MonitorKind::Dns(dns) => dns::ask(&self.way()?, dns, deadline).await,
            MonitorKind::Icmp => icmp::ask(&self.way()?, deadline).await,
            MonitorKind::Radius(radius) => radius::ask(&self.way()?, radius, deadline).await,
            MonitorKind::Redis(redis) => redis::ask(&talk, redis).await,
            MonitorKind::Smtp(smtp) => smtp::ask(&talk, smtp).await,
            MonitorKind::Ldap(ldap) => ldap::ask(&talk, ldap).await,
            MonitorKind::Mysql(mysql) => mysql::ask(&talk, mysql).await,
            MonitorKind::Postgresql(postgresql) => postgresql::ask(&talk, postgresql).await,
            MonitorKind::Tcp(tcp) => {
                tcp::ask(talk.connect(tcp.tls.as_ref(), &[]).await?, tcp, deadline).await
            }
            MonitorKind::Http(http) => {
                let stream = talk.connect(http.tls.as_ref(), &[]).await?;
                let host = self.host_field(http.host.as_deref(), http.tls.is_some());
                http::ask(stream, http, &host, deadline).await
            }
            MonitorKind::Grpc(grpc) => {
                let stream = talk.connect(grpc.tls.as_ref(), HTTP_2).await?;
                let host = self.host_field(grpc.host.as_deref(), grpc.tls.is_some());
                grpc::ask(stream, grpc, &host, deadline).await
            }
        }
    }

    /// The settings for a connection to the member.
    fn talk<'a>(&'a self, tls: &'a TlsClients, deadline: Deadline) -> ProbeSettings<'a> {
        ProbeSettings {
            address: &self.address,
            source: self.source,
            proxy_protocol: self.proxy_protocol,
            name: &self.host,
            tls,
            deadline,
        }
    }

    /// The settings for datagrams to the member.
    fn way(&self) -> Result<udp::DatagramSettings, Failure> {
        let address = self.address.socket();
        let address = address
            .ok_or_else(|| Failure::Local(io::Error::other("a unix socket takes no datagrams")))?;
        Ok(udp::DatagramSettings {
            address,
            source: self.source,
            proxy_protocol: self.proxy_protocol,
        })
    }

    /// The Host field: the configured one, or the member's name, with the port unless it is the default.
    fn host_field(&self, configured: Option<&str>, is_tls: bool) -> String {
        let default_port = if is_tls { 443 } else { 80 };
        if let Some(host) = configured {
            return host.to_owned();
        }
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.to_string()
        };
        match &self.address {
            Address::Socket(socket) if socket.port() != default_port => {
                format!("{host}:{}", socket.port())
            }
            _ => host,
        }
    }
}

/// The local address for probes of an address: the first configured address of the same family.
fn source_of(source: &Source, to: &Address) -> Option<sockets::Source> {
    let (Some(own), Address::Socket(to)) = (source.addresses(), to) else { return None };
    let first = own.addresses.iter().find(|own| own.is_ipv4() == to.is_ipv4())?;
    Some(sockets::Source { ports: own.ports, ..(*first).into() })
}

#[cfg(test)]
mod tests;
