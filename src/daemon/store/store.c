/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "daemon/inventory/inventory.h"
#include "daemon/loop/fanout.h"
#include "daemon/loop/reports.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "keys.h"
#include "prefix_guard.h"
#include "store_priv.h"

/* Called when the state with this seq is not pending at the store any more, whichever node owns the device. When the
 * device's status is due, the sink checks the owner. */
static void settle(struct hw_app *a, struct hw_ref ref, uint64_t seq)
{
	struct hw_device *d = hw_app_device(a, ref);
	if (!d || d->seq != seq || !hw_app_settle_store(a, d))
		return;
	hw_retained_release(hw_app_status_sink(a), ref, hw_app_now().mono.ns / HW_NS_PER_MS);
	hw_app_reap_if_done(a, ref, d);
	/* hw_app_turn() runs once for the whole reply, and publishes all statuses that the reply confirms. */
	hw_app_schedule_turn(a);
}

/* Called when Redis has confirmed a device's state. If the device's seq is smaller by now, a load has returned the hash
 * as it was before this write. Then the device is read again. */
static void on_confirmed(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct hw_app *a = arg;
	const struct hw_device *d = hw_app_device(a, ref);
	if (d && d->seq < seq)
		hw_app_cluster_reread_device(a, hw_device_id(d));
	settle(a, ref, seq);
}

/* Called when a device's state will not be written. The write may not have been pending, because a sweep of the store
 * also visits devices of other nodes. */
static void on_dropped(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct hw_app *a = arg;
	const struct hw_device *d = hw_app_device(a, ref);
	bool pending = d && d->seq == seq && hw_device_noted(d, HW_PENDING_STORE);
	settle(a, ref, seq);
	if (pending)
		hw_app_cluster_withdraw(a, ref);
}

static struct hw_fencing_token token(void *arg, unsigned partition)
{
	const struct hw_nodes *n = hw_app_nodes(arg);
	bool owns = n && hw_nodes_owns(n, partition) && !hw_app_cluster_withdraws(arg, partition);
	return owns ? hw_nodes_fencing_token(n, partition) : (struct hw_fencing_token){0};
}

static bool owner(void *arg, const char *id, size_t id_len, struct hw_ownership *out)
{
	out->partition = hw_partition_of(id, id_len);
	out->token = token(arg, out->partition);
	return out->token.epoch > 0;
}

static void on_published(void *arg, const uint64_t *p)
{
	hw_app_published_found(arg, p);
	hw_app_schedule_turn(arg);
}

static void on_read_device_failed(void *arg)
{
	hw_app_cluster_reread(arg, false);
}

static void on_fenced(void *arg, unsigned partition, const struct hw_fencing_token *newer)
{
	struct hw_app *a = arg;
	struct hw_nodes *n = hw_app_nodes(a);
	if (!n)
		return;
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_FENCED, HW_LOG_WARNING,
	               "nodes: Redis refused a write of partition %u: '%s' owns it now", partition, newer->node);
	hw_nodes_refused(n, hw_app_now(), partition, newer);
	hw_app_schedule_turn(a);
}

static void on_event(void *arg, struct hw_stream_id at, const struct hw_transition *t)
{
	hw_app_publish_to_clients(arg, at, t);
}

static void on_events(void *arg, const struct hw_event_page *page)
{
	hw_control_page(((struct hw_app *)arg)->control, page);
}

/* Called when Redis has a newer state of a device. If this node owns the device, but has not read the stream to its
 * end, it has not read this state. Then it must not overwrite the state, so it drops its own and reads the device
 * again. */
static void on_newer(void *arg, struct hw_ref ref, uint64_t stored_seq)
{
	struct hw_app *a = arg;
	const struct hw_device *d = hw_app_device(a, ref);
	if (d && !hw_app_cluster_has_followed(a, d) && hw_app_cluster_reread_device(a, hw_device_id(d)))
		on_dropped(a, ref, d->seq);
	else
		hw_app_store_newer(a, ref, stored_seq);
}

static void on_link(void *arg, bool up, const char *why)
{
	struct hw_app *a = arg;
	/* If Redis refused writes before the connection was lost, that refusal was logged; the connection now looks
	 * for a Redis that accepts writes. */
	const char *refusal = hw_redis_refusal(a->redis);
	bool reported = refusal && (up || strcmp(why, refusal) == 0);
	if (reported)
		hw_log(a->log, HW_LOG_DEBUG, "Redis: %s", why);
	else if (up)
		hw_log(a->log, HW_LOG_NOTICE, "Redis: %s", why);
	else
		hw_log_limited(a->log, HW_LIMIT_REDIS, HW_LOG_WARNING, "Redis: %s", why);
	if (up) {
		a->store->why[0] = '\0';
	} else {
		snprintf(a->store->why, sizeof(a->store->why), "%s", why);
	}
	a->store->up = up;
	a->store->ever_up |= up;
	hw_control_store(a->control, up && !hw_app_stands_by(a)); /* standby serves no events */
	if (up) {
		hw_prefix_guard_linked(a);
		hw_app_cluster_linked(a);
	} else {
		hw_prefix_guard_unlinked(a);
		hw_app_published_unlinked(a);
	}
	hw_app_turn(a);
}

static void on_device(void *arg, struct hw_stored *device)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	uint64_t odd = hw_monitor_stats(a->monitor)->refused[HW_REFUSED_STORED];
	int rc = hw_monitor_load(a->monitor, now, device);
	hw_app_reports_stored(a, device->id, device->id_len, odd);
	if (rc)
		hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_WARNING,
		               "a device in Redis could not be loaded: %s",
		               rc == -ENOSPC ? "the table is full; raise [monitor] max_devices" : strerror(-rc));
	else if (device->state == HW_STATE_ONLINE || device->state == HW_STATE_OFFLINE)
		hw_app_inventory_state(a, (struct hw_id){device->id, device->id_len}, device->state);
	hw_app_drain(a, now, 0);
}

/* Handles an id that an earlier run has left in the outbox. If the device is unknown, it was forgotten, and its
 * clearing becomes pending. If it is known, it needs no clearing, and its present status becomes pending. */
static void on_outbox(void *arg, const char *id, size_t id_len, bool status)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	struct hw_ref ref;
	uint32_t i = hw_registry_find(hw_monitor_registry(a->monitor), id, id_len);
	if (i != HW_NIL) {
		const struct hw_device *d = hw_registry_at(hw_monitor_registry(a->monitor), i);
		hw_app_set_status_pending(a, now, hw_registry_ref(hw_monitor_registry(a->monitor), i));
		hw_app_published_left(a, d);
		if (!status && hw_device_state(d) != HW_STATE_FORGOTTEN)
			hw_redis_cleared(a->redis, id, id_len);
	} else if (!status && hw_monitor_load_forgotten(a->monitor, id, id_len, &ref) == 0) {
		hw_retained_add(hw_app_status_sink(a), ref.index);
		hw_retained_release(hw_app_status_sink(a), ref, now.mono.ns / HW_NS_PER_MS);
		hw_app_discover(a, now, ref, hw_app_device(a, ref));
		hw_app_reap_if_done(a, ref, hw_app_device(a, ref));
	}
}

static void on_loaded(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_NOTICE, "Redis: %llu devices loaded%s", (unsigned long long)devices,
	       complete ? "" : "; not all, because the connection was lost");
	if (unusable)
		hw_log(a->log, HW_LOG_WARNING,
		       "Redis: %llu records cannot be used and are ignored, the first is the record of '%s'; find the "
		       "program that wrote them",
		       (unsigned long long)unusable, first);
	if (hw_app_cluster_reloaded(a, complete))
		return;
	if (a->store->again) {
		a->store->again = false;
		if (complete)
			hw_monitor_left_out_end(a->monitor);
		hw_app_turn(a);
		return;
	}
	a->life.loading = false;
	hw_monitor_recall_canaries(a->monitor, hw_redis_old_canaries(a->redis));
	hw_monitor_loaded(a->monitor);
	if (a->keyspace)
		hw_keyspace_loaded(a->keyspace);
	struct hw_now now = hw_app_now();
	hw_app_published_loaded(a, &(struct hw_partitions){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}});
	hw_app_republish(a, now);
	/* Writes the sight record. From now on, an emptied store is detected. */
	hw_app_keep_canaries(a);
	hw_redis_seen(a->redis, now, hw_monitor_blindness(a->monitor).blind);
	hw_app_turn(a);
}

void hw_app_keep_canaries(struct hw_app *a)
{
	struct hw_canaries had;
	hw_monitor_canaries(a->monitor, &had);
	hw_redis_keep_canaries(a->redis, &had);
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
	hw_log(a->log, HW_LOG_NOTICE, "Redis: writes are accepted again after %.1f s; pending writes follow now",
	       (double)ms / 1e3);
}

static void on_sent_again(void *arg, uint32_t n, uint32_t lacking)
{
	struct hw_app *a = arg;
	hw_log(a->log, lacking ? HW_LOG_NOTICE : HW_LOG_INFO,
	       "Redis: the %u transitions of the last minute were sent again; Redis had lost %u of them and has stored "
	       "them now",
	       n, lacking);
}

static void on_emptied(void *arg)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_WARNING, "Redis returned without heartwheel's data; all devices are written again");
	hw_app_cluster_emptied(a);
	hw_app_inventory_emptied(a);
	hw_monitor_key_loss(a->monitor, hw_app_now());
	if (a->keyspace)
		hw_keyspace_emptied(a->keyspace);
	/* Writes the sight record, as after a load. Without it, a second loss of all data in the same second would
	 * not be noticed. */
	hw_redis_seen(a->redis, hw_app_now(), hw_monitor_blindness(a->monitor).blind);
}

#define OPS                                                                                                            \
	.on_link = on_link, .on_device = on_device, .on_outbox = on_outbox, .on_loaded = on_loaded,                    \
	.on_confirmed = on_confirmed, .on_newer = on_newer, .on_events = on_events, .on_published = on_published,      \
	.on_trouble = on_trouble, .on_sentinel = on_sentinel, .on_writable = on_writable, .on_emptied = on_emptied,    \
	.on_sent_again = on_sent_again

static const struct hw_redis_ops ops_single = {OPS, .on_event = on_event};
/* In a mirror, each node gets all events from the stream, whichever node wrote them. So all nodes serve the same
 * events. */
static const struct hw_redis_ops ops_several = {OPS,
                                                .owner = owner,
                                                .token = token,
                                                .on_fenced = on_fenced,
                                                .on_dropped = on_dropped,
                                                .on_read_device_failed = on_read_device_failed};
/* standby: only one node writes events. */
static const struct hw_redis_ops ops_standby = {
	OPS, .on_event = on_event, .owner = owner, .token = token, .on_fenced = on_fenced, .on_dropped = on_dropped};

/* --- store.h ---------------------------------------------------------------------------------------------------- */

int hw_app_store_new(struct hw_app *a)
{
	a->store = calloc(1, sizeof(*a->store));
	return a->store ? 0 : -ENOMEM;
}

int hw_app_store_start(struct hw_app *a)
{
	const struct hw_settings *c = a->start;
	bool several = c->cluster_mode != HW_CLUSTER_OFF, standby = c->cluster_mode == HW_CLUSTER_STANDBY;
	if (c->store != HW_STORE_REDIS)
		return 0;
	a->store->conf = (struct hw_redis_conf){.at = hw_redis_address_of(&c->redis, a->life.redis_password),
	                                        .key_prefix = c->redis.key_prefix,
	                                        .node_id = c->node_id,
	                                        .ttl_factor = (int)c->redis.ttl_factor,
	                                        .refresh_last_seen = c->redis.refresh_last_seen,
	                                        .events_max = c->redis.events_max,
	                                        .run_id = a->life.run_id,
	                                        .place = hw_prefix_guard_host(a),
	                                        .ttl_more_ms = several ? 2 * c->cluster_lease_ms : 0,
	                                        .keyspace = c->keyspace_enabled};
	const struct hw_redis_ops *ops = standby ? &ops_standby : several ? &ops_several : &ops_single;
	a->redis = hw_redis_new(a->loop.base, &a->store->conf, a->monitor, ops, a);
	if (!a->redis)
		return -ENOMEM;
	hw_prefix_guard_start(a);
	return standby ? 0 : hw_app_start_keyspace(a);
}

void hw_app_left_out_tick(struct hw_app *a, struct hw_now now)
{
	if (!a->redis || a->life.loading || a->life.stopping || hw_app_stands_by(a) || a->store->again ||
	    !a->store->up || !hw_monitor_left_out_fits(a->monitor, now))
		return;
	hw_monitor_left_out_begin(a->monitor, now);
	if (hw_app_cluster_reread(a, false))
		return;
	a->store->again = true;
	hw_redis_load(a->redis);
}

void hw_app_groups_tick(struct hw_app *a, struct hw_now now)
{
	if (!a->redis || a->life.loading || !hw_monitor_owns_partition(a->monitor, 0))
		return;
	a->store->skips_groups = !a->store->skips_groups;
	if (a->store->skips_groups)
		hw_redis_groups(a->redis, now);
}

bool hw_app_redis_is_up(const struct hw_app *a)
{
	return a->store->up;
}

bool hw_app_redis_was_up(const struct hw_app *a)
{
	return a->store->ever_up;
}

const struct hw_redis_conf *hw_app_redis_conf(const struct hw_app *a)
{
	return &a->store->conf;
}

const char *hw_app_redis_text(const struct hw_app *a)
{
	if (!a->redis)
		return "off";
	if (a->store->up)
		return hw_redis_refusal(a->redis) ? hw_redis_refusal(a->redis) : "up";
	return a->store->why[0] ? a->store->why : "connecting";
}
