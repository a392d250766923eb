//! One probe: connect to a member, ask, judge the answer. No state; [`crate::monitors`] keeps that.

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
mod radius;
mod redis;
mod scram;
mod script;
mod smtp;
mod sql;
mod subject;
mod talk;
mod tcp;
mod tls;
mod udp;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_config::snapshot::{Address, Monitor, MonitorKind, ProxyVersion, Source};
use weir_core::monitor::Outcome;
use weir_event_loop::sockets;

use failure::Deadline;
pub use failure::Failure;
pub use subject::Subject;
use talk::Talk;
pub use tls::TlsClients;

/// The target and settings of one monitor, computed once.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The member's address, with the monitor's port if it has one.
    pub address: Address,
    /// Local address to connect from.
    pub source: Option<sockets::Source>,
    /// The pool's name and the member as it is written, for scripts.
    pub subject: Subject,
    /// The name for the Host field and for TLS, without port.
    pub host: Arc<str>,
    /// The PROXY header that the member expects first, at its own port.
    pub proxy_protocol: Option<ProxyVersion>,
    /// The probe and its schedule.
    pub monitor: Monitor,
}

impl Probe {
    /// The probe of a monitor for the member at `address`, which the file called `name`.
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
        // Another port is another service, which may know nothing of it.
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

    /// Probes once, within the monitor's timeout: passed, or asked to drain.
    pub async fn run(&self, tls: &TlsClients) -> Result<Outcome, Failure> {
        /// The protocol that a TLS server must agree to for gRPC.
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

    /// How it is connected to.
    fn talk<'a>(&'a self, tls: &'a TlsClients, deadline: Deadline) -> Talk<'a> {
        Talk {
            address: &self.address,
            source: self.source,
            proxy_protocol: self.proxy_protocol,
            name: &self.host,
            tls,
            deadline,
        }
    }

    /// How datagrams are sent.
    fn way(&self) -> Result<udp::Way, Failure> {
        let address = self.address.socket();
        let address = address
            .ok_or_else(|| Failure::Local(io::Error::other("a unix socket takes no datagrams")))?;
        Ok(udp::Way { address, source: self.source, proxy_protocol: self.proxy_protocol })
    }

    /// The Host field: as configured, or the member's name with the port unless that is the default.
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

/// Where probes of an address come from: the first address that can reach it.
fn source_of(source: &Source, to: &Address) -> Option<sockets::Source> {
    let (Some(own), Address::Socket(to)) = (source.addresses(), to) else { return None };
    let first = own.addresses.iter().find(|own| own.is_ipv4() == to.is_ipv4())?;
    Some(sockets::Source { ports: own.ports, ..(*first).into() })
}

#[cfg(test)]
mod tests;
