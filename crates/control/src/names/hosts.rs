//! The hosts file of the system (hosts(5)), and `localhost`.
//!
//! As in the C library, a name in it is never looked up elsewhere: neither with the search list, nor in DNS, and for no
//! address family.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use weir_config::file;

/// Maximum size of a hosts file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The names of a hosts file.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: HashMap<String, BTreeSet<IpAddr>>,
}

impl Hosts {
    /// Reads a hosts file. A file that does not exist has no names.
    pub fn read(path: &Path) -> Result<Self, String> {
        match file::read(path, FILE_BYTES_MAX) {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(file::ReadError::Open(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The names in a hosts file. Lines that begin with something other than an address are ignored, as the C library does.
    fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut names: HashMap<String, BTreeSet<IpAddr>> = HashMap::new();
        for line in String::from_utf8_lossy(text).lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            // An interface (`fe80::1%lo0`) cannot be named in an address of a member.
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
            for name in words {
                names.entry(in_form(name)).or_default().insert(address);
            }
        }
        Self { names }
    }

    /// The addresses of a name; `None`: it is not in the file.
    pub fn addresses(&self, name: &str) -> Option<BTreeSet<IpAddr>> {
        let name = in_form(name);
        if let Some(addresses) = self.names.get(&name) {
            return Some(addresses.clone());
        }
        // RFC 6761 section 6.3: these names are never looked up in DNS.
        let is_local = name == "localhost" || name.ends_with(".localhost");
        is_local.then(|| BTreeSet::from([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]))
    }
}

/// A name in lower case, without the dot at its end.
fn in_form(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        let hosts = Hosts::parse(
            b"\xef\xbb\xbf# a file\n\
              192.0.2.1\tdb  DB.Corp.Example my_app # first\n\
              ::1 ip6-localhost\r\n\
              2001:db8::1 db\n\
              192.0.2.2 db.corp.example.\n\
              nonsense a\n\
              192.0.2.3\n\
              fe80::1%lo0 b\n\
              \n",
        );
        let check = |name: &str, expected: &[&str]| {
            let found = hosts
                .addresses(name)
                .map(|found| found.iter().map(IpAddr::to_string).collect::<Vec<_>>());
            assert_eq!(found.unwrap_or_default(), expected, "{name}");
        };
        check("db", &["192.0.2.1", "2001:db8::1"]);
        check("DB.", &["192.0.2.1", "2001:db8::1"]);
        check("db.corp.example", &["192.0.2.1", "192.0.2.2"]);
        check("my_app", &["192.0.2.1"]);
        check("ip6-localhost", &["::1"]);
        check("localhost", &["127.0.0.1", "::1"]);
        check("a.localhost", &["127.0.0.1", "::1"]);
        for name in ["a", "b", "first", "corp.example", "notlocalhost"] {
            assert_eq!(hosts.addresses(name), None, "{name}");
        }
        let own = Hosts::parse(b"127.0.0.1 localhost\n").addresses("localhost");
        assert_eq!(own, Some(BTreeSet::from([Ipv4Addr::LOCALHOST.into()])));
    }
}
