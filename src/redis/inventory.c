/* SPDX-License-Identifier: MIT */
/*
 * See inventory.h. A reading of the whole inventory has these steps. The reader of the stream finds the end of the
 * stream (on_gap()). HSCAN then reads the entries, and ZSCAN the unseen ids. At last, a fence (hw_redis_fence()) shows
 * whether Redis was emptied. Meanwhile the stream is followed from the end that was found. So a change during the
 * reading may be read twice, but is not missed.
 *
 * Cost: a page of HSCAN, or the ids of at most PAGE entries of the stream, in each turn of the loop.
 */
#include "redis/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"
#include "heartwheel/unseen.h"
#include "inventory/entry.h"
#include "redis/inner.h"
#include "redis/places.h"
#include "stream/reader.h"

#define PAGE         8 /* entries of the stream */
#define SCAN_COUNT   "250"
#define REFUSED_MS   10000 /* for how long a refused write of an unseen id is reported if it is not repeated */
#define PAUSE_MS_MAX 60000
#define OWN_MAX      64 /* entries of the stream that this node has written and not yet read */

struct hw_inventory {
	struct hw_redis *r;
	const struct hw_inventory_ops *ops;
	void *arg;
	struct hw_stream_reader reader;
	enum { IDLE, ENTRIES, UNSEEN, FENCE } stage;
	char cursor[32];
	unsigned waiting; /* HMGETs that are awaited */
	bool up, at_end;
	bool again;         /* something could not be read or removed, so hw_inventory_tick() reads everything again */
	int64_t pause_ms;   /* after a refusal: the delay until everything is read again; 0: no refusal */
	int64_t refused_ms; /* monotonic: when Redis last refused a call; 0: Redis has accepted all calls since */
	char where[sizeof(((struct hw_redis_link *)0)->where)]; /* the server that was read last */
	int64_t reported_ms;
	struct hw_eval eval;
	/* Entries of the stream that name changes of this node, which on_entry() has already reported: a ring, the
	 * oldest at `own_at`. */
	struct hw_stream_id own[OWN_MAX];
	unsigned own_at, own_n;
};

/* --- writing -------------------------------------------------------------------- */

/* A call in flight. */
struct write {
	struct hw_redis *r;
	hw_inventory_applied *fn;
	hw_unseen_written *unseen_fn;
	void *arg;
	unsigned n;
	int64_t now_ms;
	struct hw_inventory_item items[]; /* of hw_redis_inventory_apply(): `n` items, and after them their texts */
};

static int64_t since_refusal_ms(const struct hw_inventory *v)
{
	return hw_clock_now().mono.ns / HW_NS_PER_MS - v->refused_ms;
}

static void log_refusal(struct hw_redis *r, const char *what, const char *error)
{
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 64];
	if (hw_trouble_of(error) == HW_TROUBLE_NOSCRIPT) {
		hw_scripts_load(&r->scripts);
		return;
	}
	hw_trouble_text(error, why);
	snprintf(text, sizeof(text), "%s: %s", what, why);
	hw_refusal_log(r, &r->inventory->reported_ms, text);
}

/* Called when Redis has refused a change that a client requested. The client gets the error. */
static void refused_change(struct hw_redis *r, const char *error)
{
	log_refusal(r, "a change of the inventory is refused", error);
}

/* Called when Redis has refused a reading, or a write that this monitor makes by itself. Status, metrics and checks
 * report this. */
static void refused(struct hw_redis *r, const char *error)
{
	if (hw_trouble_of(error) == HW_TROUBLE_NOSCRIPT) {
		hw_scripts_load(&r->scripts);
		return;
	}
	r->inventory->refused_ms = hw_clock_now().mono.ns / HW_NS_PER_MS;
	hw_refusal_begin(r, HW_REFUSED_INVENTORY, error);
}

/* Schedules another reading of everything, after a delay that doubles with each refusal: a million entries are much
 * work for Redis and for this monitor. */
static void read_later(struct hw_inventory *v, const char *error, int64_t first_ms)
{
	refused(v->r, error);
	v->again = true;
	v->pause_ms = v->pause_ms == 0 ? first_ms : v->pause_ms < PAUSE_MS_MAX / 2 ? 2 * v->pause_ms : PAUSE_MS_MAX;
}

static void refused_reading(struct hw_inventory *v, const char *error)
{
	read_later(v, error, 1000); /* the stream names an id only once */
}

/* Called when Redis has accepted a write of unseen ids, or a whole reading. */
static void accepted(struct hw_inventory *v)
{
	if (v->pause_ms == 0)
		v->refused_ms = 0;
	hw_refusal_end(v->r, HW_REFUSED_INVENTORY);
}

bool hw_inventory_is_refused(const struct hw_redis *r)
{
	const struct hw_inventory *v = r->inventory;
	if (!v || !v->refused_ms)
		return false;
	return v->pause_ms > 0 || since_refusal_ms(v) < REFUSED_MS;
}

static struct hw_unseen_answer unseen_answer(struct hw_redis *r, const redisReply *e)
{
	struct hw_unseen_answer a = {.result = HW_UNSEEN_KNOWN};
	if (hw_call_owner_refused(r, e))
		a.result = HW_UNSEEN_FENCED;
	else if (e->type == REDIS_REPLY_INTEGER)
		a.result = (enum hw_unseen_result)e->integer;
	else if (e->type == REDIS_REPLY_STATUS && hw_stream_id_parse(e->str, e->len, &a.at) == 0)
		a.result = HW_UNSEEN_ADDED;
	return a;
}

/* Returns the rc for the caller. `whole`: the answer has the form that the script's answers have. */
static int check_answer(struct hw_redis *r, const redisReply *reply, bool whole,
                        void (*on_refused)(struct hw_redis *r, const char *error))
{
	if (!reply)
		return -ENOTCONN;
	hw_redis_link_got(&r->link);
	if (whole)
		return 0;
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR malformed answer";
	on_refused(r, error);
	return hw_trouble_of(error) == HW_TROUBLE_NOSCRIPT ? -EAGAIN : -EIO;
}

/* Whether an answer of inventory.lua has a result for each of `n` items. */
static bool has_results(const redisReply *reply, unsigned n)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
		return false;
	const redisReply *entry = reply->element[0], *results = reply->element[1];
	return entry->type == REDIS_REPLY_STRING && results->type == REDIS_REPLY_STRING && results->len == n;
}

/* Reports an id that a call has removed while it was unseen. */
static void report_forgotten(const struct write *w, const redisReply *e)
{
	const struct hw_inventory *v = w->r->inventory;
	const char *space = e->type == REDIS_REPLY_STRING ? memchr(e->str, ' ', e->len) : NULL;
	struct hw_stream_id at;
	if (space && hw_stream_id_parse(e->str, (size_t)(space - e->str), &at) == 0)
		v->ops->on_forgotten(v->arg, (struct hw_id){space + 1, e->len - (size_t)(space + 1 - e->str)}, at,
		                     w->now_ms);
}

/* Reports the entries that a call has changed. So they need not be read when the stream names them. Other commands of
 * this connection read these ids either before or after the call, and their answers come in the same order. `at`: the
 * id of the entry in the stream. */
static void report_changes(const struct write *w, struct hw_stream_id at, const uint8_t *results)
{
	struct hw_inventory *v = w->r->inventory;
	for (unsigned i = 0; i < w->n; i++) {
		const struct hw_inventory_item *it = &w->items[i];
		if (results[i] == HW_INVENTORY_REMOVED)
			v->ops->on_entry(v->arg, it->id, (struct hw_id){0}, true);
		else if (results[i] == HW_INVENTORY_ADDED || results[i] == HW_INVENTORY_CHANGED)
			v->ops->on_entry(v->arg, it->id, it->entry, true);
	}
	v->own_at = (v->own_at + (v->own_n == OWN_MAX)) % OWN_MAX; /* the oldest is forgotten, so it is read */
	v->own_n -= v->own_n == OWN_MAX;
	v->own[(v->own_at + v->own_n++) % OWN_MAX] = at;
}

/* Whether report_changes() has reported the changes that this entry of the stream names. */
static bool is_reported(struct hw_inventory *v, struct hw_stream_id id)
{
	while (v->own_n > 0 && hw_stream_id_compare(v->own[v->own_at], id) < 0) {
		v->own_at = (v->own_at + 1) % OWN_MAX;
		v->own_n--;
	}
	return v->own_n > 0 && hw_stream_id_compare(v->own[v->own_at], id) == 0;
}

/* Whether a change was reported whose entry of the stream was not read. If Redis restarts without this change, the
 * stream does not show the loss: it ends at the reader's offset. */
static bool is_ahead(const struct hw_inventory *v)
{
	return v->own_n > 0 && hw_stream_id_compare(v->own[(v->own_at + v->own_n - 1) % OWN_MAX],
	                                            hw_stream_reader_offset(&v->reader)) > 0;
}

static void on_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct write *w = arg;
	const redisReply *reply = answer;
	uint8_t results[HW_INVENTORY_ITEMS] = {0};
	int rc = check_answer(w->r, reply, has_results(reply, w->n), refused_change);
	struct hw_stream_id at;
	(void)ac;
	for (unsigned i = 0; rc == 0 && i < w->n; i++)
		results[i] = (uint8_t)(reply->element[1]->str[i] - '0');
	for (size_t i = 2; rc == 0 && i < reply->elements; i++)
		report_forgotten(w, reply->element[i]);
	if (rc == 0 && hw_stream_id_parse(reply->element[0]->str, reply->element[0]->len, &at) == 0)
		report_changes(w, at, results);
	if (rc == 0)
		hw_stream_reader_tick(&w->r->inventory->reader); /* reads at once what this node has just written */
	w->fn(w->arg, rc, results, w->n);
	free(w);
}

static void on_unseen_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct write *w = arg;
	const redisReply *reply = answer;
	struct hw_unseen_answer answers[HW_UNSEEN_ITEMS];
	bool whole = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == w->n;
	int rc = check_answer(w->r, reply, whole, refused);
	(void)ac;
	if (rc == 0)
		accepted(w->r->inventory);
	for (unsigned i = 0; rc == 0 && i < w->n; i++)
		answers[i] = unseen_answer(w->r, reply->element[i]);
	w->unseen_fn(w->arg, rc, answers, w->n);
	free(w);
}

static void begin_call(struct hw_redis *r, struct hw_eval *e, struct hw_now now, const char *source)
{
	const char *keys[] = {r->keys.expected, r->keys.unseen, r->keys.inventory, r->keys.events};
	hw_eval_begin(e);
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		hw_eval_key(e, keys[k], strlen(keys[k]));
	hw_eval_put_int(e, HW_AT_INVENTORY_EVENTS_MAX, r->conf.events_max);
	hw_eval_put_text(e, HW_AT_INVENTORY_NODE, r->conf.node_id);
	hw_eval_put_int(e, HW_AT_INVENTORY_NOW, now.wall_ms);
	hw_eval_put_text(e, HW_AT_INVENTORY_SOURCE, source);
}

/* Takes `w`, heap memory or NULL. */
static int send_call(struct hw_redis *r, enum hw_script script, struct hw_eval *e, struct write *w)
{
	if (!w)
		return -ENOMEM;
	int rc =
		hw_scripts_call(&r->scripts, script, e, script == HW_SCRIPT_UNSEEN ? on_unseen_written : on_written, w);
	if (rc)
		free(w);
	return rc;
}

/* Creates a call with copies of the items. Returns NULL if there is no memory. */
static struct write *write_new(const struct hw_inventory_item *items, unsigned n)
{
	struct write *w;
	size_t size = sizeof(*w) + n * sizeof(*items);
	for (unsigned i = 0; i < n; i++)
		size += items[i].id.len + items[i].entry.len;
	w = malloc(size);
	char *at = w ? (char *)&w->items[n] : NULL;
	for (unsigned i = 0; w && i < n; i++) {
		w->items[i] = items[i];
		w->items[i].id.text = memcpy(at, items[i].id.text, items[i].id.len);
		at += items[i].id.len;
		w->items[i].entry.text = at;
		if (items[i].entry.len > 0)
			memcpy(at, items[i].entry.text, items[i].entry.len);
		at += items[i].entry.len;
	}
	return w;
}

/* Returns 0 if a call can be sent. */
static int is_ready(const struct hw_redis *r)
{
	if (!r->up || !r->inventory)
		return -ENOTCONN;
	return hw_scripts_loading(&r->scripts) || r->sink.withheld ? -EAGAIN : 0;
}

int hw_redis_inventory_apply(struct hw_redis *r, struct hw_now now, const char *source,
                             const struct hw_inventory_item *items, const char *const *groups, unsigned n,
                             hw_inventory_applied *fn, void *arg)
{
	static const char letters[] = "SANR";
	char kinds[HW_INVENTORY_ITEMS];
	int rc = is_ready(r);
	if (rc)
		return rc;
	struct hw_eval *e = &r->inventory->eval;
	begin_call(r, e, now, source);
	for (unsigned i = 0; i < n; i++)
		kinds[i] = letters[items[i].kind];
	hw_eval_put(e, HW_AT_CHANGES_KINDS, kinds, n);
	for (unsigned i = 0; i < n; i++) {
		hw_eval_item(e);
		hw_eval_put(e, HW_AT_EXPECT_ID, items[i].id.text, items[i].id.len);
		hw_eval_put(e, HW_AT_EXPECT_ENTRY, items[i].entry.text, items[i].entry.len);
	}
	for (unsigned i = 0; i < n; i++) {
		if (items[i].kind == HW_INVENTORY_MISSING)
			hw_eval_arg_int(e, items[i].unseen_ms);
		else if (items[i].kind == HW_INVENTORY_REMOVE)
			hw_eval_arg_text(e, groups[i]);
	}
	struct write *w = write_new(items, n);
	if (w)
		*w = (struct write){.r = r, .fn = fn, .arg = arg, .n = n, .now_ms = now.wall_ms};
	return send_call(r, HW_SCRIPT_INVENTORY, e, w);
}

/* Adds the name and the labels of an expected id. */
static void put_description(struct hw_redis *r, struct hw_id id)
{
	struct hw_description described = {.name = "", .len = 0};
	uint32_t i = hw_expected_find(hw_monitor_expected(r->m), id.text, id.len);
	if (i != HW_NIL) {
		struct hw_expected_view v = hw_expected_at(hw_monitor_expected(r->m), i);
		hw_describe(r, id, hw_monitor_expected_group(r->m, &v), &described);
	}
	hw_eval_put_text(&r->sink.eval, HW_AT_NEVER_NAME, described.name);
	hw_eval_put(&r->sink.eval, HW_AT_NEVER_LABELS, described.labels, described.len);
}

int hw_redis_unseen(struct hw_redis *r, struct hw_now now, const struct hw_unseen_item *items, unsigned n,
                    hw_unseen_written *fn, void *arg)
{
	struct hw_eval *e = &r->sink.eval; /* hw_call_owner_*() write there */
	unsigned added = 0;
	int rc = is_ready(r);
	if (rc)
		return rc;
	begin_call(r, e, now, "");
	hw_call_owner_begin(r);
	for (unsigned i = 0; i < n; i++) {
		size_t len = hw_keys_device(&r->keys, HW_KEY_STATE, items[i].id.text, items[i].id.len, r->sink.key);
		if (!hw_call_owner_add(r, added, items[i].id.text, items[i].id.len, 0))
			return -ESTALE;
		hw_eval_key(e, r->sink.key, len);
		hw_eval_item(e);
		hw_eval_put_text(e, HW_AT_NEVER_KIND, "U");
		hw_eval_put(e, HW_AT_NEVER_ID, items[i].id.text, items[i].id.len);
		hw_eval_put_text(e, HW_AT_NEVER_GROUP, items[i].group);
		put_description(r, items[i].id);
		added++;
	}
	hw_call_owner_end(r);
	struct write *w = malloc(sizeof(*w));
	if (w)
		*w = (struct write){.r = r, .unseen_fn = fn, .arg = arg, .n = n};
	return send_call(r, HW_SCRIPT_UNSEEN, e, w);
}

static void on_removed(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	struct hw_inventory *v = r->inventory;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply) {
		v->again = true;
		return;
	}
	hw_redis_link_got(&r->link);
	if (reply->type != REDIS_REPLY_ERROR)
		return;
	if (v->again) /* the reading removes this id, too */
		refused(r, reply->str);
	else
		read_later(v, reply->str, REFUSED_MS);
}

void hw_redis_unseen_heard(struct hw_redis *r, struct hw_id id)
{
	const char *argv[] = {"ZREM", r->keys.unseen, id.text};
	const size_t len[] = {4, strlen(r->keys.unseen), id.len};
	if (r->inventory && (!r->up || hw_redis_link_command(&r->link, on_removed, r, 3, argv, len) != 0))
		r->inventory->again = true;
}

/* --- reading everything ----------------------------------------------------------- */

static void scan(struct hw_inventory *v);

static void read_all(struct hw_inventory *v)
{
	v->again = false;
	v->stage = ENTRIES;
	snprintf(v->cursor, sizeof(v->cursor), "0");
	v->ops->on_reading(v->arg);
	(void)hw_load_ask_clock(v->r); /* if it cannot be sent, scan() fails too */
	scan(v);
}

static void end_reading(void *arg, bool known, bool has_record)
{
	struct hw_inventory *v = arg;
	if (v->stage != FENCE)
		return;
	v->stage = IDLE;
	if (!known || !has_record) {
		/* Either the connection is lost, or Redis is empty and hw_redis_inventory_read() is called soon. */
		v->again = true;
		return;
	}
	if (!v->again) {
		v->pause_ms = 0;
		accepted(v);
	}
	v->ops->on_read(v->arg);
}

static void give_up(struct hw_inventory *v)
{
	v->stage = IDLE;
	v->again = true;
}

static void next_stage(struct hw_inventory *v)
{
	snprintf(v->cursor, sizeof(v->cursor), "0");
	v->stage++;
	if (v->stage == UNSEEN)
		scan(v);
	else if (hw_redis_fence(v->r, end_reading, v) != 0)
		give_up(v);
}

static bool is_id(const redisReply *e)
{
	return e->type == REDIS_REPLY_STRING && hw_id_valid(e->str, e->len);
}

static void take_scanned(struct hw_inventory *v, const redisReply *page)
{
	for (size_t i = 0; i + 1 < page->elements; i += 2) {
		const redisReply *id = page->element[i], *value = page->element[i + 1];
		if (!is_id(id) || value->type != REDIS_REPLY_STRING)
			continue;
		if (v->stage == ENTRIES)
			v->ops->on_entry(v->arg, (struct hw_id){id->str, id->len},
			                 (struct hw_id){value->str, value->len}, false);
		else
			v->ops->on_unseen(v->arg, (struct hw_id){id->str, id->len}, strtoll(value->str, NULL, 10));
	}
}

static void on_scanned(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	struct hw_inventory *v = r->inventory;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	if (v->stage != ENTRIES && v->stage != UNSEEN)
		return;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[1]->type != REDIS_REPLY_ARRAY || reply->element[0]->len >= sizeof(v->cursor)) {
		refused_reading(v, reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR malformed answer to HSCAN");
		give_up(v);
		return;
	}
	snprintf(v->cursor, sizeof(v->cursor), "%s", reply->element[0]->str);
	take_scanned(v, reply->element[1]);
	if (strcmp(v->cursor, "0") == 0)
		next_stage(v);
	else
		scan(v);
}

static void scan(struct hw_inventory *v)
{
	const char *argv[] = {v->stage == ENTRIES ? "HSCAN" : "ZSCAN",
	                      v->stage == ENTRIES ? v->r->keys.expected : v->r->keys.unseen, v->cursor, "COUNT",
	                      SCAN_COUNT};
	size_t len[5];
	for (int i = 0; i < 5; i++)
		len[i] = strlen(argv[i]);
	if (hw_redis_link_command(&v->r->link, on_scanned, v->r, 5, argv, len) != 0)
		give_up(v);
}

/* --- following -------------------------------------------------------------------- */

/* The ids of an HMGET in flight, separated by newlines. */
struct asked {
	struct hw_redis *r;
	int64_t unseen_ms; /* the ids are unseen since then; 0: the stream did not say so */
	size_t len;
	char ids[];
};

/* Sets *id to the next id of a list, and moves *at past that id. Returns false at the end of the list. */
static bool next_id(const char *ids, size_t len, size_t *at, struct hw_id *id)
{
	if (*at >= len)
		return false;
	const char *end = memchr(ids + *at, '\n', len - *at);
	*id = (struct hw_id){ids + *at, end ? (size_t)(end - ids) - *at : len - *at};
	*at += id->len + 1;
	return true;
}

static void on_values(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked *q = arg;
	struct hw_inventory *v = q->r->inventory;
	const redisReply *reply = answer;
	struct hw_id id;
	(void)ac;
	if (reply) {
		hw_redis_link_got(&q->r->link);
		if (reply->type == REDIS_REPLY_ERROR)
			refused_reading(v, reply->str);
		size_t at = 0, i = 0;
		for (; reply->type == REDIS_REPLY_ARRAY && i < reply->elements && next_id(q->ids, q->len, &at, &id);
		     i++) {
			const redisReply *e = reply->element[i];
			bool set = e->type == REDIS_REPLY_STRING;
			if (!hw_id_valid(id.text, id.len))
				continue;
			v->ops->on_entry(v->arg, id, set ? (struct hw_id){e->str, e->len} : (struct hw_id){0}, false);
			if (q->unseen_ms)
				v->ops->on_unseen(v->arg, id, q->unseen_ms);
		}
		v->waiting--;
		if (v->waiting == 0 && v->stage == IDLE)
			v->ops->on_followed(v->arg, v->at_end);
	}
	free(q);
}

/* Reads the entries of the ids of a list, which is_bounded(). */
static void read_some(struct hw_inventory *v, const char *ids, size_t len, int64_t unseen_ms)
{
	const char *argv[2 + HW_INVENTORY_ITEMS] = {"HMGET", v->r->keys.expected};
	size_t lens[2 + HW_INVENTORY_ITEMS] = {5, strlen(v->r->keys.expected)}, at = 0;
	struct hw_id id;
	int argc = 2;
	while (argc < 2 + HW_INVENTORY_ITEMS && next_id(ids, len, &at, &id)) {
		argv[argc] = id.text;
		lens[argc++] = id.len;
	}
	struct asked *q = malloc(sizeof(*q) + len);
	if (!q) {
		v->again = true;
		return;
	}
	q->r = v->r;
	q->unseen_ms = unseen_ms;
	q->len = len;
	memcpy(q->ids, ids, len);
	if (hw_redis_link_command(&v->r->link, on_values, q, argc, argv, lens) == 0) {
		v->waiting++;
	} else {
		v->again = true;
		free(q);
	}
}

/* Whether the list has at least one id, and no more than a monitor writes in an entry. */
static bool is_bounded(const redisReply *ids)
{
	size_t n = 1;
	for (size_t i = 0; i < ids->len && n <= HW_INVENTORY_ITEMS; i++)
		n += ids->str[i] == '\n';
	return ids->len > 0 && n <= HW_INVENTORY_ITEMS;
}

static void take_entry(struct hw_inventory *v, const redisReply *entry)
{
	const redisReply *fields = hw_stream_entry_fields(entry), *ids = NULL, *unseen = NULL;
	struct hw_stream_id offset;
	struct hw_id id;
	size_t at = 0;
	if (hw_stream_entry_id(entry, &offset) && is_reported(v, offset))
		return;
	for (size_t i = 0; fields && i + 1 < fields->elements; i += 2) {
		const redisReply *name = fields->element[i], *value = fields->element[i + 1];
		if (name->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
			continue;
		if (strcmp(name->str, "ids") == 0)
			ids = value;
		else if (strcmp(name->str, "unseen_ms") == 0)
			unseen = value;
	}
	if (!ids)
		return;
	if (!is_bounded(ids)) {
		v->again = true; /* another program has written this entry, so only the keys show what has changed */
		return;
	}
	int64_t unseen_ms = unseen ? strtoll(unseen->str, NULL, 10) : 0;
	/* While entries are awaited, the unseen id may be one of them. The id is reported again after they have
	 * arrived. */
	if (!unseen || v->waiting > 0)
		read_some(v, ids->str, ids->len, unseen_ms);
	while (unseen && next_id(ids->str, ids->len, &at, &id))
		if (hw_id_valid(id.text, id.len))
			v->ops->on_unseen(v->arg, id, unseen_ms);
}

static bool on_page(void *arg, const struct hw_stream_page *page)
{
	struct hw_inventory *v = arg;
	for (size_t i = 0; i < page->n; i++)
		take_entry(v, page->entries[i]);
	v->at_end = !page->more;
	if (v->waiting == 0 && v->stage == IDLE)
		v->ops->on_followed(v->arg, v->at_end);
	return true;
}

static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	struct hw_inventory *v = arg;
	(void)offset;
	read_all(v);
	return end;
}

static void on_refused(void *arg, const char *error, bool reads)
{
	struct hw_inventory *v = arg;
	(void)reads;
	/* A node that may not read streams still judges. */
	if (hw_trouble_of(error) == HW_TROUBLE_WRONGTYPE)
		refused(v->r, error);
	else
		log_refusal(v->r, "changes of the inventory cannot be followed", error);
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_refused};

/* --- life ------------------------------------------------------------------------- */

void hw_inventory_up(struct hw_redis *r)
{
	struct hw_inventory *v = r->inventory;
	if (!v)
		return;
	v->up = true;
	bool same = !v->again && strcmp(v->where, r->link.where) == 0;
	snprintf(v->where, sizeof(v->where), "%s", r->link.where);
	hw_stream_reader_up(&v->reader);
	if (!same)
		hw_stream_reader_recover(&v->reader);
}

void hw_inventory_lost(struct hw_redis *r)
{
	struct hw_inventory *v = r->inventory;
	if (!v || !v->up)
		return;
	v->up = v->at_end = false;
	if (v->stage != IDLE || v->waiting > 0 || is_ahead(v))
		give_up(v);
	v->waiting = v->own_n = 0;
	hw_stream_reader_down(&v->reader);
}

/* After a failure, reads everything. */
void hw_inventory_tick(struct hw_redis *r)
{
	struct hw_inventory *v = r->inventory;
	if (!v || !v->up)
		return;
	if (v->again && v->stage == IDLE && since_refusal_ms(v) >= v->pause_ms)
		hw_stream_reader_recover(&v->reader);
	hw_stream_reader_tick(&v->reader);
}

void hw_redis_inventory_read(struct hw_redis *r)
{
	struct hw_inventory *v = r->inventory;
	if (!v)
		return;
	v->again = true;
	if (v->up)
		hw_stream_reader_recover(&v->reader);
}

int hw_redis_inventory_start(struct hw_redis *r, const struct hw_inventory_ops *ops, void *arg)
{
	struct hw_inventory *v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->r = r;
	v->ops = ops;
	v->arg = arg;
	const struct hw_stream_reader_conf conf = {&r->link, r->keys.inventory, PAGE, HW_STREAM_BY_TICK};
	int rc = hw_stream_reader_init(&v->reader, r->base, &conf, &reader_ops, v);
	if (rc) {
		free(v);
		return rc;
	}
	r->inventory = v;
	if (r->up)
		hw_inventory_up(r);
	return 0;
}

void hw_inventory_fini(struct hw_redis *r)
{
	if (!r->inventory)
		return;
	hw_stream_reader_fini(&r->inventory->reader);
	hw_eval_fini(&r->inventory->eval);
	free(r->inventory);
	r->inventory = NULL;
}
