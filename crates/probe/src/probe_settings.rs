//! The connection of a probe to its member, with or without TLS.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use weir_config::snapshot::{Address, ProbeTls, ProxyVersion};
use weir_event_loop::sockets;
use weir_http::proxy_protocol::{ProxyHeader, write_v1, write_v2};
use weir_outgoing::tls::TlsClients;

use super::connection::Connection;
use super::failure::{Deadline, Failure, Step};

/// The settings of a probe in progress.
pub(super) struct ProbeSettings<'a> {
    pub address: &'a Address,
    pub source: Option<sockets::Source>,
    /// The PROXY header that the member expects first.
    pub proxy_protocol: Option<ProxyVersion>,
    /// The member's name, for TLS.
    pub name: &'a str,
    pub tls: &'a TlsClients,
    pub deadline: Deadline,
}

impl ProbeSettings<'_> {
    /// Opens a connection, with TLS if `tls` is given. A TLS server must select one of `protocols`, unless the list is
    /// empty.
    pub(super) async fn connect(
        &self,
        tls: Option<&ProbeTls>,
        protocols: &[&[u8]],
    ) -> Result<Connection, Failure> {
        let stream = self.open().await?;
        match tls {
            None => Ok(stream),
            Some(tls) => self.encrypt(stream, tls, protocols).await,
        }
    }

    /// Opens an unencrypted connection.
    async fn open(&self) -> Result<Connection, Failure> {
        let connected: io::Result<Connection> = match self.address {
            Address::Socket(address) | Address::Udp(address) => {
                let connect = connect_tcp(*address, self.source);
                let stream = self.deadline.within(Step::Connecting, connect).await?;
                stream.map(|stream| Box::new(stream) as Connection)
            }
            Address::Unix(path) => {
                let connect = UnixStream::connect(path);
                let stream = self.deadline.within(Step::Connecting, connect).await?;
                stream.map(|stream| Box::new(stream) as Connection)
            }
        };
        let mut stream = connected.map_err(Failure::connecting)?;
        if let Some(version) = self.proxy_protocol {
            let mut header = Vec::new();
            match version {
                ProxyVersion::V1 => write_v1(&ProxyHeader::Unknown, &mut header),
                ProxyVersion::V2 => write_v2(&ProxyHeader::Local, false, &mut header)
                    .map_err(|error| Failure::Local(io::Error::other(error.to_string())))?,
            }
            let sent = self.deadline.within(Step::Connecting, stream.write_all(&header)).await?;
            sent.map_err(|_| Failure::Closed(Step::Connecting))?;
        }
        Ok(stream)
    }

    /// Starts TLS on the connection.
    pub(super) async fn encrypt(
        &self,
        stream: Connection,
        settings: &ProbeTls,
        protocols: &[&[u8]],
    ) -> Result<Connection, Failure> {
        let name = settings.name.as_deref().unwrap_or(self.name);
        let handshake = self.tls.connect(stream, name, settings.verify, protocols);
        let stream = self.deadline.within(Step::Handshaking, handshake).await??;
        Ok(Box::new(stream))
    }
}

async fn connect_tcp(
    address: SocketAddr,
    source: Option<sockets::Source>,
) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        sockets::bind_source(&socket, source)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
