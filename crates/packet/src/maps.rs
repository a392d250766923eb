//! The loaded object: its programs, and its maps by name.

use std::borrow::Borrow as _;
use std::os::fd::AsFd as _;
use std::path::Path;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, ArrayOfMaps, HashMap, Map, MapData, MapError, PerCpuArray};
use aya::{Ebpf, EbpfError, EbpfLoader};

use crate::batch::{self, Batch, Place};
use crate::error::{Error, kernel};
use crate::layout;
use crate::options::Options;
use crate::table::{FlowTable, Part, buckets_of};
use crate::take;

/// The programs and maps, compiled by `bpf/build`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/packet.bpf.o");

/// Pinned maps: all except maps with temporary data of programs, and maps that are only valid while this process runs.
pub const PINNED: &[&str] = &[
    "flows",
    "flow_tags",
    "table",
    "flow_locks",
    "direct",
    "fragments",
    "persistence",
    "rates",
    "active",
    "settings",
    "servers",
    "members",
    "listeners",
    "prefixes",
    "policy",
    "sources",
    "cookies",
    "devices",
    "vlans",
    "member_totals",
    "server_totals",
    "reasons",
    "next_port",
    "answered",
    "rings",
];

/// All maps that user space reads or writes.
pub struct Maps {
    pub flows: FlowTable,
    pub direct: HashMap<MapData, layout::FlowKeyBytes, layout::FlowBytes>,
    pub active: Array<MapData, u32>,
    pub settings: Array<MapData, layout::SettingsBytes>,
    pub servers: Array<MapData, layout::ServerBytes>,
    pub members: Array<MapData, layout::MemberBytes>,
    pub listeners: HashMap<MapData, layout::ListenerKeyBytes, u32>,
    pub prefixes: LpmTrie<MapData, layout::PrefixKeyBytes, layout::PrefixValueBytes>,
    pub policy: LpmTrie<MapData, layout::PolicyKeyBytes, u32>,
    pub sources: HashMap<MapData, layout::SourceKeyBytes, layout::SourceValueBytes>,
    pub cookies: HashMap<MapData, layout::CookieKeyBytes, u32>,
    pub devices: Array<MapData, layout::DeviceBytes>,
    pub vlans: HashMap<MapData, layout::VlanBytes, layout::VlanBytes>,
    pub member_totals: PerCpuArray<MapData, layout::TotalsBytes>,
    pub server_totals: Array<MapData, layout::TotalsBytes>,
    pub reasons: PerCpuArray<MapData, u64>,
    /// The end of the time in which routes depend only on destinations, in nanoseconds of the clock of flows.
    pub routes: Array<MapData, u64>,
    pub rings: ArrayOfMaps<MapData, Array<MapData, layout::RingBytes>>,
    direct_fd: MapData,
}

impl std::fmt::Debug for Maps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Maps")
    }
}

/// The tables of flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Table {
    /// Both directions of each flow.
    #[default]
    Flows,
    /// The client's half of flows whose members answer directly.
    Direct,
}

/// Loads the object with its maps in this directory: maps that are pinned there, or new ones.
pub fn load(folder: &Path, options: &Options) -> Result<Ebpf, Error> {
    let mut loader = EbpfLoader::new();
    for of_buckets in ["flows", "flow_tags"] {
        loader.map_max_entries(of_buckets, buckets_of(options.flows_max));
    }
    for remembered in ["direct", "fragments", "persistence", "rates"] {
        loader.map_max_entries(remembered, options.remembered_max);
    }
    for name in PINNED {
        loader.map_pin_path(name, folder.join(pin_of(name)));
    }
    loader.load(OBJECT).map_err(|error| load_error(&error))
}

/// The name of a map's pin.
pub fn pin_of(map: &str) -> String {
    format!("map{}-{map}", layout::VERSION)
}

fn load_error(error: &EbpfError) -> Error {
    let text = chain(error);
    if text.contains("os error 1)") || text.contains("os error 13)") {
        return Error::NotPermitted {
            what: format!("loading the packet path's programs ({text})"),
        };
    }
    kernel("loading the packet path's programs", text)
}

/// An error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// The error of a call on a map.
pub fn map_error(doing: &str) -> impl Fn(MapError) -> Error {
    let doing = doing.to_owned();
    move |error| kernel(&doing, chain(&error))
}

/// Whether the error means a missing key.
pub fn is_absent(error: &MapError) -> bool {
    is_errno(error, libc::ENOENT) || matches!(error, MapError::KeyNotFound)
}

fn is_present(error: &MapError) -> bool {
    is_errno(error, libc::EEXIST)
}

fn is_errno(error: &MapError, number: i32) -> bool {
    matches!(error, MapError::SyscallError(error) if error.io_error.raw_os_error() == Some(number))
}

impl Maps {
    /// Takes the maps out of the loaded object.
    pub fn take(object: &mut Ebpf, options: &Options) -> Result<Self, Error> {
        let mut named = |name: &str| {
            object.take_map(name).ok_or_else(|| {
                kernel("reading the packet path's object", format!("it has no map {name}"))
            })
        };
        macro_rules! typed {
            ($name:literal) => {
                named($name)?.try_into().map_err(map_error(concat!("the map ", $name)))?
            };
        }
        let flows = ["flows", "flow_tags", "table"].map(|name| data_of(named(name)?));
        let [flows, tags, table] = flows;
        let (flows, tags, table) = (flows?, tags?, table?);
        let direct_fd = data_of(named("direct")?)?;
        Ok(Self {
            flows: FlowTable::open(
                [&flows, &tags, &table].map(|map| map.fd().as_fd()),
                options.flows_max,
            )?,
            direct: HashMap::try_from(Map::LruHashMap(duplicate_data(&direct_fd)?))
                .map_err(map_error("the map direct"))?,
            active: typed!("active"),
            settings: typed!("settings"),
            servers: typed!("servers"),
            members: typed!("members"),
            listeners: typed!("listeners"),
            prefixes: typed!("prefixes"),
            policy: typed!("policy"),
            sources: typed!("sources"),
            cookies: typed!("cookies"),
            devices: typed!("devices"),
            vlans: typed!("vlans"),
            member_totals: typed!("member_totals"),
            server_totals: typed!("server_totals"),
            reasons: typed!("reasons"),
            routes: typed!("routes"),
            rings: typed!("rings"),
            direct_fd,
        })
    }

    /// Reads a part of a table of flows.
    pub fn read_flows(
        &self,
        table: Table,
        from: Option<Place>,
        buckets_max: u32,
    ) -> Result<Part, Error> {
        match table {
            Table::Flows => Ok(self.flows.read(from, buckets_max, |_| true)),
            Table::Direct => self.read_direct(from, buckets_max).map(|batch| part(&batch)),
        }
    }

    fn read_direct(&self, from: Option<Place>, entries_max: u32) -> Result<Batch, Error> {
        let mut entries = entries_max;
        loop {
            let result = batch::read(
                self.direct_fd.fd().as_fd(),
                from,
                entries,
                size_of::<layout::FlowKeyBytes>(),
                size_of::<layout::FlowBytes>(),
            );
            match result {
                // A bucket has more entries than this.
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOSPC)
                        && entries < BATCH_ENTRIES_LIMIT =>
                {
                    entries *= 4
                }
                other => {
                    return other
                        .map_err(|error| kernel("reading the flow table", error.to_string()));
                }
            }
        }
    }

    /// An entry of a table of flows.
    pub fn flow(
        &self,
        table: Table,
        key: &layout::FlowKey,
    ) -> Result<Option<layout::FlowEntry>, Error> {
        if table == Table::Flows {
            return Ok(self.flows.find(key));
        }
        match self.direct.get(&key.encode(), 0) {
            Ok(bytes) => Ok(Some(layout::FlowEntry::decode(&bytes))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(map_error("reading a flow")(error)),
        }
    }

    /// Removes an entry of a table of flows if it is still the same one. Returns whether it was: packets may begin another
    /// flow under its key at any time, which is kept.
    pub fn remove_flow(
        &mut self,
        table: Table,
        key: &layout::FlowKey,
        is_it: impl FnOnce(&layout::FlowEntry) -> bool,
    ) -> Result<bool, Error> {
        if table == Table::Flows {
            return Ok(self.flows.remove(key, is_it));
        }
        let key = key.encode();
        let taken = take::take(self.direct_fd.fd().as_fd(), &key)
            .map_err(|error| kernel("ending a flow", error.to_string()))?;
        let Some(bytes) = taken else { return Ok(false) };
        if is_it(&layout::FlowEntry::decode(&bytes)) {
            return Ok(true);
        }
        // If a flow has begun meanwhile, its entry is kept.
        if let Err(error) = self.direct.insert(key, bytes, BPF_NOEXIST)
            && !is_present(&error)
        {
            return Err(map_error("keeping a flow")(error));
        }
        Ok(false)
    }
}

/// A flag for updates: only if the key has no entry.
const BPF_NOEXIST: u64 = 1;

/// A bucket never has this many entries.
const BATCH_ENTRIES_LIMIT: u32 = 1 << 20;

/// The entries of a batch, decoded.
fn part(batch: &Batch) -> Part {
    let keys = batch.keys.chunks_exact(size_of::<layout::FlowKeyBytes>());
    let values = batch.values.chunks_exact(size_of::<layout::FlowBytes>());
    let decode = |(key, value)| (layout::FlowKey::decode(key), layout::FlowEntry::decode(value));
    let entries: Vec<_> = keys.zip(values).map(decode).collect();
    Part { examined: entries.len() as u32, entries, next: batch.next, ..Part::default() }
}

fn data_of(map: Map) -> Result<MapData, Error> {
    match map {
        Map::Array(data) | Map::LruHashMap(data) => Ok(data),
        _ => Err(kernel(
            "reading the packet path's object",
            "a table of flows is of another kind".to_owned(),
        )),
    }
}

fn duplicate_data(data: &MapData) -> Result<MapData, Error> {
    let fd = data
        .fd()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| kernel("duplicating a map's descriptor", error.to_string()))?;
    MapData::from_fd(fd).map_err(map_error("opening a map"))
}

/// The key of a trie with this many bits.
pub fn trie_key<const N: usize>(length: u32, data: [u8; N]) -> Key<[u8; N]> {
    Key::new(length, data)
}

/// A new ring of members.
pub fn ring(slots: &[u32]) -> Result<Array<MapData, layout::RingBytes>, Error> {
    let mut bytes: Vec<u8> = slots.iter().flat_map(|member| member.to_ne_bytes()).collect();
    bytes.resize(layout::RING_BYTES, 0);
    let bytes: Box<layout::RingBytes> = bytes
        .into_boxed_slice()
        .try_into()
        .map_err(|_| kernel("building a ring", "it has too many slots".to_owned()))?;
    let mut map = Array::create(1, 0).map_err(map_error("making a ring"))?;
    let bytes: &layout::RingBytes = bytes.borrow();
    map.set(0, bytes, 0).map_err(map_error("filling a ring"))?;
    Ok(map)
}
