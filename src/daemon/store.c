/* SPDX-License-Identifier: MIT */
/* See store.h. */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "fanout.h"
#include "pending.h"
#include "prefix_guard.h"
#include "turn.h"
#include "wake.h"

/* Also of what another node is to write: whether its status is then still this one's is asked when its turn comes. */
static void on_confirmed(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct hw_app *a = arg;
	struct hw_device *d = hw_app_device(a, ref);
	if (!d || d->seq != seq || !hw_app_settle_store(a, d))
		return;
	hw_retained_release(&a->status, ref, hw_app_now().mono.ns / HW_NS_PER_MS);
	hw_app_reap_if_done(a, ref, d);
	/* What was released is published once for all that one reply confirms. */
	hw_app_soon(a);
}

/* Also of what was never owed: a sweep of the store comes upon other nodes' devices as well. */
static void on_dropped(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct hw_app *a = arg;
	const struct hw_device *d = hw_app_device(a, ref);
	bool pending = d && d->seq == seq && hw_device_noted(d, HW_PENDING_STORE);
	on_confirmed(arg, ref, seq);
	if (pending)
		hw_app_cluster_unsay(a, ref);
}

static bool owner(void *arg, const char *id, size_t id_len, struct hw_ownership *out)
{
	const struct hw_nodes *n = hw_app_nodes(arg);
	out->partition = hw_partition_of(id, id_len);
	if (!n || !hw_nodes_owns(n, out->partition) || hw_app_cluster_unsays(arg, out->partition))
		return false;
	out->token = hw_nodes_token(n, out->partition);
	return true;
}

static void on_unlooked(void *arg)
{
	hw_app_cluster_reread(arg, false);
}

static void on_fenced(void *arg, unsigned partition, const struct hw_token *newer)
{
	struct hw_app *a = arg;
	if (!a->cluster)
		return;
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_FENCED, HW_LOG_WARNING,
	               "nodes: Redis refused a write of partition %u: '%s' owns it now", partition, newer->node);
	hw_nodes_refused(a->cluster->nodes, hw_app_now(), partition, newer);
	hw_app_soon(a);
}

static void on_event(void *arg, struct hw_event_id at, const struct hw_transition *t)
{
	hw_app_tell_clients(arg, at, t);
}

static void on_events(void *arg, const struct hw_event_page *page)
{
	hw_control_page(((struct hw_app *)arg)->control, page);
}

static void on_newer(void *arg, struct hw_ref ref, uint64_t stored_seq)
{
	hw_app_store_newer(arg, ref, stored_seq);
}

static void on_link(void *arg, bool up, const char *why)
{
	struct hw_app *a = arg;
	/* A connection that is given up since it cannot be written to, in search of one that can: that has been told.
	 */
	const char *refusal = hw_redis_refusal(a->redis);
	bool told = refusal && (up || strcmp(why, refusal) == 0);
	if (told)
		hw_log(a->log, HW_LOG_DEBUG, "Redis: %s", why);
	else if (up)
		hw_log(a->log, HW_LOG_NOTICE, "Redis: %s", why);
	else
		hw_log_limited(a->log, HW_LIMIT_REDIS, HW_LOG_WARNING, "Redis: %s", why);
	if (up) {
		a->redis_why[0] = '\0';
	} else {
		snprintf(a->redis_why, sizeof(a->redis_why), "%s", why);
	}
	a->redis_up = up;
	a->redis_ever_up |= up;
	hw_control_store(a->control, up && !hw_app_stands_by(a)); /* it answers for nothing before */
	if (up) {
		hw_prefix_guard_check(a);
		hw_app_cluster_linked(a);
	} else {
		hw_prefix_guard_unlinked(a);
	}
	hw_app_turn(a);
}

static void on_device(void *arg, struct hw_stored *device)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	uint64_t odd = hw_monitor_stats(a->monitor)->refused[HW_REFUSED_STORED];
	int rc = hw_monitor_load(a->monitor, now, device);
	if (a->refused_told[HW_REFUSED_STORED] == odd && hw_monitor_stats(a->monitor)->refused[HW_REFUSED_STORED] > odd)
		snprintf(a->odd_id, sizeof(a->odd_id), "%.*s", (int)device->id_len, device->id);
	if (rc)
		hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_WARNING,
		               "a device in Redis could not be loaded: %s",
		               rc == -ENOSPC ? "the table is full; raise [monitor] max_devices" : strerror(-rc));
	hw_app_drain(a, now, 0);
}

/*
 * What an earlier run still owes. A device that is there owes its status, which says at least what the outbox does. One
 * that is not was forgotten: its clearing is owed.
 */
static void on_outbox(void *arg, const char *id, size_t id_len, const char *payload, size_t len)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	struct hw_ref ref;
	(void)payload;
	uint32_t i = hw_registry_find(hw_monitor_registry(a->monitor), id, id_len);
	if (i != HW_NIL) {
		hw_app_set_status_pending(a, now, hw_registry_ref(hw_monitor_registry(a->monitor), i));
	} else if (len == 0 && hw_monitor_load_forgotten(a->monitor, id, id_len, &ref) == 0) {
		hw_retained_add(&a->status, ref.index);
		hw_retained_release(&a->status, ref, now.mono.ns / HW_NS_PER_MS);
		hw_app_discover(a, now, ref, hw_app_device(a, ref));
		hw_app_reap_if_done(a, ref, hw_app_device(a, ref));
	}
}

static void on_loaded(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_NOTICE, "Redis: %llu devices loaded%s", (unsigned long long)devices,
	       complete ? "" : ", not all: the link was lost");
	if (unusable)
		hw_log(a->log, HW_LOG_WARNING,
		       "Redis: %llu records could not be used, the first is that of '%s': no device, or overwritten by "
		       "another program",
		       (unsigned long long)unusable, first);
	if (hw_app_cluster_reloaded(a))
		return;
	a->loading = false;
	hw_monitor_recall_canaries(a->monitor, hw_redis_old_canaries(a->redis));
	hw_monitor_loaded(a->monitor);
	if (a->keyspace)
		hw_keyspace_loaded(a->keyspace);
	struct hw_now now = hw_app_now();
	hw_app_republish(a, now);
	/* From now on a store that is emptied is found to be. */
	hw_redis_keep_canaries(a->redis, hw_monitor_canaries(a->monitor));
	hw_redis_seen(a->redis, now, hw_monitor_blindness(a->monitor).blind);
	hw_app_turn(a);
}

static int status_payload(void *arg, const struct hw_device *device, char *buf, size_t cap)
{
	struct hw_app *a = arg;
	return hw_status_payload(&a->status, hw_app_now(), device, buf, cap);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_app *a = arg;
	hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_ERROR, "Redis: %s", what);
}

static void on_sentinel(void *arg, const char *what)
{
	struct hw_app *a = arg;
	hw_log_limited(a->log, HW_LIMIT_SENTINEL, HW_LOG_WARNING, "Redis: %s", what);
}

static void on_writable(void *arg, int64_t ms)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_NOTICE, "Redis: can be written to again after %.1f s: what is owed is written now",
	       (double)ms / 1e3);
}

static void on_sent_again(void *arg, uint32_t n, uint32_t lacking)
{
	struct hw_app *a = arg;
	hw_log(a->log, lacking ? HW_LOG_NOTICE : HW_LOG_INFO,
	       "Redis: the last minute's transitions were sent again, %u; lost were %u of them, which are written now",
	       n, lacking);
}

static void on_emptied(void *arg)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_WARNING, "Redis came back without our data: writing every device anew");
	hw_app_cluster_emptied(a);
	hw_monitor_key_loss(a->monitor, hw_app_now());
	if (a->keyspace)
		hw_keyspace_emptied(a->keyspace);
	/* As after a load: should it be emptied once more within the second, the mark has to be there to be missed. */
	hw_redis_seen(a->redis, hw_app_now(), hw_monitor_blindness(a->monitor).blind);
}

#define OPS                                                                                                            \
	.on_link = on_link, .on_device = on_device, .on_outbox = on_outbox, .on_loaded = on_loaded,                    \
	.on_confirmed = on_confirmed, .on_newer = on_newer, .on_events = on_events, .status_payload = status_payload,  \
	.on_trouble = on_trouble, .on_sentinel = on_sentinel, .on_writable = on_writable, .on_emptied = on_emptied,    \
	.on_sent_again = on_sent_again

const struct hw_redis_ops hw_app_redis_ops = {OPS, .on_event = on_event};
/* Of several nodes all events come from the stream, whoever wrote them: each serves the same ones. */
const struct hw_redis_ops hw_app_redis_ops_several = {OPS, .owner = owner, .on_fenced = on_fenced,
                                                      .on_dropped = on_dropped, .on_unlooked = on_unlooked};
/* ... but where one alone writes them. */
const struct hw_redis_ops hw_app_redis_ops_standby = {OPS, .on_event = on_event, .owner = owner, .on_fenced = on_fenced,
                                                      .on_dropped = on_dropped};
