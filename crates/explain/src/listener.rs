//! The virtual server that receives a request, and its certificate.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_api::asked::Asked;
use weir_api::explanation::{Certificate, Tls};
use weir_config::snapshot::packet::{PacketServer, Packets};
use weir_config::snapshot::{Address, DisabledServer, Service, Snapshot, VirtualServer};
use weir_exchange::shared::live::LiveTable;
use weir_http::message::Scheme;

use crate::supposed_request::Url;

/// Maximum number of names in a message.
const NAMES_MAX: usize = 10;

/// The virtual server that receives a request.
#[derive(Debug, PartialEq, Eq)]
pub struct ReceivingServer {
    /// The index in the snapshot.
    pub index: usize,
    /// The listening address.
    pub address: Option<Address>,
    /// The reason for this choice.
    pub because: String,
}

/// Finds the virtual server that receives a request.
///
/// # Errors
/// No virtual server could receive it, or several could.
pub fn find(snapshot: &Snapshot, asked: &Asked, url: &Url) -> Result<ReceivingServer, String> {
    if let Some(name) = &asked.virtual_server {
        return named(snapshot, name, url);
    }
    let port = url.port_or_default();
    let host: Option<IpAddr> = url.host.parse().ok();
    let all = || snapshot.virtual_servers.iter().enumerate();
    let listens = |server: &VirtualServer| listening(server, host, port).is_some();
    let there: Vec<(usize, &VirtualServer)> = all().filter(|(_, it)| listens(it)).collect();
    if there.is_empty() {
        // Also if there is only one virtual server: such a request reaches none.
        let place = if host.is_some() { url.host.clone() + ":" } else { "port ".to_owned() };
        let place = format!("{place}{port}");
        let other = something_else(snapshot, host, port, &place);
        return Err(other.unwrap_or_else(|| none_there(snapshot, &place)));
    }
    let mut candidates = there;
    candidates.retain(|(_, it)| matches!(it.service, Service::Http));
    if candidates.is_empty() {
        return Err(no_requests(snapshot, host, port));
    }
    let why = format!("it listens on port {port}");
    narrow(candidates, url, why).map(|(index, because)| {
        let address = listening(&snapshot.virtual_servers[index], host, port).cloned();
        ReceivingServer { index, address, because }
    })
}

fn named(snapshot: &Snapshot, name: &str, url: &Url) -> Result<ReceivingServer, String> {
    let mut all = snapshot.virtual_servers.iter();
    let Some(index) = all.position(|server| *server.name == *name) else {
        if let Some(server) = snapshot.disabled.iter().find(|server| *server.name == *name) {
            return Err(disabled(server));
        }
        let mut packets = snapshot.packets.iter().flat_map(packet_servers);
        if packets.any(|server| *server.name == *name) {
            return Err(format!("`{name}` has no requests to explain: it is of type fast_l4"));
        }
        let names = snapshot.virtual_servers.iter().map(|server| &*server.name);
        let near = weir_config::nearest(name, names);
        let near = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
        return Err(format!("there is no virtual server `{name}`{near}"));
    };
    let server = &snapshot.virtual_servers[index];
    if !matches!(server.service, Service::Http) {
        let kind = server.service.name();
        return Err(format!("`{name}` has no requests to explain: it is of type {kind}"));
    }
    let host = url.host.parse().ok();
    let port = url.port_or_default();
    let listening = listening(server, host, port);
    let because = match listening {
        Some(_) => "it was named".to_owned(),
        None => format!("it was named, and does not listen on port {port}"),
    };
    let address = listening.or_else(|| server.listen.first().map(|it| &it.address)).cloned();
    Ok(ReceivingServer { index, address, because })
}

/// The address on which a virtual server accepts connections to this host and port.
fn listening(server: &VirtualServer, host: Option<IpAddr>, port: u16) -> Option<&Address> {
    let mut listen = server.listen.iter().map(|it| &it.address);
    listen.find(|it| matches!(it, Address::Socket(own) if is_at(*own, host, port)))
}

fn is_at(own: SocketAddr, host: Option<IpAddr>, port: u16) -> bool {
    let is_host = |host: IpAddr| own.ip() == host || own.ip().is_unspecified();
    own.port() == port && host.is_none_or(is_host)
}

/// What has this address in place of a virtual server with requests.
fn something_else(
    snapshot: &Snapshot,
    host: Option<IpAddr>,
    port: u16,
    place: &str,
) -> Option<String> {
    let is_there = |address: &Address| address.socket().is_some_and(|it| is_at(it, host, port));
    let of_datagrams = snapshot.virtual_servers.iter();
    let of_datagrams =
        of_datagrams.filter(|server| server.listen.iter().any(|it| is_there(&it.address)));
    let of_packets = snapshot.packets.iter().flat_map(packet_servers);
    let of_packets =
        of_packets.filter(|server| server.destinations.iter().any(|it| it.takes(host, port)));
    let relaying = of_datagrams
        .map(|server| (&server.name, server.service.name()))
        .chain(of_packets.map(|server| (&server.name, "fast_l4")));
    let relaying: Vec<String> = relaying
        .take(NAMES_MAX)
        .map(|(name, kind)| format!("`{name}` is of type {kind}"))
        .collect();
    if !relaying.is_empty() {
        return Some(without_requests(port, &relaying));
    }
    let mut all = snapshot.disabled.iter();
    if let Some(server) = all.find(|server| server.addresses.iter().any(is_there)) {
        return Some(format!("nothing listens on {place}: {}", disabled(server)));
    }
    let mut admin = snapshot.admin.listen.iter();
    admin.any(is_there).then(|| {
        format!("{place} is an admin listener of weir, and no virtual server: no rule or pool concerns its requests")
    })
}

/// The virtual servers of type fast_l4 without sockets.
fn packet_servers(packets: &Packets) -> impl Iterator<Item = &PacketServer> {
    let fallen = packets.fallen.iter().filter(|it| it.unserved.is_some());
    packets.servers.iter().chain(fallen.map(|it| &it.server)).map(|server| &**server)
}

fn disabled(server: &DisabledServer) -> String {
    let name = &server.name;
    format!(
        "virtual server `{name}` is disabled (`state: disabled`); enabled, it would listen on {}",
        server.listen.join(", ")
    )
}

/// Selects one of several virtual servers: by TLS, then by the names in certificates.
fn narrow(
    mut candidates: Vec<(usize, &VirtualServer)>,
    url: &Url,
    mut because: String,
) -> Result<(usize, String), String> {
    let is_secure = url.scheme == Scheme::Https;
    let has_tls = |server: &VirtualServer| server.tls.is_some() == is_secure;
    if candidates.len() > 1 {
        candidates.retain(|(_, server)| has_tls(server));
        because += if is_secure { ", and has TLS" } else { ", and has no TLS" };
    }
    if candidates.len() > 1 {
        let is_for = |server: &VirtualServer| {
            let credentials = server.tls.iter().flat_map(|tls| &tls.credentials);
            credentials.into_iter().any(|it| is_for(it.names(), &url.host))
        };
        if candidates.iter().any(|(_, server)| is_for(server)) {
            candidates.retain(|(_, server)| is_for(server));
            because += &format!(", with a certificate for {}", url.host);
        }
    }
    match &candidates[..] {
        [(index, server)] if has_tls(server) => Ok((*index, because)),
        [(_, server)] => Err(match is_secure {
            true => format!("`{}` has no TLS: ask by http://", server.name),
            false => format!("`{}` has TLS: ask by https://", server.name),
        }),
        [] => Err(none_for(url)),
        several => {
            let names: Vec<&str> =
                several.iter().take(NAMES_MAX).map(|(_, server)| &*server.name).collect();
            let more = if several.len() > NAMES_MAX { ", …" } else { "" };
            Err(format!(
                "several virtual servers could get it: name one by --virtual-server ({}{more})",
                names.join(", ")
            ))
        }
    }
}

fn none_for(url: &Url) -> String {
    let port = url.port_or_default();
    let tls = if url.scheme == Scheme::Https { "with" } else { "without" };
    format!(
        "no virtual server {tls} TLS takes requests on port {port}: name one by --virtual-server"
    )
}

/// Why a port has no requests: connections to it are relayed.
fn no_requests(snapshot: &Snapshot, host: Option<IpAddr>, port: u16) -> String {
    let there = snapshot.virtual_servers.iter();
    let there = there.filter(|server| listening(server, host, port).is_some());
    let names: Vec<String> = there
        .take(NAMES_MAX)
        .map(|server| format!("`{}` is of type {}", server.name, server.service.name()))
        .collect();
    without_requests(port, &names)
}

fn without_requests(port: u16, servers: &[String]) -> String {
    format!("port {port} has no requests to explain: virtual server {}", servers.join(", "))
}

fn none_there(snapshot: &Snapshot, place: &str) -> String {
    let listen = snapshot.virtual_servers.iter().flat_map(|server| &server.listen);
    let there: Vec<String> = listen.take(NAMES_MAX).map(ToString::to_string).collect();
    format!(
        "nothing listens on {place}: there is {}; --virtual-server NAME explains the request to one of them nevertheless",
        there.join(", ")
    )
}

fn is_for(names: &[String], host: &str) -> bool {
    let parent = host.split_once('.').map(|(_, parent)| parent);
    names
        .iter()
        .any(|name| name == host || name.strip_prefix("*.").is_some_and(|of| Some(of) == parent))
}

/// The TLS of a client that requests this name.
pub fn tls(live: &LiveTable, index: usize, server_name: &str) -> Option<Tls> {
    let acceptor = &live.tls.get(index)?.as_ref()?.acceptor;
    let shown = acceptor.certificate_for(server_name);
    let settings = live.snapshot.virtual_servers[index].tls.as_ref()?;
    let certificate = shown.and_then(|shown| {
        let is_it = |der: &Arc<_>| Arc::ptr_eq(der, &shown);
        let same = |it: &Arc<weir_tls::identity::Identity>| {
            is_it(&it.certified) || it.certified.cert.first() == shown.cert.first()
        };
        let identity = settings.shown().find(same)?;
        Some(Certificate {
            subject: identity.subject.clone(),
            names: identity.names.clone(),
            is_default: !is_for(&identity.names, server_name),
        })
    });
    Some(Tls { server_name: server_name.into(), certificate })
}

#[cfg(test)]
mod tests {
    use weir_config::{Resolutions, parse};

    use super::*;

    fn snapshot(servers: &str) -> Snapshot {
        let text =
            format!("virtual_servers:\n{servers}pools: {{ p: {{ members: [ 127.0.0.1:1 ] }} }}\n");
        let parsed = parse("test.yaml", &text);
        let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        config.snapshot(&Resolutions::default())
    }

    fn found(snapshot: &Snapshot, url: &str, named: Option<&str>) -> Result<String, String> {
        let asked = Asked {
            url: url.into(),
            method: None,
            headers: Vec::new(),
            body: None,
            from: None,
            http2: false,
            virtual_server: named.map(str::to_owned),
        };
        let found = find(snapshot, &asked, &Url::parse(url)?)?;
        Ok(snapshot.virtual_servers[found.index].name.to_string())
    }

    #[test]
    fn a_url_leads_to_a_virtual_server() {
        let it = snapshot(
            "  a: { listen: 127.0.0.1:8080, pool: p }\n  b: { listen: 127.0.0.2:8080, pool: p }\n  \
             c: { listen: \"0.0.0.0:81\", pool: p }\n  t: { listen: 127.0.0.1:90, type: tcp, pool: p }\n",
        );
        let check = |url, named, expected: &str| {
            assert_eq!(found(&it, url, named).as_deref(), Ok(expected), "{url}");
        };
        check("http://127.0.0.1:8080/", None, "a");
        check("http://127.0.0.2:8080/", None, "b");
        check("http://shop:81/", None, "c");
        check("http://10.0.0.9:81/", None, "c");
        check("http://shop:8080/", Some("b"), "b");
        let refused = |url, named, expected: &str| {
            let why = found(&it, url, named).expect_err(url);
            assert!(why.contains(expected), "{why}");
        };
        refused("http://shop:8080/", None, "several virtual servers");
        refused("http://shop:82/", None, "nothing listens on port 82: there is ");
        refused("http://127.0.0.3:8080/", None, "nothing listens on 127.0.0.3:8080");
        refused("http://shop/", Some("aa"), "there is no virtual server `aa`");
        refused("http://shop/", Some("t"), "of type tcp");
        refused(
            "http://shop:90/",
            None,
            "port 90 has no requests to explain: virtual server `t` is of type tcp",
        );
        refused("https://shop:81/", None, "has no TLS");
    }

    #[test]
    fn what_is_disabled_or_of_another_kind_is_named() {
        let text = "admin: { listen: [ 127.0.0.1:9900 ] }
packet_path: { interfaces: [ lo ] }
virtual_servers:
  a: { listen: 127.0.0.1:80, pool: p }
  off: { listen: \"127.0.0.1:8000-8002\", pool: p, state: disabled }
  off4: { type: fast_l4, listen: 192.0.2.1:81, pool: p, state: disabled }
  u: { type: udp, listen: 127.0.0.1:53, pool: p }
  l4: { type: fast_l4, listen: \"192.0.2.0/24:82\", pool: p }
pools: { p: { members: [ 127.0.0.1:1 ] } }
";
        let parsed = parse("test.yaml", text);
        let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let it = config.snapshot(&Resolutions::default());
        let check = |url, named, expected: &str| {
            let why = found(&it, url, named).expect_err(url);
            assert!(why.starts_with(expected), "{url}: {why}");
        };
        check(
            "http://127.0.0.1:8001/",
            None,
            "nothing listens on 127.0.0.1:8001: virtual server `off` is disabled (`state: disabled`); enabled, it",
        );
        check("http://shop:8002/", None, "nothing listens on port 8002: virtual server `off` is ");
        check("http://127.0.0.2:8001/", None, "nothing listens on 127.0.0.2:8001: there is ");
        check("http://127.0.0.1/", Some("off"), "virtual server `off` is disabled");
        check(
            "http://192.0.2.1:81/",
            None,
            "nothing listens on 192.0.2.1:81: virtual server `off4`",
        );
        check("http://127.0.0.1:9900/", None, "127.0.0.1:9900 is an admin listener of weir");
        check("http://localhost:9900/", None, "port 9900 is an admin listener of weir");
        check(
            "http://127.0.0.1:53/",
            None,
            "port 53 has no requests to explain: virtual server `u` is of type udp",
        );
        let packets = "port 82 has no requests to explain: virtual server `l4` is of type fast_l4";
        check("http://192.0.2.200:82/", None, packets);
        check("http://192.0.3.1:82/", None, "nothing listens on 192.0.3.1:82: there is ");
        check("http://a/", Some("l4"), "`l4` has no requests to explain: it is of type fast_l4");
    }

    #[test]
    fn the_only_one_does_not_get_what_it_does_not_listen_for() {
        let it = snapshot("  a: { listen: 127.0.0.1:8080, pool: p }\n");
        let why = found(&it, "http://shop/", None).expect_err("port 80");
        assert!(why.starts_with("nothing listens on port 80: there is 127.0.0.1:8080; "), "{why}");
        assert!(found(&it, "https://shop/", None).is_err());
        assert_eq!(found(&it, "http://shop/", Some("a")).as_deref(), Ok("a"));
    }
}
