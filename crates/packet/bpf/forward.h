/* Where a packet goes: the routing table, tags and hardware addresses. */
#pragma once

#include "rewrite.h"

#define FAMILY_V4 2
#define FAMILY_V6 10
#define NO_TAG -1

/* What becomes of a packet where no helper has said it. */
#define PASSED 0
#define DROPPED 1

struct way {
	__u32 device;      /* that the packet leaves by */
	__s32 tag;         /* the VLAN's there, or NO_TAG */
	__u32 mtu;
	bool is_resolved;  /* the hardware addresses are known */
	__u8 family;       /* of the next hop */
	__u8 source[ETH_ALEN];
	__u8 target[ETH_ALEN];
	struct address next_hop;
};

INLINE int reason_of_route(long result)
{
	switch (result) {
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return NO_ROUTE;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		return FORWARDING_OFF;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return TOO_BIG;
	default:
		return NOT_FORWARDED;
	}
}

/* XDP hands packets to devices that take them; all others are the second program's matter. */
INLINE int choose_device(const struct packet *packet, struct way *way)
{
	way->tag = NO_TAG;
	if (packet->is_skb)
		return OK;
	struct vlan_key key = {.device = way->device, .tag = VLAN_OF_DEVICE};

	if (bpf_map_lookup_elem(&devices, &way->device))
		return OK;
	struct vlan_value *found = bpf_map_lookup_elem(&vlans, &key);

	if (!found)
		return OTHER_DEVICE;
	way->tag = found->tag;
	way->device = found->device;
	return bpf_map_lookup_elem(&devices, &way->device) ? OK : OTHER_DEVICE;
}

APART int route(const struct packet *packet, const struct flow *flow, const struct member *member, struct way *way)
{
	const struct address *hop = flow->flags & FLOW_NEXT_HOP && !(flow->flags & FLOW_REVERSE) ? &member->address : &flow->target;
	struct bpf_fib_lookup query = {};

	query.l4_protocol = packet->key.protocol;
	if (has_virtual_port(packet->key.protocol)) {
		query.sport = flow->source_port;
		query.dport = flow->target_port;
	}
	query.ifindex = packet->device;
	/* Of an skb the helper looks at its length itself: segmentation may stand behind it. */
	query.tot_len = packet->is_skb ? 0 : packet->bytes;
	if (packet->is_v6) {
		query.family = FAMILY_V6;
		__builtin_memcpy(query.ipv6_src, &flow->source, sizeof(struct address));
		__builtin_memcpy(query.ipv6_dst, hop, sizeof(struct address));
	} else {
		query.family = FAMILY_V4;
		query.tos = new_tos(packet, flow);
		query.ipv4_src = flow->source.word[3];
		query.ipv4_dst = hop->word[3];
	}
	long result = bpf_fib_lookup(packet->context, &query, sizeof(query), 0);

	if (result == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		way->mtu = query.mtu_result;
	if (result != BPF_FIB_LKUP_RET_SUCCESS && result != BPF_FIB_LKUP_RET_NO_NEIGH)
		return reason_of_route(result);
	way->is_resolved = result == BPF_FIB_LKUP_RET_SUCCESS;
	if (!way->is_resolved && !packet->is_skb)
		return NEIGHBOUR_UNRESOLVED;
	way->device = query.ifindex;
	way->family = query.family;
	__builtin_memcpy(way->source, query.smac, ETH_ALEN);
	__builtin_memcpy(way->target, query.dmac, ETH_ALEN);
	if (packet->is_skb)
		__builtin_memcpy(&way->next_hop, query.ipv6_dst, sizeof(struct address));
	return choose_device(packet, way);
}

/* Puts a tag in, takes it out or changes it, by moving the hardware addresses, which are written anew afterwards. */
INLINE int change_tag(const struct packet *packet, const struct way *way)
{
	bool wanted = way->tag != NO_TAG;

	if (wanted != packet->has_tag &&
	    bpf_xdp_adjust_head(packet->context, wanted ? -(int)sizeof(struct vlan_header) : (int)sizeof(struct vlan_header)))
		return NOT_CHANGED;
	if (!wanted && !packet->has_tag)
		return OK;
	struct ethhdr *ethernet = data_of(packet);
	struct vlan_header *tag = (void *)(ethernet + 1);
	__be16 protocol = packet->is_v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

	if ((void *)(tag + 1) > end_of(packet))
		return NOT_CHANGED;
	if (wanted) {
		ethernet->h_proto = bpf_htons(ETH_P_8021Q);
		tag->tag = bpf_htons(way->tag);
		tag->protocol = protocol;
	} else {
		ethernet->h_proto = protocol;
	}
	return OK;
}

INLINE long redirect_unresolved(const struct way *way)
{
	struct bpf_redir_neigh hop = {.nh_family = way->family};

	if (way->family == FAMILY_V4)
		hop.ipv4_nh = way->next_hop.word[0];
	else
		__builtin_memcpy(hop.ipv6_nh, &way->next_hop, sizeof(struct address));
	return bpf_redirect_neigh(way->device, &hop, sizeof(hop), 0);
}

/* Sends the packet, which is changed already. */
INLINE long send(const struct packet *packet, const struct way *way)
{
	if (packet->is_skb && !way->is_resolved)
		return redirect_unresolved(way);
	struct ethhdr *ethernet = data_of(packet);

	if ((void *)(ethernet + 1) > end_of(packet)) {
		count(NOT_CHANGED);
		return DROPPED;
	}
	__builtin_memcpy(ethernet->h_dest, way->target, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, way->source, ETH_ALEN);
	return bpf_redirect(way->device, 0);
}

INLINE void note(const struct packet *packet, struct flow *flow)
{
	struct totals *totals = bpf_map_lookup_elem(&member_totals, &flow->member);

	if (packet->tcp_flags & TCP_ACK)
		flow->acknowledged = packet->acknowledged;
	/* A segment that is sent again does not take it back. */
	if ((__s32)(packet->sent - flow->sent) > 0 || !flow->packets)
		flow->sent = packet->sent;
	flow->seen_ns = packet->now_ns;
	flow->packets += 1;
	flow->bytes += packet->bytes;
	if (packet->tcp_flags & (TCP_FIN | TCP_RST))
		flow->state |= packet->tcp_flags & TCP_RST ? STATE_RST : STATE_FIN;
	if (!totals)
		return;
	if (flow->flags & FLOW_REVERSE) {
		totals->packets_out += 1;
		totals->bytes_out += packet->bytes;
	} else {
		totals->packets_in += 1;
		totals->bytes_in += packet->bytes;
	}
}
