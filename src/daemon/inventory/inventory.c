/* SPDX-License-Identifier: MIT */
/*
 * See inventory.h. The table keeps an entry as its JSON, without source and since_ms, which are members of their own.
 *
 * Cost: a sweep visits STEP entries in each turn of the loop.
 */
#include "inventory.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loop/clock.h"
#include "daemon/loop/wall_clock.h"
#include "daemon/store/store.h"
#include "heartwheel/bounds.h"
#include "inventory_priv.h"
#include "redis/inventory.h"

#define STEP      1000
#define REWRITTEN 64
/* after Redis was emptied, the owners of partitions have this long to write their entries again */
#define OTHERS_MS     5000
#define UNSEEN_CALLS  4
#define CLOCK_BACK_MS 60000
/* most wrong since_ms that are replaced after one reading; the others are replaced after the next */
#define RESTARTS_MAX 1000
/* time until an id that has a record in Redis, but none in this monitor, is checked again */
#define STORED_AGAIN_MS 60000

/* --- the table ------------------------------------------------------------------- */

static struct hw_expected *table(const struct hw_app *a)
{
	return hw_monitor_expected(a->monitor);
}

/* Whether a stored entry can be used. */
static bool parse(struct hw_app *a, struct hw_id id, struct hw_id json, struct hw_expected_entry *entry)
{
	struct hw_entry_error error;
	hw_entry_init(entry);
	if (hw_entry_parse(entry, json.text, json.len, &error) == 0)
		return true;
	hw_log_limited(a->log, HW_LIMIT_INVENTORY, HW_LOG_WARNING,
	               "the inventory's entry of '%.*s' is left out: column '%s': %s", (int)id.len, id.text,
	               error.column, error.message);
	return false;
}

static void log_left_out(struct hw_app *a, struct hw_id id, int rc)
{
	hw_log_limited(a->log, HW_LIMIT_INVENTORY, HW_LOG_ERROR, "the inventory's entry of '%.*s' is left out: %s",
	               (int)id.len, id.text, rc == -ENOSPC ? "there are too many sources or groups" : strerror(-rc));
}

/* Returns the index of the entry's group, or -errno. */
static int group_of(struct hw_app *a, struct hw_id id, const struct hw_expected_entry *entry)
{
	int k = hw_monitor_entry_group(a->monitor, entry->group);
	if (k >= 0 && k != HW_EXPECTED_NO_GROUP && hw_monitor_groups(a->monitor)->all[k]->retired)
		hw_log_limited(
			a->log, HW_LIMIT_LOST_GROUP, HW_LOG_WARNING,
			"the inventory expects '%.*s' in group '%s', which this monitor does not have: this monitor "
			"does not call the device unseen",
			(int)id.len, id.text, entry->group);
	return k;
}

static struct hw_id parents_of(const struct hw_expected_entry *entry, char text[HW_PARENTS_TEXT])
{
	size_t at = 0;
	for (unsigned k = 0; k < entry->n_parents; k++) {
		size_t len = strlen(entry->parents[k]);
		if (k > 0)
			text[at++] = '\n';
		memcpy(text + at, entry->parents[k], len);
		at += len;
	}
	return (struct hw_id){text, at};
}

/* Writes the entry without source and since_ms. */
static struct hw_id values_of(struct hw_expected_entry *entry, char *json)
{
	int64_t since_ms = entry->since_ms;
	char first = entry->source[0];
	entry->since_ms = 0;
	entry->source[0] = '\0';
	struct hw_id text = {json, hw_entry_print(entry, json, HW_ENTRY_JSON_MAX)};
	entry->since_ms = since_ms;
	entry->source[0] = first;
	return text;
}

/* If the device has a record, writes its name and labels to its hash in Redis. */
static void write_description(struct hw_app *a, struct hw_id id)
{
	struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t device = hw_registry_find(r, id.text, id.len);
	if (a->redis && device != HW_NIL)
		hw_redis_rewrite(a->redis, hw_registry_ref(r, device));
}

static bool is_equal(struct hw_id a, struct hw_id b)
{
	return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

/* A since_ms that is more than a day ahead was written by a wrong clock. With Redis, the id is expected from now on.
 * With store = memory, perhaps this machine has started with a wrong clock, and the since_ms is right. */
static void bound_since(struct hw_app *a, struct hw_id id, struct hw_expected_entry *entry)
{
	int64_t now_ms = hw_app_trusted_ms(a);
	if (!hw_app_trusted_is_known(a) || entry->since_ms <= now_ms + HW_BOUNDS_AHEAD_MS)
		return;
	hw_log_limited(a->log, HW_LIMIT_INVENTORY, HW_LOG_WARNING,
	               "the inventory's entry of '%.*s' has a since_ms that is more than a day ahead: %s", (int)id.len,
	               id.text,
	               a->redis ? "the device is expected from now on"
	                        : "the device is not called unseen before then; check the clock of this machine");
	if (!a->redis)
		return;
	entry->since_ms = now_ms;
	if (a->inventory->n_restarts < RESTARTS_MAX &&
	    hw_monitor_owns_partition(a->monitor, hw_partition_of(id.text, id.len)))
		hw_inventory_write_since(a, id, now_ms);
}

/* Puts an entry into the table. `i`: the index of the id, or HW_NIL. `text`: the entry as values_of() writes it. */
static void put(struct hw_app *a, struct hw_id id, uint32_t i, struct hw_expected_entry *entry, struct hw_id text)
{
	char parents[HW_PARENTS_TEXT];
	bound_since(a, id, entry);
	int group = group_of(a, id, entry);
	if (group < 0) {
		log_left_out(a, id, group);
		return;
	}
	struct hw_expected_view v = {.id = id,
	                             .text = text,
	                             .parents = parents_of(entry, parents),
	                             .source = entry->source,
	                             .since_ms = entry->since_ms,
	                             .timeout_ms = entry->timeout_ms,
	                             .group = (uint16_t)group,
	                             .is_described = entry->n_labels > 0 || *entry->name};
	struct hw_expected_view was = i == HW_NIL ? (struct hw_expected_view){0} : hw_expected_at(table(a), i);
	bool again = i != HW_NIL && was.since_ms != v.since_ms;
	bool changed = (was.is_described || v.is_described) && !is_equal(was.text, v.text);
	int rc = hw_expected_put(table(a), &v, &i);
	if (rc) {
		log_left_out(a, id, rc);
		return;
	}
	if (again)
		hw_expected_rest(table(a), i);
	hw_monitor_expect(a->monitor, hw_app_now(), i);
	if (changed)
		write_description(a, id);
}

static void remove_entry(struct hw_app *a, struct hw_id id, uint32_t i)
{
	if (i == HW_NIL)
		return;
	bool was_described = hw_expected_at(table(a), i).is_described;
	hw_monitor_expect_no_more(a->monitor, hw_app_now(), i);
	if (was_described)
		write_description(a, id);
}

void hw_inventory_take(struct hw_app *a, struct hw_id id, struct hw_id json, bool replaces_since)
{
	struct hw_expected_entry entry;
	char values[HW_ENTRY_JSON_MAX];
	uint32_t i = hw_expected_find(table(a), id.text, id.len);
	if (!json.text || !parse(a, id, json, &entry)) {
		remove_entry(a, id, i);
		return;
	}
	if (!replaces_since)
		entry.since_ms = i != HW_NIL ? hw_expected_at(table(a), i).since_ms : hw_app_trusted_ms(a);
	put(a, id, i, &entry, values_of(&entry, values));
}

/* Like hw_inventory_take(), for an entry that hw_entry_print() has written, as it writes a million in an import. */
static void take_own(struct hw_app *a, struct hw_id id, struct hw_id json)
{
	struct hw_expected_entry entry;
	char values[HW_ENTRY_JSON_MAX];
	uint32_t i = hw_expected_find(table(a), id.text, id.len);
	if (!json.text) {
		remove_entry(a, id, i);
		return;
	}
	size_t n = hw_entry_outline(&entry, json.text, json.len);
	memcpy(values, json.text, n);
	values[n] = '}';
	put(a, id, i, &entry, (struct hw_id){values, n + 1});
}

void hw_inventory_take_unseen(struct hw_app *a, struct hw_id id, int64_t since_ms)
{
	uint32_t i = hw_expected_find(table(a), id.text, id.len);
	if (i == HW_NIL || (since_ms > 0 && since_ms < hw_expected_at(table(a), i).since_ms))
		return; /* it was unseen before it was removed and imported again */
	bool was = hw_expected_at(table(a), i).state == HW_EXPECTED_UNSEEN;
	if (since_ms > 0) {
		(void)hw_expected_set_unseen(table(a), i, since_ms);
	} else if (was) {
		hw_expected_rest(table(a), i);
		hw_monitor_expect(a->monitor, hw_app_now(), i);
	}
}

bool hw_app_inventory_entry(const struct hw_app *a, uint32_t i, struct hw_expected_entry *out)
{
	struct hw_entry_error error;
	if (!hw_expected_is_used(table(a), i))
		return false;
	struct hw_expected_view v = hw_expected_at(table(a), i);
	hw_entry_init(out);
	if (hw_entry_read(out, v.text.text, v.text.len, &error) != 0)
		return false;
	out->since_ms = v.since_ms;
	strncpy(out->source, v.source, sizeof(out->source) - 1);
	out->source[sizeof(out->source) - 1] = '\0';
	return true;
}

bool hw_app_inventory_find(const struct hw_app *a, const char *id, size_t id_len, struct hw_expected_entry *out)
{
	uint32_t i = hw_expected_find(table(a), id, id_len);
	return i != HW_NIL && hw_app_inventory_entry(a, i, out);
}

size_t hw_inventory_json(const struct hw_app *a, uint32_t i, char json[HW_ENTRY_JSON_MAX])
{
	struct hw_expected_entry entry;
	return hw_app_inventory_entry(a, i, &entry) ? hw_entry_print(&entry, json, HW_ENTRY_JSON_MAX) : 0;
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
		take_own(arg, id, entry);
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
		int group = group_of(a, hw_expected_at(table(a), v->group_at).id, &entry);
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
		hw_app_inventory_regroup(a); /* otherwise ids that are due soon would wait as long as the step */
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
