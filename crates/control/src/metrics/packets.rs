//! Metrics of the packet path. They have no samples without a packet path.

use std::sync::Arc;

use weir_packet::{PacketVerdict, Totals};

use super::Kind::{Counter, Gauge};
use super::families::{families, family};
use super::{Description, Family, Labels, Page, Samples, write_families};
use crate::observed_state::ObservedState;
use crate::packets::Report;

/// A virtual server that uses the packet path.
pub(super) struct PacketServerView {
    name: String,
    totals: Totals,
}

/// A member of a virtual server that uses the packet path.
pub(super) struct PacketMemberView {
    server: String,
    member: String,
    totals: Totals,
    flows: u64,
}

pub(super) const PACKET_SERVERS: &[Family<PacketServerView>] = families! { "virtual_server";
    "weir_l4_virtual_server_flows_total" Counter
        "Flows that began."
        |server, to| to.value(server.totals.flows);
    "weir_l4_virtual_server_packets_total" Counter + ",direction"
        "Packets from clients (direction in) and to them (out)."
        |server, to| directions(to, server.totals.packets_in, server.totals.packets_out);
    "weir_l4_virtual_server_bytes_total" Counter + ",direction"
        "Their bytes, IP headers included."
        |server, to| directions(to, server.totals.bytes_in, server.totals.bytes_out);
};

pub(super) const PACKET_MEMBERS: &[Family<PacketMemberView>] = families! { "virtual_server,member";
    "weir_l4_member_flows" Gauge
        "Flows of the member."
        |member, to| to.value(member.flows);
    "weir_l4_member_flows_total" Counter
        "Flows that the member has got."
        |member, to| to.value(member.totals.flows);
    "weir_l4_member_packets_total" Counter + ",direction"
        "Packets from clients (direction in) and to them (out)."
        |member, to| directions(to, member.totals.packets_in, member.totals.packets_out);
    "weir_l4_member_bytes_total" Counter + ",direction"
        "Their bytes, IP headers included."
        |member, to| directions(to, member.totals.bytes_in, member.totals.bytes_out);
};

pub(super) const PACKET_PATH: &[Family<Arc<Report>>] = families! { "";
    "weir_l4_flows" Gauge
        "Flows in the table."
        |path, to| to.value(path.flows);
    "weir_l4_flows_max" Gauge
        "Capacity of the flow table (flows_max)."
        |path, to| to.value(u64::from(path.flows_max));
    "weir_l4_flows_ended_total" Counter + "why"
        "Flows ended by weir: idle, closed, their member went down, their virtual server was removed, or by a command."
        |path, to| {
            for (why, count) in path.ended.all() {
                to.labelled("why", why, count);
            }
        };
    "weir_l4_resets_total" Counter
        "TCP resets sent to clients and members of flows."
        |path, to| to.value(path.resets);
    "weir_l4_not_forwarded_total" Counter + "reason,verdict"
        "Packets that were not forwarded, by reason, and by verdict: dropped, answered or passed to the kernel."
        |path, to| {
            for count in &path.reasons {
                let verdict = match count.reason.verdict() {
                    PacketVerdict::Passed => "passed",
                    PacketVerdict::Dropped => "dropped",
                    PacketVerdict::Answered => "answered",
                };
                to.labelled_twice([("reason", count.reason.name()), ("verdict", verdict)], count.packets);
            }
        };
    "weir_l4_interface_rung" Gauge + "interface,rung"
        "1 for the rung that an interface uses: xdp, tcx, or none."
        |path, to| {
            for it in &path.attachments {
                let rung = it.rung.map_or("none", |rung| rung.name());
                to.labelled_twice([("interface", &it.interface), ("rung", rung)], 1);
            }
        };
};

fn directions(to: &mut Samples<'_>, inward: u64, outward: u64) {
    to.labelled("direction", "in", inward);
    to.labelled("direction", "out", outward);
}

/// Writes all metrics of the packet path.
pub(super) fn write(page: &mut Page<'_>, observed: &ObservedState) {
    let report = observed.packets.report();
    let servers = report.iter().flat_map(|report| &report.servers);
    let servers: Vec<PacketServerView> = servers
        .map(|(name, totals)| PacketServerView { name: name.clone(), totals: *totals })
        .collect();
    let members = report.iter().flat_map(|report| &report.members);
    let members: Vec<PacketMemberView> = members
        .map(|(name, totals, flows)| PacketMemberView {
            server: name.virtual_server.clone(),
            member: crate::packets::member_label(name.address, name.port),
            totals: *totals,
            flows: *flows,
        })
        .collect();
    write_families(page, PACKET_SERVERS, &servers, |server, labels: &mut Labels| {
        labels.add("virtual_server", &server.name);
    });
    write_families(page, PACKET_MEMBERS, &members, |member, labels| {
        labels.add("virtual_server", &member.server);
        labels.add("member", &member.member);
    });
    let path: Vec<Arc<Report>> = report.into_iter().collect();
    write_families(page, PACKET_PATH, &path, |_, _| {});
}

/// The descriptions of the metrics of the packet path.
pub(super) fn descriptions() -> impl Iterator<Item = Description> {
    let servers = PACKET_SERVERS.iter().map(|family| family.description);
    let members = PACKET_MEMBERS.iter().map(|family| family.description);
    servers.chain(members).chain(PACKET_PATH.iter().map(|family| family.description))
}
