//! Encoded slashes (`%2F`) in paths pass by default where nothing decides by the path.
//!
//! Some servers read `/a%2Fb` as two segments, others as one. A rule for the path would hold for only one kind of members,
//! so a virtual server with such rules refuses these requests, until its configuration says how its members read them.
//! Without rules there is nothing to bypass: members get what they would get without weir.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use weir_http::path::{EncodedSlashes, PathForm};
use weir_waf::plan::CompiledRule;
use weir_waf::seclang::Variable;

use crate::decode::NamedItem;
use crate::profile::ProfileOr;
use crate::raw::{self, HttpProfile};
use crate::scalar::{Name, WordOr};
use crate::snapshot::{VirtualServer, Waf};

/// The numbers of rules that look for attacks in paths and decide about no path: weir's own, and those of CRS.
const OF_ATTACKS: [RangeInclusive<u64>; 2] = [1_000_000..=1_009_999, 900_000..=999_999];
/// The variables with the path.
const PATHS: [Variable; 5] = [
    Variable::RequestFilename,
    Variable::RequestBasename,
    Variable::RequestUri,
    Variable::RequestUriRaw,
    Variable::RequestLine,
];

/// The virtual servers, which let encoded slashes pass where their configuration does not say otherwise and nothing reads
/// the path. `None`: one of them is invalid.
pub(super) fn settled(
    servers: Vec<Option<VirtualServer>>,
    file: &raw::File,
    profiles: &[NamedItem<HttpProfile>],
) -> Option<Vec<VirtualServer>> {
    let mut servers: Vec<VirtualServer> = servers.into_iter().collect::<Option<_>>()?;
    let policies = servers.iter().flat_map(|server| &server.policies);
    let rules = policies.flat_map(|policy| policy.request.all());
    let actions = rules.flat_map(|rule| &rule.actions);
    // These take paths like the virtual servers that hand requests to them.
    let handed: HashSet<usize> = actions.filter_map(|action| action.virtual_server()).collect();
    let items = file.virtual_servers.iter().flat_map(|items| &items.0);
    let raw: HashMap<&str, &raw::VirtualServer> =
        items.filter_map(|item| Some((item.name.as_str(), item.value.as_ref()?))).collect();
    for (index, server) in servers.iter_mut().enumerate() {
        let is_open = raw.get(&*server.name).is_some_and(|raw| is_open(raw, profiles))
            && server.policies.is_empty()
            && !handed.contains(&index)
            && !server.waf.as_deref().is_some_and(reads_path);
        if let (true, PathForm::Canonical(spellings)) = (is_open, &mut server.http.target.path) {
            spellings.encoded_slashes = EncodedSlashes::Keep;
        }
    }
    Some(servers)
}

/// Whether the configuration does not say what becomes of encoded slashes.
fn is_open(raw: &raw::VirtualServer, profiles: &[NamedItem<HttpProfile>]) -> bool {
    let profile = match raw.http.as_ref().map(|choice| &choice.value) {
        None => None,
        Some(ProfileOr::Inline(profile)) => Some(&**profile),
        Some(ProfileOr::Name(Name(name))) => {
            profiles.iter().find(|item| *item.name == **name).and_then(|item| item.value.as_ref())
        }
    };
    match profile.and_then(|profile| profile.path.as_ref()).map(|path| &path.value) {
        None => true,
        Some(WordOr::Word(_)) => false,
        Some(WordOr::Value(path)) => path.encoded_slashes.is_none(),
    }
}

/// Whether the firewall decides by the path: by declared paths, by file types, or by rules of the user such as exclusions.
fn reads_path(waf: &Waf) -> bool {
    let is_of_attacks = |rule: &&CompiledRule| OF_ATTACKS.iter().any(|ids| ids.contains(&rule.id));
    let has_path = |rule: &CompiledRule| {
        let mut targets = rule.links.iter().flat_map(|link| &link.targets);
        targets.any(|target| PATHS.contains(&target.variable))
    };
    let mut others = waf.common.view().rules().rules.iter().filter(|rule| !is_of_attacks(rule));
    others.any(has_path) || waf.checks.as_ref().is_some_and(|checks| checks.interface.is_some())
}
