//! Validation of the raw types: checks across sections.

mod acme;
mod admin;
mod allowed_clients;
mod authentication;
mod certificate_folder;
mod compiler;
mod compression;
mod cookie_attributes;
mod data_sets;
mod datagrams;
mod dates;
mod demands;
mod encoded_slashes;
mod external;
mod files;
mod hand_over;
mod header_names;
mod limit;
mod listening;
mod log;
mod log_format;
mod monitor;
mod monitor_answer;
mod monitor_datagrams;
mod monitor_http;
mod monitor_secrets;
mod monitor_services;
mod names;
mod own_doors;
mod packet;
mod path;
mod path_texts;
mod persistence;
mod policies;
mod policy;
mod pool;
mod relay;
mod responses;
mod secure_cookies;
mod server;
mod server_keys;
mod source;
mod split;
mod system_authorities;
mod time_zone;
mod tls;
mod tracing;
mod udp;
mod unreachable;
mod waf;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use weir_core::expression::Slots;

use authentication::Authentications;
use compiler::{Compiler, compiler};
use names::by_name;
use policies::Policies;

pub(crate) use pool::configured_member;

use crate::config::{Config, ConfiguredMember, ConfiguredNames, Summary};
use crate::decode::{Context, NamedItem, or_absent};
use crate::host_uses::HostUses;
use crate::parts::Parts;
use crate::raw;
use crate::scalar::Whole;
use crate::snapshot::{
    AcmeConfiguration, AfterFirstProbes, DataPlaneSettings, FirstProbesSettings, Persistence, Pool,
    ResolutionFacts, Sandbox, Settings, Snapshot,
};

/// Checks a whole file, as [`validate`] does, including its ACME section.
pub(crate) fn configuration(
    file: &raw::File,
    directory: &Path,
    context: &mut Context,
) -> Option<Config> {
    own_doors::refuse(file, context);
    let acme = acme::settings(file, directory, context);
    let mut config = validate(file, directory, context)?;
    if let (Some(section), Some(acme)) = (&file.acme, &acme) {
        acme::warn(acme, section.span, &config.template.virtual_servers, context);
    }
    let settings = Arc::make_mut(&mut config.template);
    settings.dated = std::mem::take(&mut context.dated).into();
    settings.acme = acme.map(|authority| AcmeConfiguration { authority, challenges: None });
    config.host_uses = std::mem::take(&mut context.host_uses);
    Some(config)
}

/// Validates all decoded parts, even after errors of the decoder, so that a user gets all errors at once. Returns
/// `None` if either step has reported an error.
fn validate(file: &raw::File, directory: &Path, context: &mut Context) -> Option<Config> {
    let pools = named(file.pools.as_ref().map(|pools| &pools.value));
    let data_sets = named(file.data_sets.as_ref().map(|sets| &sets.value));
    let data_sets = data_sets::data_sets(data_sets, directory, context);
    let persistence = named(file.persistence.as_ref().map(|persistence| &persistence.value));
    let policies = named(file.policies.as_ref().map(|policies| &policies.value));
    let authentication = named(file.authentication.as_ref().map(|all| &all.value));
    let mut slots = Slots::new();
    let names = (&by_name(pools), &by_name(persistence));
    let known = Authentications::new(authentication, directory, (&mut slots, names.0), context);
    let mut compiler = compiler(&data_sets, (slots, known), names, (file, directory));
    let profiles = Profiles::of(file);
    let mut tls = tls::TlsProfiles::new(profiles.tls, directory).with_acme(file);
    let (models, members): (Vec<Option<Pool>>, Vec<Vec<ConfiguredMember>>) =
        pools.iter().map(|item| pool::pool(item, &mut compiler, &mut tls, context)).unzip();
    compiler.know_members(members.iter().flatten());
    let mut followed = Policies {
        policy_by_name: by_name(policies),
        policies: policies.iter().map(|item| compiler.policy(item, context)).collect(),
        policies_used: HashSet::new(),
        path_forms: HashMap::new(),
        persistence: persistence
            .iter()
            .map(|item| compiler.persistence_item(item, context))
            .collect(),
        compiler: &mut compiler,
    };
    refuse_own_fallbacks(&models, &followed.persistence, (pools, persistence), context);
    let mut servers = profiles.servers(pools, (&models, &members), tls, (file, directory));
    let admin = file.admin.as_ref().map(|admin| servers.admin(&admin.value, directory, context));
    let (virtual_servers, disabled) = servers.all(file, &mut followed, context);
    let (packets, zone) = (servers.packets(file, context), time_zone::read(file, context));
    let (log, used) = (log::settings(file, directory, context), servers.used());
    let Policies { policies_used, persistence: found, path_forms, .. } = followed;
    // After errors these warnings would only distract: unused objects are often a consequence of the error.
    if context.has_errors() {
        return None;
    }
    warn_of_unused("pool", pools, &all_pools_used(&used.pools, &compiler), context);
    profiles.warn_of_unused(&used, context);
    warn_of_unused("policy", policies, &policies_used, context);
    warn_of_unused("persistence", persistence, &compiler.persistence_used, context);
    path_texts::warn(&compiler.notes.path_conditions, &path_forms, context);
    let used = compiler.authentications.used(&compiler.slots);
    warn_of_unused("authentication", authentication, &used, context);
    let names_members = compiler.names_members.get();
    let settings = Settings {
        admin: admin.unwrap_or_default(),
        data_plane: data_plane(file),
        first_probes: first_probes(file),
        log,
        virtual_servers: encoded_slashes::settled(virtual_servers, file, profiles.http)?,
        disabled,
        packets: packets?,
        persistence: found.into_iter().map(|one| one.map(Arc::new)).collect::<Option<_>>()?,
        key_limits: compiler.limits,
        rules: compiler.rule_names,
        rule_places: compiler.rule_places,
        authenticating: compiler.authentications.needs(authentication),
        fetched_keys: compiler.authentications.fetched,
        slots: Arc::new(compiler.slots),
        time_zone: Arc::new(zone?),
        state_dir: directory.join(&file.state_dir.0),
        own_keys: None,
        acme: None,
        dated: Arc::default(),
    };
    config(settings, (models, members), names_members)
}

/// The configuration of these parts, if all pools are valid.
fn config(
    settings: Settings,
    (models, members): (Vec<Option<Pool>>, Vec<Vec<ConfiguredMember>>),
    names_members: bool,
) -> Option<Config> {
    let pools = models.into_iter().map(|pool| pool.map(Arc::new)).collect::<Option<Vec<_>>>()?;
    Some(Config {
        names: Arc::new(ConfiguredNames::of(&pools, &members)),
        summary: Summary::of(&settings, (&pools, &members)),
        template: Arc::new(Snapshot {
            settings: Arc::new(settings),
            pools,
            resolved: ResolutionFacts::default(),
        }),
        members: members.into_iter().map(Arc::new).collect(),
        names_members,
        parts: Parts::default(),
        host_uses: HostUses::default(),
    })
}

/// Settings by name.
struct Profiles<'a> {
    http: &'a [NamedItem<raw::HttpProfile>],
    compression: &'a [NamedItem<raw::compression::Compression>],
    waf: &'a [NamedItem<raw::waf::Waf>],
    tls: &'a [NamedItem<raw::tls::Tls>],
    tcp: &'a [NamedItem<raw::tcp::TcpProfile>],
    udp: &'a [NamedItem<raw::udp::UdpProfile>],
    fast_l4: &'a [NamedItem<raw::packet::FastL4Profile>],
}

impl<'a> Profiles<'a> {
    fn of(file: &'a raw::File) -> Self {
        let profiles = file.profiles.as_ref();
        Self {
            http: named(profiles.and_then(|it| it.http.as_ref()).map(|it| &it.value)),
            compression: named(profiles.and_then(|it| it.compression.as_ref()).map(|it| &it.value)),
            waf: named(profiles.and_then(|it| it.waf.as_ref()).map(|it| &it.value)),
            tls: named(profiles.and_then(|it| it.tls.as_ref()).map(|it| &it.value)),
            tcp: named(profiles.and_then(|it| it.tcp.as_ref()).map(|it| &it.value)),
            udp: named(profiles.and_then(|it| it.udp.as_ref()).map(|it| &it.value)),
            fast_l4: named(profiles.and_then(|it| it.fast_l4.as_ref()).map(|it| &it.value)),
        }
    }

    /// The objects that virtual servers refer to.
    fn servers(
        &self,
        pools: &'a [NamedItem<raw::Pool>],
        (models, members): (&'a [Option<Pool>], &'a [Vec<ConfiguredMember>]),
        tls: tls::TlsProfiles<'a>,
        (file, directory): (&raw::File, &'a Path),
    ) -> server::Servers<'a> {
        let of_transport = (
            relay::TcpProfiles::new(self.tcp),
            udp::UdpProfiles::new(self.udp),
            packet::servers::PacketServers::new(self.fast_l4),
        );
        let compression = compression::CompressionProfiles::new(self.compression);
        let waf = waf::WafProfiles::new(self.waf, directory, file);
        let of_requests = (self.http, compression, waf);
        server::Servers::new(pools, models, members, of_requests, tls, of_transport)
    }

    fn warn_of_unused(&self, used: &server::AllUsed, context: &mut Context) {
        warn_of_unused("http profile", self.http, &used.http, context);
        warn_of_unused("compression profile", self.compression, &used.compression, context);
        warn_of_unused("waf profile", self.waf, &used.waf, context);
        warn_of_unused("TLS profile", self.tls, &used.tls, context);
        warn_of_unused("tcp profile", self.tcp, &used.tcp, context);
        warn_of_unused("udp profile", self.udp, &used.udp, context);
        warn_of_unused("fast_l4 profile", self.fast_l4, &used.fast_l4, context);
    }
}

/// Refuses pools and persistences that are their own fallback.
fn refuse_own_fallbacks(
    models: &[Option<Pool>],
    followed: &[Option<Persistence>],
    (pools, persistence): (&[NamedItem<raw::Pool>], &[NamedItem<raw::persistence::Persistence>]),
    context: &mut Context,
) {
    let of_pool = |pool: &Option<Pool>| pool.iter().flat_map(|it| it.instead.pools()).collect();
    let next: Vec<Vec<usize>> = models.iter().map(of_pool).collect();
    refuse_circles(("pool", "`fallback`s or `spillover`s"), pools, &next, context);
    let fallback =
        |found: &Option<Persistence>| found.iter().filter_map(|it| it.fallback).collect();
    let next: Vec<Vec<usize>> = followed.iter().map(fallback).collect();
    refuse_circles(("persistence", "`fallback`s"), persistence, &next, context);
}

/// Refuses cycles of fallbacks, which would never reach an item that serves. `next`: the fallbacks of each item.
fn refuse_circles<T>(
    (kind, keys): (&str, &str),
    items: &[NamedItem<T>],
    next: &[Vec<usize>],
    context: &mut Context,
) {
    let next = |at: usize| next.get(at).map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let mut reached = next(index).to_vec();
        let mut looked_at = 0;
        while let Some(&at) = reached.get(looked_at) {
            looked_at += 1;
            if at == index {
                let message = format!(
                    "the {kind} `{}` is its own fallback, directly or through others",
                    item.name
                );
                context.error_help(item.name_span, message, format!("remove one of these {keys}"));
                return;
            }
            for &more in next(at) {
                if !reached.contains(&more) {
                    reached.push(more);
                }
            }
        }
    }
}

fn named<T>(map: Option<&crate::decode::NamedMap<T>>) -> &[NamedItem<T>] {
    map.map_or(&[], |map| &map.0)
}

fn data_plane(file: &raw::File) -> DataPlaneSettings {
    let section = or_absent(file.data_plane.as_ref());
    let histograms = or_absent(file.metrics.as_ref()).latency_histograms.value;
    DataPlaneSettings {
        member_histograms: histograms == raw::LatencyHistograms::Member,
        workers: section.workers.value.value().map(|Whole(count)| count),
        drain_timeout_ms: section.drain_timeout.0,
        udp_descriptors_percent: section.udp_descriptors_max.0,
        http2_memory_bytes: section.http2_memory.0,
        sandbox: match section.sandbox.value {
            raw::Sandbox::Auto => Sandbox::Auto,
            raw::Sandbox::On => Sandbox::On,
            raw::Sandbox::Off => Sandbox::Off,
        },
    }
}

fn first_probes(file: &raw::File) -> FirstProbesSettings {
    let section = or_absent(file.first_probes.as_ref());
    FirstProbesSettings {
        wait_ms: section.wait.0,
        then: match section.then.value {
            raw::AfterFirstProbes::Serve => AfterFirstProbes::Serve,
            raw::AfterFirstProbes::Refuse => AfterFirstProbes::Refuse,
        },
    }
}

/// Pools used by virtual servers, rules and expressions.
fn all_pools_used(by_servers: &HashSet<usize>, compiler: &Compiler<'_>) -> HashSet<usize> {
    let by_rules = compiler.pools_used.iter().copied().chain(compiler.slots.pools());
    by_servers.iter().copied().chain(by_rules).collect()
}

fn warn_of_unused<T>(
    kind: &str,
    items: &[NamedItem<T>],
    used: &HashSet<usize>,
    context: &mut Context,
) {
    for (index, item) in items.iter().enumerate() {
        if !used.contains(&index) {
            context.warning_help(
                item.name_span,
                format!("the {kind} `{}` is never used", item.name),
                "use it in a virtual server, or remove it",
            );
        }
    }
}
