/* Which flow a packet belongs to, and how one begins. */
#pragma once

#include "parse.h"
#include "table.h"

#define TRIES_MAX 16
/* So many tries are among the ports of the core that it runs on. */
#define OWN_PORTS_TRIES 8
/* Cores have parts of the ports to themselves if there are so many for each. */
#define OWN_PORTS_MIN 256
#define HASH_SEED 0x9e3779b97f4a7c15ULL

struct plan {
	__u32 epoch;
	struct settings *settings;
};

INLINE bool plan_in_force(struct plan *plan)
{
	__u32 zero = 0;
	__u32 *epoch = bpf_map_lookup_elem(&active, &zero);

	if (!epoch)
		return false;
	plan->epoch = *epoch & 1;
	plan->settings = bpf_map_lookup_elem(&settings, &plan->epoch);
	return plan->settings;
}

INLINE __u64 mix(__u64 hash, __u64 word)
{
	hash ^= word * 0xff51afd7ed558ccdULL;
	hash = (hash << 31) | (hash >> 33);
	hash *= 0xc4ceb9fe1a85ec53ULL;
	return hash ^ (hash >> 29);
}

INLINE __u64 hash_address(__u64 hash, const struct address *address)
{
	hash = mix(hash, ((__u64)address->word[0] << 32) | address->word[1]);
	return mix(hash, ((__u64)address->word[2] << 32) | address->word[3]);
}

/* As keys of prefixes have it. */
INLINE __u32 family_of(const struct packet *packet)
{
	return packet->is_v6 ? PREFIX_V6 : 0;
}

APART int is_denied(const struct packet *packet, const struct plan *plan)
{
	struct policy_key key = {
		.length = 32 + 128,
		.scope = plan->epoch | family_of(packet),
		.address = packet->key.source,
	};
	__u32 *denied = bpf_map_lookup_elem(&policy, &key);

	return denied && *denied;
}

/* Whether the virtual server, which lists its clients, lists the source. */
APART int is_client(const struct packet *packet, const struct plan *plan, __u32 index)
{
	struct policy_key key = {
		.length = 32 + 128,
		.scope = plan->epoch | family_of(packet) | (index % VIRTUAL_SERVERS_MAX + 1) << SCOPE_SERVER,
		.address = packet->key.source,
	};

	return bpf_map_lookup_elem(&policy, &key) != NULL;
}

INLINE __u32 *exact_server(const struct packet *packet, const struct plan *plan)
{
	struct listener_key key = {
		.address = packet->key.target,
		.port = has_virtual_port(packet->key.protocol) ? packet->key.target_port : 0,
		.protocol = packet->key.protocol,
		.epoch = plan->epoch,
	};
	__u32 *found = bpf_map_lookup_elem(&listeners, &key);

	if (!found && key.port && plan->settings->flags & HAS_ANY_PORT) {
		key.port = 0;
		found = bpf_map_lookup_elem(&listeners, &key);
	}
	if (!found && plan->settings->flags & HAS_ANY_PROTOCOL) {
		key.port = 0;
		key.protocol = 0;
		found = bpf_map_lookup_elem(&listeners, &key);
	}
	return found;
}

/* The longest prefix wins, then the port, then the protocol. */
APART struct prefix_value *prefix_server(const struct packet *packet, const struct plan *plan)
{
	struct prefix_key key = {
		.length = 32 + 128,
		.epoch = plan->epoch | family_of(packet),
		.protocol = packet->key.protocol,
		.port = has_virtual_port(packet->key.protocol) ? packet->key.target_port : 0,
		.address = packet->key.target,
	};
	struct prefix_value *best = bpf_map_lookup_elem(&prefixes, &key);

	if (key.port && plan->settings->flags & HAS_ANY_PORT) {
		key.port = 0;
		struct prefix_value *found = bpf_map_lookup_elem(&prefixes, &key);

		if (found && (!best || found->length > best->length))
			best = found;
	}
	if (plan->settings->flags & HAS_ANY_PROTOCOL) {
		key.port = 0;
		key.protocol = 0;
		struct prefix_value *found = bpf_map_lookup_elem(&prefixes, &key);

		if (found && (!best || found->length > best->length))
			best = found;
	}
	return best;
}

INLINE struct server *server_of(const struct packet *packet, const struct plan *plan, __u32 *index)
{
	__u32 *exact = exact_server(packet, plan);

	if (exact) {
		*index = *exact;
	} else {
		if (!(plan->settings->flags & HAS_PREFIXES))
			return NULL;
		struct prefix_value *found = prefix_server(packet, plan);

		if (!found)
			return NULL;
		*index = found->server;
	}
	return bpf_map_lookup_elem(&servers, index);
}

/* A token bucket as one time: when the source would be at rest (GCRA). */
APART int is_too_fast(const struct packet *packet, const struct plan *plan)
{
	struct address source = packet->key.source;

	if (!(plan->settings->flags & HAS_RATE))
		return false;
	if (packet->is_v6)
		source.word[2] = source.word[3] = 0;
	__u64 now = packet->now_ns, interval = plan->settings->rate_interval_ns;
	__u64 *rest = bpf_map_lookup_elem(&rates, &source);

	if (!rest) {
		__u64 first = now + interval;

		bpf_map_update_elem(&rates, &source, &first, BPF_ANY);
		return false;
	}
	for (int attempt = 0; attempt < 3; attempt++) {
		__u64 before = *(volatile __u64 *)rest;
		__u64 from = before > now ? before : now;

		if (from + interval > now + plan->settings->rate_burst_ns)
			return true;
		if (__sync_val_compare_and_swap(rest, before, from + interval) == before)
			return false;
	}
	return false;
}

INLINE struct member *member_at(__u32 index)
{
	return bpf_map_lookup_elem(&members, &index);
}

INLINE bool ring_member(__u32 server_index, __u64 hash, __u32 *member)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&rings, &server_index);

	if (!map)
		return false;
	struct ring *ring = bpf_map_lookup_elem(map, &zero);

	if (!ring)
		return false;
	__u32 slot = ((hash >> 32) * RING_SLOTS) >> 32;

	if (slot >= RING_SLOTS)
		return false;
	*member = ring->member[slot];
	return true;
}

/* The member that persistence holds the source to, if that takes new flows. */
APART int persistent_member(const struct packet *packet, __u32 server, __u64 now, __u32 *member)
{
	struct persistence_key key = {.source = packet->key.source, .server = server};
	struct persistence_value *found = bpf_map_lookup_elem(&persistence, &key);

	if (!found || found->until_ns < now)
		return false;
	*member = found->member;
	struct member *entry = member_at(*member);

	return entry && entry->state == MEMBER_UP && entry->server == server;
}

APART int persist(const struct packet *packet, __u32 server, __u64 until_ns, __u32 member)
{
	struct persistence_key key = {.source = packet->key.source, .server = server};
	struct persistence_value value = {.member = member, .until_ns = until_ns};

	return bpf_map_update_elem(&persistence, &key, &value, BPF_ANY);
}

/* Sets what the flow's packets get as their source. False: the server has none of this number. */
INLINE bool translate_source(struct flow *forward, const struct server *server, __u32 server_index, __u32 number,
			     __u32 cpus, __u32 attempt, bool has_ports)
{
	__u32 count = server->sources, place_of_member = forward->member % PORT_COUNTERS;
	struct source_key key = {.server = server_index, .number = count ? number % count : 0};
	struct source_value *source = bpf_map_lookup_elem(&sources, &key);
	__u32 *counter = bpf_map_lookup_elem(&next_port, &place_of_member);

	if (!source || !counter)
		return false;
	forward->source = source->address;
	if (!has_ports)
		return true;
	/*
	 * Each core has a part of the range to itself, so that two seldom meet, and takes its ports in turn: the one that
	 * has rested longest is the likeliest to be free. Where those tried are not, it is any other of the range.
	 */
	__u32 all = (__u32)source->port_last - source->port_first + 1, each = all / (cpus ?: 1), place;

	if (attempt >= OWN_PORTS_TRIES)
		place = mix(*counter, attempt) >> 32;
	else if (each < OWN_PORTS_MIN)
		place = ++*counter;
	else
		place = bpf_get_smp_processor_id() % (cpus ?: 1) * each + ++*counter % each;
	forward->source_port = bpf_htons(source->port_first + place % (all ?: 1));
	return true;
}

INLINE void reverse_of(const struct packet *packet, struct scratch *scratch)
{
	struct flow *forward = &scratch->forward, *reverse = &scratch->reverse;
	struct flow_key *key = &scratch->reverse_key;

	*reverse = *forward;
	reverse->flags |= FLOW_REVERSE;
	reverse->source = packet->key.target;
	reverse->target = packet->key.source;
	reverse->source_port = packet->key.target_port;
	reverse->target_port = packet->key.source_port;
	key->source = forward->target;
	key->target = forward->source;
	key->source_port = forward->target_port;
	key->target_port = forward->source_port;
	key->protocol = packet->key.protocol;
	key->zero[0] = key->zero[1] = key->zero[2] = 0;
}

INLINE void describe(const struct packet *packet, const struct server *server, __u32 member_index,
		     const struct member *member, struct flow *forward)
{
	forward->source = packet->key.source;
	forward->source_port = packet->key.source_port;
	forward->target = packet->key.target;
	forward->target_port = packet->key.target_port;
	if (!(server->flags & (FLOW_NEXT_HOP | SERVER_ROUTE))) {
		forward->target = member->address;
		if (member->port && has_virtual_port(packet->key.protocol))
			forward->target_port = member->port;
	}
	forward->member = member_index;
	forward->flags = server->flags & FLOW_FLAGS;
	forward->mss_max = server->mss_max;
	forward->ttl = server->ttl;
	forward->tos = server->tos;
	forward->state = 0;
	forward->protocol = packet->key.protocol;
	forward->acknowledged = forward->sent = 0;
	forward->created_ns = forward->seen_ns = packet->now_ns;
	forward->packets = forward->bytes = 0;
}

/* Enters both directions. OK, FLOW_CONFLICT to try another way, or FLOWS_FULL. The reverse goes first: it is what may be taken. */
INLINE int enter(const struct packet *packet, struct scratch *scratch)
{
	scratch->number = NO_NUMBER;
	if (scratch->forward.flags & FLOW_DIRECT)
		return bpf_map_update_elem(&direct, &packet->key, &scratch->forward, BPF_ANY) ? FLOWS_FULL : OK;
	if (!reserve())
		return FLOWS_FULL;
	reverse_of(packet, scratch);
	__s64 entered = enter_one(&scratch->reverse_key, &scratch->reverse, hash_apart(&scratch->reverse_key));

	if (entered < 0) {
		give_back(2);
		return entered == FLOW_EXISTS ? FLOW_CONFLICT : NOT_ENTERED(entered);
	}
	entered = enter_one(&packet->key, &scratch->forward, scratch->key_hash);
	if (entered >= 0) {
		scratch->number = entered;
		return OK;
	}
	give_back(1);
	remove_flow(&scratch->reverse_key);
	/* Another core had the same packet, sent twice: its flow is the one. */
	return entered == FLOW_EXISTS ? OK : NOT_ENTERED(entered);
}

INLINE bool select_member(const struct packet *packet, const struct server *server, __u32 index, __u64 hash, __u32 attempt,
			  __u32 *member)
{
	/* Without the epoch it is the same server in each plan. */
	__u32 number = index % VIRTUAL_SERVERS_MAX;

	if (server->flags & SERVER_ROUTE)
		return true;
	if (!attempt && server->persistence_ns && persistent_member(packet, number, packet->now_ns, member))
		return true;
	return ring_member(index, attempt ? mix(hash, attempt) : hash, member);
}

/* What the tries for a new flow share. */
struct search {
	const struct packet *packet;
	const struct plan *plan;
	const struct server *server;
	struct scratch *scratch;
	struct member *member; /* NULL: another is to be picked */
	__u64 hash;
	__u32 server_index;
	__u32 member_index;
	bool has_ports;
	bool is_numbered; /* it has ports or an identifier; what has neither has its source address alone */
	int reason;       /* OK, or why there is no flow yet */
};

INLINE int stop(struct search *search, int reason)
{
	search->reason = reason;
	return 1;
}

/*
 * One try to pick a member and enter the flow. Where the source is translated, the next is another port of the same member; where
 * not, it is another member, for the client's port is taken at this one. 1: there is nothing more to try.
 */
static int try_flow(__u32 attempt, struct search *search)
{
	const struct packet *packet = search->packet;
	const struct server *server = search->server;
	struct scratch *scratch = search->scratch;

	if (!search->member || !server->sources) {
		if (!select_member(packet, server, search->server_index, search->hash, attempt, &search->member_index))
			return stop(search, NO_MEMBER);
		search->member = member_at(search->member_index);
		if (!search->member)
			return stop(search, NO_MEMBER);
		if (search->member->state != MEMBER_UP) {
			search->member = NULL;
			return 0;
		}
	}
	describe(packet, server, search->member_index, search->member, &scratch->forward);
	if (server->sources) {
		__u32 number = (__u32)search->hash % 4096 + (search->is_numbered ? attempt / 4 : attempt);

		if (search->member->source)
			number = search->member->source - 1;
		if (!translate_source(&scratch->forward, server, search->server_index, number, search->plan->settings->cpus,
				      attempt, search->is_numbered))
			return stop(search, SOURCE_PORTS_EXHAUSTED);
		/* An echo has one identifier, in both places. */
		if (!search->has_ports)
			scratch->forward.target_port = scratch->forward.source_port;
	}
	search->reason = enter(packet, scratch);
	return search->reason != FLOW_CONFLICT;
}

/* Picks a member and enters the flow. The tries are the helper's loop: of one written out the verifier walks each turn. */
INLINE int pick(const struct packet *packet, const struct plan *plan, const struct server *server, __u32 index, __u64 key_hash)
{
	struct search search = {
		.packet = packet,
		.plan = plan,
		.server = server,
		.scratch = scratch_of_core(),
		.hash = hash_address(HASH_SEED, &packet->key.source),
		.server_index = index,
		.member_index = server->route,
		.has_ports = has_virtual_port(packet->key.protocol),
		.reason = NO_MEMBER,
	};

	if (!search.scratch)
		return NO_MEMBER;
	search.scratch->key_hash = key_hash;
	search.is_numbered = search.has_ports || packet->key.source_port;
	if (!server->persistence_ns) {
		search.hash = hash_address(search.hash, &packet->key.target);
		search.hash = mix(search.hash, ((__u64)packet->key.source_port << 32) | ((__u32)packet->key.target_port << 8) |
						       packet->key.protocol);
	}
	bpf_loop(TRIES_MAX, try_flow, &search, 0);
	if (search.reason != OK)
		return search.reason == FLOW_CONFLICT && server->sources ? SOURCE_PORTS_EXHAUSTED : search.reason;
	if (server->persistence_ns)
		persist(packet, index % VIRTUAL_SERVERS_MAX, packet->now_ns + server->persistence_ns, search.member_index);
	struct totals *totals = bpf_map_lookup_elem(&member_totals, &search.member_index);

	if (totals)
		totals->flows += 1;
	return OK;
}

INLINE struct flow *flow_in(const struct packet *packet, const struct plan *plan, const struct hold *hold)
{
	if (hold->place)
		return &hold->place->flow;
	return plan->settings->flags & HAS_DIRECT ? bpf_map_lookup_elem(&direct, &packet->key) : NULL;
}

/* The place of a flow that has just begun. */
INLINE void find_new_place(const struct packet *packet, __u64 key_hash, struct hold *hold)
{
	struct scratch *scratch = scratch_of_core();
	__u64 number = scratch ? scratch->number : NO_NUMBER;

	hold_number(hold, number != NO_NUMBER ? number : find_number(&packet->key, key_hash), &packet->key);
}

/* The key of the other direction. */
INLINE void other_key(const struct flow *flow, __u8 protocol, struct flow_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->source = flow->target;
	key->target = flow->source;
	key->source_port = flow->target_port;
	key->target_port = flow->source_port;
	key->protocol = protocol;
}

/* Whether the packet begins anew: the flow is over, or its member no longer serves it. */
INLINE bool is_over(const struct packet *packet, const struct flow *flow, const struct member *member)
{
	struct flow_key key;
	struct hold hold = {};

	if (flow->flags & FLOW_REVERSE)
		return false;
	if (member->state == MEMBER_DOWN_STATE || member->state == MEMBER_FREE)
		return true;
	if (flow->flags & FLOW_DIRECT)
		return flow->state;
	other_key(flow, packet->key.protocol, &key);
	struct flow *reverse = flow_at(&key, &hold);

	if (!reverse)
		return true;
	return (flow->state | reverse->state) & STATE_RST || flow->state & reverse->state & STATE_FIN;
}

/* Ends a flow that the packet begins anew. Whether it did. */
APART int forget(const struct packet *packet, const struct flow *flow, const struct member *member, const struct hold *hold)
{
	struct flow_key key;

	if (!is_over(packet, flow, member))
		return false;
	if (flow->flags & FLOW_DIRECT) {
		bpf_map_delete_elem(&direct, &packet->key);
		return true;
	}
	other_key(flow, packet->key.protocol, &key);
	/* It may have ended meanwhile, and its place may have another flow. */
	if (!is_held(hold))
		return true;
	remove_flow(&key);
	remove_flow(&packet->key);
	return true;
}

/* Later fragments have no ports: the first one's are remembered. */
APART int ports_of_first(struct packet *packet)
{
	struct fragment_key key = {.source = packet->key.source,
				   .target = packet->key.target,
				   .id = packet->fragment_id,
				   .protocol = packet->is_v6 ? 0 : packet->key.protocol};
	struct fragment_value *first = bpf_map_lookup_elem(&fragments, &key);

	if (!first)
		return false;
	packet->key.source_port = first->source_port;
	packet->key.target_port = first->target_port;
	packet->key.protocol = first->protocol;
	return true;
}

APART int remember_first(const struct packet *packet)
{
	struct fragment_key key = {.source = packet->key.source,
				   .target = packet->key.target,
				   .id = packet->fragment_id,
				   .protocol = packet->is_v6 ? 0 : packet->key.protocol};
	struct fragment_value value = {.source_port = packet->key.source_port,
				       .target_port = packet->key.target_port,
				       .protocol = packet->key.protocol};

	return bpf_map_update_elem(&fragments, &key, &value, BPF_ANY);
}

INLINE bool is_syn(const struct packet *packet)
{
	return (packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN;
}

/* Whether a packet without a flow may begin one. */
INLINE bool may_begin(const struct packet *packet, const struct server *server)
{
	if (packet->key.protocol == IPPROTO_TCP)
		return is_syn(packet) || (server->flags & SERVER_LOOSE && !(packet->tcp_flags & TCP_RST));
	if (packet->key.protocol == (packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return packet->tcp_flags & TCP_SYN;
	return true;
}

/* Makes a flow of a packet that has none. OK, or why not. */
APART int begin(const struct packet *packet, const struct plan *plan, __u64 key_hash)
{
	__u32 index;
	struct server *server = server_of(packet, plan, &index);

	if (!server || server->flags & SERVER_PASS)
		return NOT_OURS;
	if (server->flags & SERVER_CLIENTS && !is_client(packet, plan, index))
		return CLIENT_NOT_ALLOWED;
	if (!may_begin(packet, server))
		return NOT_SYN;
	if (!(server->flags & (SERVER_RING | SERVER_ROUTE)))
		return NO_MEMBER;
	if (is_too_fast(packet, plan))
		return SOURCE_RATE;
	return pick(packet, plan, server, index, key_hash);
}

/* Finds or makes the packet's flow. OK, or why there is none. */
INLINE int find(struct packet *packet, const struct plan *plan, struct flow **flow, struct member **member, struct hold *hold)
{
	if (packet->fragment == FRAGMENT_LATER && !ports_of_first(packet))
		return FRAGMENT_WITHOUT_FIRST;
	__u64 key_hash = find_place(&packet->key, hold);

	*flow = flow_in(packet, plan, hold);
	if (*flow) {
		*member = member_at((*flow)->member);
		if (!*member)
			return NOT_OURS;
		bool is_served = (*member)->state != MEMBER_DOWN_STATE || (*flow)->flags & FLOW_REVERSE;

		if (is_served && !is_syn(packet))
			return OK;
		if (!is_syn(packet) && packet->key.protocol == IPPROTO_TCP)
			return MEMBER_DOWN;
		if (packet->fragment == FRAGMENT_LATER || !forget(packet, *flow, *member, hold))
			return is_served ? OK : MEMBER_DOWN;
	}
	if (packet->fragment == FRAGMENT_LATER)
		return FRAGMENT_WITHOUT_FIRST;
	int reason = begin(packet, plan, key_hash);

	if (reason != OK)
		return reason;
	find_new_place(packet, key_hash, hold);
	*flow = flow_in(packet, plan, hold);
	if (!*flow)
		return FLOWS_FULL;
	*member = member_at((*flow)->member);
	return *member ? OK : NO_MEMBER;
}
