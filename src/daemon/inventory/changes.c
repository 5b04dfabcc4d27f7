/* SPDX-License-Identifier: MIT */
/* Changes of the inventory: by the control API, and when a device is forgotten. With Redis, a script makes them, and
 * the table follows. With store = memory the table is changed first, and then the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loop/clock.h"
#include "daemon/store/store.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "inventory_priv.h"
#include "redis/inventory.h"

/* An answer of store = memory. The caller gets it in the next turn of the loop. */
struct hw_inventory_answer {
	struct hw_inventory_answer *next;
	hw_inventory_applied *fn;
	void *arg;
	int rc;
	unsigned n;
	uint8_t results[HW_INVENTORY_ITEMS];
};

/* An id that is to be expected again. */
struct hw_inventory_restart {
	struct hw_inventory_restart *next;
	struct hw_app *a;
	int64_t since_ms;
	bool in_flight;
	size_t len;
	char id[HW_ID_MAX];
};

const char *hw_inventory_group_name(const struct hw_app *a, struct hw_id id)
{
	const struct hw_expected *e = hw_monitor_expected(a->monitor);
	uint32_t i = hw_expected_find(e, id.text, id.len);
	struct hw_expected_view v = i == HW_NIL ? (struct hw_expected_view){0} : hw_expected_at(e, i);
	return i == HW_NIL ? "" : hw_monitor_expected_group(a->monitor, &v)->name;
}

/* --- store = memory --------------------------------------------------------------- */

/* Whether the table has this entry. `entry`: a text from hw_entry_print(). Does not compare since_ms. */
static bool is_stored(const struct hw_expected_view *v, struct hw_id entry)
{
	struct hw_expected_entry e;
	size_t n = hw_entry_outline(&e, entry.text, entry.len);
	return v->text.len == n + 1 && memcmp(v->text.text, entry.text, n) == 0 && strcmp(v->source, e.source) == 0;
}

static uint8_t set(struct hw_app *a, const struct hw_inventory_item *it, uint32_t i)
{
	struct hw_expected_view v = {0};
	if (i != HW_NIL)
		v = hw_expected_at(hw_monitor_expected(a->monitor), i);
	if (i != HW_NIL && (it->kind == HW_INVENTORY_MISSING || is_stored(&v, it->entry)))
		return HW_INVENTORY_SAME;
	hw_inventory_take_own(a, it->id, it->entry, false);
	return i == HW_NIL ? HW_INVENTORY_ADDED : HW_INVENTORY_CHANGED;
}

static uint8_t change(struct hw_app *a, const struct hw_inventory_item *it)
{
	struct hw_expected *e = hw_monitor_expected(a->monitor);
	uint32_t i = hw_expected_find(e, it->id.text, it->id.len);
	char before[HW_ENTRY_JSON_MAX];
	if (it->kind != HW_INVENTORY_REMOVE)
		return set(a, it, i);
	size_t n = i == HW_NIL ? 0 : hw_inventory_json(a, i, before);
	if (i == HW_NIL || (it->entry.len > 0 && (it->entry.len != n || memcmp(it->entry.text, before, n) != 0)))
		return HW_INVENTORY_ABSENT;
	if (hw_expected_at(e, i).state == HW_EXPECTED_UNSEEN)
		hw_inventory_publish(a, it->id, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR, hw_app_now().wall_ms,
		                     (struct hw_stream_id){0});
	hw_inventory_take(a, it->id, (struct hw_id){0}, false);
	return HW_INVENTORY_REMOVED;
}

static int change_all(struct hw_app *a, const struct hw_inventory_item *items, unsigned n, hw_inventory_applied *fn,
                      void *arg)
{
	struct hw_inventory_answer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	w->n = n;
	w->rc = hw_inventory_file_flush(a); /* no change is accepted before what could not be written */
	for (unsigned k = 0; w->rc == 0 && k < n; k++) {
		w->results[k] = change(a, &items[k]);
		if (w->results[k] != HW_INVENTORY_SAME && w->results[k] != HW_INVENTORY_ABSENT)
			w->rc = hw_inventory_file_write(a, items[k].id);
	}
	if (w->rc == 0)
		w->rc = hw_inventory_file_flush(a);
	*a->inventory->last_answer = w;
	a->inventory->last_answer = &w->next;
	hw_inventory_work(a);
	return 0;
}

void hw_inventory_give_answers(struct hw_app *a)
{
	struct hw_inventory_answer *w = a->inventory->first_answer;
	a->inventory->first_answer = NULL;
	a->inventory->last_answer = &a->inventory->first_answer;
	for (struct hw_inventory_answer *next; w; w = next) {
		next = w->next;
		w->fn(w->arg, w->rc, w->results, w->n);
		free(w);
	}
}

void hw_inventory_drop_answers(struct hw_app *a)
{
	for (struct hw_inventory_answer *w = a->inventory->first_answer, *next; w; w = next) {
		next = w->next;
		w->fn(w->arg, -ENOTCONN, NULL, w->n);
		free(w);
	}
	for (struct hw_inventory_restart *w = a->inventory->restarts, *next; w; w = next) {
		next = w->next;
		free(w);
	}
}

/* --- the interface ---------------------------------------------------------------- */

int hw_app_inventory_apply(struct hw_app *a, const char *source, const struct hw_inventory_item *items, unsigned n,
                           hw_inventory_applied *fn, void *arg)
{
	const char *groups[HW_INVENTORY_ITEMS];
	if (!a->redis && !a->inventory->file.f)
		return -EOPNOTSUPP;
	if (!a->redis)
		return change_all(a, items, n, fn, arg);
	for (unsigned k = 0; k < n; k++)
		groups[k] = items[k].kind == HW_INVENTORY_REMOVE ? hw_inventory_group_name(a, items[k].id) : "";
	return hw_redis_inventory_apply(a->redis, hw_app_now(), source, items, groups, n, fn, arg);
}

/* --- expected again ---------------------------------------------------------------- */

static void on_restarted(void *arg, int rc, const uint8_t *results, unsigned n)
{
	struct hw_inventory_restart *w = arg;
	struct hw_inventory_restart **at = &w->a->inventory->restarts;
	(void)results, (void)n;
	w->in_flight = false;
	if (rc)
		return; /* hw_inventory_retry_restarts() repeats it */
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->a->inventory->n_restarts--;
	free(w);
}

static void write_restart(struct hw_inventory_restart *w)
{
	char json[64];
	struct hw_json j;
	hw_json_begin_text(&j, json, sizeof(json));
	hw_json_open(&j, '{');
	hw_json_int(&j, "since_ms", w->since_ms);
	hw_json_close(&j, '}');
	struct hw_inventory_item it = {
		.kind = HW_INVENTORY_RESTART, .id = {w->id, w->len}, .entry = {json, (size_t)hw_json_end_text(&j)}};
	w->in_flight = hw_app_inventory_apply(w->a, "", &it, 1, on_restarted, w) == 0;
}

void hw_inventory_retry_restarts(struct hw_app *a)
{
	for (struct hw_inventory_restart *w = a->inventory->restarts; w; w = w->next)
		if (!w->in_flight)
			write_restart(w);
}

void hw_inventory_restart(struct hw_app *a, struct hw_id id, int64_t since_ms)
{
	struct hw_expected *e = hw_monitor_expected(a->monitor);
	struct hw_expected_entry entry;
	char json[HW_ENTRY_JSON_MAX];
	uint32_t i = hw_expected_find(e, id.text, id.len);
	if (i == HW_NIL || !hw_app_inventory_entry(a, i, &entry))
		return;
	entry.since_ms = since_ms;
	hw_inventory_take(a, id, (struct hw_id){json, hw_entry_print(&entry, json, sizeof(json))}, true);
	if (!a->redis) {
		hw_inventory_file_write(a, id);
		hw_inventory_file_flush(a);
		return;
	}
	hw_inventory_write_since(a, id, since_ms);
}

void hw_inventory_write_since(struct hw_app *a, struct hw_id id, int64_t since_ms)
{
	struct hw_inventory_restart *w = calloc(1, sizeof(*w));
	if (!w)
		return; /* then the stored since_ms stays */
	w->a = a;
	w->since_ms = since_ms;
	w->len = id.len;
	memcpy(w->id, id.text, id.len);
	w->next = a->inventory->restarts;
	a->inventory->restarts = w;
	a->inventory->n_restarts++;
	write_restart(w);
}
