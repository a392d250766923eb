//! The part of `/v1/status` about virtual servers of `type: fast_l4`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use weir_config::snapshot::packet::{Fallback, PacketServer, Packets};
use weir_packet::Totals;

use crate::health::{Health, Judge, unserved};
use crate::observed::Observed;
use crate::packets::{Report, cookies_obstacle, member_label};
use crate::rates::{Counts, Rate, Rates, Way};

/// The packet path, and the virtual servers of type fast_l4.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PacketPath")]
pub(crate) struct PacketPathStatus {
    name: String,
    /// The last error; `null`: no error.
    failure: Option<String>,
    /// The generation of the configuration in use. While it is less than `configuration.generation`, the kernel is being
    /// updated.
    generation: u64,
    /// Whether flows of a former process continue in the packet path.
    taken_over: bool,
    interfaces: Vec<InterfaceStatus>,
    /// The reason why some SYNs are not answered with cookies although `syn_cookies` requires it.
    syn_cookies: Option<String>,
    flows: u64,
    flows_max: u32,
    flows_ended: BTreeMap<&'static str, u64>,
    resets: u64,
    /// The numbers of packets that were not forwarded, by reason. Only reasons that have occurred are listed.
    not_forwarded: BTreeMap<&'static str, u64>,
    virtual_servers: Vec<PacketServerStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct InterfaceStatus {
    name: String,
    /// The attachment of the program: `xdp`, `tcx` or `none`.
    rung: &'static str,
    /// The way by which packets that arrived by `xdp` on another interface leave by this one: `xdp`, or `tcx` if the driver
    /// accepts no packets from XDP.
    sends: &'static str,
    /// The reasons why better attachments are impossible.
    refused: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PacketServerStatus {
    name: String,
    health: Health,
    protocol: String,
    listen: Vec<String>,
    pool: Option<String>,
    /// `packets`, `sockets` (it is also listed in `virtual_servers`) or `nothing`.
    served_by: &'static str,
    /// The attachments in use: `xdp on eth0, tcx on eth1`.
    rungs: Option<String>,
    /// The reason why the packet path does not serve it.
    why: Option<String>,
    /// The reason why sockets do not serve it either.
    unserved: Option<String>,
    /// Differences from the configuration.
    remarks: Vec<String>,
    counters: Counters,
    /// Rates per second; `null` until they are known.
    rates: Option<Rate>,
    members: Vec<PacketMemberStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PacketMemberStatus {
    address: String,
    flows: u64,
    counters: Counters,
}

/// Counters of a virtual server or a member.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "PacketCounters")]
struct Counters {
    flows: u64,
    packets_in: u64,
    bytes_in: u64,
    packets_out: u64,
    bytes_out: u64,
}

impl Counters {
    fn of(totals: &Totals) -> Self {
        let Totals { flows, packets_in, bytes_in, packets_out, bytes_out } = *totals;
        Self { flows, packets_in, bytes_in, packets_out, bytes_out }
    }
}

/// The packet path; `None`: the configuration has no virtual servers of type fast_l4.
pub(crate) fn packet_path(judge: &Judge, observed: &Observed) -> Option<PacketPathStatus> {
    let packets = judge.table().snapshot.packets.as_ref()?;
    let report = observed.packets.report().unwrap_or_default();
    Some(PacketPathStatus {
        name: packets.path.name.to_string(),
        failure: report.failure.clone(),
        generation: report.generation,
        taken_over: report.taken_over,
        interfaces: report.attachments.iter().map(interface).collect(),
        syn_cookies: Some(&packets.path.syn_cookies)
            .filter(|listed| !listed.is_empty())
            .and_then(|_| cookies_obstacle()),
        flows: report.flows,
        flows_max: packets.path.flows_max,
        flows_ended: report.ended.all().collect(),
        resets: report.resets,
        not_forwarded: report
            .reasons
            .iter()
            .filter(|count| count.packets > 0)
            .map(|count| (count.reason.name(), count.packets))
            .collect(),
        virtual_servers: servers(judge, packets, &report, &observed.rates),
    })
}

fn interface(attachment: &weir_packet::Attachment) -> InterfaceStatus {
    let refused = attachment.refused.iter().map(|it| (it.rung.name(), it.why.clone()));
    InterfaceStatus {
        name: attachment.interface.clone(),
        rung: attachment.rung.map_or("none", |rung| rung.name()),
        sends: if attachment.sends_for_xdp { "xdp" } else { "tcx" },
        refused: refused.collect(),
    }
}

fn servers(
    judge: &Judge,
    packets: &Packets,
    report: &Report,
    rates: &Rates,
) -> Vec<PacketServerStatus> {
    let of_packets = packets.servers.iter().map(|it| {
        let totals = report.servers.iter().find(|(name, _)| *name == *it.name);
        PacketServerStatus {
            rungs: Some(report.rungs()),
            counters: totals.map_or_else(Counters::default, |(_, totals)| Counters::of(totals)),
            rates: totals.and_then(|(name, totals)| {
                rates.of(Way::Packets, name, &Counts::of_packets(totals))
            }),
            members: members(it, report),
            ..server(judge, it, "packets")
        }
    });
    let fallen = packets.fallen.iter().map(|it| {
        let mut status =
            server(judge, &it.server, if it.unserved.is_none() { "sockets" } else { "nothing" });
        status.why = Some(it.why.to_string());
        if let Some(health) = unserved(it) {
            status.health = health;
        }
        status.unserved = it.unserved.as_deref().map(str::to_owned);
        status.remarks = match &it.server.fallback {
            Fallback::Proxy { remarks, .. } if it.unserved.is_none() => {
                remarks.iter().map(|it| it.to_string()).collect()
            }
            _ => Vec::new(),
        };
        status
    });
    of_packets.chain(fallen).collect()
}

fn server(judge: &Judge, server: &PacketServer, served_by: &'static str) -> PacketServerStatus {
    PacketServerStatus {
        name: server.name.to_string(),
        health: judge.packet_server(server),
        protocol: server.protocol.to_string(),
        listen: server.destinations.iter().map(|it| it.to_string()).collect(),
        pool: server.pool.map(|pool| judge.table().snapshot.pools[pool].name.to_string()),
        served_by,
        rungs: None,
        why: None,
        unserved: None,
        remarks: server.remarks.iter().map(|it| it.to_string()).collect(),
        counters: Counters::default(),
        rates: None,
        members: Vec::new(),
    }
}

fn members(server: &PacketServer, report: &Report) -> Vec<PacketMemberStatus> {
    let members = report.members.iter().filter(|(name, ..)| *name.virtual_server == *server.name);
    members
        .map(|(name, totals, flows)| PacketMemberStatus {
            address: member_label(name.address, name.port),
            flows: *flows,
            counters: Counters::of(totals),
        })
        .collect()
}
