/* Changes a packet to what its flow says, checksums by their differences (RFC 1624). */
#pragma once

#include "flows.h"

/* What changes, as sums of differences. */
struct changes {
	__u64 addresses; /* of the pseudo header as well */
	__u64 transport; /* ports, MSS */
};

INLINE __u8 new_ttl(const struct packet *packet, const struct flow *flow)
{
	if (flow->flags & FLOW_TTL_SET)
		return flow->ttl;
	return flow->flags & FLOW_TTL_KEEP ? packet->ttl : packet->ttl - 1;
}

/* The two bits of ECN stay. */
INLINE __u8 new_tos(const struct packet *packet, const struct flow *flow)
{
	return flow->flags & FLOW_TOS_SET ? (flow->tos & ~3) | (packet->tos & 3) : packet->tos;
}

INLINE __u64 replace_address(__u64 sum, const struct address *old, const struct address *new)
{
	for (int word = 0; word < 4; word++)
		sum = replace32(sum, old->word[word], new->word[word]);
	return sum;
}

INLINE int rewrite_network(const struct packet *packet, const struct flow *flow, struct changes *changes)
{
	void *at = data_of(packet) + (packet->network & 31);

	if (packet->is_v6) {
		struct ipv6hdr *ip = at;

		if ((void *)(ip + 1) > end_of(packet))
			return NOT_CHANGED;
		__u8 tos = new_tos(packet, flow);

		changes->addresses = replace_address(0, &packet->key.source, &flow->source);
		changes->addresses = replace_address(changes->addresses, &packet->key.target, &flow->target);
		__builtin_memcpy(&ip->saddr, &flow->source, sizeof(struct address));
		__builtin_memcpy(&ip->daddr, &flow->target, sizeof(struct address));
		ip->hop_limit = new_ttl(packet, flow);
		ip->priority = tos >> 4;
		ip->flow_lbl[0] = (ip->flow_lbl[0] & 15) | (tos << 4);
		return OK;
	}
	struct iphdr *ip = at;

	if ((void *)(ip + 1) > end_of(packet))
		return NOT_CHANGED;
	__u64 sum = replace32(0, packet->key.source.word[3], flow->source.word[3]);

	sum = replace32(sum, packet->key.target.word[3], flow->target.word[3]);
	changes->addresses = sum;
	__u8 ttl = new_ttl(packet, flow), tos = new_tos(packet, flow);

	sum = replace16(sum, bpf_htons(packet->ttl << 8), bpf_htons(ttl << 8));
	sum = replace16(sum, bpf_htons(packet->tos), bpf_htons(tos));
	ip->saddr = flow->source.word[3];
	ip->daddr = flow->target.word[3];
	ip->ttl = ttl;
	ip->tos = tos;
	ip->check = changed_checksum(ip->check, sum);
	return OK;
}

/* Lowers the MSS of a SYN, which is among its first twelve options. It may stand at an odd place, where the sum sees its bytes the other way round. */
APART int lower_mss(const struct packet *packet, const struct flow *flow, struct changes *changes)
{
	__u32 at = 0, start = (packet->transport & (OFFSET_MAX - 1)) + sizeof(struct tcphdr);
	struct scratch *scratch = scratch_of_core();
	__u8 offset;

	if (!scratch || load(packet, start - 8, &offset, 1))
		return 0;
	__u32 length = (offset >> 4) * 4;

	if (length <= sizeof(struct tcphdr))
		return 0;
	length = (length - sizeof(struct tcphdr)) & 63;
	if (length < 4 || length > 40 || load(packet, start, scratch->bytes, length))
		return 0;
	for (int option = 0; option < 12; option++) {
		if (at + 4 > length)
			return 0;
		__u8 kind = scratch->bytes[at & 63], size = scratch->bytes[(at + 1) & 63];

		if (kind == 0)
			return 0;
		if (kind == 2 && size == 4) {
			__u16 old = (scratch->bytes[(at + 2) & 63] << 8) | scratch->bytes[(at + 3) & 63];
			__be16 new = bpf_htons(flow->mss_max);

			if (old <= flow->mss_max || store(packet, start + (at & 63) + 2, &new, 2))
				return 0;
			if (at & 1)
				changes->transport = replace16(changes->transport, old, flow->mss_max);
			else
				changes->transport = replace16(changes->transport, bpf_htons(old), new);
			return 0;
		}
		at += kind == 1 ? 1 : (size < 2 ? 40 : size);
	}
	return 0;
}

/* The checksum of what is carried. That of an skb may be half done, which only the kernel's helper knows. */
INLINE void change_checksum(const struct packet *packet, __u32 offset, const struct changes *changes, bool has_pseudo,
			    bool is_udp)
{
	if (packet->is_skb) {
		__u64 mangled = is_udp ? BPF_F_MARK_MANGLED_0 : 0;

		if (has_pseudo && changes->addresses)
			bpf_l4_csum_replace(packet->context, offset, 0, fold32(changes->addresses), BPF_F_PSEUDO_HDR | mangled);
		if (changes->transport)
			bpf_l4_csum_replace(packet->context, offset, 0, fold32(changes->transport), mangled);
		return;
	}
	__u16 *checksum = data_of(packet) + (offset & (OFFSET_MAX - 1));

	if ((void *)(checksum + 1) > end_of(packet))
		return;
	/* UDP over IPv4 may have none. */
	if (is_udp && !*checksum)
		return;
	__u64 sum = (has_pseudo ? fold32(changes->addresses) : 0) + (__u64)fold32(changes->transport);
	__u16 changed = changed_checksum(*checksum, sum);

	*checksum = is_udp && !changed ? 0xffff : changed;
}

INLINE int rewrite_transport(const struct packet *packet, const struct flow *flow, struct changes *changes)
{
	__u32 offset = packet->transport & (OFFSET_MAX - 1);
	void *at = data_of(packet) + offset;
	__u8 protocol = packet->key.protocol;

	if (packet->fragment == FRAGMENT_LATER)
		return OK;
	if (has_virtual_port(protocol)) {
		__be16 *ports = at;

		if ((void *)(ports + 4) > end_of(packet))
			return NOT_CHANGED;
		__u64 sum = replace16(0, packet->key.source_port, flow->source_port);

		changes->transport = replace16(sum, packet->key.target_port, flow->target_port);
		ports[0] = flow->source_port;
		ports[1] = flow->target_port;
		if (flow->mss_max && packet->tcp_flags & TCP_SYN)
			lower_mss(packet, flow, changes);
		change_checksum(packet, offset + (protocol == IPPROTO_TCP ? 16 : 6), changes, true,
				protocol == IPPROTO_UDP);
	} else if (protocol == (packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		struct icmphdr *icmp = at;

		if ((void *)(icmp + 1) > end_of(packet))
			return NOT_CHANGED;
		changes->transport = replace16(0, packet->key.source_port, flow->source_port);
		icmp->un.echo.id = flow->source_port;
		change_checksum(packet, offset + 2, changes, packet->is_v6, false);
	}
	return OK;
}

INLINE int rewrite(const struct packet *packet, const struct flow *flow)
{
	struct changes changes = {};
	int reason = rewrite_network(packet, flow, &changes);

	return reason == OK ? rewrite_transport(packet, flow, &changes) : reason;
}
