/* What the programs share with each other and with src/layout.rs, which encodes and decodes it byte by byte. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "reasons.h"

#define VIRTUAL_SERVERS_MAX 4096
#define MEMBERS_MAX 16384
#define RING_SLOTS 65537

/* An IPv6 address, or an IPv4 address mapped into one; network order. */
struct address {
	__u32 word[4];
};

/* A packet's ends, as it is on the wire. An ICMP echo has its identifier in both ports. */
struct flow_key {
	struct address source;
	struct address target;
	__be16 source_port;
	__be16 target_port;
	__u8 protocol;
	__u8 zero[3]; /* in a place: whether it is ready, and its generation (table.h) */
} __attribute__((aligned(8)));

/* flow.flags */
#define FLOW_REVERSE 1   /* from the member to the client */
#define FLOW_NEXT_HOP 2  /* the member is the next hop, and the destination stays */
#define FLOW_DIRECT 4    /* answers do not come by here */
#define FLOW_TTL_KEEP 8
#define FLOW_TTL_SET 16
#define FLOW_TOS_SET 32

/* flow.state */
#define STATE_FIN 1
#define STATE_RST 2
#define STATE_SYN 4 /* one came while there was a connection, and nothing after it */

/* One direction of a flow: what its packets become. */
struct flow {
	struct address source;
	struct address target;
	__be16 source_port;
	__be16 target_port;
	__u32 member;
	__u16 flags;
	__u16 mss_max; /* 0: left alone */
	__u8 ttl;
	__u8 tos;
	__u8 state;
	__u8 protocol; /* as in the key: user space reads only this line of a place */
	__be32 acknowledged; /* TCP: the next byte that the sender of this direction expects */
	__u32 sent;          /* TCP: the last sequence number that it sent, plus one; host order */
	__u64 created_ns;
	__u64 seen_ns;
	__u64 packets;
	__u64 bytes;
};

/* Room for one direction of a flow. Its size and alignment are two lines of cache. */
struct place {
	struct flow_key key;
	struct flow flow;
};

#define BUCKET_PLACES 8

struct bucket {
	struct place place[BUCKET_PLACES];
};

/* What there is of the table of flows besides its places. */
struct table {
	__u64 hash_key[2];
	__u32 buckets;
	__u32 entries_max;
	__u64 apart[5]; /* `entries` changes with each flow, and the rest never does */
	__u64 entries;
	__u64 rest[7];
};

#define FLOW_LOCKS 256

struct flow_lock {
	struct bpf_spin_lock lock;
	__u32 rest[15];
};

/* settings.flags: what there is at all, so that the rest is not looked up. */
#define HAS_PREFIXES 1
#define HAS_POLICY 2
#define HAS_COOKIES 4
#define HAS_DIRECT 8
#define HAS_RATE 16
#define HAS_ANY_PORT 32
#define HAS_ANY_PROTOCOL 64

/* Of one plan; two of them are there, and `active` says which is in force. */
struct settings {
	__u32 flags;
	__u32 cpus;
	__u64 rate_interval_ns;
	__u64 rate_burst_ns;
};

/* server.flags: the bits of FLOW_FLAGS are those of its flows. */
#define FLOW_FLAGS (FLOW_NEXT_HOP | FLOW_DIRECT | FLOW_TTL_KEEP | FLOW_TTL_SET | FLOW_TOS_SET)
#define SERVER_ROUTE 64
#define SERVER_LOOSE 128
#define SERVER_RING 256 /* it has a member that takes new flows */
#define SERVER_PASS 512 /* the kernel gets its packets as they came, and there are no flows */
#define SERVER_CLIENTS 1024 /* flows begin only from sources that `policy` lists for it */

struct server {
	__u64 identity;
	__u64 persistence_ns;
	__u32 flags;
	__u32 route; /* the member that stands for the routing table */
	__u32 sources;
	__u16 mss_max;
	__u8 ttl;
	__u8 tos;
};

#define MEMBER_FREE 0
#define MEMBER_UP 1
#define MEMBER_DRAINING 2
#define MEMBER_DOWN_STATE 3

struct member {
	__u64 identity;
	struct address address;
	__u32 server;
	__be16 port; /* 0: the client's */
	__u8 state;
	__u8 source; /* which of its server's `sources` it sees, from 1 on; 0: any */
};

struct totals {
	__u64 flows;
	__u64 packets_in;
	__u64 bytes_in;
	__u64 packets_out;
	__u64 bytes_out;
};

struct listener_key {
	struct address address;
	__be16 port;
	__u8 protocol;
	__u8 epoch;
};

/* Prefixes are of one family: ::/0 is not all of IPv4, though that is mapped into it. */
#define PREFIX_V6 2

struct prefix_key {
	__u32 length; /* bits of what follows */
	__u8 epoch;   /* and PREFIX_V6 */
	__u8 protocol;
	__be16 port;
	struct address address;
};

struct prefix_value {
	__u32 server;
	__u32 length;
};

/* policy_key.scope: the epoch, PREFIX_V6, and from this bit on the virtual server plus one whose clients it lists; 0: it denies or allows all. */
#define SCOPE_SERVER 2

struct policy_key {
	__u32 length; /* bits of what follows */
	__u32 scope;
	struct address address;
};

struct source_key {
	__u32 server; /* with its epoch: an index of `servers` */
	__u32 number;
};

struct source_value {
	struct address address;
	__u16 port_first;
	__u16 port_last;
};

struct fragment_key {
	struct address source;
	struct address target;
	__be32 id;
	__u32 protocol; /* 0 for IPv6: what later fragments name may stand before it (RFC 8200, 4.5) */
};

struct fragment_value {
	__be16 source_port;
	__be16 target_port;
	__u32 protocol;
};

struct persistence_key {
	struct address source;
	__u32 server;
	__u32 zero;
};

struct persistence_value {
	__u32 member;
	__u32 zero;
	__u64 until_ns;
};

struct cookie_key {
	struct address address;
	__be16 port;
	__u16 epoch;
};

#define DEVICES 4096

/* device.flags */
#define DEVICE_SENDS 1 /* its driver takes packets from XDP */

struct device {
	__u32 index; /* 0: none is here */
	__u16 flags;
	__u8 address[6];
};

/* A VLAN's device and tag to each other. */
#define VLAN_OF_DEVICE 0x80000000 /* vlan_key.tag: `device` is the VLAN's own */

struct vlan_key {
	__u32 device;
	__u32 tag;
};

struct vlan_value {
	__u32 device;
	__u32 tag;
};

#define MAP(name, kind, keys, values, entries, flags) \
	struct { \
		__uint(type, kind); \
		__type(key, keys); \
		__type(value, values); \
		__uint(max_entries, entries); \
		__uint(map_flags, flags); \
	} name SEC(".maps")

/* Room for both directions of each flow. Nothing is removed to make room. User space sets the number of buckets, and reads them in its memory. */
MAP(flows, BPF_MAP_TYPE_ARRAY, __u32, struct bucket, 1, BPF_F_MMAPABLE);
/* A byte for each place of a bucket; 0: it is free. */
MAP(flow_tags, BPF_MAP_TYPE_ARRAY, __u32, __u64, 1, BPF_F_MMAPABLE);
MAP(table, BPF_MAP_TYPE_ARRAY, __u32, struct table, 1, BPF_F_MMAPABLE);
MAP(flow_locks, BPF_MAP_TYPE_ARRAY, __u32, struct flow_lock, FLOW_LOCKS, 0);
/* Flows of which only the client's half comes by: the oldest are forgotten. */
MAP(direct, BPF_MAP_TYPE_LRU_HASH, struct flow_key, struct flow, 65536, 0);
MAP(fragments, BPF_MAP_TYPE_LRU_HASH, struct fragment_key, struct fragment_value, 65536, 0);
MAP(persistence, BPF_MAP_TYPE_LRU_HASH, struct persistence_key, struct persistence_value, 65536, 0);
/* The time that a source has used up, in nanoseconds of the clock. */
MAP(rates, BPF_MAP_TYPE_LRU_HASH, struct address, __u64, 65536, 0);

MAP(active, BPF_MAP_TYPE_ARRAY, __u32, __u32, 1, 0);
MAP(settings, BPF_MAP_TYPE_ARRAY, __u32, struct settings, 2, 0);
MAP(servers, BPF_MAP_TYPE_ARRAY, __u32, struct server, 2 * VIRTUAL_SERVERS_MAX, 0);
MAP(members, BPF_MAP_TYPE_ARRAY, __u32, struct member, MEMBERS_MAX, 0);
MAP(listeners, BPF_MAP_TYPE_HASH, struct listener_key, __u32, 131072, BPF_F_NO_PREALLOC);
MAP(prefixes, BPF_MAP_TYPE_LPM_TRIE, struct prefix_key, struct prefix_value, 131072, BPF_F_NO_PREALLOC);
MAP(policy, BPF_MAP_TYPE_LPM_TRIE, struct policy_key, __u32, 2097152, BPF_F_NO_PREALLOC);
MAP(sources, BPF_MAP_TYPE_HASH, struct source_key, struct source_value, 524288, BPF_F_NO_PREALLOC);
MAP(cookies, BPF_MAP_TYPE_HASH, struct cookie_key, __u32, 2048, BPF_F_NO_PREALLOC);
/* Devices that XDP is attached to, at the place `index % DEVICES`. */
MAP(devices, BPF_MAP_TYPE_ARRAY, __u32, struct device, DEVICES, 0);
MAP(vlans, BPF_MAP_TYPE_HASH, struct vlan_key, struct vlan_value, 8192, BPF_F_NO_PREALLOC);

MAP(member_totals, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct totals, MEMBERS_MAX, 0);
/* What members that are gone have counted, per virtual server. */
MAP(server_totals, BPF_MAP_TYPE_ARRAY, __u32, struct totals, VIRTUAL_SERVERS_MAX, 0);
MAP(reasons, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, REASONS, 0);
/* Ports are taken in turn for each member by itself: one that has closed a connection remembers it for a minute. */
#define PORT_COUNTERS 4096
MAP(next_port, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u32, PORT_COUNTERS, 0);
/* The time that answers of this core have used up. */
MAP(answered, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 1, 0);

/*
 * Until when the way of a packet of IPv4 depends on where it goes alone (its destination and type of service), and not on its source,
 * its ports or its number among others. User space watches rules and routes, and says so again and again.
 */
MAP(routes, BPF_MAP_TYPE_ARRAY, __u32, __u64, 1, 0);

/* A way that the routing table has told, with the neighbour's address: it takes more time than all the rest of a packet. */
struct known_way {
	__u64 told_ns; /* 0: there is none */
	__be32 target;
	__u32 from; /* the device that its packets come by */
	__u32 device;
	__u16 mtu;
	__u8 tos;
	__u8 hardware[12]; /* ours, and the neighbour's */
	__u8 zero[5];
};

#define KNOWN_WAYS 1024 /* a power of two */
/* A change of routes or neighbours is seen so much later. */
#define KNOWN_WAY_NS 10000000ULL

MAP(known_ways, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct known_way, KNOWN_WAYS, 0);

/* What the clock of flows showed at the kernel's last tick, when it went on. */
struct tick {
	__u64 number; /* of the tick; 0: none was seen */
	__u64 now_ns;
};

MAP(ticks, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct tick, 1, 0);

/* One more than there are slots: the verifier rounds the bound of an offset up. */
struct ring {
	__u32 member[RING_SLOTS + 1];
};

struct ring_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring));
	__uint(max_entries, 1);
};

/* The Maglev ring of each entry of `servers`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__type(key, __u32);
	__uint(max_entries, 2 * VIRTUAL_SERVERS_MAX);
	__array(values, struct ring_map);
} rings SEC(".maps");

/* The packet inside an ICMP error. */
struct inner {
	struct flow_key key;
	__u32 network;
	__u32 transport;
	__u32 checksum; /* offset of the transport's checksum, or 0: there is none */
	__u32 is_echo;
};

/* What a flow is made in, and an error is read into: too large for the stack. */
struct scratch {
	__u64 key_hash; /* of the packet's key */
	__u64 number;   /* of the place of a flow that has just begun */
	struct flow_key reverse_key;
	struct flow forward;
	struct flow reverse;
	struct inner inner;
	struct address next_hop; /* of an skb whose neighbour is not resolved */
	__u8 bytes[128];
};

MAP(scratches, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct scratch, 1, 0);
