/* Why a packet was not simply forwarded. The order is that of `reasons!` in src/reason.rs. */
#pragma once

enum reason {
	NOT_OURS,
	NOT_IP,
	UNPARSED,
	FRAGMENT_WITHOUT_FIRST,
	TTL_EXCEEDED,
	NEIGHBOUR_UNRESOLVED,
	OTHER_DEVICE,
	ICMP_WITHOUT_FLOW,
	NOT_FORWARDED,
	OTHER_HARDWARE,
	DENIED,
	CLIENT_NOT_ALLOWED,
	SOURCE_RATE,
	NO_MEMBER,
	MEMBER_DOWN,
	FLOWS_FULL,
	SOURCE_PORTS_EXHAUSTED,
	FLOW_CONFLICT,
	NOT_SYN,
	NO_ROUTE,
	FORWARDING_OFF,
	TOO_BIG,
	SOURCE_ROUTE,
	NOT_CHANGED,
	TOO_BIG_ANSWERED,
	SYN_COOKIE,
	REASONS,
};

/* Reasons below this one pass the packet on to the kernel; those from here on drop it. */
#define FIRST_DROPPED DENIED
