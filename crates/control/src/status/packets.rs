//! The part of `/v1/status` about virtual servers of `type: fast_l4`.

use weir_api::health::Health;
use weir_api::packet_path::{
    BY_PACKETS, Interface, PacketCounters, PacketMember, PacketPath, PacketServer,
};
use weir_config::snapshot::packet::{self, Fallback, Packets};
use weir_packet::Totals;

use crate::health::{Judge, unserved};
use crate::observed_state::ObservedState;
use crate::packets::{Report, cookies_obstacle, member_label};
use crate::rates::{CounterSource, Counts, Rates};

fn counters(totals: &Totals) -> PacketCounters {
    let Totals { flows, packets_in, bytes_in, packets_out, bytes_out } = *totals;
    PacketCounters { flows, packets_in, bytes_in, packets_out, bytes_out }
}

/// The packet path; `None`: the configuration has no virtual servers of type fast_l4.
pub(crate) fn packet_path(judge: &Judge, observed: &ObservedState) -> Option<PacketPath> {
    let packets = judge.table().snapshot.packets.as_ref()?;
    let report = observed.packets.report().unwrap_or_default();
    Some(PacketPath {
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
        flows_ended: report.ended.all().map(|(why, count)| (why.to_owned(), count)).collect(),
        resets: report.resets,
        not_forwarded: report
            .reasons
            .iter()
            .filter(|count| count.packets > 0)
            .map(|count| (count.reason.name().to_owned(), count.packets))
            .collect(),
        virtual_servers: servers(judge, packets, &report, &observed.rates),
    })
}

fn interface(attachment: &weir_packet::Attachment) -> Interface {
    let refused = attachment.refused.iter().map(|it| (it.rung.name().to_owned(), it.why.clone()));
    Interface {
        name: attachment.interface.clone(),
        rung: attachment.rung.map_or("none", |rung| rung.name()).to_owned(),
        sends: if attachment.sends_for_xdp { "xdp" } else { "tcx" }.to_owned(),
        refused: refused.collect(),
    }
}

fn servers(judge: &Judge, packets: &Packets, report: &Report, rates: &Rates) -> Vec<PacketServer> {
    let of_packets = packets.servers.iter().map(|it| {
        let totals = report.servers.iter().find(|(name, _)| *name == *it.name);
        PacketServer {
            rungs: Some(report.rungs()),
            counters: totals.map(|(_, totals)| counters(totals)).unwrap_or_default(),
            rates: totals.and_then(|(name, totals)| {
                rates.of(CounterSource::Packets, name, &Counts::of_packets(totals))
            }),
            members: members(it, report),
            ..server(judge, it, BY_PACKETS)
        }
    });
    let fallen = packets.fallen.iter().map(|it| {
        let mut status =
            server(judge, &it.server, if it.unserved.is_none() { "sockets" } else { "nothing" });
        status.why = Some(it.why.to_string());
        if let Some(health) = unserved(it) {
            status.health = Health::from(&health);
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

fn server(judge: &Judge, server: &packet::PacketServer, served_by: &str) -> PacketServer {
    PacketServer {
        name: server.name.to_string(),
        health: Health::from(&judge.packet_server(server)),
        protocol: server.protocol.to_string(),
        listen: server.destinations.iter().map(|it| it.to_string()).collect(),
        pool: server.pool.map(|pool| judge.table().snapshot.pools[pool].name.to_string()),
        served_by: served_by.to_owned(),
        rungs: None,
        why: None,
        unserved: None,
        remarks: server.remarks.iter().map(|it| it.to_string()).collect(),
        counters: PacketCounters::default(),
        rates: None,
        members: Vec::new(),
    }
}

fn members(server: &packet::PacketServer, report: &Report) -> Vec<PacketMember> {
    let members = report.members.iter().filter(|(name, ..)| *name.virtual_server == *server.name);
    members
        .map(|(name, totals, flows)| PacketMember {
            address: member_label(name.address, name.port),
            flows: *flows,
            counters: counters(totals),
        })
        .collect()
}
