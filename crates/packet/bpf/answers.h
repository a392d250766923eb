/* Answers to senders: "packet too big", and SYN cookies, which only XDP gives. */
#pragma once

#include "forward.h"

#define QUOTED_BYTES 64
#define SYN_ACK_BYTES 24 /* a TCP header with the MSS */
#define SYN_ACK_WINDOW 65535

INLINE void swap_hardware(struct ethhdr *ethernet)
{
	__u8 address[ETH_ALEN];

	__builtin_memcpy(address, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, address, ETH_ALEN);
}

INLINE __u64 sum_of_pseudo(const struct address *one, const struct address *other, __u32 length, __u8 protocol)
{
	__u64 sum = bpf_htonl(length);

	sum += bpf_htonl(protocol);
	for (int word = 0; word < 4; word++)
		sum += (__u64)one->word[word] + other->word[word];
	return sum;
}

INLINE void header_v4(struct iphdr *ip, const struct packet *packet, __u16 bytes, __u8 protocol)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = bpf_htons(bytes);
	ip->frag_off = bpf_htons(IPV4_DONT_FRAGMENT);
	ip->ttl = 64;
	ip->protocol = protocol;
	ip->saddr = packet->key.target.word[3];
	ip->daddr = packet->key.source.word[3];
	ip->check = ~fold16((__u32)bpf_csum_diff(NULL, 0, (__be32 *)ip, sizeof(*ip), 0));
}

INLINE void header_v6(struct ipv6hdr *ip, const struct packet *packet, __u16 bytes, __u8 protocol)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 6;
	ip->payload_len = bpf_htons(bytes);
	ip->nexthdr = protocol;
	ip->hop_limit = 64;
	__builtin_memcpy(&ip->saddr, &packet->key.target, sizeof(struct address));
	__builtin_memcpy(&ip->daddr, &packet->key.source, sizeof(struct address));
}

#define NO_SUM ((__u64)-1)

/*
 * The sum of the quoted bytes as they will be on the wire. The checksum of an skb may be left to the device, which makes it over the
 * quote then, too: what it covers adds up to the complement of what stands in its place now, the sum of the pseudo header.
 */
APART __u64 sum_of_quote(const struct packet *packet, __u8 *quote)
{
	__u32 header = (packet->transport - packet->network) & (QUOTED_BYTES - 1);
	__u32 at = (packet->transport & (OFFSET_MAX - 1)) + (packet->key.protocol == IPPROTO_TCP ? 16 : 6);
	__u16 before, after;

	if (packet->is_skb && has_virtual_port(packet->key.protocol) && packet->fragment != FRAGMENT_LATER) {
		if (load(packet, at, &before, 2))
			return NO_SUM;
		/* Without the pseudo header's flag this changes no checksum that is yet to be made. */
		bpf_l4_csum_replace(packet->context, at, 0, bpf_htons(1), 2);
		if (load(packet, at, &after, 2))
			return NO_SUM;
		if (before == after)
			return (__u64)(__u32)bpf_csum_diff(NULL, 0, (__be32 *)quote, header & ~3, 0) + (__u16)~before;
	}
	return (__u32)bpf_csum_diff(NULL, 0, (__be32 *)quote, QUOTED_BYTES, 0);
}

/* Cuts the packet behind so many bytes, and makes room in front. */
INLINE long make_room(const struct packet *packet, __u32 kept, __u32 length, __u32 room)
{
	if (packet->is_skb)
		return bpf_skb_change_tail(packet->context, kept, 0) || bpf_skb_change_head(packet->context, room, 0);
	return bpf_xdp_adjust_tail(packet->context, (int)kept - (int)length) ||
	       bpf_xdp_adjust_head(packet->context, -(int)room);
}

/* Errors are limited (RFC 4443, 2.4 f; RFC 1812, 4.3.2.8): so many nanoseconds each, and so many of them at once, for each core. */
#define ANSWER_NS 1000000ULL
#define ANSWERS_AT_ONCE 200

INLINE bool may_answer(__u64 now_ns)
{
	__u32 zero = 0;
	__u64 *used = bpf_map_lookup_elem(&answered, &zero);

	if (!used)
		return false;
	if (*used < now_ns)
		*used = now_ns;
	if (*used - now_ns >= ANSWERS_AT_ONCE * ANSWER_NS)
		return false;
	*used += ANSWER_NS;
	return true;
}

/*
 * "Fragmentation needed" (RFC 792, 1191) or "packet too big" (RFC 4443), from the address that was asked for. A sender that allows
 * for fragments gets it as well: no program makes fragments, and it can.
 */
APART int answer_too_big(const struct packet *packet, __u32 mtu)
{
	__u32 network = packet->network & 31;
	__u32 header = packet->is_v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	__u32 length = packet->is_skb ? ((struct __sk_buff *)packet->context)->len : bpf_xdp_get_buff_len(packet->context);
	struct scratch *scratch = scratch_of_core();
	struct ethhdr ethernet;
	struct vlan_header tag = {};

	if (!scratch || length < network + QUOTED_BYTES || load(packet, 0, &ethernet, sizeof(ethernet)))
		return NOT_CHANGED;
	bool has_tag = packet->has_tag && !packet->is_skb;

	if (has_tag && load(packet, sizeof(ethernet), &tag, sizeof(tag)))
		return NOT_CHANGED;
	struct icmphdr *icmp = (void *)scratch->bytes;

	if (load(packet, network, scratch->bytes + sizeof(*icmp), QUOTED_BYTES))
		return NOT_CHANGED;
	__u64 quoted = sum_of_quote(packet, scratch->bytes + sizeof(*icmp));

	if (quoted == NO_SUM || make_room(packet, network + QUOTED_BYTES, length, header + sizeof(*icmp)))
		return NOT_CHANGED;
	__builtin_memset(icmp, 0, sizeof(*icmp));
	icmp->type = packet->is_v6 ? ICMPV6_PKT_TOOBIG : ICMP_DEST_UNREACH;
	icmp->code = packet->is_v6 ? 0 : ICMP_FRAG_NEEDED;
	if (packet->is_v6)
		icmp->un.gateway = bpf_htonl(mtu);
	else
		icmp->un.frag.mtu = bpf_htons(mtu);
	__u64 sum = quoted + (__u32)bpf_csum_diff(NULL, 0, (__be32 *)scratch->bytes, sizeof(*icmp), 0);

	if (packet->is_v6)
		sum += fold32(sum_of_pseudo(&packet->key.source, &packet->key.target, sizeof(*icmp) + QUOTED_BYTES,
					    IPPROTO_ICMPV6));
	icmp->checksum = ~fold16(sum);
	swap_hardware(&ethernet);
	store(packet, 0, &ethernet, sizeof(ethernet));
	if (has_tag)
		store(packet, sizeof(ethernet), &tag, sizeof(tag));
	if (packet->is_v6) {
		struct ipv6hdr ip;

		header_v6(&ip, packet, sizeof(*icmp) + QUOTED_BYTES, IPPROTO_ICMPV6);
		store(packet, network, &ip, sizeof(ip));
	} else {
		struct iphdr ip;

		header_v4(&ip, packet, sizeof(ip) + sizeof(*icmp) + QUOTED_BYTES, IPPROTO_ICMP);
		store(packet, network, &ip, sizeof(ip));
	}
	if (store(packet, network + header, scratch->bytes, sizeof(*icmp) + QUOTED_BYTES))
		return NOT_CHANGED;
	return OK;
}

INLINE bool has_cookies(const struct packet *packet, const struct plan *plan)
{
	struct cookie_key key = {.address = packet->key.target, .port = packet->key.target_port, .epoch = plan->epoch};

	return bpf_map_lookup_elem(&cookies, &key);
}

/* The listening socket's cookie for this SYN, with the MSS above it; negative: let it pass. */
INLINE __s64 cookie_of(const struct packet *packet, struct scratch *scratch)
{
	__u32 offset = packet->transport & (OFFSET_MAX - 1);
	struct bpf_sock_tuple tuple = {};
	struct tcphdr *tcp = (void *)scratch->bytes;
	__s64 cookie = -1;
	__u32 size;

	if (load(packet, offset, tcp, sizeof(*tcp)))
		return -1;
	__u32 length = tcp->doff * 4;

	length &= 63;
	if (length < sizeof(*tcp) || length > 60 || load(packet, offset, tcp, length))
		return -1;
	if (packet->is_v6) {
		__builtin_memcpy(tuple.ipv6.saddr, &packet->key.source, sizeof(struct address));
		__builtin_memcpy(tuple.ipv6.daddr, &packet->key.target, sizeof(struct address));
		tuple.ipv6.sport = packet->key.source_port;
		tuple.ipv6.dport = packet->key.target_port;
		size = sizeof(tuple.ipv6);
	} else {
		tuple.ipv4.saddr = packet->key.source.word[3];
		tuple.ipv4.daddr = packet->key.target.word[3];
		tuple.ipv4.sport = packet->key.source_port;
		tuple.ipv4.dport = packet->key.target_port;
		size = sizeof(tuple.ipv4);
	}
	struct bpf_sock *socket = bpf_skc_lookup_tcp(packet->context, &tuple, size, BPF_F_CURRENT_NETNS, 0);

	if (!socket)
		return -1;
	if (socket->state == BPF_TCP_LISTEN) {
		if (packet->is_v6) {
			struct ipv6hdr ip;

			if (!load(packet, packet->network & 31, &ip, sizeof(ip)))
				cookie = bpf_tcp_gen_syncookie(socket, &ip, sizeof(ip), tcp, length);
		} else {
			struct iphdr ip;

			if (!load(packet, packet->network & 31, &ip, sizeof(ip)) && ip.ihl == 5)
				cookie = bpf_tcp_gen_syncookie(socket, &ip, sizeof(ip), tcp, length);
		}
	}
	bpf_sk_release(socket);
	return cookie;
}

/* Makes the SYN-ACK in place of the SYN. OK: it was made. NOT_OURS: the SYN goes on as it is. */
APART int answer_syn(const struct packet *packet, const struct plan *plan)
{
	__u32 network = packet->network & 31;
	__u32 header = packet->is_v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	struct scratch *scratch = scratch_of_core();
	struct ethhdr ethernet;

	if (!has_cookies(packet, plan) || !scratch || packet->fragment || (packet->transport & (OFFSET_MAX - 1)) != network + header)
		return NOT_OURS;
	__s64 cookie = cookie_of(packet, scratch);

	if (cookie < 0 || load(packet, 0, &ethernet, sizeof(ethernet)))
		return NOT_OURS;
	struct tcphdr *tcp = (void *)scratch->bytes;
	__u8 *options = scratch->bytes + sizeof(*tcp);
	__be32 sequence = tcp->seq;
	int length = bpf_xdp_get_buff_len(packet->context);

	if (bpf_xdp_adjust_tail(packet->context, (int)(network + header + SYN_ACK_BYTES) - length))
		return NOT_CHANGED;
	__builtin_memset(tcp, 0, SYN_ACK_BYTES);
	tcp->source = packet->key.target_port;
	tcp->dest = packet->key.source_port;
	tcp->seq = bpf_htonl((__u32)cookie);
	tcp->ack_seq = bpf_htonl(bpf_ntohl(sequence) + 1);
	tcp->doff = SYN_ACK_BYTES / 4;
	tcp->syn = tcp->ack = 1;
	tcp->window = bpf_htons(SYN_ACK_WINDOW);
	options[0] = 2;
	options[1] = 4;
	options[2] = cookie >> 40;
	options[3] = cookie >> 32;
	__u64 sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)tcp, SYN_ACK_BYTES, 0);

	if (packet->is_v6) {
		struct ipv6hdr ip;

		header_v6(&ip, packet, SYN_ACK_BYTES, IPPROTO_TCP);
		store(packet, network, &ip, sizeof(ip));
		sum += fold32(sum_of_pseudo(&packet->key.source, &packet->key.target, SYN_ACK_BYTES, IPPROTO_TCP));
	} else {
		struct iphdr ip;

		header_v4(&ip, packet, sizeof(ip) + SYN_ACK_BYTES, IPPROTO_TCP);
		store(packet, network, &ip, sizeof(ip));
		sum += (__u64)ip.saddr + ip.daddr + bpf_htons(SYN_ACK_BYTES) + bpf_htons(IPPROTO_TCP);
	}
	tcp->check = ~fold16(sum);
	swap_hardware(&ethernet);
	store(packet, 0, &ethernet, sizeof(ethernet));
	return store(packet, network + header, scratch->bytes, SYN_ACK_BYTES) ? NOT_CHANGED : OK;
}
