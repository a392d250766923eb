//! Where a name is looked for: in the domains of `/etc/resolv.conf`, as the C library does.
//!
//! Both families are asked for together, and the search ends at the first full name that has an address of either.
//! Otherwise a name with IPv4 addresses alone would get the IPv6 addresses of a stranger from a later domain.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;

/// The result of a query: addresses with their remaining TTL, or no records.
pub(super) enum FoundAddresses {
    Addresses(BTreeSet<IpAddr>, Duration),
    Nothing,
}

pub(super) type QueryResult = Result<FoundAddresses, NetError>;

/// A resolver, and the domains in which it looks for names.
pub(super) struct Search {
    pub resolver: TokioResolver,
    pub domains: Vec<Name>,
    /// A name with at least this many dots is first looked for as it is.
    pub ndots: usize,
}

/// The name servers and the search list in the text of a `resolv.conf`. Without a name server, this host is asked
/// (resolv.conf(5)), as hosts with a resolver of their own expect.
pub(super) fn configuration(text: &[u8]) -> Result<(ResolverConfig, ResolverOpts), NetError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    parse_resolv_conf(text)
        .or_else(|_| parse_resolv_conf([text, b"\nnameserver 127.0.0.1\n"].concat()))
}

/// The domains of a configuration: the search list, or else the domain of this host.
pub(super) fn domains(config: &ResolverConfig) -> Vec<Name> {
    match config.search() {
        [] => config.domain().into_iter().cloned().collect(),
        search => search.to_vec(),
    }
}

impl Search {
    /// The IPv4 and the IPv6 addresses of a name.
    pub async fn look_up(&self, name: &str) -> (QueryResult, QueryResult) {
        // A name of DNS may have any characters (RFC 2181 section 11), as underscores. The conversion of a text would
        // refuse them.
        let name = match Name::from_ascii(name) {
            Ok(name) => name,
            Err(error) => return (Err(error.clone().into()), Err(error.into())),
        };
        let mut failed = None;
        for full in full_names(&name, &self.domains, self.ndots) {
            let (v4, v6) = tokio::join!(
                query(&self.resolver, &full, RecordType::A),
                query(&self.resolver, &full, RecordType::AAAA)
            );
            match (&v4, &v6) {
                (Ok(FoundAddresses::Nothing), Ok(FoundAddresses::Nothing)) => {}
                // The servers of this domain are broken. The C library goes on, too.
                (Ok(FoundAddresses::Nothing) | Err(_), Ok(FoundAddresses::Nothing) | Err(_))
                    if [&v4, &v6].into_iter().all(|it| !ends_search(it)) =>
                {
                    failed.get_or_insert((v4, v6));
                }
                _ => return (v4, v6),
            }
        }
        failed.unwrap_or((Ok(FoundAddresses::Nothing), Ok(FoundAddresses::Nothing)))
    }
}

/// Whether a query failed so that later domains must not be asked: who has not answered may have the name. SERVFAIL is an answer.
fn ends_search(result: &QueryResult) -> bool {
    let is_broken = |error: &NetError| {
        matches!(error, NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail)))
    };
    result.as_ref().err().is_some_and(|error| !is_broken(error))
}

/// The names to look for, in order, each with all its domains.
fn full_names(name: &Name, domains: &[Name], ndots: usize) -> Vec<Name> {
    let mut whole = name.clone();
    whole.set_fqdn(true);
    if name.is_fqdn() {
        return vec![whole];
    }
    let mut names: Vec<Name> = Vec::with_capacity(domains.len() + 1);
    // A domain that makes the name too long has none of that name.
    names.extend(domains.iter().filter_map(|domain| name.clone().append_domain(domain).ok()));
    let is_first = usize::from(name.num_labels()) > ndots || name.is_localhost();
    names.insert(if is_first { 0 } else { names.len() }, whole);
    names
}

async fn query(resolver: &TokioResolver, name: &Name, kind: RecordType) -> QueryResult {
    match resolver.lookup(name.clone(), kind).await {
        Ok(lookup) => {
            let addresses: BTreeSet<IpAddr> =
                lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
            if addresses.is_empty() {
                return Ok(FoundAddresses::Nothing);
            }
            let ttl = lookup.valid_until().saturating_duration_since(Instant::now());
            Ok(FoundAddresses::Addresses(addresses, ttl))
        }
        Err(error) if error.is_no_records_found() => Ok(FoundAddresses::Nothing),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    #[test]
    fn names_are_looked_for_in_the_order_of_the_c_library() {
        let domains = [name("one.test."), name("two.test.")];
        for (wanted, ndots, expected) in [
            ("db", 1, &["db.one.test.", "db.two.test.", "db."][..]),
            ("db.", 1, &["db."]),
            ("db.x", 1, &["db.x.", "db.x.one.test.", "db.x.two.test."]),
            ("db.x", 2, &["db.x.one.test.", "db.x.two.test.", "db.x."]),
            ("db.x.y", 2, &["db.x.y.", "db.x.y.one.test.", "db.x.y.two.test."]),
            ("db", 0, &["db.", "db.one.test.", "db.two.test."]),
            ("localhost", 1, &["localhost.", "localhost.one.test.", "localhost.two.test."]),
        ] {
            let names = full_names(&name(wanted), &domains, ndots);
            let names: Vec<String> = names.iter().map(Name::to_ascii).collect();
            assert_eq!(names, expected, "{wanted} with ndots {ndots}");
        }
    }

    #[test]
    fn without_a_name_server_this_host_is_asked() {
        for (text, server, search) in [
            ("nameserver 192.0.2.1\nsearch one.test two.test\n", "192.0.2.1", 2),
            ("search one.test\n", "127.0.0.1", 1),
            ("", "127.0.0.1", 0),
            ("\u{feff}nameserver 192.0.2.1\nsearch one.test\n", "192.0.2.1", 1),
            ("search one.test\noptions ndots:2", "127.0.0.1", 1),
        ] {
            let (config, _) = configuration(text.as_bytes()).expect("a configuration");
            let servers: Vec<String> =
                config.name_servers().iter().map(|server| server.ip.to_string()).collect();
            assert_eq!(servers, [server], "{text:?}");
            assert_eq!(config.search().len(), search, "{text:?}");
        }
    }
}
