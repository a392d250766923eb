/* What a packet is: addresses, ports, and where its headers stand. */
#pragma once

#include "packet.h"

#define EXTENSION_HEADERS_MAX 6
#define OK -1
#define TAGS_MAX 2
#define VLAN_TAG 0xfff
#define PACKET_HOST 0 /* of an skb: it is for this host */

#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_DONT_FRAGMENT 0x4000
#define IPV4_OFFSET 0x1fff

#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY 129

#define HEADER_HOP_BY_HOP 0
#define HEADER_ROUTING 43
#define HEADER_FRAGMENT 44
#define HEADER_AUTHENTICATION 51
#define HEADER_OPTIONS 60

struct vlan_header {
	__be16 tag;
	__be16 protocol;
};

struct extension_header {
	__u8 next;
	__u8 length;
	__u8 type; /* of a routing header */
	__u8 left;
	__be32 id; /* of a fragment header */
};

INLINE bool has_virtual_port(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/* Refuses source routes: a member must not be reached by a way that the sender chose. */
APART int parse_options(struct packet *packet, __u32 length)
{
	struct scratch *scratch = scratch_of_core();
	__u32 at = 0;

	length &= 63;
	if (!scratch || length < 4 || length > 40)
		return UNPARSED;
	if (load(packet, packet->network + sizeof(struct iphdr), scratch->bytes, length))
		return UNPARSED;
	for (int option = 0; option < 40; option++) {
		if (at >= length || scratch->bytes[at & 63] == 0)
			return OK;
		__u8 kind = scratch->bytes[at & 63];

		if (kind == 131 || kind == 137)
			return SOURCE_ROUTE;
		if (kind == 1) {
			at++;
			continue;
		}
		__u8 size = scratch->bytes[(at + 1) & 63];

		if (size < 2)
			return UNPARSED;
		at += size;
	}
	return at >= length ? OK : UNPARSED;
}

/* From the IP header on. An skb of several segments may be too long for the header to say (BIG TCP): then it says 0. */
INLINE __u32 length_of(const struct packet *packet, __u32 told, __u32 header)
{
	if (!told && packet->is_skb)
		return ((struct __sk_buff *)packet->context)->len - packet->network;
	return told + header;
}

INLINE int parse_v4(struct packet *packet)
{
	void *end = end_of(packet);
	struct iphdr *ip = data_of(packet) + packet->network;

	if ((void *)(ip + 1) > end)
		return UNPARSED;
	__u32 length = ip->ihl * 4;
	__u16 offset = bpf_ntohs(ip->frag_off);

	if (ip->version != 4 || length < sizeof(*ip))
		return UNPARSED;
	map_v4(&packet->key.source, ip->saddr);
	map_v4(&packet->key.target, ip->daddr);
	packet->key.protocol = ip->protocol;
	packet->bytes = length_of(packet, bpf_ntohs(ip->tot_len), 0);
	packet->ttl = ip->ttl;
	packet->tos = ip->tos;
	packet->fragment_id = ip->id;
	packet->transport = packet->network + length;
	if (offset & IPV4_OFFSET)
		packet->fragment = FRAGMENT_LATER;
	else if (offset & IPV4_MORE_FRAGMENTS)
		packet->fragment = FRAGMENT_FIRST;
	if (length > sizeof(*ip))
		return parse_options(packet, length - sizeof(*ip));
	return OK;
}

INLINE int parse_v6(struct packet *packet)
{
	void *end = end_of(packet);
	struct ipv6hdr *ip = data_of(packet) + packet->network;

	if ((void *)(ip + 1) > end)
		return UNPARSED;
	if (ip->version != 6)
		return UNPARSED;
	__builtin_memcpy(&packet->key.source, &ip->saddr, sizeof(struct address));
	__builtin_memcpy(&packet->key.target, &ip->daddr, sizeof(struct address));
	/* They stand for IPv4 in keys, and have no place in a packet (RFC 4038, 4.2). */
	if (is_mapped(&packet->key.source) || is_mapped(&packet->key.target))
		return UNPARSED;
	packet->bytes = length_of(packet, bpf_ntohs(ip->payload_len), sizeof(*ip));
	packet->ttl = ip->hop_limit;
	packet->tos = (ip->priority << 4) | (ip->flow_lbl[0] >> 4);
	__u8 next = ip->nexthdr;
	__u32 at = packet->network + sizeof(*ip);

	for (int header = 0; header < EXTENSION_HEADERS_MAX; header++) {
		if (next != HEADER_HOP_BY_HOP && next != HEADER_ROUTING && next != HEADER_FRAGMENT &&
		    next != HEADER_AUTHENTICATION && next != HEADER_OPTIONS)
			break;
		struct extension_header extension;

		at &= OFFSET_MAX - 1;
		if (load(packet, at, &extension, sizeof(extension)))
			return UNPARSED;
		if (next == HEADER_ROUTING && extension.type == 0 && extension.left)
			return SOURCE_ROUTE;
		if (next == HEADER_FRAGMENT) {
			__u16 offset = (extension.type << 8) | extension.left;

			packet->fragment_id = extension.id;
			if (offset & ~7)
				packet->fragment = FRAGMENT_LATER;
			else if (offset & 1)
				packet->fragment = FRAGMENT_FIRST;
			at += sizeof(extension);
		} else if (next == HEADER_AUTHENTICATION) {
			at += (extension.length + 2) * 4;
		} else {
			at += (extension.length + 1) * 8;
		}
		next = extension.next;
		if (at >= OFFSET_MAX - 64)
			return UNPARSED;
		if (packet->fragment == FRAGMENT_LATER)
			break;
	}
	if (next == HEADER_HOP_BY_HOP || next == HEADER_ROUTING || next == HEADER_FRAGMENT ||
	    next == HEADER_AUTHENTICATION || next == HEADER_OPTIONS) {
		if (packet->fragment != FRAGMENT_LATER)
			return UNPARSED;
	}
	packet->key.protocol = next;
	packet->transport = at;
	return OK;
}

/* The first eight bytes of what the packet carries: ports, or type, code and identifier. */
INLINE int parse_transport(struct packet *packet)
{
	void *end = end_of(packet);
	__u32 offset = packet->transport & (OFFSET_MAX - 1);
	void *at = data_of(packet) + offset;
	__u8 protocol = packet->key.protocol;

	if (packet->fragment == FRAGMENT_LATER)
		return OK;
	if (protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = at;

		if ((void *)(tcp + 1) > end)
			return UNPARSED;
		packet->key.source_port = tcp->source;
		packet->key.target_port = tcp->dest;
		packet->tcp_flags = ((__u8 *)tcp)[13];
		packet->acknowledged = tcp->ack_seq;
		packet->sent = bpf_ntohl(tcp->seq) + packet->bytes - (packet->transport - packet->network) - tcp->doff * 4 +
			       tcp->syn + tcp->fin;
	} else if (protocol == IPPROTO_UDP) {
		struct udphdr *udp = at;

		if ((void *)(udp + 1) > end)
			return UNPARSED;
		packet->key.source_port = udp->source;
		packet->key.target_port = udp->dest;
	} else if (protocol == (packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP)) {
		struct icmphdr *icmp = at;

		if ((void *)(icmp + 1) > end)
			return UNPARSED;
		__u8 type = icmp->type;

		if (packet->is_v6 ? (type >= 1 && type <= 4) : (type == 3 || type == 11 || type == 12)) {
			packet->is_icmp_error = true;
		} else if (packet->is_v6 ? (type == ICMP6_ECHO_REQUEST || type == ICMP6_ECHO_REPLY)
					 : (type == ICMP_ECHO_REQUEST || type == ICMP_ECHO_REPLY)) {
			packet->key.source_port = icmp->un.echo.id;
			packet->key.target_port = icmp->un.echo.id;
			/* As a SYN: only this begins a flow. */
			packet->tcp_flags = type == ICMP_ECHO_REQUEST || type == ICMP6_ECHO_REQUEST ? TCP_SYN : 0;
		} else {
			return NOT_OURS;
		}
	}
	return OK;
}

INLINE void leave(struct packet *packet, int reason)
{
	packet->is_foreign = true;
	packet->foreign = reason;
}

INLINE bool is_tag(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* Whose an outer tag is: the port's own with the number 0, which only bears a priority, or a device's. False: neither. */
INLINE bool is_our_tag(struct packet *packet, __be16 protocol, __u32 tag)
{
	struct vlan_key key = {.device = packet->port_device, .tag = tag};

	if (packet->is_skb || protocol != bpf_htons(ETH_P_8021Q))
		return false;
	if (tag) {
		struct vlan_value *found = bpf_map_lookup_elem(&vlans, &key);

		if (!found)
			return false;
		packet->device = found->device;
	}
	packet->has_tag = true;
	return true;
}

/* Steps over tags. Unknown ones and two are left to the kernel's devices, but `deny` holds behind them. */
APART int parse_tags(struct packet *packet, __be16 *protocol)
{
	for (int number = 0; number < TAGS_MAX; number++) {
		struct vlan_header header;

		if (!is_tag(*protocol))
			return OK;
		if (load(packet, packet->network, &header, sizeof(header)))
			return UNPARSED;
		if (number || !is_our_tag(packet, *protocol, bpf_ntohs(header.tag) & VLAN_TAG))
			leave(packet, NOT_OURS);
		packet->network += sizeof(header);
		*protocol = header.protocol;
	}
	return OK;
}

/* Whether the frame is for the device that it came by, and not for another on the wire, or for many. */
INLINE int receiver(const struct packet *packet, const struct ethhdr *ethernet)
{
	if (ethernet->h_dest[0] & 1)
		return NOT_IP;
	if (packet->is_skb)
		return ((struct __sk_buff *)packet->context)->pkt_type == PACKET_HOST ? OK : OTHER_HARDWARE;
	const struct device *device = device_of(packet->port_device);
	const __u16 *ours = (const void *)device->address, *its = (const void *)ethernet->h_dest;

	if (!device)
		return OTHER_HARDWARE;
	return (ours[0] ^ its[0]) | (ours[1] ^ its[1]) | (ours[2] ^ its[2]) ? OTHER_HARDWARE : OK;
}

INLINE int parse(struct packet *packet)
{
	struct ethhdr *ethernet = data_of(packet);
	int reason = OK;

	if ((void *)(ethernet + 1) > end_of(packet))
		return NOT_IP;
	__be16 protocol = ethernet->h_proto;

	reason = receiver(packet, ethernet);
	if (reason == OTHER_HARDWARE)
		return reason;
	if (reason != OK)
		leave(packet, reason);
	packet->network = sizeof(*ethernet);
	if (is_tag(protocol)) {
		reason = parse_tags(packet, &protocol);
		if (reason != OK)
			return reason;
	}
	if (protocol == bpf_htons(ETH_P_IP)) {
		reason = parse_v4(packet);
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		packet->is_v6 = true;
		reason = parse_v6(packet);
	} else {
		return NOT_IP;
	}
	if (reason != OK)
		return reason;
	return parse_transport(packet);
}
