/* SPDX-License-Identifier: MIT */
/* See devices.h. */
#include "notify/devices.h"

#include <stdlib.h>

#include "notify/gather.h"

static bool any(const void *of)
{
	return ((const struct hw_gather *)of)->any;
}

static int seal(void *of, const char *node_id, struct hw_notification *out)
{
	return hw_gather_seal(of, node_id, out);
}

static int test(void *of, const char *node_id, int64_t now_ms, struct hw_notification *out)
{
	return hw_gather_test(of, node_id, now_ms, out);
}

static void end(void *of)
{
	hw_gather_fini(of);
	free(of);
}

static const struct hw_notifier_source source = {any, seal, test, end};

struct hw_notifier *hw_notifier_of_devices(struct event_base *base, const struct hw_monitor *m,
                                           hw_notifier_trouble *trouble, void *arg)
{
	struct hw_gather *g = calloc(1, sizeof(*g));
	if (g && hw_gather_init(g, m)) {
		free(g);
		g = NULL;
	}
	return hw_notifier_new(base, &source, g, trouble, arg);
}

void hw_notifier_transition(struct hw_notifier *n, struct hw_now now, const struct hw_transition *t)
{
	struct hw_gather *g = hw_notifier_gathers(n);
	if (!g)
		return;
	hw_gather_transition(g, now, t);
	hw_notifier_gathered(n);
}

static void gather_blind(struct hw_notifier *n, struct hw_gather *g, struct hw_now now, const struct hw_out *out)
{
	hw_gather_blind(g, now, out);
	hw_notifier_gathered(n);
}

static void gather_begin(struct hw_notifier *n, struct hw_gather *g)
{
	struct hw_gather_blindness *b = &g->blindness;
	gather_blind(n, g, b->at, &b->begin);
	b->waits = false;
	b->gathered = true;
}

/* A blindness of the fleet is reported when it has lasted for blind_notify_after; a shorter one is not reported. A
 * blindness of a group is reported at once, because several groups may be blind at the same time. */
void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out)
{
	struct hw_gather *g = hw_notifier_gathers(n);
	if (!g)
		return;
	struct hw_gather_blindness *b = &g->blindness;
	int64_t after_ns = hw_notifier_blind_after_ms(n) * HW_NS_PER_MS;
	bool of_group = out->blind.cause == HW_CAUSE_DEAF || out->blind.cause == HW_CAUSE_UPSTREAM;
	if (of_group || (out->blind.begun && b->gathered)) {
		gather_blind(n, g, now, out);
	} else if (out->blind.begun) {
		b->at = b->waits ? b->at : now;
		b->begin = *out;
		b->waits = true;
		hw_notifier_blind_tick(n, now);
	} else {
		if (b->waits && out->blind.length_ns >= after_ns)
			gather_begin(n, g);
		if (b->gathered || out->blind.length_ns >= after_ns)
			gather_blind(n, g, now, out);
		b->waits = b->gathered = false;
	}
}

void hw_notifier_blind_tick(struct hw_notifier *n, struct hw_now now)
{
	struct hw_gather *g = hw_notifier_gathers(n);
	if (g && g->blindness.waits &&
	    now.mono.ns - g->blindness.at.mono.ns >= hw_notifier_blind_after_ms(n) * HW_NS_PER_MS)
		gather_begin(n, g);
}
