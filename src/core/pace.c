/* SPDX-License-Identifier: MIT */
/* See pace.h. */
#include "heartwheel/pace.h"

#define SUSPENDED_NS (500 * HW_NS_PER_MS)

struct hw_pace_woke hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns, int64_t stall_after_ns)
{
	int64_t slept_ns = p->compared.ns ? ahead_ns - p->ahead_ns : 0;
	struct hw_pace_woke w = {.suspended = slept_ns > SUSPENDED_NS,
	                         .stalled = p->planned.ns && now.ns - p->planned.ns > stall_after_ns,
	                         .since = p->compared,
	                         .planned = p->planned,
	                         .slept_ns = slept_ns};
	*p = (struct hw_pace){.compared = now, .ahead_ns = ahead_ns};
	return w;
}

int64_t hw_pace_wait_ns(const struct hw_monitor *m, struct hw_now now)
{
	struct hw_mono at;
	if (!hw_monitor_due(m, now, &at) || at.ns - now.mono.ns > HW_PACE_WAIT_MAX_NS)
		return HW_PACE_WAIT_MAX_NS;
	return at.ns > now.mono.ns ? at.ns - now.mono.ns : 0;
}

void hw_pace_sleeps(struct hw_pace *p, struct hw_mono now, int64_t wait_ns)
{
	p->planned = hw_mono_add(now, wait_ns);
}
