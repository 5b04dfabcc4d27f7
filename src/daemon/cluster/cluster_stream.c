/* SPDX-License-Identifier: MIT */
#include "cluster_stream.h"

#include <errno.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/inventory/inventory.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"
#include "daemon/store/store.h"
#include "redis/tail.h"

#define FORGETS_A_TURN 4096 /* records checked per turn */

static struct hw_cluster_stream *stream_of(const struct hw_app *a)
{
	return &a->cluster->stream;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Applies an entry of a node that has claimed the partition with a greater fencing token, after this node has lost
 * the partition. */
static int put_in_again(struct hw_app *a, struct hw_now now, const struct hw_event *e)
{
	struct hw_fencing_token token = {.epoch = e->epoch};
	if (e->node_len > HW_NODE_ID_MAX)
		return -EINVAL;
	memcpy(token.node, e->node, e->node_len);
	hw_nodes_refused(a->cluster->nodes, now, hw_partition_of(e->id, e->id_len), &token);
	hw_app_cluster_turn(a, now);
	return hw_monitor_stream(a->monitor, now, e);
}

static void reap(struct hw_app *a, const struct hw_event *e)
{
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t i = e->state == HW_STATE_FORGOTTEN ? hw_registry_find(r, e->id, e->id_len) : HW_NIL;
	if (i != HW_NIL)
		hw_app_reap_if_done(a, hw_registry_ref(r, i), hw_registry_at(r, i));
}

static void put_in(struct hw_app *a, struct hw_now now, struct hw_event *e)
{
	if (e->state == HW_STATE_UNSEEN) { /* device:inventory names it too */
		hw_control_event(a->control, e);
		return;
	}
	if (!e->has_form)
		e->form = hw_app_cluster_form(a, e->node, e->node_len, e->group, e->group_len);
	bool known_by_stream = a->keyspace && hw_monitor_is_known_by_stream(a->monitor, e);
	int rc = hw_monitor_stream(a->monitor, now, e);
	/* Only a device's hash shows whether a key of the device is known, so the hash is read. If too many such
	 * requests wait, all hashes are read again, as after a gap. */
	if (known_by_stream && rc == 0 && hw_redis_read_device(a->redis, e->id, e->id_len, false) < 0)
		hw_app_cluster_reread(a, false);
	if (rc == -ESTALE)
		rc = put_in_again(a, now, e);
	if (rc == -ENOSPC || rc == -ENOMEM)
		hw_log_limited(a->log, HW_LIMIT_REDIS_TROUBLE, HW_LOG_WARNING,
		               "a device of the event stream could not be added: %s",
		               rc == -ENOSPC ? "the table is full; raise [monitor] max_devices" : strerror(-rc));
	if (rc == 0)
		hw_app_inventory_state(a, (struct hw_id){e->id, e->id_len}, e->state);
	hw_control_event(a->control, e);
	reap(a, e);
}

static void on_page(void *arg, const struct hw_event_page *page)
{
	struct hw_app *a = arg;
	struct hw_cluster_stream *s = stream_of(a);
	struct hw_now now = hw_app_now();
	for (size_t i = 0; i < page->n; i++) { /* each entry causes at most one output */
		struct hw_event e = page->events[i];
		put_in(a, now, &e);
	}
	hw_app_drain(a, now, 0);
	s->followed |= !page->more;
	if (!page->more)
		s->since.ns = 0;
	else if (!s->since.ns)
		s->since = now.mono;
	hw_app_schedule_turn(a);
}

/* --- links and gaps ----------------------------------------------------------------------------------------------- */

/* Called when the link of the tail changes. After a connect, reading starts after the id {1, 0}, which no stream
 * contains. So the tail reports a gap, and with it the end of the stream. */
static void on_link(void *arg, bool up, const char *why)
{
	struct hw_app *a = arg;
	struct hw_cluster_stream *s = stream_of(a);
	hw_log(a->log, HW_LOG_DEBUG, "nodes: event stream: %s", why);
	s->followed = false;
	if (up && s->reading == HW_CLUSTER_UNREAD)
		hw_tail_from(s->tail, (struct hw_stream_id){1, 0});
	if (!up && !s->since.ns)
		s->since = hw_app_now().mono;
	hw_app_schedule_turn(a);
}

static void on_gap(void *arg, enum hw_tail_gap gap, struct hw_stream_id from, const char *why)
{
	struct hw_app *a = arg;
	struct hw_cluster_stream *s = stream_of(a);
	s->followed = false;
	s->server |= gap == HW_TAIL_SERVER || s->reading == HW_CLUSTER_UNREAD;
	hw_app_cluster_gap(a);
	hw_control_missed(a->control, from);
	if (s->reading == HW_CLUSTER_UNREAD) {
		s->reading = HW_CLUSTER_LOADS;
		hw_redis_load(a->redis);
		return;
	}
	hw_log_limited(a->log, HW_LIMIT_CLUSTER_STREAM, HW_LOG_WARNING,
	               "nodes: all devices are loaded from Redis again: %s", why);
	hw_app_cluster_reread(a, gap == HW_TAIL_SERVER);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_app *a = arg;
	hw_log(a->log, HW_LOG_ERROR, "nodes: event stream: %s%s", what,
	       hw_app_cluster_is_denied(a) ? "; this node is not ready and hands its devices over to ready nodes; "
	                                     "allow the Redis user to read the stream"
	                                   : "");
	hw_app_schedule_turn(a);
}

static const struct hw_tail_ops tail_ops = {on_link, on_page, on_gap, on_trouble};

/* --- reading again ------------------------------------------------------------------------------------------------ */

bool hw_app_cluster_reread(struct hw_app *a, bool keeps)
{
	struct hw_cluster_stream *s = a->cluster ? stream_of(a) : NULL;
	if (!s || !s->tail) /* mode = standby does not follow the stream: if a part of the fleet is lost, everything
	                     * is discarded */
		return false;
	s->wanted = true;
	s->keeps |= keeps;
	return true;
}

bool hw_app_cluster_reread_device(struct hw_app *a, struct hw_id id)
{
	bool follows = a->cluster && stream_of(a)->tail;
	return follows &&
	       (hw_redis_read_device(a->redis, id.text, id.len, true) == 0 || hw_app_cluster_reread(a, false));
}

/* Writes this run's sight record before the first load. If the store is emptied during the load, on_fenced() finds
 * the record missing. Until the load ends, the record keeps the canaries of the previous run. */
static void write_record(struct hw_app *a)
{
	if (hw_redis_has_sight_record(a->redis) || !stream_of(a)->tail)
		return;
	if (a->life.loading)
		hw_redis_keep_canaries(a->redis, hw_redis_old_canaries(a->redis));
	hw_redis_seen(a->redis, hw_app_now(), true);
}

void hw_app_cluster_linked(struct hw_app *a)
{
	if (!a->cluster)
		return;
	write_record(a);
	if (!stream_of(a)->server)
		return;
	stream_of(a)->server = false;
	hw_app_cluster_reread(a, true);
}

void hw_app_cluster_emptied(struct hw_app *a)
{
	if (a->cluster)
		stream_of(a)->emptied = true;
}

/* Whether missing devices may be forgotten: the store and the followed stream are in the same Redis, and the store
 * was not emptied. */
static bool is_whole(struct hw_app *a, bool has_record)
{
	struct hw_cluster_stream *s = stream_of(a);
	const char *server = hw_redis_server(a->redis);
	bool whole = !s->emptied && has_record && *server && strcmp(server, hw_tail_server(s->tail)) == 0;
	s->emptied = false;
	return !hw_redis_doubts(a->redis) && whole;
}

/* Called when Redis has executed all commands that this node sent before the reread. Begins the reread, unless the
 * connection was lost (`known` is false). */
static void on_fenced(void *arg, bool known, bool has_record)
{
	struct hw_app *a = arg;
	if (!a->cluster)
		return;
	struct hw_cluster_stream *s = stream_of(a);
	s->reading = HW_CLUSTER_READ;
	if (!known)
		return;
	s->keeps |= !is_whole(a, has_record);
	if (hw_monitor_reread_begin(a->monitor, s->keeps) < 0) {
		s->reading = HW_CLUSTER_STARVES;
		return;
	}
	s->keeping = s->keeps;
	s->wanted = s->keeps = false;
	s->reading = HW_CLUSTER_REREADS;
	s->rereads++;
	hw_monitor_left_out_begin(a->monitor, hw_app_now());
	hw_redis_load(a->redis);
}

static void begin(struct hw_app *a)
{
	struct hw_cluster_stream *s = stream_of(a);
	if (!s->wanted || s->reading != HW_CLUSTER_READ || !hw_redis_up(a->redis) || hw_app_cluster_withdraws_any(a))
		return;
	s->reading = HW_CLUSTER_FENCES;
	if (hw_redis_fence(a->redis, on_fenced, a) < 0)
		s->reading = HW_CLUSTER_READ;
}

/* Called with the result of the fence after the store was read. If Redis was emptied or replaced meanwhile, or if the
 * connection was lost, the store is read again. */
static void on_proven(void *arg, bool known, bool has_record)
{
	struct hw_app *a = arg;
	if (!a->cluster)
		return;
	struct hw_cluster_stream *s = stream_of(a);
	s->reading = HW_CLUSTER_READ;
	if (known && is_whole(a, has_record) && !s->keeps)
		s->reading = HW_CLUSTER_ENDS;
	else
		hw_app_cluster_reread(a, known);
	hw_app_schedule_turn(a);
}

static void prove(struct hw_app *a)
{
	stream_of(a)->reading = HW_CLUSTER_PROVES;
	if (hw_redis_fence(a->redis, on_proven, a) < 0)
		on_proven(a, false, false);
}

bool hw_app_cluster_reloaded(struct hw_app *a, bool complete)
{
	if (!a->cluster || !stream_of(a)->tail)
		return false;
	struct hw_cluster_stream *s = stream_of(a);
	bool again = s->reading == HW_CLUSTER_REREADS;
	if (again && complete)
		hw_monitor_left_out_end(a->monitor);
	s->keeps |= !hw_redis_has_sight_record(
		a->redis); /* without the sight record, an emptied store could not be noticed */
	if (again && !s->keeping)
		prove(a);
	else
		s->reading = again ? HW_CLUSTER_ENDS : HW_CLUSTER_READ;
	hw_app_schedule_turn(a);
	return again;
}

/* A bounded number of records per turn. */
static void forget(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_stream *s = stream_of(a);
	unsigned budget = FORGETS_A_TURN;
	struct hw_ref gone;
	if (s->reading != HW_CLUSTER_ENDS)
		return;
	while (hw_monitor_reread_end(a->monitor, now, &budget, &gone))
		hw_app_reap_if_done(a, gone, hw_app_device(a, gone));
	if (budget > 0)
		s->reading = HW_CLUSTER_READ;
	hw_app_schedule_turn(a);
}

void hw_app_cluster_read_on(struct hw_app *a, struct hw_now now)
{
	begin(a);
	forget(a, now);
}

/* --- queries ------------------------------------------------------------------------------------------------------ */

bool hw_app_cluster_is_read(const struct hw_app *a)
{
	const struct hw_cluster_stream *s = stream_of(a);
	return s->reading == HW_CLUSTER_READ && !s->wanted && s->followed && !a->life.loading &&
	       !hw_app_cluster_is_denied(a) && !hw_redis_is_reading_again(a->redis);
}

bool hw_app_cluster_is_denied(const struct hw_app *a)
{
	const struct hw_tail *tail = stream_of(a)->tail;
	return tail && hw_tail_is_denied(tail);
}

bool hw_app_cluster_at_end(const struct hw_app *a)
{
	return hw_tail_at_end(stream_of(a)->tail);
}

uint64_t hw_app_cluster_pages(const struct hw_app *a)
{
	return stream_of(a)->tail ? hw_tail_stats(stream_of(a)->tail)->pages : 0; /* mode = standby follows no stream */
}

struct hw_stream_id hw_app_cluster_offset(const struct hw_app *a)
{
	return hw_tail_offset(stream_of(a)->tail);
}

int64_t hw_app_cluster_lag_ms(const struct hw_app *a, struct hw_now now)
{
	struct hw_mono since = stream_of(a)->since;
	return since.ns ? (now.mono.ns - since.ns) / HW_NS_PER_MS : 0;
}

void hw_app_cluster_stream_tick(struct hw_app *a)
{
	struct hw_cluster_stream *s = stream_of(a);
	hw_tail_tick(s->tail);
	if (s->reading == HW_CLUSTER_STARVES) {
		s->reading = HW_CLUSTER_READ;
		hw_app_schedule_turn(a);
	}
}

int hw_app_cluster_stream_start(struct hw_app *a)
{
	const struct hw_tail_conf conf = {
		.at = hw_app_redis_conf(a)->at, .key_prefix = a->start->redis.key_prefix, .seed = a->life.run_id ^ 5};
	struct hw_cluster_stream *s = stream_of(a);
	s->since = hw_app_now().mono;
	s->tail = hw_tail_new(a->loop.base, &conf, &tail_ops, a);
	return s->tail ? 0 : -ENOMEM;
}

void hw_app_cluster_stream_free(struct hw_app *a)
{
	hw_tail_free(stream_of(a)->tail);
	stream_of(a)->tail = NULL;
}
