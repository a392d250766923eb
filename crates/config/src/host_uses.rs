//! What a configuration uses of its host: the programs that it runs, the files that it reads and writes, the unix sockets
//! that it opens.
//!
//! A use is known by its key and its value, so a further virtual server may use a certificate that is in use, and a page cannot
//! show the file of a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::Span;

/// The key of a member, a log server and others that are unix sockets.
pub(crate) const SOCKET: &str = "unix socket";

/// A program, a file or a unix socket that a configuration names: the last keys of its path (`respond.file`), and the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostUse {
    pub key: String,
    value: String,
}

/// All uses, with their places. Copies share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostUses(Arc<BTreeMap<HostUse, Span>>);

impl HostUses {
    pub fn add(&mut self, key: String, value: String, span: Span) {
        Arc::make_mut(&mut self.0).insert(HostUse { key, value }, span);
    }

    /// The uses that `before` does not have.
    pub fn beyond(&self, before: &Self) -> Vec<(HostUse, Span)> {
        let new = self.0.iter().filter(|(used, _)| !before.has(used));
        new.map(|(used, span)| (used.clone(), *span)).collect()
    }

    pub fn has(&self, used: &HostUse) -> bool {
        self.0.contains_key(used)
    }
}
