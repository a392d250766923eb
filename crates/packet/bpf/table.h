/*
 * The table of flows: an array of buckets with places, each for one direction of a flow. A keyed hash gives each key two possible buckets. Most keys
 * are in one of the first two places that the hash names, so a lookup reads two adjacent lines of cache. The kernel's hash map reads four lines, and has
 * to wait for memory twice. All other keys are found by tags: a second array has a byte of the hash of each key in a bucket.
 *
 * A place is taken by writing its tag, then filled, and ready when the last word of its key says so. Programs and user space free a place by
 * changing the last word that they have read, and then clear the tag. The last word has a number, which shows if the place has got another flow meanwhile.
 */
#pragma once

#include "packet.h"

/* In the last word of a place's key, above the ports and the protocol. */
#define PLACE_READY (1ULL << 40)
#define PLACE_GENERATION (1ULL << 48)
#define PLACE_KEY (PLACE_GENERATION - 1) /* the bits that a lookup compares */
#define LAST_WORD 4
#define NO_NUMBER (~0ULL)

/* In words of eight tags: a bit of each byte, and the highest bit of each. A tag is not 0. */
#define EACH_TAG 0x0101010101010101ULL
#define HIGH_BITS 0x8080808080808080ULL
/* Multiplied with a bit of one byte, its highest byte is the number of that byte. */
#define BYTE_NUMBERS 0x0001020304050607ULL
/* A flow goes to its second bucket if the first one has fewer free places than this, and the second one more. */
#define FREE_PLACES_MIN 3

/* A place that a packet's flow was found in. */
struct hold {
	struct place *place; /* NULL: there is none, or the flow is in another table */
	__u64 word;          /* the last word of the place's key, read before all else of the place */
};

INLINE __u64 key_word(const struct flow_key *key, int number)
{
	const __u8 *at = __builtin_assume_aligned(key, sizeof(__u64));
	__u64 word;

	__builtin_memcpy(&word, at + number * sizeof(word), sizeof(word));
	return word;
}

/* Other cores and user space change it. */
INLINE volatile __u64 *place_word(struct place *place, int number)
{
	return (volatile __u64 *)((void *)place + number * sizeof(__u64));
}

INLINE __u64 rotate(__u64 word, int bits)
{
	return (word << bits) | (word >> (64 - bits));
}

/* The state of SipHash (Aumasson and Bernstein, 2012). */
struct sip {
	__u64 v0, v1, v2, v3;
};

INLINE void sip_round(struct sip *sip)
{
	sip->v0 += sip->v1;
	sip->v1 = rotate(sip->v1, 13) ^ sip->v0;
	sip->v0 = rotate(sip->v0, 32);
	sip->v2 += sip->v3;
	sip->v3 = rotate(sip->v3, 16) ^ sip->v2;
	sip->v0 += sip->v3;
	sip->v3 = rotate(sip->v3, 21) ^ sip->v0;
	sip->v2 += sip->v1;
	sip->v1 = rotate(sip->v1, 17) ^ sip->v2;
	sip->v2 = rotate(sip->v2, 32);
}

INLINE void sip_word(struct sip *sip, __u64 word)
{
	sip->v3 ^= word;
	sip_round(sip);
	sip->v0 ^= word;
}

INLINE struct table *flow_table(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&table, &zero);
}

INLINE void sip_begin(struct sip *sip, const struct table *table)
{
	sip->v0 = table->hash_key[0] ^ 0x736f6d6570736575ULL;
	sip->v1 = table->hash_key[1] ^ 0x646f72616e646f6dULL;
	sip->v2 = table->hash_key[0] ^ 0x6c7967656e657261ULL;
	sip->v3 = table->hash_key[1] ^ 0x7465646279746573ULL;
}

INLINE __u64 sip_end(struct sip *sip)
{
	sip->v2 ^= 0xff;
	sip_round(sip);
	sip_round(sip);
	sip_round(sip);
	return sip->v0 ^ sip->v1 ^ sip->v2 ^ sip->v3;
}

INLINE bool is_v4_key(const struct flow_key *key)
{
	return !(key_word(key, 0) | key_word(key, 2));
}

INLINE __u64 hash_v4(const struct table *table, const struct flow_key *key)
{
	struct sip sip;

	sip_begin(&sip, table);
	sip_word(&sip, ((__u64)key->target.word[3] << 32) | key->source.word[3]);
	sip_word(&sip, key_word(key, LAST_WORD));
	return sip_end(&sip);
}

/*
 * SipHash-1-3 of the words of a key, without a word for the length: a client must not be able to choose the bucket. The words of an IPv4
 * key that are the same for all are left out. `src/table.rs` has the same.
 */
APART_ONCE __u64 hash_apart(const struct flow_key *key)
{
	const struct table *table = flow_table();
	struct sip sip;

	if (!key || !table)
		return 0;
	if (is_v4_key(key))
		return hash_v4(table, key);
	sip_begin(&sip, table);
	sip_word(&sip, key_word(key, 0));
	sip_word(&sip, key_word(key, 1));
	sip_word(&sip, key_word(key, 2));
	sip_word(&sip, key_word(key, 3));
	sip_word(&sip, key_word(key, LAST_WORD));
	return sip_end(&sip);
}

/* The same, without a call for IPv4. */
INLINE __u64 hash_key(const struct table *table, const struct flow_key *key)
{
	return is_v4_key(key) ? hash_v4(table, key) : hash_apart(key);
}

INLINE __u32 bucket_index(const struct table *table, __u32 hash)
{
	return ((__u64)hash * table->buckets) >> 32;
}

INLINE __u64 tag_of(__u64 hash)
{
	return hash & 0xff ?: 1;
}

/* The highest bits of the bytes that are 0. */
INLINE __u64 zero_bytes(__u64 word)
{
	return ~(((word & ~HIGH_BITS) + ~HIGH_BITS) | word) & HIGH_BITS;
}

/* The number of the first byte whose highest bit is set. */
INLINE __u32 first_byte(__u64 bits)
{
	return (((bits & -bits) >> 7) * BYTE_NUMBERS) >> 56;
}

/* Whether a place is the key's. `last` is the last word of the place's key: the place must be read after it. */
INLINE bool is_place_of(struct place *place, __u64 last, const struct flow_key *key)
{
	__u64 other = last ^ (key_word(key, LAST_WORD) | PLACE_READY);

	if (other & PLACE_KEY)
		return false;
	other = *place_word(place, 0) ^ key_word(key, 0);
	other |= *place_word(place, 1) ^ key_word(key, 1);
	other |= *place_word(place, 2) ^ key_word(key, 2);
	other |= *place_word(place, 3) ^ key_word(key, 3);
	return !other;
}

/* The place of its bucket where a key stands if that was free, or else in the next one. */
INLINE __u32 first_place(__u64 hash)
{
	return (hash >> 32) % BUCKET_PLACES;
}

/* The place of a key in a bucket with these tags. */
INLINE struct place *place_in(struct bucket *bucket, __u64 tags, __u64 tag, const struct flow_key *key)
{
	__u64 alike = zero_bytes(tags ^ tag * EACH_TAG);

	_Pragma("clang loop unroll(disable)")
	for (int number = 0; number < BUCKET_PLACES && alike; number++) {
		struct place *place = &bucket->place[first_byte(alike) % BUCKET_PLACES];

		if (is_place_of(place, *place_word(place, LAST_WORD), key))
			return place;
		alike &= alike - 1;
	}
	return NULL;
}

/* The number of a key's place, by tags. NO_NUMBER: there is none. */
APART_ONCE __u64 find_number(const struct flow_key *key, __u64 hash)
{
	struct table *table = flow_table();

	if (!table || !key)
		return NO_NUMBER;
	_Pragma("clang loop unroll(disable)")
	for (int choice = 0; choice < 2; choice++) {
		__u32 index = bucket_index(table, choice ? hash >> 32 : hash);
		__u64 *tags = bpf_map_lookup_elem(&flow_tags, &index);
		struct bucket *bucket = bpf_map_lookup_elem(&flows, &index);

		if (!tags || !bucket)
			return NO_NUMBER;
		__u64 alike = zero_bytes(*tags ^ tag_of(hash) * EACH_TAG);

		_Pragma("clang loop unroll(disable)")
		for (int number = 0; number < BUCKET_PLACES && alike; number++) {
			__u32 at = first_byte(alike) % BUCKET_PLACES;

			if (is_place_of(&bucket->place[at], *place_word(&bucket->place[at], LAST_WORD), key))
				return (__u64)index * BUCKET_PLACES + at;
			alike &= alike - 1;
		}
	}
	return NO_NUMBER;
}

INLINE struct place *place_at(__u64 number)
{
	__u32 index = number / BUCKET_PLACES;
	struct bucket *bucket = bpf_map_lookup_elem(&flows, &index);

	if (number == NO_NUMBER || !bucket)
		return NULL;
	/* The compiler must not count from `bucket` before that. */
	asm volatile("" : "+r"(number));
	return &bucket->place[number % BUCKET_PLACES];
}

/* Holds a place if it is the key's. `last` is the last word of the place's key. */
INLINE bool hold_place(struct hold *hold, struct place *place, __u64 last, const struct flow_key *key)
{
	if (!is_place_of(place, last, key))
		return false;
	hold->place = place;
	hold->word = last;
	return true;
}

/* Holds the place with a number if it is the key's. */
INLINE void hold_number(struct hold *hold, __u64 number, const struct flow_key *key)
{
	struct place *place = place_at(number);

	if (!place || !hold_place(hold, place, *place_word(place, LAST_WORD), key))
		hold->place = NULL;
}

/* Holds the place of a key. Returns the key's hash. */
INLINE __u64 find_place(const struct flow_key *key, struct hold *hold)
{
	struct table *table = flow_table();

	hold->place = NULL;
	if (!table)
		return 0;
	__u64 hash = hash_key(table, key);
	__u32 index = bucket_index(table, hash), at = first_place(hash);
	struct bucket *bucket = bpf_map_lookup_elem(&flows, &index);
	__u64 *tags = bpf_map_lookup_elem(&flow_tags, &index);

	if (!bucket || !tags)
		return hash;
	struct place *first = &bucket->place[at], *next = &bucket->place[(at + 1) % BUCKET_PLACES];
	/* All that may be needed is asked for at once, so that a key in another place waits for memory only once more. */
	__u64 first_last = *place_word(first, LAST_WORD), next_last = *place_word(next, LAST_WORD);

	(void)*(volatile __u64 *)tags;
	if (!hold_place(hold, first, first_last, key) && !hold_place(hold, next, next_last, key))
		hold_number(hold, find_number(key, hash), key);
	return hash;
}

INLINE struct flow *flow_at(const struct flow_key *key, struct hold *hold)
{
	hold_number(hold, find_number(key, hash_apart(key)), key);
	return hold->place ? &hold->place->flow : NULL;
}

/* Whether what was read of a flow was still of this one. */
INLINE bool is_held(const struct hold *hold)
{
	asm volatile("" ::: "memory");
	return !hold->place || *place_word(hold->place, LAST_WORD) == hold->word;
}

/* Clears a tag, so that its place can be taken. */
INLINE void clear_tag(__u64 number)
{
	__u32 index = number / BUCKET_PLACES;
	__u64 *tags = bpf_map_lookup_elem(&flow_tags, &index);

	if (tags)
		__sync_fetch_and_and(tags, ~(0xffULL << (number % BUCKET_PLACES * 8)));
}

/* Removes the entry of a key. */
APART_ONCE int remove_flow(const struct flow_key *key)
{
	struct table *table = flow_table();
	struct hold hold = {};

	if (!table || !key)
		return 0;
	__u64 number = find_number(key, hash_apart(key));

	hold_number(&hold, number, key);
	if (hold.place &&
	    __sync_val_compare_and_swap(place_word(hold.place, LAST_WORD), hold.word, hold.word & ~PLACE_READY) == hold.word) {
		clear_tag(number);
		__sync_fetch_and_add(&table->entries, -1);
	}
	return 0;
}

INLINE __u32 free_places(__u64 tags)
{
	return ((zero_bytes(tags) >> 7) * EACH_TAG) >> 56;
}

/* Fills a place whose tag was just taken. Whether it still has that tag: user space clears those of programs that seem to have stopped. */
INLINE bool fill(struct place *place, const struct flow_key *key, const struct flow *flow)
{
	volatile __u64 *last = place_word(place, LAST_WORD);
	__u64 before = *last, word = ((before & ~PLACE_KEY) + PLACE_GENERATION) | key_word(key, LAST_WORD) | PLACE_READY;

	*place_word(place, 0) = key_word(key, 0);
	*place_word(place, 1) = key_word(key, 1);
	*place_word(place, 2) = key_word(key, 2);
	*place_word(place, 3) = key_word(key, 3);
	__builtin_memcpy(__builtin_assume_aligned(&place->flow, sizeof(__u64)), __builtin_assume_aligned(flow, sizeof(__u64)),
			 sizeof(*flow));
	/* After all that was written. */
	return __sync_val_compare_and_swap(last, before, word) == before;
}

/* The free place of a bucket that a lookup finds soonest. `free`: a bit for each, of which one is set. */
INLINE __u32 best_place(__u64 free, __u64 hash)
{
	__u32 first = first_place(hash), next = (first + 1) % BUCKET_PLACES;

	if (free >> (first * 8) & 0xff)
		return first;
	return free >> (next * 8) & 0xff ? next : first_byte(free) % BUCKET_PLACES;
}

/* What `enter_one` returns if it enters nothing. */
#define NOT_ENTERED(reason) (-1 - (__s64)(reason))
#define FLOW_EXISTS NOT_ENTERED(REASONS)

/* A place is tried so often if other cores change tags of its bucket at the same moment. */
#define TAKE_TRIES_MAX 4

/* Reserves entries for both directions of a flow. */
INLINE bool reserve(void)
{
	struct table *table = flow_table();

	if (!table)
		return false;
	if (__sync_fetch_and_add(&table->entries, 2) + 2 <= table->entries_max)
		return true;
	__sync_fetch_and_add(&table->entries, -2);
	return false;
}

/* Gives reserved entries back. */
INLINE void give_back(int entries)
{
	struct table *table = flow_table();

	if (table)
		__sync_fetch_and_add(&table->entries, -entries);
}

/*
 * Enters one direction of a flow, whose entry is reserved. The number of its place, FLOW_EXISTS, or NOT_ENTERED(FLOWS_FULL). A key is never entered twice, because one lock
 * of many is held, which the key selects.
 */
APART_ONCE __s64 enter_one(const struct flow_key *key, const struct flow *flow, __u64 hash)
{
	struct table *table = flow_table();

	if (!table || !key || !flow)
		return NOT_ENTERED(FLOWS_FULL);
	__u32 index = bucket_index(table, hash), rest_index = bucket_index(table, hash >> 32), lock_index = (hash >> 40) % FLOW_LOCKS;
	__u64 *tags = bpf_map_lookup_elem(&flow_tags, &index), *rest_tags = bpf_map_lookup_elem(&flow_tags, &rest_index);

	if (!tags || !rest_tags)
		return NOT_ENTERED(FLOWS_FULL);
	if (free_places(*tags) < FREE_PLACES_MIN && free_places(*rest_tags) > free_places(*tags)) {
		__u32 first_index = index;
		__u64 *first_tags = tags;

		index = rest_index;
		tags = rest_tags;
		rest_index = first_index;
		rest_tags = first_tags;
	}
	struct bucket *bucket = bpf_map_lookup_elem(&flows, &index), *rest = bpf_map_lookup_elem(&flows, &rest_index);
	struct flow_lock *lock = bpf_map_lookup_elem(&flow_locks, &lock_index);
	__s64 entered = NOT_ENTERED(FLOWS_FULL);

	if (!bucket || !rest || !lock)
		return entered;
	bpf_spin_lock(&lock->lock);
	if (place_in(rest, *(volatile __u64 *)rest_tags, tag_of(hash), key) ||
	    place_in(bucket, *(volatile __u64 *)tags, tag_of(hash), key)) {
		entered = FLOW_EXISTS;
	} else {
		_Pragma("clang loop unroll(disable)")
		for (int attempt = 0; attempt < TAKE_TRIES_MAX; attempt++) {
			__u64 before = *(volatile __u64 *)tags, free = zero_bytes(before);
			__u32 at = best_place(free, hash) % BUCKET_PLACES;

			/* Other cores took its last places meanwhile. */
			if (!free && index != rest_index) {
				index = rest_index;
				bucket = rest;
				tags = rest_tags;
				continue;
			}
			if (!free)
				break;
			if (__sync_val_compare_and_swap(tags, before, before | tag_of(hash) << (at * 8)) == before) {
				if (fill(&bucket->place[at], key, flow))
					entered = at;
				break;
			}
		}
	}
	bpf_spin_unlock(&lock->lock);
	return entered < 0 ? entered : (__s64)index * BUCKET_PLACES + entered;
}
