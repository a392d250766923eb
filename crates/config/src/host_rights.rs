//! What only someone on this host may change: such a value takes the rights of weir's user. A change over the network can name
//! what is in use, or what the files name, but introduce nothing of this kind.

use std::collections::BTreeSet;

use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::host_uses::{HostUse, HostUses};
use crate::raw;
use crate::raw::member::MemberEntry;
use crate::raw::monitor::Monitor;
use crate::snapshot::Snapshot;

/// The key of a program.
const COMMAND: &str = "monitors.command";

/// The way to introduce a use.
const HELP: &str =
    "use the unix socket of the admin listener, or write it into the files, and reload";

/// Notes the programs of monitors.
pub(crate) fn note_programs(file: &raw::File, context: &mut Context) {
    let pools = file.pools.as_ref().map_or(&[][..], |pools| &pools.value.0);
    for pool in pools.iter().filter_map(|pool| pool.value.as_ref()) {
        pool.monitors.iter().flat_map(|all| &all.value).for_each(|it| note_program(it, context));
        let members = pool.members.iter().flat_map(|members| members.value.iter());
        for MemberEntry(member) in members.map(|member| &member.value) {
            let own = member.monitors.iter().flat_map(|all| all.value.0.iter());
            own.for_each(|it| note_program(it, context));
        }
    }
}

fn note_program(monitor: &Spanned<Monitor>, context: &mut Context) {
    if let Some(command) = &monitor.value.command {
        // The words as JSON, so that no other words give the same text.
        let words = command.value.iter().map(|word| serde_json::Value::from(&*word.value.0));
        let words = serde_json::Value::Array(words.collect()).to_string();
        context.host_uses.add(COMMAND.to_owned(), words, command.span);
    }
}

/// Reports the uses that neither `before` nor the files have, and returns their keys. What the files name was written by someone
/// on this host, so a change may restore it after another has removed it. This comes before files are read: an error about a
/// file could tell what is in it.
pub(crate) fn refuse_new(
    before: &HostUses,
    of_files: impl FnOnce() -> HostUses,
    context: &mut Context,
) -> Vec<String> {
    let mut new: Vec<(HostUse, Span)> = context.host_uses.beyond(before);
    if !new.is_empty() {
        let of_files = of_files();
        new.retain(|(used, _)| !of_files.has(used));
    }
    for (HostUse { key, .. }, span) in &new {
        // The value is not shown, because it may be a secret.
        let message = format!(
            "`{key}` names a program, a file or a socket of this host, which a change over the network cannot introduce"
        );
        context.error_help(*span, message, HELP);
    }
    let keys: BTreeSet<String> = new.into_iter().map(|(used, _)| used.key).collect();
    keys.into_iter().collect()
}

/// The settings that differ from `before`, although only someone on this host may change them.
pub(crate) fn beyond_network(snapshot: &Snapshot, before: &Snapshot) -> Vec<&'static str> {
    let mut keys = Vec::new();
    if snapshot.log.audit_to != before.log.audit_to {
        keys.push("log.audit");
    }
    if snapshot.data_plane.sandbox != before.data_plane.sandbox {
        keys.push("data_plane.sandbox");
    }
    keys
}
