//! The numbers of virtual servers and members in the maps. Numbers stay the same across plans and
//! processes: maps contain a hash of each name.

use std::collections::HashMap;
use std::net::IpAddr;

use weir_core::keyed_hash::KeyedHash;

use crate::layout;
use crate::plan::{MEMBERS_MAX, Member, MemberName, Source, VIRTUAL_SERVERS_MAX, VirtualServer};

/// Names are not secret; a process with access to the pinned maps can write them anyway.
const IDENTITY_KEY: [u8; 16] = *b"weirgate members";

/// The member with a number.
#[derive(Debug, Clone)]
pub struct KnownMember {
    /// The entry in the map.
    pub entry: layout::Member,
    /// The name; `None`: the member is from a previous process, and no plan has named it since.
    pub name: Option<MemberName>,
    /// The name of the virtual server; `None`: as for `name`.
    pub server_name: Option<String>,
    /// Whether the plan contains the member.
    pub is_planned: bool,
    /// Whether the plan contains the member's virtual server.
    pub has_server: bool,
    /// The number of complete sweeps without a flow since the member left the plan.
    pub empty_sweeps: u32,
}

impl KnownMember {
    /// Whether the member stands for the routing table: the kernel forwards the same packets without these programs.
    pub fn is_route(&self) -> bool {
        self.entry.address.is_unspecified()
    }
}

/// All numbers in use.
#[derive(Debug, Default)]
pub struct Roster {
    servers: HashMap<u64, u32>,
    members: HashMap<u64, u32>,
    /// Members by number.
    known: HashMap<u32, KnownMember>,
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    // 0 is an empty entry of a map.
    KeyedHash::new(IDENTITY_KEY).bytes(&bytes).max(1)
}

fn family(is_v4: bool) -> &'static [u8] {
    if is_v4 { b"4" } else { b"6" }
}

/// The hash of a virtual server of one family.
pub fn server_identity(name: &str, is_v4: bool) -> u64 {
    hash(&[b"server", name.as_bytes(), family(is_v4)])
}

/// The hash that identifies the routing table as the member of a virtual server in one family.
fn route_identity(server: &str, is_v4: bool) -> u64 {
    hash(&[b"route", server.as_bytes(), family(is_v4)])
}

/// A member's hash.
pub fn member_identity(server: &str, address: IpAddr, port: Option<u16>) -> u64 {
    let address = layout::address_bytes(address);
    hash(&[b"member", server.as_bytes(), &address, &port.unwrap_or(0).to_be_bytes()])
}

/// The number of the member's source address among its virtual server's, from 1; 0: any.
fn source_number(server: &VirtualServer, member: &Member) -> u8 {
    let (Source::Addresses(addresses), Some(own)) = (&server.source, member.source) else {
        return 0;
    };
    let place = addresses.iter().position(|it| it.address == own);
    place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0)
}

impl Roster {
    /// Takes a member over from the map of a previous process.
    pub fn adopt(&mut self, number: u32, entry: layout::Member) {
        self.members.insert(entry.identity, number);
        let known = KnownMember {
            entry,
            name: None,
            server_name: None,
            is_planned: false,
            has_server: true,
            empty_sweeps: 0,
        };
        self.known.insert(number, known);
    }

    /// Takes a virtual server over from the map of a previous process.
    pub fn adopt_server(&mut self, number: u32, identity: u64) {
        self.servers.insert(identity, number);
    }

    /// The number of a virtual server, or a new one; `None`: all numbers are in use.
    pub fn server(&mut self, name: &str, is_v4: bool) -> Option<u32> {
        let identity = server_identity(name, is_v4);
        if let Some(number) = self.servers.get(&identity) {
            return Some(*number);
        }
        let taken: std::collections::HashSet<u32> = self.servers.values().copied().collect();
        let number = (0..VIRTUAL_SERVERS_MAX as u32).find(|number| !taken.contains(number))?;
        self.servers.insert(identity, number);
        Some(number)
    }

    /// The number of a virtual server that has one.
    pub fn server_number(&self, server: &VirtualServer) -> Option<u32> {
        self.servers.get(&server_identity(&server.name, server.is_v4())).copied()
    }

    /// The number of a member.
    pub fn number(&self, name: &MemberName) -> Option<u32> {
        self.members.get(&member_identity(&name.virtual_server, name.address, name.port)).copied()
    }

    /// Adds a member of the plan; `member` is `None` for the routing table. Returns its number; `None`: all are in use.
    pub fn plan(
        &mut self,
        server: &VirtualServer,
        server_number: u32,
        member: Option<&Member>,
    ) -> Option<u32> {
        let address = member.map(|member| member.address);
        let identity = match member {
            Some(member) => member_identity(&server.name, member.address, member.port),
            None => route_identity(&server.name, server.is_v4()),
        };
        let number = match self.members.get(&identity) {
            Some(number) => *number,
            None => (0..MEMBERS_MAX as u32).find(|number| !self.known.contains_key(number))?,
        };
        let entry = layout::Member {
            identity,
            address: address.unwrap_or(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)),
            server: server_number,
            port: member.and_then(|member| member.port).unwrap_or(0),
            state: member.map_or(layout::MEMBER_UP, |member| state_number(member.state)),
            source: member.map_or(0, |member| source_number(server, member)),
        };
        let name = member.map(|member| MemberName {
            virtual_server: server.name.clone(),
            address: member.address,
            port: member.port,
        });
        let known = KnownMember {
            entry,
            name,
            server_name: Some(server.name.clone()),
            is_planned: true,
            has_server: true,
            empty_sweeps: 0,
        };
        self.members.insert(identity, number);
        self.known.insert(number, known);
        Some(number)
    }

    /// The member of a number.
    pub fn get(&self, number: u32) -> Option<&KnownMember> {
        self.known.get(&number)
    }

    /// The member of a number, for changes.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut KnownMember> {
        self.known.get_mut(&number)
    }

    /// All numbers with their members.
    pub fn all(&self) -> impl Iterator<Item = (u32, &KnownMember)> {
        self.known.iter().map(|(number, known)| (*number, known))
    }

    /// All numbers with their members, for changes.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (u32, &mut KnownMember)> {
        self.known.iter_mut().map(|(number, known)| (*number, known))
    }

    /// Frees a member's number.
    pub fn forget(&mut self, number: u32) {
        if let Some(known) = self.known.remove(&number) {
            self.members.remove(&known.entry.identity);
        }
    }

    /// Frees the numbers of virtual servers that are not in the plan and have no members. Returns the numbers.
    pub fn forget_servers(&mut self, planned: &std::collections::HashSet<u32>) -> Vec<u32> {
        let used: std::collections::HashSet<u32> =
            self.known.values().map(|known| known.entry.server).collect();
        let gone: Vec<(u64, u32)> = self
            .servers
            .iter()
            .filter(|(_, number)| !planned.contains(number) && !used.contains(number))
            .map(|(identity, number)| (*identity, *number))
            .collect();
        for (identity, _) in &gone {
            self.servers.remove(identity);
        }
        gone.into_iter().map(|(_, number)| number).collect()
    }
}

/// A member's state in the form of programs.
pub fn state_number(state: crate::plan::MemberState) -> u8 {
    match state {
        crate::plan::MemberState::Up => layout::MEMBER_UP,
        crate::plan::MemberState::Draining => layout::MEMBER_DRAINING,
        crate::plan::MemberState::Down => layout::MEMBER_DOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Protocol;

    #[test]
    fn numbers_stay_and_are_used_again() {
        let mut roster = Roster::default();
        let mut server = VirtualServer::new("shop", Protocol::Tcp, Vec::new());
        server.members.push(Member::new("10.0.0.1".parse().unwrap(), Some(80)));
        let number = roster.server("shop", true).unwrap();
        assert_eq!(roster.server("shop", true), Some(number));
        let first = roster.plan(&server, number, Some(&server.members[0])).unwrap();
        let route = roster.plan(&server, number, None).unwrap();
        assert_ne!(first, route);
        assert_eq!(roster.plan(&server, number, Some(&server.members[0])), Some(first));
        assert_eq!(roster.plan(&server, number, None), Some(route));
        assert!(roster.forget_servers(&Default::default()).is_empty(), "it has members");
        roster.forget(first);
        roster.forget(route);
        assert_eq!(roster.forget_servers(&Default::default()), [number]);
        assert_eq!(roster.server("other", true), Some(number));
    }

    #[test]
    fn identities_tell_ports_and_servers_apart() {
        let address = "10.0.0.1".parse().unwrap();
        let one = member_identity("a", address, Some(80));
        assert_ne!(one, member_identity("a", address, None));
        assert_ne!(one, member_identity("b", address, Some(80)));
        assert_ne!(route_identity("a", true), route_identity("a", false));
        assert_ne!(server_identity("a", true), server_identity("a", false));
        assert_eq!(one, member_identity("a", address, Some(80)));
    }
}
