/* SPDX-License-Identifier: MIT */
/* See inventory.h. Cost: a sweep visits STEP entries in each turn of the loop. */
#include "inventory.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loop/clock.h"
#include "daemon/loop/wall_clock.h"
#include "daemon/store/store.h"
#include "inventory_priv.h"
#include "redis/inventory.h"

#define STEP      1000
#define REWRITTEN 64
/* after Redis was emptied, the owners of partitions have this long to write their entries again */
#define OTHERS_MS     5000
#define UNSEEN_CALLS  4
#define CLOCK_BACK_MS 60000
/* time until an id that has a record in Redis, but none in this monitor, is checked again */
#define STORED_AGAIN_MS 60000

static struct hw_expected *table(const struct hw_app *a)
{
	return hw_monitor_expected(a->monitor);
}

/* --- from Redis ------------------------------------------------------------------- */

static void on_reading(void *arg)
{
	struct hw_app *a = arg;
	a->inventory->sweeps_missing = a->inventory->rewrites = false;
	a->inventory->rewrite_next = 0; /* a call in flight began before this reading */
	hw_expected_reading(table(a));
}

static void on_entry(void *arg, struct hw_id id, struct hw_id entry, bool own)
{
	if (own)
		hw_inventory_take_own(arg, id, entry, true);
	else
		hw_inventory_take(arg, id, entry, true);
}

static void on_unseen(void *arg, struct hw_id id, int64_t since_ms)
{
	struct hw_app *a = arg;
	if (hw_monitor_is_known(a->monitor, id))
		hw_redis_unseen_heard(a->redis, id);
	else
		hw_inventory_take_unseen(a, id, since_ms);
}

static void on_read(void *arg)
{
	struct hw_app *a = arg;
	struct hw_app_inventory *v = a->inventory;
	v->is_read = true;
	v->missing_at = v->rewrite_at = 0;
	v->rewrites = v->emptied != HW_NOT_EMPTIED;
	v->sweeps_missing = !v->rewrites;
	if (v->emptied == HW_EMPTIED)
		v->others_at_ns = hw_app_now().mono.ns + OTHERS_MS * HW_NS_PER_MS;
	if (hw_expected_count(table(a)) > 0)
		hw_log(a->log, HW_LOG_INFO, "Redis: the inventory has %u devices%s", hw_expected_count(table(a)),
		       v->emptied == HW_EMPTIED ? ", which are written again" : "");
	hw_inventory_work(a);
}

static void on_followed(void *arg, bool at_end)
{
	((struct hw_app *)arg)->inventory->at_end = at_end;
}

/* --- sweeps ----------------------------------------------------------------------- */

/* Removes the entries that the last reading did not return. */
static void sweep_missing(struct hw_app *a)
{
	struct hw_app_inventory *v = a->inventory;
	for (unsigned n = 0; n < STEP && v->missing_at < hw_expected_bound(table(a)); n++, v->missing_at++)
		if (hw_expected_is_missing(table(a), v->missing_at))
			hw_monitor_expect_no_more(a->monitor, hw_app_now(), v->missing_at);
	v->sweeps_missing = v->missing_at < hw_expected_bound(table(a));
}

/* Determines again the group of each entry, and the time at which the entry is checked. */
static void sweep_groups(struct hw_app *a)
{
	struct hw_app_inventory *v = a->inventory;
	struct hw_expected_entry entry;
	for (unsigned n = 0; n < STEP && v->group_at < hw_expected_bound(table(a)); n++, v->group_at++) {
		if (!hw_app_inventory_entry(a, v->group_at, &entry))
			continue;
		int group = hw_inventory_group(a, hw_expected_at(table(a), v->group_at).id, &entry);
		if (group >= 0) /* the group was found before, and no group is ever removed */
			hw_expected_set_group(table(a), v->group_at, (uint16_t)group);
		hw_monitor_expect(a->monitor, hw_app_now(), v->group_at);
	}
	v->regroups = v->group_at < hw_expected_bound(table(a));
}

static void on_rewritten(void *arg, int rc, const uint8_t *results, unsigned n)
{
	struct hw_app *a = arg;
	struct hw_app_inventory *v = a->inventory;
	(void)results, (void)n;
	v->rewriting = false;
	if (rc == 0)
		v->rewrite_at = v->rewrite_next;
	hw_inventory_work(a); /* after an error: in the next second */
}

/* Called after Redis was emptied: writes the entries again that the last reading did not return. This causes no event.
 * At first only the entries of this node's partitions are written. But a partition may have no owner now. So after
 * OTHERS_MS, everything is read again, and each node writes each entry that is still missing. */
static void rewrite(struct hw_app *a)
{
	struct hw_app_inventory *v = a->inventory;
	struct hw_inventory_item items[REWRITTEN];
	char json[REWRITTEN][HW_ENTRY_JSON_MAX];
	unsigned n = 0;
	uint32_t i = v->rewrite_at;
	for (unsigned visited = 0; n < REWRITTEN && visited < STEP && i < hw_expected_bound(table(a)); i++, visited++) {
		if (!hw_expected_is_missing(table(a), i))
			continue;
		struct hw_expected_view e = hw_expected_at(table(a), i);
		bool ours = v->emptied == HW_EMPTIED_OTHERS ||
		            hw_monitor_owns_partition(a->monitor, hw_partition_of(e.id.text, e.id.len));
		size_t len = ours ? hw_inventory_json(a, i, json[n]) : 0;
		if (len > 0)
			items[n] = (struct hw_inventory_item){.kind = HW_INVENTORY_MISSING,
			                                      .id = e.id,
			                                      .entry = {json[n], len},
			                                      .unseen_ms = e.state == HW_EXPECTED_UNSEEN ? e.at_ms : 0};
		n += len > 0;
	}
	v->rewrite_next = i;
	if (n > 0)
		v->rewriting = hw_app_inventory_apply(a, "", items, n, on_rewritten, a) == 0;
	else
		v->rewrite_at = i;
	v->rewrites = v->rewrite_at < hw_expected_bound(table(a));
	if (!v->rewrites && v->emptied == HW_EMPTIED_OTHERS)
		v->emptied = HW_NOT_EMPTIED;
}

static void rewrite_others(struct hw_app *a, struct hw_now now)
{
	struct hw_app_inventory *v = a->inventory;
	if (v->emptied != HW_EMPTIED || v->others_at_ns == 0 || now.mono.ns < v->others_at_ns)
		return;
	v->emptied = HW_EMPTIED_OTHERS;
	hw_redis_inventory_read(a->redis);
}

void hw_inventory_work(struct hw_app *a)
{
	event_active(a->inventory->work, EV_TIMEOUT, 0);
}

static void on_work(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	struct hw_app_inventory *v = a->inventory;
	(void)fd, (void)what;
	hw_inventory_give_answers(a);
	if (v->sweeps_missing)
		sweep_missing(a);
	else if (v->rewrites && !v->rewriting && hw_app_inventory_is_ready(a))
		rewrite(a);
	else if (v->regroups)
		sweep_groups(a);
	if (v->sweeps_missing || v->regroups || (v->rewrites && !v->rewriting && hw_app_inventory_is_ready(a))) {
		struct timeval soon = {0, 1000};
		event_add(v->work, &soon);
	}
}

void hw_app_inventory_regroup(struct hw_app *a)
{
	a->inventory->regroups = hw_expected_count(table(a)) > 0;
	a->inventory->group_at = 0;
	if (a->inventory->regroups)
		hw_inventory_work(a);
}

void hw_app_inventory_emptied(struct hw_app *a)
{
	a->inventory->emptied = HW_EMPTIED;
	a->inventory->others_at_ns = 0;
	hw_redis_inventory_read(a->redis);
}

/* --- unseen ----------------------------------------------------------------------- */

/* Ids whose call is in flight. */
struct unseen_call {
	struct hw_app *a;
	int64_t at_ms;
	unsigned n;
	struct {
		uint8_t len;
		char text[HW_ID_MAX];
	} ids[HW_UNSEEN_ITEMS];
};

static void call_unseen(struct hw_app *a, struct hw_now now);

void hw_inventory_publish(struct hw_app *a, struct hw_id id, enum hw_state state, enum hw_reason reason,
                          int64_t time_ms, struct hw_stream_id at)
{
	const char *group = hw_inventory_group_name(a, id);
	struct hw_event e = {.at = at,
	                     .id = id.text,
	                     .id_len = id.len,
	                     .group = group,
	                     .group_len = strlen(group),
	                     .node = a->start->node_id,
	                     .node_len = strlen(a->start->node_id),
	                     .state = state,
	                     .reason = reason,
	                     .time_ms = time_ms,
	                     .timeout_ms = -1,
	                     .wait_ms = -1,
	                     .seq = (uint64_t)time_ms};
	if (a->start->cluster_mode != HW_CLUSTER_MIRROR)
		hw_control_event(a->control, &e);
}

static void on_forgotten(void *arg, struct hw_id id, struct hw_stream_id at, int64_t time_ms)
{
	hw_inventory_publish(arg, id, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR, time_ms, at);
}

static const struct hw_inventory_ops ops = {on_reading, on_entry, on_unseen, on_read, on_followed, on_forgotten};

/* Called when a device is unseen. `at`: the offset of its new entry in device:events; NULL: there is no new entry. */
static void is_unseen(struct hw_app *a, struct hw_id id, int64_t at_ms, const struct hw_stream_id *at)
{
	uint32_t i = hw_expected_find(table(a), id.text, id.len);
	if (i == HW_NIL || hw_monitor_is_known(a->monitor, id))
		return;
	(void)hw_expected_set_unseen(table(a), i, at_ms);
	if (!at)
		return;
	hw_monitor_count_unseen(a->monitor);
	struct hw_expected_view v = hw_expected_at(table(a), i);
	hw_log_limited(
		a->log, HW_LIMIT_UNSEEN, HW_LOG_NOTICE,
		"device '%.*s' of group %s is unseen: it is expected and has sent no heartbeat; unseen in all: %u",
		(int)id.len, id.text, hw_monitor_expected_group(a->monitor, &v)->name, hw_expected_unseen(table(a)));
	hw_inventory_publish(a, id, HW_STATE_UNSEEN, HW_REASON_NEVER_SEEN, at_ms, *at);
}

static void on_unseen_written(void *arg, int rc, const struct hw_unseen_answer *answers, unsigned n)
{
	struct unseen_call *c = arg;
	struct hw_app *a = c->a;
	a->inventory->unseen_calls--;
	for (unsigned k = 0; rc == 0 && k < n; k++) {
		struct hw_id id = {c->ids[k].text, c->ids[k].len};
		uint32_t i = hw_expected_find(table(a), id.text, id.len);
		if (answers[k].result == HW_UNSEEN_ADDED || answers[k].result == HW_UNSEEN_KNOWN)
			is_unseen(a, id, c->at_ms, answers[k].result == HW_UNSEEN_ADDED ? &answers[k].at : NULL);
		else if (answers[k].result == HW_UNSEEN_HAS_STATE && i != HW_NIL)
			(void)hw_expected_wait(table(a), i, c->at_ms + STORED_AGAIN_MS);
	}
	free(c);
	if (rc == 0)
		call_unseen(a, hw_app_now());
}

/* Fills a call with ids that are unseen by now. */
static struct unseen_call *next_call(struct hw_app *a, struct hw_now now, struct hw_unseen_item *items)
{
	struct unseen_call *c = malloc(sizeof(*c));
	unsigned budget = STEP;
	uint32_t i;
	if (!c)
		return NULL;
	c->a = a;
	c->at_ms = now.wall_ms;
	c->n = 0;
	while (c->n < HW_UNSEEN_ITEMS && hw_monitor_next_unseen(a->monitor, now, &budget, &i)) {
		struct hw_expected_view v = hw_expected_at(table(a), i);
		c->ids[c->n].len = (uint8_t)v.id.len;
		memcpy(c->ids[c->n].text, v.id.text, v.id.len);
		items[c->n] = (struct hw_unseen_item){{c->ids[c->n].text, v.id.len},
		                                      hw_monitor_expected_group(a->monitor, &v)->name};
		c->n++;
	}
	return c;
}

static bool may_call(const struct hw_app *a)
{
	return hw_app_inventory_is_ready(a) && !a->life.loading && !a->life.stopping && !hw_app_stands_by(a) &&
	       (!a->redis || a->inventory->at_end);
}

static void call_unseen(struct hw_app *a, struct hw_now now)
{
	struct hw_app_inventory *v = a->inventory;
	struct hw_unseen_item items[HW_UNSEEN_ITEMS];
	struct hw_now trusted = {.mono = now.mono, .wall_ms = hw_app_trusted_ms(a)};
	while (may_call(a) && v->unseen_calls < UNSEEN_CALLS) {
		struct unseen_call *c = next_call(a, trusted, items);
		if (!c || c->n == 0 ||
		    (a->redis && hw_redis_unseen(a->redis, trusted, items, c->n, on_unseen_written, c) != 0)) {
			free(c);
			return;
		}
		v->unseen_calls++;
		if (a->redis)
			continue;
		for (unsigned k = 0; k < c->n; k++) {
			is_unseen(a, items[k].id, now.wall_ms, &(struct hw_stream_id){0});
			hw_inventory_file_write(a, items[k].id);
		}
		hw_inventory_file_flush(a);
		v->unseen_calls--;
		free(c);
		return; /* the next second has the others */
	}
}

void hw_app_inventory_state(struct hw_app *a, struct hw_id id, enum hw_state state)
{
	uint32_t i = hw_expected_find(table(a), id.text, id.len);
	if (i == HW_NIL)
		return;
	struct hw_expected_view v = hw_expected_at(table(a), i);
	bool ours = hw_monitor_owns_partition(a->monitor, hw_partition_of(id.text, id.len));
	if (state == HW_STATE_FORGOTTEN) {
		if (ours && !a->life.stopping)
			hw_inventory_restart(a, id, hw_app_trusted_ms(a));
		return;
	}
	hw_expected_rest(table(a), i);
	if (v.state != HW_EXPECTED_UNSEEN)
		return;
	if (a->redis && ours) {
		hw_redis_unseen_heard(a->redis, v.id);
	} else if (!a->redis) {
		hw_inventory_file_write(a, v.id);
		hw_inventory_file_flush(a);
	}
}

/* --- life ------------------------------------------------------------------------- */

bool hw_app_inventory_is_ready(const struct hw_app *a)
{
	return a->inventory->is_read && (a->redis ? hw_app_redis_is_up(a) : a->inventory->file.f != NULL);
}

void hw_app_inventory_tick(struct hw_app *a, struct hw_now now)
{
	struct hw_app_inventory *v = a->inventory;
	int64_t clock_ms = hw_app_trusted_ms(a) - now.mono.ns / HW_NS_PER_MS;
	if (v->clock_ms && clock_ms < v->clock_ms - CLOCK_BACK_MS)
		hw_app_inventory_regroup(a); /* the clock was set back; without this, ids that are due soon would wait
		                                for as long as the clock lost */
	v->clock_ms = clock_ms;
	hw_inventory_retry_restarts(a);
	rewrite_others(a, now);
	if (v->rewrites && !v->rewriting)
		hw_inventory_work(a);
	call_unseen(a, now);
}

int hw_app_inventory_new(struct hw_app *a)
{
	a->inventory = calloc(1, sizeof(*a->inventory));
	if (!a->inventory)
		return -ENOMEM;
	a->inventory->last_answer = &a->inventory->first_answer;
	a->inventory->work = event_new(a->loop.base, -1, 0, on_work, a);
	return a->inventory->work ? 0 : -ENOMEM;
}

int hw_app_inventory_start(struct hw_app *a)
{
	if (a->redis)
		return hw_redis_inventory_start(a->redis, &ops, a);
	if (!*a->start->inventory)
		return 0;
	a->inventory->is_read = true;
	return hw_inventory_file_open(a, a->start->inventory);
}

void hw_app_inventory_free(struct hw_app *a)
{
	if (!a->inventory)
		return;
	hw_inventory_drop_answers(a);
	hw_inventory_file_close(a);
	if (a->inventory->work)
		event_free(a->inventory->work);
	free(a->inventory);
	a->inventory = NULL;
}
