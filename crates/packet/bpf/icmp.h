/* ICMP errors: the packet inside them is changed back to what its sender sent (RFC 5508, section 4). */
#pragma once

#include "forward.h"

/* Reads the packet inside. OK, or why it is of no use. */
APART int parse_inner(const struct packet *packet, struct inner *inner)
{
	inner->network = (packet->transport & (OFFSET_MAX - 1)) + sizeof(struct icmphdr);
	if (packet->is_v6) {
		struct ipv6hdr ip;

		if (load(packet, inner->network, &ip, sizeof(ip)) || ip.version != 6)
			return ICMP_WITHOUT_FLOW;
		__builtin_memcpy(&inner->key.source, &ip.saddr, sizeof(struct address));
		__builtin_memcpy(&inner->key.target, &ip.daddr, sizeof(struct address));
		if (is_mapped(&inner->key.source) || is_mapped(&inner->key.target))
			return ICMP_WITHOUT_FLOW;
		inner->key.protocol = ip.nexthdr;
		inner->transport = inner->network + sizeof(ip);
		if (ip.nexthdr == HEADER_FRAGMENT) {
			struct extension_header fragment;

			if (load(packet, inner->transport & (OFFSET_MAX - 1), &fragment, sizeof(fragment)) || fragment.type ||
			    fragment.left & ~7)
				return ICMP_WITHOUT_FLOW;
			inner->key.protocol = fragment.next;
			inner->transport += sizeof(fragment);
		}
	} else {
		struct iphdr ip;

		if (load(packet, inner->network, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5 ||
		    ip.frag_off & bpf_htons(IPV4_OFFSET))
			return ICMP_WITHOUT_FLOW;
		map_v4(&inner->key.source, ip.saddr);
		map_v4(&inner->key.target, ip.daddr);
		inner->key.protocol = ip.protocol;
		inner->transport = inner->network + ip.ihl * 4;
	}
	__be16 words[4];

	inner->transport &= OFFSET_MAX - 1;
	if (load(packet, inner->transport, words, sizeof(words)))
		return ICMP_WITHOUT_FLOW;
	if (has_virtual_port(inner->key.protocol)) {
		inner->key.source_port = words[0];
		inner->key.target_port = words[1];
		inner->checksum = inner->transport + (inner->key.protocol == IPPROTO_TCP ? 16 : 6);
	} else if (inner->key.protocol == (packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		inner->key.source_port = inner->key.target_port = words[2];
		inner->checksum = inner->transport + 2;
		inner->is_echo = true;
	}
	return OK;
}

INLINE __u64 store_address(const struct packet *packet, __u32 offset, const struct address *old, const struct address *new)
{
	struct address copy = *new;

	if (packet->is_v6)
		store(packet, offset, &copy, sizeof(copy));
	else
		store(packet, offset, &copy.word[3], 4);
	return replace_address(0, old, new);
}

/* Changes the IP header inside; returns what it adds to sums over it. */
INLINE __u64 rewrite_inner_network(const struct packet *packet, const struct inner *inner, const struct flow *flow,
				   __u64 *pseudo)
{
	__u32 at = inner->network + (packet->is_v6 ? 8 : 12);
	__u64 sum = fold32(store_address(packet, at, &inner->key.source, &flow->target));

	sum += fold32(store_address(packet, at + (packet->is_v6 ? 16 : 4), &inner->key.target, &flow->source));
	*pseudo = sum;
	if (packet->is_v6)
		return sum;
	__u16 old, new;

	if (load(packet, inner->network + 10, &old, 2))
		return sum;
	new = changed_checksum(old, sum);
	store(packet, inner->network + 10, &new, 2);
	return replace16(sum, old, new);
}

/* Changes ports, or the identifier, and the checksum behind them as far as it is there. */
INLINE __u64 rewrite_inner_transport(const struct packet *packet, const struct inner *inner, const struct flow *flow,
				     __u64 pseudo)
{
	__be16 ports[2] = {flow->target_port, flow->source_port};
	__u64 sum = replace16(0, inner->key.source_port, ports[0]);
	__u16 old, new;

	if (!inner->checksum)
		return 0;
	if (inner->is_echo) {
		store(packet, inner->transport + 4, ports, 2);
	} else {
		sum = replace16(sum, inner->key.target_port, ports[1]);
		store(packet, inner->transport, ports, sizeof(ports));
	}
	if (inner->checksum + 2 > packet->network + packet->bytes || load(packet, inner->checksum, &old, 2))
		return sum;
	if (inner->key.protocol == IPPROTO_UDP && !old)
		return sum;
	new = changed_checksum(old, (__u64)fold32(sum) + (inner->is_echo && !packet->is_v6 ? 0 : pseudo));
	if (inner->key.protocol == IPPROTO_UDP && !new)
		new = 0xffff;
	store(packet, inner->checksum, &new, 2);
	return replace16(sum, old, new);
}

/* The error belongs to the flow of the packet inside, turned round: its key becomes that one's. */
INLINE struct flow *flow_of_error(const struct packet *packet, const struct plan *plan, struct scratch *scratch, struct hold *hold)
{
	struct flow_key *turned = &scratch->reverse_key;
	struct inner *inner = &scratch->inner;

	turned->source = inner->key.target;
	turned->target = inner->key.source;
	turned->source_port = inner->key.target_port;
	turned->target_port = inner->key.source_port;
	turned->protocol = inner->key.protocol;
	turned->zero[0] = turned->zero[1] = turned->zero[2] = 0;
	struct flow *flow = flow_at(turned, hold);

	if (!flow && plan->settings->flags & HAS_DIRECT)
		flow = bpf_map_lookup_elem(&direct, turned);
	return flow;
}

APART int rewrite_error(const struct packet *packet, const struct flow *outer, const struct flow *flow,
			const struct inner *inner)
{
	struct changes changes = {};
	__u64 pseudo, sum;
	int reason = rewrite_network(packet, outer, &changes);

	if (reason != OK)
		return reason;
	sum = fold32(rewrite_inner_network(packet, inner, flow, &pseudo));
	sum += fold32(rewrite_inner_transport(packet, inner, flow, fold32(pseudo)));
	if (packet->is_v6)
		sum += fold32(changes.addresses);
	/* Stored directly: an error is never half summed. */
	__u32 offset = (packet->transport & (OFFSET_MAX - 1)) + 2;
	__u16 checksum;

	if (load(packet, offset, &checksum, 2))
		return NOT_CHANGED;
	checksum = changed_checksum(checksum, sum);
	return store(packet, offset, &checksum, 2) ? NOT_CHANGED : OK;
}
