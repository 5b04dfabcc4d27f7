/* SPDX-License-Identifier: MIT */
/* See pending.h. */
#include "daemon/cluster/cluster.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "store_priv.h"

#define REDIS_PATIENCE_NS HW_NS_PER_S
#define RELEASE_CHECKS    8192 /* records that one turn of the release sweep checks */

static bool set_pending(struct hw_app *a, struct hw_device *d, bool pending)
{
	if (hw_device_noted(d, HW_PENDING_STORE) == pending)
		return false;
	hw_device_note(d, HW_PENDING_STORE, pending);
	a->store->pending += pending ? 1 : UINT64_MAX;
	hw_app_cluster_pending(a, d, pending);
	if (a->store->pending == 0)
		hw_control_settled(a->control);
	return true;
}

bool hw_app_settle_store(struct hw_app *a, struct hw_device *d)
{
	return set_pending(a, d, false);
}

void hw_app_set_store_pending(struct hw_app *a, struct hw_now now, struct hw_device *d, const struct hw_transition *t)
{
	if (!hw_redis_transition(a->redis, now, t)) {
		hw_app_cluster_withdraw(a, t->device);
		hw_app_settle_store(a, d);
		return;
	}
	(void)set_pending(a, d, true);
}

void hw_app_store_newer(struct hw_app *a, struct hw_ref ref, uint64_t stored_seq)
{
	struct hw_device *d = hw_app_device(a, ref);
	if (!d || !hw_monitor_adopt_seq(a->monitor, ref, stored_seq))
		return;
	struct hw_now now = hw_app_now();
	struct hw_transition rewrite = {.device = ref,
	                                .state = hw_device_state(d),
	                                .reason = hw_device_reason(d),
	                                .time_ms = d->since_ms,
	                                .last_seen_ms = hw_device_last_seen_ms(d, now),
	                                .seq = d->seq,
	                                .wait_ms = -1,
	                                .delay_ns = -1};
	hw_retained_add(hw_app_status_sink(a), ref.index);
	hw_app_published_pending(a, d);
	hw_app_set_store_pending(a, now, d, &rewrite);
	if (!hw_device_noted(d, HW_PENDING_STORE))
		hw_retained_release(hw_app_status_sink(a), ref, now.mono.ns / HW_NS_PER_MS);
	hw_app_schedule_turn(a);
}

/* --- statuses that waited for Redis ------------------------------------------ */

/* Whether Redis was unreachable or silent for so long that statuses no longer wait for its answer. */
static bool redis_is_late(const struct hw_app *a, struct hw_now now)
{
	if (!a->redis || a->store->pending == 0)
		return false;
	struct hw_mono down = hw_redis_down_since(a->redis);
	if (!hw_redis_up(a->redis) && now.mono.ns - down.ns > REDIS_PATIENCE_NS)
		return true;
	return hw_redis_stats(a->redis)->oldest_transition_ms > REDIS_PATIENCE_NS / HW_NS_PER_MS;
}

bool hw_app_release(struct hw_app *a, struct hw_now now)
{
	bool late = redis_is_late(a, now);
	if (late && !a->store->late.ns) {
		a->store->late = now.mono;
		a->store->releasing = true;
		a->store->release_at = 0;
		hw_control_late(a->control, true);
	} else if (!late && a->store->late.ns) {
		a->store->late.ns = 0;
		hw_control_late(a->control, false);
	}
	if (!a->store->releasing)
		return false;
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t bound = hw_registry_bound(r);
	for (int n_checked = 0; n_checked < RELEASE_CHECKS && a->store->release_at < bound;
	     n_checked++, a->store->release_at++)
		if (hw_registry_at(r, a->store->release_at))
			hw_retained_release(hw_app_status_sink(a), hw_registry_ref(r, a->store->release_at),
			                    now.mono.ns / HW_NS_PER_MS);
	a->store->releasing = a->store->release_at < bound;
	return a->store->releasing;
}

uint64_t hw_app_pending(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms)
{
	int64_t status = hw_retained_oldest_ms(hw_app_status_sink(a), now.mono.ns / HW_NS_PER_MS);
	int64_t store = a->redis ? hw_redis_stats(a->redis)->oldest_transition_ms : 0;
	*oldest_ms = status > store ? status : store;
	/* The same device may be pending at both sinks. So the larger number is a lower bound of the number of
	 * pending devices, and usually right. */
	return hw_app_status_sink(a)->pending > a->store->pending ? hw_app_status_sink(a)->pending : a->store->pending;
}

uint64_t hw_app_pending_writes(const struct hw_app *a)
{
	return a->store->pending;
}

bool hw_app_waits_for_store(const struct hw_app *a, const struct hw_device *d)
{
	return hw_device_noted(d, HW_PENDING_STORE) && !a->store->late.ns;
}

bool hw_app_release_on(struct hw_app *a, struct hw_now now)
{
	return a->store->releasing && hw_app_release(a, now);
}
