/* SPDX-License-Identifier: MIT */
/* See inventory_priv.h: puts stored entries into the table of expected devices. The table keeps an entry as its JSON,
 * without source and since_ms, which are members of their own. */
#include <errno.h>
#include <string.h>

#include "daemon/loop/clock.h"
#include "daemon/loop/wall_clock.h"
#include "daemon/store/store.h"
#include "heartwheel/bounds.h"
#include "inventory_priv.h"
#include "redis/inventory.h"

/* most wrong since_ms that are replaced after one reading; the others are replaced after the next */
#define RESTARTS_MAX 1000

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

int hw_inventory_group(struct hw_app *a, struct hw_id id, const struct hw_expected_entry *entry)
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
	int group = hw_inventory_group(a, id, entry);
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

static int64_t present_since(const struct hw_app *a, uint32_t i)
{
	return i != HW_NIL ? hw_expected_at(table(a), i).since_ms : hw_app_trusted_ms(a);
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
		entry.since_ms = present_since(a, i);
	put(a, id, i, &entry, values_of(&entry, values));
}

void hw_inventory_take_own(struct hw_app *a, struct hw_id id, struct hw_id json, bool replaces_since)
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
	if (!replaces_since)
		entry.since_ms = present_since(a, i);
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
