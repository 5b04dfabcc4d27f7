/* SPDX-License-Identifier: MIT */
/* See devices.h. */
#include "notify/devices.h"

#include <stdlib.h>

#include "notify/gather.h"

static bool any(const void *of)
{
	return ((const struct hw_gather *)of)->any;
}

static int seal(void *of, const char *node_id, struct hw_telling *out)
{
	return hw_gather_seal(of, node_id, out);
}

static int test(void *of, const char *node_id, int64_t now_ms, struct hw_telling *out)
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

void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out)
{
	struct hw_gather *g = hw_notifier_gathers(n);
	if (!g)
		return;
	hw_gather_blind(g, now, out);
	hw_notifier_gathered(n);
}
