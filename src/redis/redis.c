/* SPDX-License-Identifier: MIT */
/*
 * The object hw_redis. It owns the parts, starts and stops them when the connection comes up or is lost, and implements
 * redis.h.
 *
 * Each time that the connection comes up, these steps follow in order: the connection is authenticated; one of several
 * nodes asks which server this is; the scripts are loaded; the sight record is read; on_link() is called. When a
 * connection or an attempt ends, hw_redis_link_ops.on_lost is called once.
 */
#include "redis/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/clock.h"
#include "redis/inner.h"

/* --- the way up and down ----------------------------------------------------------------------------------------- */

static void on_lost(void *arg, const char *why)
{
	struct hw_redis *r = arg;
	bool was = r->up;
	char text[sizeof(r->refusal.text)];
	if (r->refusal.kind != hw_trouble_of(why))
		r->refusal.writes = 0; /* after a reconnect it is not known whether Redis still refuses writes */
	/* If Redis refuses writes, `why` is Redis' own text. Otherwise `why` is a sentence about the connection. */
	if (r->refusal.writes)
		snprintf(text, sizeof(text), "%s", r->refusal.text);
	else if (hw_trouble_of(why) != HW_TROUBLE_OTHER || strncmp(why, "ERR ", 4) == 0)
		hw_trouble_text(why, text);
	else
		snprintf(text, sizeof(text), "%s", *why ? why : "Redis refuses this connection without a reason");
	r->up = false;
	hw_scripts_lost(&r->scripts);
	if (was)
		r->down_since = hw_clock_now().mono;
	hw_sink_lost(r);
	hw_load_lost(r);
	hw_sight_record_lost(r);
	hw_monitors_lost(r);
	hw_sightings_lost(r);
	hw_hints_lost(r);
	hw_published_lost(r);
	hw_inventory_lost(r);
	if (!was && strcmp(text, r->reported) == 0)
		return;
	snprintf(r->reported, sizeof(r->reported), "%s", text);
	r->ops->on_link(r->arg, false, text);
}

/* The handshake has ended: the link is usable. */
static void settle(struct hw_redis *r)
{
	char text[HW_TROUBLE_TEXT];
	bool again = r->was_up;
	hw_redis_link_settled(&r->link);
	r->up = r->was_up = true;
	r->down_since = (struct hw_mono){0};
	r->reported[0] = '\0';
	r->stats->reconnects += again;
	snprintf(text, sizeof(text), "connected to Redis at %s", r->link.where);
	r->ops->on_link(r->arg, true, text);
	hw_load_up(r);
	hw_plan_up(r, again);
	hw_sightings_send(r);
	hw_inventory_up(r);
}

/* Without the right to INFO, the server stays unknown. */
static void on_server(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(&r->link);
	hw_server_run_id(answer, r->server);
}

static void on_ready(void *arg)
{
	static const char *argv[] = {"INFO", "server"};
	static const size_t len[] = {4, 6};
	struct hw_redis *r = arg;
	r->server[0] = '\0';
	if (r->ops->owner && hw_redis_link_command(&r->link, on_server, r, 2, argv, len) != 0)
		hw_redis_link_fail(&r->link, "out of memory");
	else
		hw_scripts_load(&r->scripts);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_redis *r = arg;
	if (r->ops->on_sentinel)
		r->ops->on_sentinel(r->arg, what);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, on_trouble};

/* --- scripts ----------------------------------------------------------------------------------------------------- */

static void script_failed(void *arg, const char *error)
{
	struct hw_redis *r = arg;
	if (!r->up) {
		hw_redis_link_fail(&r->link, error);
		return;
	}
	hw_refusal_begin(r, HW_REFUSED_SIGHT_RECORD, error);
	hw_plan_retry(r, HW_HOLD_ALL); /* the next call gets NOSCRIPT again */
}

static void on_scripts(void *arg)
{
	struct hw_redis *r = arg;
	if (r->up)
		hw_plan_pump(r);
	else
		hw_sight_record_read(r, settle);
}

static const struct hw_scripts_ops scripts_ops = {on_scripts, script_failed};

/* --- pending writes ---------------------------------------------------------------------------------------------- */

static bool is_ours(const struct hw_redis *r, struct hw_ref ref, uint64_t *epoch)
{
	if (!r->ops->owner)
		return true;
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), ref);
	struct hw_id id = d ? hw_device_id(d) : (struct hw_id){0};
	return d && hw_call_owner_epoch(r, id.text, id.len, epoch);
}

/* Returns heap memory with a length byte, the id and then `more`; NULL if there is no memory. */
static uint8_t *copy_id(const char *id, size_t len, const char *more)
{
	uint8_t *copy = malloc(1 + len + strlen(more) + 1);
	if (!copy)
		return NULL;
	copy[0] = (uint8_t)len;
	memcpy(copy + 1, id, len);
	strcpy((char *)copy + 1 + len, more);
	return copy;
}

uint8_t *hw_redis_outlive(const struct hw_redis *r, const struct hw_transition *t)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), t->device);
	if (!r->sink.keeps || t->state != HW_STATE_FORGOTTEN || !d)
		return NULL;
	struct hw_id id = hw_device_id(d);
	return copy_id(id.text, id.len, hw_monitor_group_of(r->m, d)->name);
}

/* Marks the device so that its next snapshot is written as this transition, because the ring has no room for the
 * transition. Another transition of the device before that removes the mark. */
static void leave_to_rewrite(struct hw_redis *r, uint32_t index)
{
	if (hw_dues_add(r, &r->sink.snapshot, index))
		r->sink.noted[index] |= HW_NOTED_AS_TRANSITION;
	else
		r->stats->transitions_dropped++;
}

bool hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t)
{
	struct hw_pending_write e = {.t = *t, .queued_ns = now.mono.ns};
	uint32_t index = t->device.index;
	if (!is_ours(r, t->device, &e.epoch))
		return false;
	e.id = hw_redis_outlive(r, t);
	bool has_room = hw_dues_have_room(r, index);
	if (has_room && r->sink.noted[index] & HW_NOTED_AS_TRANSITION) {
		r->stats->transitions_dropped++; /* the previous transition */
		r->sink.noted[index] &= (uint8_t)~HW_NOTED_AS_TRANSITION;
	}
	if (!has_room || hw_pending_writes_push(&r->sink.pending_writes, &e) != 0) {
		free(e.id);
		leave_to_rewrite(r, index);
	}
	hw_plan_pump(r);
	return true;
}

/* Whether a refresh may wait for others. A refresh that may contain a new timeout of the device's own must not: if the
 * monitor crashed meanwhile, its next run would judge the device by the old timeout. */
static bool may_wait(const struct hw_redis *r, const struct hw_device *d, uint32_t index)
{
	return d && !r->conf.keyspace && hw_device_own_timeout_ms(d) == 0 && index < r->sink.n_noted &&
	       hw_item_is_known(r, d, index);
}

void hw_redis_refresh(struct hw_redis *r, struct hw_ref device)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), device);
	hw_dues_add(r, &r->sink.refresh, device.index);
	if (!may_wait(r, d, device.index))
		r->sink.gathered = true;
	hw_plan_refreshes(r);
}

void hw_redis_rewrite(struct hw_redis *r, struct hw_ref device)
{
	if (device.index < r->sink.n_noted)
		r->sink.noted[device.index] &= (uint8_t)~HW_NOTED_FULL;
	hw_redis_refresh(r, device);
}

void hw_redis_refresh_light(struct hw_redis *r, struct hw_now now, struct hw_ref device)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), device);
	if (d && !(hw_dues_have_room(r, device.index) && hw_item_is_plain(r, d, device.index, now)))
		hw_redis_refresh(r, device);
}

/* If the ring has no room, the acknowledgement is dropped, and the next run clears the device's messages again. */
void hw_redis_cleared(struct hw_redis *r, const char *id, size_t id_len)
{
	struct hw_pending_write e = {.queued_ns = hw_clock_now().mono.ns, .acknowledges = true};
	if (id_len == 0 || id_len > HW_ID_MAX || !hw_call_owner_epoch(r, id, id_len, &e.epoch))
		return;
	e.id = copy_id(id, id_len, "");
	if (!e.id)
		return;
	if (hw_pending_writes_push(&r->sink.pending_writes, &e) != 0)
		free(e.id);
	hw_plan_pump(r);
}

void hw_redis_tick(struct hw_redis *r)
{
	hw_redis_link_tick(&r->link);
	hw_plan_tick(r);
	hw_load_tick(r);
	hw_sightings_tick(r);
	hw_inventory_tick(r);
	hw_published_tick(r);
}

void hw_redis_compare(struct hw_redis *r)
{
	if (!r->up)
		return; /* each new connection does the same */
	if (!hw_load_pending(r))
		hw_load_up(r);
	hw_plan_sweep(r);
}

void hw_redis_reconfigured(struct hw_redis *r)
{
	hw_dues_in_full(r);
}

bool hw_redis_is_comparing(const struct hw_redis *r)
{
	return !r->up || r->sink.comparing || r->load.stage == HW_LOAD_AGAIN;
}

/* --- questions --------------------------------------------------------------------------------------------------- */

bool hw_redis_up(const struct hw_redis *r)
{
	return r->up;
}

const char *hw_redis_server(const struct hw_redis *r)
{
	return r->up ? r->server : "";
}

struct hw_mono hw_redis_down_since(const struct hw_redis *r)
{
	return r->down_since;
}

const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	struct hw_redis_stats *st = r->stats;
	st->commands = r->link.commands;
	st->transitions_waiting = s->pending_writes.transitions;
	st->waiting = s->pending_writes.tail - s->pending_writes.head - s->pending_writes.again;
	st->waiting_ends = s->pending_writes.ends;
	st->done = s->pending_writes.head;
	st->room = HW_PENDING_WRITES_MAX - st->waiting;
	st->refreshes_waiting = s->refresh.len + s->snapshot.len;
	st->oldest_transition_ms = 0;
	if (s->pending_writes.head != s->pending_writes.tail) {
		int64_t ns = hw_clock_now().mono.ns -
		             hw_pending_writes_at(&s->pending_writes, s->pending_writes.head)->queued_ns;
		st->oldest_transition_ms = ns / HW_NS_PER_MS + 1;
	}
	return st;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void free_conf(struct hw_redis_conf *c)
{
	hw_redis_address_fini(&c->at);
	free((char *)c->key_prefix);
	free((char *)c->node_id);
}

static int copy_conf(struct hw_redis_conf *to, const struct hw_redis_conf *from)
{
	*to = *from;
	to->key_prefix = strdup(from->key_prefix);
	to->node_id = strdup(from->node_id);
	int rc = hw_redis_address_copy(&to->at, &from->at);
	return !rc && to->key_prefix && to->node_id ? 0 : -ENOMEM;
}

static int start_link(struct hw_redis *r)
{
	const char *texts[HW_SCRIPTS];
	const struct hw_redis_link_conf c = {.at = r->conf.at, .seed = r->conf.run_id ^ (uint64_t)r->down_since.ns};
	for (int i = 0; i < HW_SCRIPTS; i++)
		texts[i] = hw_script_text((enum hw_script)i);
	hw_scripts_init(&r->scripts, &r->link, texts, HW_SCRIPTS, &scripts_ops, r);
	return hw_redis_link_init(&r->link, r->base, &c, &link_ops, r);
}

struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg)
{
	struct hw_redis *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->base = base;
	r->m = m;
	r->ops = ops;
	r->arg = arg;
	r->down_since = hw_clock_now().mono;
	r->started_wall_ms = hw_clock_now().wall_ms;
	hw_exclusive_init(&r->monitors.exclusive, conf->run_id);
	r->stats = calloc(1, sizeof(*r->stats));
	if (copy_conf(&r->conf, conf) == 0 && r->stats &&
	    (r->self = conf->keyspace ? hw_keys_self(conf->key_prefix, conf->node_id, conf->run_id) : strdup("")) &&
	    hw_keys_init(&r->keys, conf->key_prefix, conf->node_id) == 0 && hw_sink_init(r) == 0 &&
	    hw_load_init(r) == 0 && start_link(r) == 0)
		return r;
	hw_redis_free(r);
	return NULL;
}

void hw_redis_free(struct hw_redis *r)
{
	if (!r)
		return;
	hw_redis_link_fini(&r->link);
	hw_inventory_fini(r);
	hw_load_fini(r);
	hw_sink_fini(r);
	hw_eval_fini(&r->sight_record.eval);
	hw_eval_fini(&r->monitors.eval);
	hw_keys_fini(&r->keys);
	free_conf(&r->conf);
	free(r->self);
	free(r->stats);
	free(r);
}
