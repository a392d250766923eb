//! The admin listeners as destinations: nothing that weir connects to may be one of them.
//!
//! Whoever reaches an admin listener over a unix socket or loopback has rights there. A pool that led to one would give
//! these rights to clients.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::endpoint::Endpoint;
use crate::host_addresses;
use crate::snapshot::Address;

/// The addresses of the admin listeners.
#[derive(Debug, Clone, Default)]
pub struct OwnDoors {
    sockets: Vec<SocketAddr>,
    /// The unix sockets, by the paths that the configuration has.
    listen: Vec<PathBuf>,
    /// Their paths without links, which are followed at the first question: mostly nobody asks.
    paths: OnceLock<Vec<PathBuf>>,
}

impl OwnDoors {
    /// The doors at these addresses, as the links in their paths are now.
    pub fn new<'a>(listen: impl Iterator<Item = &'a Address>) -> Self {
        let doors = Self::at(listen);
        doors.paths();
        doors
    }

    /// The doors at these addresses, for a short time: links are followed at the first question about a unix socket.
    pub(crate) fn at<'a>(listen: impl Iterator<Item = &'a Address>) -> Self {
        let mut doors = Self::default();
        for address in listen {
            match address {
                Address::Socket(socket) => doors.sockets.push(canonical(*socket)),
                Address::Unix(path) => doors.listen.push(path.clone()),
                Address::Udp(_) => {}
            }
        }
        doors
    }

    /// Whether a connection to this address leads to an admin listener: by its address, by any address of this host if the
    /// listener has all of them, or by an unspecified address, which the kernel takes for loopback.
    pub fn have(&self, to: SocketAddr) -> bool {
        let to = canonical(to);
        self.sockets.iter().filter(|door| door.port() == to.port()).any(|door| {
            let (door, to) = (door.ip(), to.ip());
            door == to
                || (to.is_unspecified() && (door.is_unspecified() || door.is_loopback()))
                || (door.is_unspecified() && is_of_this_host(to))
        })
    }

    /// Whether this is the socket of an admin listener, by any path, also before the socket is there.
    pub fn have_socket(&self, path: &Path) -> bool {
        if self.listen.is_empty() {
            return false;
        }
        let (file, paths) = (file_of(path), self.paths());
        paths.contains(&real(path))
            || file.is_some() && paths.iter().any(|door| file_of(door) == file)
    }

    fn paths(&self) -> &[PathBuf] {
        self.paths.get_or_init(|| self.listen.iter().map(|path| real(path)).collect())
    }

    /// Whether a connection to this endpoint leads to an admin listener. Names other than `localhost` are unknown here;
    /// their addresses are looked at when they are resolved.
    pub(crate) fn have_endpoint(&self, to: &Endpoint) -> bool {
        match to {
            Endpoint::Literal(Address::Socket(to) | Address::Udp(to)) => self.have(*to),
            Endpoint::Literal(Address::Unix(path)) => self.have_socket(path),
            Endpoint::Name { host, port } => {
                let host = host.trim_end_matches('.');
                let is_here = host == "localhost" || host.ends_with(".localhost");
                let ips = [[127, 0, 0, 1].into(), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])];
                is_here && ips.into_iter().any(|ip| self.have(SocketAddr::new(ip, *port)))
            }
        }
    }
}

/// The address without the IPv6 form of an IPv4 address, and without a zone.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn is_of_this_host(ip: IpAddr) -> bool {
    ip.is_loopback() || host_addresses::all().contains(&ip)
}

/// The device and the number of the file at this path, which all of its hard links and mounts have.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// The path without links, `.` and `..`. Nothing has to be there: a link may lead to a socket that is made later.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest: Vec<OsString> = reversed(&absolute);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop() {
        match name.to_str() {
            Some("/") => real = PathBuf::from("/"),
            Some(".") => {}
            // What is before it has no links any more.
            Some("..") => {
                real.pop();
            }
            _ => {
                let next = real.join(&name);
                match next.read_link() {
                    Ok(to) if links < LINKS_MAX => {
                        links += 1;
                        rest.append(&mut reversed(&to));
                    }
                    _ => real = next,
                }
            }
        }
    }
    real
}

/// Maximum number of links in a path, which is the kernel's (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The parts of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors(listen: &[&str]) -> OwnDoors {
        let listen: Vec<Address> =
            listen.iter().map(|it| Address::Socket(it.parse().expect("an address"))).collect();
        OwnDoors::new(listen.iter())
    }

    #[test]
    fn any_spelling_of_a_door_is_the_door() {
        let check = |listen: &str, to: &str, expected: bool| {
            let to = to.parse().expect("an address");
            assert_eq!(doors(&[listen]).have(to), expected, "{listen} {to}");
        };
        for (listen, to, expected) in [
            ("127.0.0.1:9900", "127.0.0.1:9900", true),
            ("127.0.0.1:9900", "[::ffff:127.0.0.1]:9900", true),
            ("127.0.0.1:9900", "0.0.0.0:9900", true),
            ("127.0.0.1:9900", "[::ffff:0.0.0.0]:9900", true),
            ("127.0.0.1:9900", "127.0.0.2:9900", false),
            ("127.0.0.1:9900", "127.0.0.1:9901", false),
            ("[::1]:9900", "[::1]:9900", true),
            ("[::1]:9900", "[::]:9900", true),
            ("[::1]:9900", "127.0.0.1:9900", false),
            ("0.0.0.0:9900", "127.0.0.1:9900", true),
            ("0.0.0.0:9900", "127.9.8.7:9900", true),
            ("0.0.0.0:9900", "192.0.2.1:9900", false),
            ("[::]:9900", "127.0.0.1:9900", true),
            ("[::]:9900", "[::1]:9900", true),
            ("192.0.2.1:9900", "0.0.0.0:9900", false),
        ] {
            check(listen, to, expected);
        }
        assert!(!OwnDoors::default().have("127.0.0.1:9900".parse().expect("an address")));
    }

    #[test]
    fn a_socket_is_the_same_by_any_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("admin.sock");
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).expect("a link");
        let before = OwnDoors::new([Address::Unix(own.clone())].iter());
        std::fs::write(&own, "").expect("a file");
        std::os::unix::fs::symlink(&own, folder.path().join("other")).expect("a link");
        let after = OwnDoors::new([Address::Unix(own.clone())].iter());
        for doors in [before, after] {
            for (path, expected) in [
                ("admin.sock", true),
                ("./admin.sock", true),
                ("link/admin.sock", true),
                ("link/./admin.sock", true),
                ("other", true),
                ("admin", false),
            ] {
                assert_eq!(doors.have_socket(&folder.path().join(path)), expected, "{path}");
            }
        }
        assert!(!OwnDoors::default().have_socket(&own));
    }

    #[test]
    fn a_socket_is_known_before_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, at(name)).expect("a link");
        };
        link("run/weir", "short");
        link("run/weir/admin.sock", "dangling");
        link("dangling", "second");
        link("loop", "loop");
        std::fs::create_dir(at("there")).expect("a folder");
        let doors = OwnDoors::new([Address::Unix(at("run/weir/admin.sock"))].iter());
        let by_link = OwnDoors::new([Address::Unix(at("second"))].iter());
        for (path, expected) in [
            ("run/weir/admin.sock", true),
            ("run/./weir//admin.sock", true),
            ("run/other/../weir/admin.sock", true),
            ("there/../run/weir/admin.sock", true),
            ("short/admin.sock", true),
            ("dangling", true),
            ("second", true),
            ("loop", false),
            ("run/admin.sock", false),
            ("run/weir", false),
        ] {
            assert_eq!(doors.have_socket(&at(path)), expected, "{path}");
            assert_eq!(by_link.have_socket(&at(path)), expected, "{path}");
        }
        // A further name of the same file.
        std::fs::create_dir_all(at("run/weir")).expect("a folder");
        std::fs::write(at("run/weir/admin.sock"), "").expect("a file");
        std::fs::hard_link(at("run/weir/admin.sock"), at("there/hard")).expect("a link");
        assert!(doors.have_socket(&at("there/hard")));
    }

    #[test]
    fn a_name_that_leads_to_a_door_gives_no_member_there() {
        let text = "admin: { listen: \"127.0.0.1:9900\" }";
        let rest = "virtual_servers: { v: { listen: 127.0.0.1:8080, pool: p } }
pools: { p: { members: [ \"app.example:9900\", \"127.0.0.1:9900\", \"127.0.0.3:80\" ], monitors: [ { type: http } ] },
  q: { members: [ \"app.example:80\" ], monitors: [ { type: http, port: 9900 } ] } }";
        let config = crate::parse("weir.yaml", &format!("{text}\n{rest}")).config.expect("valid");
        let found = vec![
            "127.0.0.1".parse().expect("an address"),
            "127.0.0.2".parse().expect("an address"),
        ];
        let resolutions = [("app.example".to_owned(), found)].into_iter().collect();
        let snapshot = config.snapshot(&resolutions);
        let members: Vec<Vec<String>> = snapshot
            .pools
            .iter()
            .filter(|pool| !pool.name.is_empty())
            .map(|pool| pool.members.iter().map(|member| member.label.to_string()).collect())
            .collect();
        assert_eq!(members, [vec!["127.0.0.2:9900", "127.0.0.3:80"], vec!["127.0.0.2:80"]]);
        let led = config.led_to_own_doors(&resolutions);
        assert_eq!(led, ["app.example:9900 in pool p", "app.example:80 in pool q"]);
        assert!(config.led_to_own_doors(&Default::default()).is_empty());
    }

    #[test]
    fn names_of_loopback_are_known() {
        let check = |listen: &str, host: &str, expected: bool| {
            let to = Endpoint::Name { host: host.into(), port: 9900 };
            assert_eq!(doors(&[listen]).have_endpoint(&to), expected, "{listen} {host}");
        };
        check("127.0.0.1:9900", "localhost", true);
        check("[::1]:9900", "localhost.", true);
        check("0.0.0.0:9900", "a.localhost", true);
        check("127.0.0.1:9901", "localhost", false);
        check("127.0.0.1:9900", "elsewhere.example", false);
    }
}
