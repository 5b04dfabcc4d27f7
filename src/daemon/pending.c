/* SPDX-License-Identifier: MIT */
/* See pending.h. */
#include "pending.h"

#include "cluster_gate.h"
#include "wake.h"

#define REDIS_PATIENCE_NS HW_NS_PER_S
#define RELEASE_LOOKS     8192 /* records a turn of the sweep that lets statuses go */

static bool set_pending(struct hw_app *a, struct hw_device *d, bool pending)
{
	if (hw_device_noted(d, HW_PENDING_STORE) == pending)
		return false;
	hw_device_note(d, HW_PENDING_STORE, pending);
	a->pending_store += pending ? 1 : UINT64_MAX;
	hw_app_cluster_pending(a, d, pending);
	if (a->pending_store == 0)
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
		hw_app_cluster_unsay(a, t->device);
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
	struct hw_transition anew = {.device = ref,
	                             .state = hw_device_state(d),
	                             .reason = hw_device_reason(d),
	                             .time_ms = d->since_ms,
	                             .last_seen_ms = hw_device_last_seen_ms(d, now),
	                             .seq = d->seq,
	                             .delay_ns = -1};
	hw_retained_add(&a->status, ref.index);
	hw_app_set_store_pending(a, now, d, &anew);
	if (!hw_device_noted(d, HW_PENDING_STORE))
		hw_retained_release(&a->status, ref, now.mono.ns / HW_NS_PER_MS);
	hw_app_soon(a);
}

void hw_app_reap_if_done(struct hw_app *a, struct hw_ref ref, const struct hw_device *d)
{
	if (!hw_device_noted(d, HW_PENDING_STORE | HW_PENDING_STATUS | HW_PENDING_DISCOVERY))
		hw_monitor_reap(a->monitor, ref);
}

/* Home Assistant has to hear of a device once, and once more when it is forgotten. */
void hw_app_discover(struct hw_app *a, struct hw_now now, struct hw_ref ref, struct hw_device *d)
{
	bool gone = hw_device_state(d) == HW_STATE_FORGOTTEN;
	if (!gone && hw_device_noted(d, HW_DISCOVERED))
		return;
	hw_device_note(d, HW_DISCOVERED, !gone);
	hw_retained_add(&a->discovery, ref.index);
	hw_retained_release(&a->discovery, ref, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_set_status_pending(struct hw_app *a, struct hw_now now, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (!d)
		return;
	hw_retained_add(&a->status, ref.index);
	if (!hw_device_noted(d, HW_PENDING_STORE) || a->redis_late.ns)
		hw_retained_release(&a->status, ref, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_republish(struct hw_app *a, struct hw_now now)
{
	if (a->stopping) /* what is owed goes out; the rest is for the next run */
		return;
	hw_retained_republish(&a->status, now.mono.ns / HW_NS_PER_MS);
	hw_retained_republish(&a->discovery, now.mono.ns / HW_NS_PER_MS);
}

/* --- statuses that waited for Redis ------------------------------------------ */

/* Whether Redis has been away, or silent, for longer than statuses wait for it. */
static bool redis_is_late(const struct hw_app *a, struct hw_now now)
{
	if (!a->redis || a->pending_store == 0)
		return false;
	struct hw_mono down = hw_redis_down_since(a->redis);
	if (!hw_redis_up(a->redis) && now.mono.ns - down.ns > REDIS_PATIENCE_NS)
		return true;
	return hw_redis_stats(a->redis)->oldest_edge_ms > REDIS_PATIENCE_NS / HW_NS_PER_MS;
}

bool hw_app_release(struct hw_app *a, struct hw_now now)
{
	bool late = redis_is_late(a, now);
	if (late && !a->redis_late.ns) {
		a->redis_late = now.mono;
		a->releasing = true;
		a->release_at = 0;
		hw_control_late(a->control, true);
	} else if (!late && a->redis_late.ns) {
		a->redis_late.ns = 0;
		hw_control_late(a->control, false);
	}
	if (!a->releasing)
		return false;
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t bound = hw_registry_bound(r);
	for (int looks = 0; looks < RELEASE_LOOKS && a->release_at < bound; looks++, a->release_at++)
		if (hw_registry_at(r, a->release_at))
			hw_retained_release(&a->status, hw_registry_ref(r, a->release_at), now.mono.ns / HW_NS_PER_MS);
	a->releasing = a->release_at < bound;
	return a->releasing;
}

uint64_t hw_app_pending(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms)
{
	int64_t status = hw_retained_oldest_ms(&a->status, now.mono.ns / HW_NS_PER_MS);
	int64_t store = a->redis ? hw_redis_stats(a->redis)->oldest_edge_ms : 0;
	*oldest_ms = status > store ? status : store;
	/* A device may be owed to both: the larger debt is a lower bound of the devices owed, and exact in all but
	 * mixed failures. */
	return a->status.pending > a->pending_store ? a->status.pending : a->pending_store;
}
