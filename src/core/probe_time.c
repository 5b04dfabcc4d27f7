/* SPDX-License-Identifier: MIT */
/* See probe_time.h. */
#include "probe_time.h"

#include "heartwheel/fnv.h"

/* Returns a hash of the device's id. The upper bits of FNV hardly differ between short ids that differ in the last
 * byte. So the finalizer of MurmurHash3 (Appleby) mixes them. */
static uint32_t hash_of(const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	uint32_t h = hw_fnv32(id.text, id.len);
	h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
	h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
	return h ^ h >> 16;
}

struct hw_probe_moments hw_probe_moments(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                                         struct hw_seen deadline)
{
	double share = (double)(g->timeout_ms - g->probe_after_ms) / (double)g->timeout_ms;
	double window_ns = share * (double)timeout_ms * (double)HW_NS_PER_MS;
	int64_t spread_ns = (int64_t)(window_ns / 2 * (double)hash_of(d) / 4294967296.0);
	int64_t first_ns = deadline.ns - (int64_t)window_ns + spread_ns;
	return (struct hw_probe_moments){.first_ns = first_ns,
	                                 .step_ns = (deadline.ns - first_ns) / g->probes,
	                                 .n = g->probes,
	                                 .after_ns = timeout_ms * HW_NS_PER_MS - (int64_t)window_ns + spread_ns};
}

static struct hw_tick tick_of(const struct hw_probe_moments *m, unsigned k)
{
	return hw_tick_ceil((struct hw_seen){m->first_ns + (int64_t)k * m->step_ns});
}

bool hw_probe_last(const struct hw_probe_moments *m, struct hw_tick now, struct hw_tick *at)
{
	for (unsigned k = m->n; k-- > 0;) {
		*at = tick_of(m, k);
		if (at->n <= now.n)
			return true;
	}
	return false;
}

struct hw_seen hw_probe_point(const struct hw_group *g, const struct hw_device *d, int64_t timeout_ms,
                              struct hw_seen deadline, struct hw_seen now)
{
	struct hw_probe_moments m = hw_probe_moments(g, d, timeout_ms, deadline);
	int64_t at_ns = deadline.ns, latest_ns = now.ns + m.after_ns;
	unsigned k = 0;
	while (k < m.n && tick_of(&m, k).n <= hw_tick_floor(now).n)
		k++;
	if (k < m.n)
		at_ns = m.first_ns + (int64_t)k * m.step_ns;
	return (struct hw_seen){at_ns < latest_ns ? at_ns : latest_ns};
}
