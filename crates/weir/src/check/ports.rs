//! Warnings about ports that another process has, as far as this user may see it. Nothing is bound for that.
//!
//! A port of weir itself is no problem: a reload keeps it. So is one whose process is not seen, which may be a weir of
//! another user or in another container.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use weir_config::snapshot::{Address, Snapshot};
use weir_config::{Diagnostic, Severity};

use crate::doctor::host::Host;
use crate::doctor::sockets::Sockets;

/// The name of weir's own processes begins with this.
const OWN_NAME: &str = "weir";

/// The warnings for a configuration on this host.
pub fn in_use(snapshot: &Snapshot, host: &Host, file: &Path) -> Vec<Diagnostic> {
    let sockets = Sockets::of(host);
    let taken: Vec<(String, &Address, Vec<u64>)> = addresses(snapshot)
        .map(|(owner, address)| (owner, address, sockets.at(address)))
        .filter(|(_, _, inodes)| !inodes.is_empty())
        .collect();
    if taken.is_empty() {
        return Vec::new();
    }
    let inodes: HashSet<u64> = taken.iter().flat_map(|(_, _, inodes)| inodes).copied().collect();
    let holders = host.holders_of(&inodes, |program| !program.starts_with(OWN_NAME));
    let file = file.display().to_string();
    let mut seen = BTreeSet::new();
    let mut told = Vec::new();
    for (owner, address, inodes) in taken {
        let Some((program, id)) = inodes.iter().find_map(|inode| holders.get(inode)) else {
            continue;
        };
        // The ports of a range often have the same holder.
        if seen.insert((owner.clone(), *id)) {
            let message = format!(
                "{owner}: {address} is in use by {program} (process {id}) now: \
                 while it is, a start, or a reload that adds it, is refused"
            );
            told.push(Diagnostic::of_file(Severity::Warning, message, &file));
        }
    }
    told
}

/// All addresses to listen on, with their owners. Other sockets may have the same address on other interfaces.
fn addresses(snapshot: &Snapshot) -> impl Iterator<Item = (String, &Address)> {
    let of_servers = snapshot.virtual_servers.iter().flat_map(|server| {
        let points = server.listen.iter().filter(|point| point.interface.is_none());
        points.map(|point| (format!("virtual server `{}`", server.name), &point.address))
    });
    let of_admin = snapshot.admin.listen.iter();
    of_servers.chain(of_admin.map(|address| ("`admin.listen`".to_owned(), address)))
}
