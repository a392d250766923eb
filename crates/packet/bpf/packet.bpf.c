/*
 * The packet path of Weirgate: balances and translates packets between clients and members.
 *
 * Two programs do the same, with the same maps: `weirgate_xdp` in the driver, and `weirgate_tcx` right above it, where
 * a packet is an skb. What XDP cannot send (the neighbour is unresolved, the device takes none from it) it passes on as
 * it came, and the other program finds the flow again and sends it with the kernel's help.
 *
 * The order for each packet: parse, policy, flow (or a new one), route, rewrite, send.
 */
#include "answers.h"
#include "icmp.h"

/* The headers that a build needs may be older than tcx. */
#define VERDICT_NEXT -1
#define VERDICT_DROP 2

char licence[] SEC("license") = "Dual MIT/GPL";

/* Counts the reason. An skb that XDP passed on is not counted for it a second time, and one with a tag by the VLAN's own device. */
INLINE int end_with(const struct packet *packet, int reason)
{
	bool passed = reason < FIRST_DROPPED;

	if (!(passed && packet->is_skb && (packet->has_tag || device_of(packet->port_device))))
		count(reason);
	return passed ? PASSED : DROPPED;
}

INLINE bool is_out_of_time(const struct packet *packet, const struct flow *flow)
{
	return packet->ttl <= 1 && !(flow->flags & (FLOW_TTL_KEEP | FLOW_TTL_SET));
}

INLINE long finish(const struct packet *packet, struct way *way, int reason)
{
	if (reason == OK && !packet->is_skb)
		reason = change_tag(packet, way);
	return reason == OK ? send(packet, way) : end_with(packet, reason);
}

INLINE long too_big(const struct packet *packet, __u32 mtu)
{
	/* Of a fragment its first is enough (RFC 1122, 3.2.2). */
	if (packet->fragment == FRAGMENT_LATER)
		return end_with(packet, TOO_BIG);
	/* The second program answers where this one cannot. */
	if (!packet->is_skb && !can_send(packet->port_device))
		return end_with(packet, OTHER_DEVICE);
	if (!may_answer(packet->now_ns))
		return end_with(packet, TOO_BIG);
	int reason = answer_too_big(packet, mtu);

	if (reason != OK)
		return end_with(packet, reason);
	count(TOO_BIG_ANSWERED);
	return bpf_redirect(packet->port_device, 0);
}

APART long handle_error(const struct packet *packet, const struct plan *plan)
{
	struct scratch *scratch = scratch_of_core();
	struct way way = {};

	if (!scratch)
		return end_with(packet, ICMP_WITHOUT_FLOW);
	__builtin_memset(&scratch->inner, 0, sizeof(scratch->inner));
	int reason = parse_inner(packet, &scratch->inner);

	if (reason != OK)
		return end_with(packet, reason);
	struct hold hold = {};
	struct flow *found = flow_of_error(packet, plan, scratch, &hold), *flow = &scratch->reverse, *outer = &scratch->forward;

	if (!found)
		return end_with(packet, ICMP_WITHOUT_FLOW);
	*flow = *found;
	if (!is_held(&hold))
		return end_with(packet, ICMP_WITHOUT_FLOW);
	struct member *member = member_at(flow->member);

	if (!member)
		return end_with(packet, ICMP_WITHOUT_FLOW);
	*outer = *flow;
	/* The member's own address is hidden; that of a router on the way stays. */
	if (!same_address(&packet->key.source, &scratch->inner.key.target))
		outer->source = packet->key.source;
	if (is_out_of_time(packet, outer))
		return end_with(packet, TTL_EXCEEDED);
	reason = ask_route(packet, outer, member, &way, NULL);
	if (reason == OK)
		reason = choose_device(packet, &way);
	if (reason != OK)
		return end_with(packet, reason);
	return finish(packet, &way, rewrite_error(packet, outer, flow, &scratch->inner));
}

INLINE long handle(struct packet *packet)
{
	struct flow *flow = NULL;
	struct member *member = NULL;
	struct plan plan;
	struct way way = {};
	struct hold hold = {};
	int reason = parse(packet);

	if (reason == NOT_IP || reason == OTHER_HARDWARE || !plan_in_force(&plan))
		return end_with(packet, reason == OTHER_HARDWARE ? OTHER_HARDWARE : NOT_IP);
	if (plan.settings->flags & HAS_POLICY && is_denied(packet, &plan))
		return end_with(packet, DENIED);
	if (packet->is_foreign)
		return end_with(packet, packet->foreign);
	if (reason != OK)
		return end_with(packet, reason);
	packet->now_ns = clock_ns();
	if (packet->is_icmp_error)
		return handle_error(packet, &plan);
	if (plan.settings->flags & HAS_COOKIES && !packet->is_skb && packet->key.protocol == IPPROTO_TCP && is_syn(packet) &&
	    can_send(packet->port_device)) {
		reason = answer_syn(packet, &plan);
		if (reason == OK) {
			count(SYN_COOKIE);
			return bpf_redirect(packet->port_device, 0);
		}
		if (reason != NOT_OURS)
			return end_with(packet, reason);
	}
	reason = find(packet, &plan, &flow, &member, &hold);
	if (reason != OK || !flow || !member)
		return end_with(packet, reason == OK ? NO_MEMBER : reason);
	if (packet->fragment == FRAGMENT_FIRST)
		remember_first(packet);
	if (is_out_of_time(packet, flow))
		return end_with(packet, TTL_EXCEEDED);
	reason = route(packet, flow, member, &way);
	if (reason == TOO_BIG)
		return too_big(packet, way.mtu);
	if (reason != OK)
		return end_with(packet, reason);
	reason = rewrite(packet, flow);
	if (reason != OK)
		return end_with(packet, reason);
	/* What was read may be of another flow, which got the place meanwhile. */
	if (!is_held(&hold))
		return end_with(packet, FLOW_CONFLICT);
	note(packet, flow);
	return finish(packet, &way, OK);
}

SEC("xdp.frags")
int weirgate_xdp(struct xdp_md *context)
{
	struct packet packet = {
		.context = context,
		.is_skb = false,
		.device = context->ingress_ifindex,
		.port_device = context->ingress_ifindex,
	};
	long verdict = handle(&packet);

	if (verdict == PASSED)
		return XDP_PASS;
	return verdict == DROPPED ? XDP_DROP : verdict;
}

#define HEADERS_BYTES 160

/* Headers have to be in the linear part. */
INLINE void pull_headers(struct __sk_buff *context)
{
	__u32 linear = context->data_end - context->data;

	if (linear < HEADERS_BYTES && linear < context->len)
		bpf_skb_pull_data(context, context->len < HEADERS_BYTES ? context->len : HEADERS_BYTES);
}

SEC("classifier")
int weirgate_tcx(struct __sk_buff *context)
{
	struct packet packet = {
		.context = context,
		.is_skb = true,
		.device = context->ingress_ifindex,
		.port_device = context->ingress_ifindex,
	};
	/* The number 0 only bears a priority; 802.1ad is another's, as for XDP. */
	if (context->vlan_present && context->vlan_proto == bpf_htons(ETH_P_8021Q) && !(context->vlan_tci & VLAN_TAG) &&
	    bpf_skb_vlan_pop(context))
		return VERDICT_NEXT;
	pull_headers(context);
	/* It belongs to a VLAN's device, which has this program, too. */
	if (context->vlan_present) {
		packet.has_tag = true;
		leave(&packet, NOT_OURS);
	}
	long verdict = handle(&packet);

	if (verdict == PASSED)
		return VERDICT_NEXT;
	return verdict == DROPPED ? VERDICT_DROP : verdict;
}
