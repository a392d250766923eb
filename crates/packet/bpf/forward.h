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

INLINE bool can_send(__u32 index)
{
	const struct device *device = device_of(index);

	return device && device->flags & DEVICE_SENDS;
}

/* What each route takes (RFC 791: 576; IPv6 has more), so that it need not be asked. */
#define ANY_WAY_TAKES 576

/* The length of a packet, or of each that segmentation makes of it, as the way out has to take it. */
INLINE __u32 length_on_wire(const struct packet *packet)
{
	__u32 segment = packet->is_skb ? ((struct __sk_buff *)packet->context)->gso_size : 0, header = sizeof(struct udphdr);
	__u8 offset;

	if (!segment)
		return packet->bytes;
	if (packet->key.protocol == IPPROTO_TCP) {
		if (load(packet, (packet->transport & (OFFSET_MAX - 1)) + 12, &offset, 1))
			return packet->bytes;
		header = (offset >> 4) * 4;
	}
	return packet->transport - packet->network + header + segment;
}

/* XDP hands packets to devices that take them; all others are the second program's matter. */
INLINE int choose_device(const struct packet *packet, struct way *way)
{
	way->tag = NO_TAG;
	if (packet->is_skb)
		return OK;
	struct vlan_key key = {.device = way->device, .tag = VLAN_OF_DEVICE};

	if (can_send(way->device))
		return OK;
	struct vlan_value *found = bpf_map_lookup_elem(&vlans, &key);

	if (!found)
		return OTHER_DEVICE;
	way->tag = found->tag;
	way->device = found->device;
	return can_send(way->device) ? OK : OTHER_DEVICE;
}

/* Where the routing table is asked for. */
INLINE const struct address *hop_of(const struct flow *flow, const struct member *member)
{
	return flow->flags & FLOW_NEXT_HOP && !(flow->flags & FLOW_REVERSE) ? &member->address : &flow->target;
}

INLINE void keep_next_hop(const struct bpf_fib_lookup *query)
{
	struct scratch *scratch = scratch_of_core();

	if (scratch)
		__builtin_memcpy(&scratch->next_hop, query->ipv6_dst, sizeof(struct address));
}

/* Asks the routing table. What it tells is kept in `known`; NULL: it need not be. */
APART int ask_route(const struct packet *packet, const struct flow *flow, const struct member *member, struct way *way,
		    struct known_way *known)
{
	const struct address *hop = hop_of(flow, member);
	struct bpf_fib_lookup query = {};

	query.l4_protocol = packet->key.protocol;
	if (has_virtual_port(packet->key.protocol)) {
		query.sport = flow->source_port;
		query.dport = flow->target_port;
	}
	query.ifindex = packet->device;
	__u32 length = length_on_wire(packet);

	/*
	 * The way out of an skb has to be a narrow one for this: the helper knows its device without being asked. What is kept needs to
	 * be known for longer packets, too.
	 */
	query.tot_len = packet->is_skb && !known && length <= ANY_WAY_TAKES ? 0 : length;
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
	if (!way->is_resolved)
		keep_next_hop(&query);
	if (known && way->is_resolved) {
		known->told_ns = packet->now_ns;
		known->target = hop->word[3];
		known->from = packet->device;
		known->device = query.ifindex;
		known->mtu = query.mtu_result;
		known->tos = new_tos(packet, flow);
		__builtin_memcpy(known->hardware, query.smac, ETH_ALEN);
		__builtin_memcpy(known->hardware + ETH_ALEN, query.dmac, ETH_ALEN);
	}
	return OK;
}

/* The place for the way to a destination. NULL: routes depend on more than that, as far as anybody knows. */
INLINE struct known_way *place_of_way(const struct packet *packet, __be32 target)
{
	__u32 zero = 0, place = (target * 0x9e3779b1) >> 22;
	__u64 *until_ns = bpf_map_lookup_elem(&routes, &zero);

	if (packet->is_v6 || !until_ns || *until_ns < packet->now_ns)
		return NULL;
	place &= KNOWN_WAYS - 1;
	return bpf_map_lookup_elem(&known_ways, &place);
}

INLINE bool is_way_of(const struct known_way *known, const struct packet *packet, const struct flow *flow, __be32 target)
{
	return known->told_ns && packet->now_ns - known->told_ns < KNOWN_WAY_NS && known->target == target &&
	       known->from == packet->device && known->tos == new_tos(packet, flow) && length_on_wire(packet) <= known->mtu;
}

/* Where the packet goes. OK, or why it is not sent. */
INLINE int route(const struct packet *packet, const struct flow *flow, const struct member *member, struct way *way)
{
	__be32 target = hop_of(flow, member)->word[3];
	struct known_way *known = place_of_way(packet, target);

	if (!known || !is_way_of(known, packet, flow, target)) {
		int reason = ask_route(packet, flow, member, way, known);

		if (reason != OK)
			return reason;
	} else {
		way->is_resolved = true;
		way->device = known->device;
		way->family = FAMILY_V4;
		__builtin_memcpy(way->source, known->hardware, ETH_ALEN);
		__builtin_memcpy(way->target, known->hardware + ETH_ALEN, ETH_ALEN);
	}
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
	const struct scratch *scratch = scratch_of_core();

	if (!scratch)
		return DROPPED;
	if (way->family == FAMILY_V4)
		hop.ipv4_nh = scratch->next_hop.word[0];
	else
		__builtin_memcpy(hop.ipv6_nh, &scratch->next_hop, sizeof(struct address));
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

/* Segments so near to the last one are in line: those between may have been lost on their way here. */
#define NEAR_MAX 65536
/* No window is larger (RFC 7323, 2.3). */
#define WINDOW_MAX (1 << 30)

/* Whether a reset is one that its receiver takes (RFC 5961, 3.2): anyone can send others. */
APART int is_expected_reset(const struct packet *packet, const struct flow *flow)
{
	struct flow_key key;
	struct hold hold = {};

	if (!flow->packets || packet->sent == flow->sent)
		return true;
	if (flow->flags & FLOW_DIRECT)
		return false;
	other_key(flow, packet->key.protocol, &key);
	const struct flow *other = flow_at(&key, &hold);

	return other && other->acknowledged == bpf_htonl(packet->sent) && is_held(&hold);
}

/*
 * Whether a segment that is far from the last one is its sender's all the same, after a burst that was lost on its way here, or as
 * part of one that is sent again. It acknowledges what the other end has sent and it had not, as others do not know it (RFC 5961, 5.2).
 */
APART int is_of_sender(const struct packet *packet, const struct flow *flow)
{
	__s32 ahead = packet->sent - flow->sent;
	__u32 acknowledged = bpf_ntohl(packet->acknowledged);
	struct flow_key key;
	struct hold hold = {};

	if (ahead > WINDOW_MAX || ahead < -WINDOW_MAX || !(packet->tcp_flags & TCP_ACK) || flow->flags & FLOW_DIRECT)
		return false;
	other_key(flow, packet->key.protocol, &key);
	const struct flow *other = flow_at(&key, &hold);

	return other && (__s32)(acknowledged - bpf_ntohl(flow->acknowledged)) >= 0 && (__s32)(other->sent - acknowledged) >= 0 &&
	       is_held(&hold);
}

/*
 * A new connection between the same ends: its numbers have nothing to do with those of the one before. They hold once a SYN is
 * answered, for anyone can send one; what has an open connection answers otherwise (RFC 5961, 4.2).
 */
APART int begin_numbers(const struct packet *packet, struct flow *flow)
{
	struct flow *other = NULL;
	struct flow_key key;
	struct hold hold = {};

	if (packet->tcp_flags & TCP_ACK) {
		if (!(flow->flags & FLOW_DIRECT)) {
			other_key(flow, packet->key.protocol, &key);
			other = flow_at(&key, &hold);
		}
		if (flow->packets && !(other && other->state & STATE_SYN))
			return 0;
		if (other) {
			other->sent = bpf_ntohl(packet->acknowledged);
			other->state = 0;
		}
		flow->acknowledged = packet->acknowledged;
	} else if (flow->packets && !(flow->flags & FLOW_DIRECT)) {
		flow->state |= STATE_SYN;
		return 0;
	}
	flow->sent = packet->sent;
	flow->state = 0;
	return 0;
}

/* What TCP says of its connection. A reset ends it unless more comes of its sender; so does a FIN without more data. */
INLINE void follow(const struct packet *packet, struct flow *flow)
{
	__s32 ahead = packet->sent - flow->sent;

	/* It has no numbers. */
	if (packet->fragment == FRAGMENT_LATER)
		return;
	if (packet->tcp_flags & TCP_SYN) {
		begin_numbers(packet, flow);
		return;
	}
	if (packet->tcp_flags & TCP_RST) {
		if (is_expected_reset(packet, flow))
			flow->state |= STATE_RST;
		return;
	}
	/* What is forged says nothing: resets and FINs are held against what is noted here. */
	if (flow->packets && (ahead > NEAR_MAX || ahead < -NEAR_MAX) && !is_of_sender(packet, flow))
		return;
	if (packet->tcp_flags & TCP_ACK)
		flow->acknowledged = packet->acknowledged;
	/* A segment that is sent again does not take it back. */
	if (ahead > 0 || !flow->packets)
		flow->sent = packet->sent;
	if (packet->tcp_flags & TCP_FIN)
		flow->state = STATE_FIN;
	else if (flow->state)
		flow->state &= ahead > 0 ? 0 : STATE_FIN;
}

INLINE void note(const struct packet *packet, struct flow *flow)
{
	struct totals *totals = bpf_map_lookup_elem(&member_totals, &flow->member);

	follow(packet, flow);
	flow->seen_ns = packet->now_ns;
	flow->packets += 1;
	flow->bytes += packet->bytes;
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
