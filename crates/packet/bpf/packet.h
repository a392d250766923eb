/* A packet at hand, and how its bytes are reached by either program. */
#pragma once

#include <stdbool.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "maps.h"

/* <linux/icmp.h> needs the headers of a C library; these few are of both versions. */
#define ICMP_DEST_UNREACH 3
#define ICMP_FRAG_NEEDED 4
#define ICMPV6_PKT_TOOBIG 2

struct icmphdr {
	__u8 type;
	__u8 code;
	__sum16 checksum;
	union {
		struct {
			__be16 id;
			__be16 sequence;
		} echo;
		struct {
			__be16 unused;
			__be16 mtu;
		} frag;
		__be32 gateway;
	} un;
};

#define INLINE static __always_inline
/* Rare ways are functions of their own, with a stack frame of their own. */
#define APART static __attribute__((noinline))
/* The verifier walks them once, whoever calls them. They take memory of a known size, and return a number. */
#define APART_ONCE __attribute__((noinline))

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

#define FRAGMENT_NONE 0
#define FRAGMENT_FIRST 1
#define FRAGMENT_LATER 2

/* Offsets are below this one; told to the verifier by `& (OFFSET_MAX - 1)`. */
#define OFFSET_MAX 512

struct packet {
	void *context;
	__u64 is_skb;       /* a whole word, so that the verifier knows it and leaves out the other program's ways */
	struct flow_key key;
	__u32 device;       /* that the routing table is asked with: the VLAN's own where there is a tag */
	__u32 port_device;  /* that it came by */
	__u32 network;      /* offset of the IP header */
	__u32 transport;    /* offset of what it carries */
	__u32 bytes;        /* from the IP header on */
	__be32 fragment_id;
	__u64 now_ns;
	bool is_v6;
	bool has_tag;       /* XDP: in the packet; tcx: the kernel holds it */
	bool is_foreign;    /* not to be forwarded, for the reason `foreign`: only `deny` is asked */
	bool is_icmp_error;
	__be32 acknowledged;
	__u32 sent;         /* TCP: the sequence number behind the segment */
	__u8 fragment;
	__u8 ttl;
	__u8 tos;
	__u8 tcp_flags;
	int foreign;
};

/* Written out, so that the compiler does not make one load of both, at an offset that is computed. */
#define CONTEXT_LOAD(context, type, field) \
	({ \
		void *value; \
		asm volatile("%0 = *(u32 *)(%1 + %2)" : "=r"(value) : "r"(context), "i"(__builtin_offsetof(type, field))); \
		value; \
	})

INLINE void *data_of(const struct packet *packet)
{
	return packet->is_skb ? CONTEXT_LOAD(packet->context, struct __sk_buff, data)
			      : CONTEXT_LOAD(packet->context, struct xdp_md, data);
}

INLINE void *end_of(const struct packet *packet)
{
	return packet->is_skb ? CONTEXT_LOAD(packet->context, struct __sk_buff, data_end)
			      : CONTEXT_LOAD(packet->context, struct xdp_md, data_end);
}

INLINE long load(const struct packet *packet, __u32 offset, void *to, __u32 length)
{
	if (packet->is_skb)
		return bpf_skb_load_bytes(packet->context, offset, to, length);
	return bpf_xdp_load_bytes(packet->context, offset, to, length);
}

INLINE long store(const struct packet *packet, __u32 offset, void *from, __u32 length)
{
	if (packet->is_skb)
		return bpf_skb_store_bytes(packet->context, offset, from, length, BPF_F_RECOMPUTE_CSUM);
	return bpf_xdp_store_bytes(packet->context, offset, from, length);
}

INLINE void map_v4(struct address *to, __be32 address)
{
	to->word[0] = 0;
	to->word[1] = 0;
	to->word[2] = bpf_htonl(0xffff);
	to->word[3] = address;
}

INLINE bool is_mapped(const struct address *address)
{
	return address->word[2] == bpf_htonl(0xffff) && address->word[1] == 0 && address->word[0] == 0;
}

INLINE bool same_address(const struct address *one, const struct address *other)
{
	return one->word[3] == other->word[3] && one->word[2] == other->word[2] &&
	       one->word[1] == other->word[1] && one->word[0] == other->word[0];
}

/* The device's entry, if XDP is attached to it. */
INLINE struct device *device_of(__u32 index)
{
	__u32 place = index % DEVICES;
	struct device *device = bpf_map_lookup_elem(&devices, &place);

	return device && device->index == index ? device : NULL;
}

/* The clock goes on with the ticks, whose number is read without a call. A core may see the clock a tick late. */
INLINE __u64 clock_ns(void)
{
	__u64 number = bpf_jiffies64();
	__u32 zero = 0;
	struct tick *tick = bpf_map_lookup_elem(&ticks, &zero);

	/* Of an array each place is there. */
	if (!tick)
		return 0;
	if (tick->number != number) {
		tick->number = number;
		tick->now_ns = bpf_ktime_get_coarse_ns();
	}
	/* Read again, so that both ways are one for the verifier. */
	return *(volatile __u64 *)&tick->now_ns;
}

INLINE struct scratch *scratch_of_core(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

INLINE void count(__u32 reason)
{
	__u64 *counter = bpf_map_lookup_elem(&reasons, &reason);

	if (counter)
		*counter += 1;
}

/* One's complement sums: differences add up in 64 bits and are folded at the end (RFC 1624). */

INLINE __u64 replace32(__u64 sum, __u32 old, __u32 new)
{
	return sum + (__u32)~old + new;
}

/* Of a half that stands where a word's first half does, or by itself. */
INLINE __u64 replace16(__u64 sum, __u16 old, __u16 new)
{
	return sum + (__u16)~old + new;
}

INLINE __u32 fold32(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

INLINE __u16 fold16(__u64 sum)
{
	sum = fold32(sum);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

INLINE __u16 changed_checksum(__u16 checksum, __u64 difference)
{
	return ~fold16((__u64)(__u16)~checksum + fold16(difference));
}
