/* SPDX-License-Identifier: MIT */
/* Builds the items of the scripts from the records of devices. scripts/places has the positions of the arguments. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/unseen.h"
#include "inventory/labels.h"
#include "redis/inner.h"
#include "redis/places.h"

/* Each item begins with these arguments. The keys of a device have the order of enum hw_device_key. */
_Static_assert(HW_AT_WRITE_KIND == HW_AT_ACK_KIND, "scripts/places");
_Static_assert(HW_AT_FULL_KIND == HW_AT_LIGHT_KIND, "scripts/places");
_Static_assert((int)HW_AT_KEY_CONNECTED == HW_KEY_CONNECTED && (int)HW_AT_KEY_STATE == HW_KEY_STATE, "scripts/places");
_Static_assert((int)HW_AT_KEY_DISCONNECTED == HW_KEY_DISCONNECTED, "scripts/places");

/* Returns how many arguments add_extra() adds: a name and a value for each of own_timeout, once and the reported
 * fields. */
static unsigned extra_args(const struct hw_device *d)
{
	unsigned n = d->flags & HW_FLAG_ONCE ? 2 : 0;
	if (hw_device_own_timeout_ms(d) > 0)
		n += 2;
	for (unsigned has = hw_device_report(d).has; has; has &= has - 1)
		n += 2;
	return n;
}

static int64_t ttl_ms(const struct hw_redis *r, int64_t timeout_ms)
{
	return hw_ttl_ms(timeout_ms, r->conf.ttl_factor) + r->conf.ttl_more_ms;
}

int64_t hw_item_ttl_ms(const struct hw_redis *r, const struct hw_device *d)
{
	return ttl_ms(r, hw_monitor_timeout_ms(r->m, d));
}

static void pair(struct hw_eval *e, const char *name, const char *value)
{
	hw_eval_arg_text(e, name);
	hw_eval_arg_text(e, value);
}

static void pair_int(struct hw_eval *e, const char *name, int64_t value)
{
	hw_eval_arg_text(e, name);
	hw_eval_arg_int(e, value);
}

/* Adds the field `watched`, from which follows how long a device has been offline. Only offline devices have it. */
static void pair_watched(struct hw_eval *e, const char *text, int len)
{
	if (len > 0)
		pair(e, "watched", text);
}

static void pair_number(struct hw_eval *e, const char *name, double value)
{
	char text[32];
	hw_eval_arg_text(e, name);
	int len = hw_number_text(value, text, sizeof(text));
	hw_eval_arg(e, text, (size_t)len);
}

static void add_extra(struct hw_redis *r, const struct hw_device *d)
{
	struct hw_eval *e = &r->sink.eval;
	if (d->flags & HW_FLAG_ONCE)
		pair(e, "once", "1");
	struct hw_report p = hw_device_report(d);
	if (hw_device_own_timeout_ms(d) > 0) /* the clamped value that is in force */
		pair_int(e, "own_timeout", hw_monitor_timeout_ms(r->m, d));
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!(p.has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			pair_number(e, hw_report_fields[k].name, *hw_report_number(&p, k));
		else
			pair(e, hw_report_fields[k].name, *hw_report_string(&p, k));
	}
}

void hw_describe(const struct hw_redis *r, struct hw_id id, const struct hw_group *g, struct hw_description *out)
{
	const struct hw_expected *expected = hw_monitor_expected(r->m);
	uint32_t i = hw_expected_find(expected, id.text, id.len);
	bool listed = i != HW_NIL && hw_expected_at(expected, i).is_described;
	struct hw_expected_entry entry;
	struct hw_entry_error error;
	struct hw_labels all;
	out->name[0] = '\0';
	out->len = 0;
	if (!listed && g->n_labels == 0)
		return;
	if (listed) {
		struct hw_expected_view v = hw_expected_at(expected, i);
		listed = hw_entry_parse(&entry, v.text.text, v.text.len, &error) == 0;
	}
	if (listed)
		memcpy(out->name, entry.name, sizeof(out->name));
	hw_labels_find(r->m, id, listed ? &entry : NULL, &all);
	if (all.n > 0)
		out->len = hw_labels_print(&all, out->labels, sizeof(out->labels));
}

/* Adds what the topic has for labels of the group. */
static void add_captures(struct hw_redis *r, struct hw_id captures)
{
	if (captures.len == 0)
		return;
	hw_eval_arg_text(&r->sink.eval, "captures");
	hw_eval_arg(&r->sink.eval, captures.text, captures.len);
}

static unsigned description_args(const struct hw_description *s)
{
	return (*s->name ? 2U : 0U) + (s->len > 0 ? 2U : 0U);
}

/* Adds the fields `name` and `labels`. They must be the last pairs: transition.lua searches the pairs from the end for
 * these two names, to copy them to the entry of the stream. */
static void add_description(struct hw_redis *r, const struct hw_description *s)
{
	if (*s->name)
		pair(&r->sink.eval, "name", s->name);
	if (s->len == 0)
		return;
	hw_eval_arg_text(&r->sink.eval, "labels");
	hw_eval_arg(&r->sink.eval, s->labels, s->len);
}

/* The text for the store that contains a device's learned gaps. */
struct learned {
	bool has;
	int64_t timeout_ms;
	char gaps[HW_GAPS_TEXT];
};

static struct learned learned_of(const struct hw_redis *r, const struct hw_device *d)
{
	struct learned l = {0};
	struct hw_learned of;
	if (hw_monitor_learned(r->m, d, &of) && hw_monitor_gaps(r->m, d, l.gaps)) {
		l.has = true;
		l.timeout_ms = of.timeout_ms;
	}
	return l;
}

static unsigned learned_args(const struct learned *l)
{
	return l->has ? 4 : 0;
}

/* Adds the learned gaps, and marks them as written. If Redis refuses the write, the next refresh is a full one, and so
 * contains these fields again. */
static void add_learned(struct hw_redis *r, const struct hw_device *d, const struct learned *l)
{
	struct hw_device *base = hw_registry_base(hw_monitor_registry(r->m));
	if (!l->has)
		return;
	pair_int(&r->sink.eval, "learned", l->timeout_ms);
	pair(&r->sink.eval, "gaps", l->gaps);
	base[d - base].flags &= (uint16_t)~HW_FLAG_LEARNED;
}

static const char *source_of(const struct hw_device *d)
{
	unsigned s = hw_device_source(d);
	if (s == (HW_SOURCE_MQTT | HW_SOURCE_KEY))
		return "both";
	return s == HW_SOURCE_KEY ? "key" : "mqtt";
}

/* The owner of the connected key, as in refresh.lua. */
static const char *mine(const struct hw_redis *r, const struct hw_device *d)
{
	if (!r->conf.keyspace || !hw_device_key_is_foreign(d))
		return "1";
	return hw_device_source(d) == HW_SOURCE_KEY ? "0" : "n";
}

static void add_key(struct hw_redis *r, enum hw_device_key k, const char *id, size_t len)
{
	struct hw_sink *s = &r->sink;
	hw_eval_key(&s->eval, s->key, hw_keys_device(&r->keys, k, id, len, s->key));
}

static void add_keys(struct hw_redis *r, const char *id, size_t len)
{
	for (int k = HW_KEY_CONNECTED; k <= HW_KEY_STATE; k++)
		add_key(r, (enum hw_device_key)k, id, len);
}

/* Adds the field `parent`, the ids of the known parents. If it is the first field, transition.lua also writes it,
 * and the `timeout` that follows, to the entry of the stream. */
static void pair_parents(struct hw_eval *e, const char *text, size_t len)
{
	if (len == 0)
		return;
	hw_eval_arg_text(e, "parent");
	hw_eval_arg(e, text, len);
}

static void print_form(uint64_t form, char text[9])
{
	snprintf(text, 9, "%08" PRIx32, (uint32_t)form);
}

/* Adds the form (form_hash) that the device's group had at the last heartbeat. If a node of a cluster does not know the
 * form, the stored form stays. */
static void add_form(struct hw_redis *r, uint64_t form)
{
	char text[9];
	print_form(form, text);
	if (form)
		pair(&r->sink.eval, "form", text);
}

/* Adds the form for the entry of the stream. Without the form in the entry, other nodes assume the form that the group
 * has on this node.
 */
static void put_form(struct hw_redis *r, const struct hw_device *d, uint64_t form)
{
	char text[9] = "";
	if (r->sink.owner.epoch && form != hw_monitor_group_of(r->m, d)->form_hash)
		print_form(form, text);
	hw_eval_put_text(&r->sink.eval, HW_AT_WRITE_FORM, text);
}

static void put_wait(struct hw_eval *e, const struct hw_transition *t, bool has_parents)
{
	if (has_parents && t->state == HW_STATE_OFFLINE && t->wait_ms >= 0)
		hw_eval_put_int(e, HW_AT_WRITE_WAIT, t->wait_ms);
	else
		hw_eval_put(e, HW_AT_WRITE_WAIT, "", 0);
}

/* Begins the common arguments of an item. */
static struct hw_common begin_common(struct hw_redis *r, char kind)
{
	struct hw_eval *e = &r->sink.eval;
	struct hw_common c = {.kind = kind, .begin = hw_eval_args(e), .n_args = e->n_args};
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_WRITE_KIND, &kind, 1);
	c.count_at = hw_eval_put_count(e, HW_AT_WRITE_COUNT);
	c.at = hw_eval_args(e);
	return c;
}

/* Ends the common arguments of an item. If the previous item has equal arguments, those of this item are removed again,
 * and the item joins the group of the previous one. */
static void end_common(struct hw_redis *r, struct hw_common *c)
{
	struct hw_eval *e = &r->sink.eval;
	struct hw_common *last = &r->sink.common;
	c->len = hw_eval_args(e) - c->at;
	if (last->n > 0 && last->kind == c->kind && last->len == c->len && hw_eval_same(e, last->at, c->at, c->len))
		hw_eval_take_back(e, c->begin, c->n_args);
	else
		*last = *c;
	hw_eval_set_count(e, last->count_at, ++last->n);
}

static void put_row(struct hw_redis *r, struct hw_id id, const struct hw_transition *t, const char *watched, int len)
{
	struct hw_eval *e = &r->sink.eval;
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_ROW_ID, id.text, id.len);
	hw_eval_put_int(e, HW_AT_ROW_SEQ, (int64_t)t->seq);
	hw_eval_put_int(e, HW_AT_ROW_SINCE, t->time_ms);
	hw_eval_put_int(e, HW_AT_ROW_LAST_SEEN, t->last_seen_ms);
	hw_eval_put(e, HW_AT_ROW_WATCHED, watched, len > 0 ? (size_t)len : 0);
}

void hw_item_write(struct hw_redis *r, const char *kind, const struct hw_device *d, const struct hw_transition *t)
{
	struct hw_eval *e = &r->sink.eval;
	struct hw_id id = hw_device_id(d);
	int64_t timeout_ms = hw_monitor_timeout_ms(r->m, d);
	char watched[HW_WATCHED_MAX] = "";
	int len = t->state == HW_STATE_OFFLINE ? hw_watched_print(r, d, t->seq, watched) : 0;
	add_keys(r, id.text, id.len);
	struct hw_common common = begin_common(r, *kind);
	hw_eval_put_text(e, HW_AT_WRITE_STATE, hw_state_name(t->state));
	hw_eval_put_text(e, HW_AT_WRITE_REASON, hw_reason_name(t->reason));
	hw_eval_put_text(e, HW_AT_WRITE_GROUP, hw_monitor_group_of(r->m, d)->name);
	hw_eval_put_int(e, HW_AT_WRITE_TTL, ttl_ms(r, timeout_ms));
	hw_eval_put(e, HW_AT_WRITE_MINE, mine(r, d), 1);
	/* If the transition is written again, it must not list a clearing that the broker has acknowledged. */
	bool clearing = t->state == HW_STATE_FORGOTTEN && hw_device_noted(d, HW_PENDING_STATUS | HW_PENDING_DISCOVERY);
	hw_eval_put(e, HW_AT_WRITE_CLEARING, clearing ? "1" : "0", 1);
	uint64_t epoch = r->sink.owner.epoch, form = hw_monitor_form(r->m, d);
	char parents[HW_PARENTS_TEXT];
	size_t parents_len = hw_monitor_known_parents(r->m, d, parents);
	struct learned learned = learned_of(r, d);
	struct hw_description described;
	hw_describe(r, id, hw_monitor_group_of(r->m, d), &described);
	struct hw_id captures = hw_monitor_captured(r->m, d);
	put_wait(e, t, parents_len > 0);
	put_form(r, d, form);
	hw_eval_put_int(e, HW_AT_WRITE_N,
	                (epoch ? 6U : 4U) + (form ? 2U : 0U) + (parents_len > 0 ? 2U : 0U) + learned_args(&learned) +
	                        extra_args(d) + (captures.len > 0 ? 2U : 0U) + description_args(&described));
	pair_parents(e, parents, parents_len);
	pair_int(e, "timeout", timeout_ms);
	if (epoch)
		pair_int(e, "epoch", (int64_t)epoch);
	pair(e, "source", source_of(d));
	add_form(r, form);
	add_learned(r, d, &learned);
	add_extra(r, d);
	add_captures(r, captures);
	add_description(r, &described);
	end_common(r, &common);
	put_row(r, id, t, watched, len);
}

void hw_item_forgotten(struct hw_redis *r, const struct hw_pending_write *f)
{
	struct hw_eval *e = &r->sink.eval;
	const struct hw_id id = {(const char *)f->id + 1, f->id[0]};
	uint64_t epoch = r->sink.owner.epoch;
	add_keys(r, id.text, id.len);
	struct hw_common common = begin_common(r, 'E');
	hw_eval_put_text(e, HW_AT_WRITE_STATE, hw_state_name(f->t.state));
	hw_eval_put_text(e, HW_AT_WRITE_REASON, hw_reason_name(f->t.reason));
	hw_eval_put_text(e, HW_AT_WRITE_GROUP, id.text + id.len);
	hw_eval_put_int(e, HW_AT_WRITE_TTL, 0);
	/* the owner of the key is not known any more */
	hw_eval_put(e, HW_AT_WRITE_MINE, r->conf.keyspace ? "0" : "1", 1);
	hw_eval_put(e, HW_AT_WRITE_CLEARING, "0", 1);
	hw_eval_put(e, HW_AT_WRITE_WAIT, "", 0);
	hw_eval_put(e, HW_AT_WRITE_FORM, "", 0);
	hw_eval_put_int(e, HW_AT_WRITE_N, epoch ? 2 : 0);
	if (epoch)
		pair_int(e, "epoch", (int64_t)epoch);
	end_common(r, &common);
	put_row(r, id, &f->t, "", 0);
}

void hw_item_snapshot(struct hw_redis *r, const struct hw_device *d, struct hw_ref ref, struct hw_now now,
                      bool as_transition, struct hw_pending_write *pending)
{
	struct hw_transition *t = &pending->t;
	bool just_heard = as_transition && hw_device_state(d) == HW_STATE_ONLINE;
	*pending = (struct hw_pending_write){.epoch = r->sink.owner.epoch};
	*t = (struct hw_transition){
		.device = ref,
		.state = hw_device_state(d),
		.reason = hw_device_reason(d),
		.time_ms = d->since_ms,
		.last_seen_ms = just_heard ? d->since_ms : hw_device_last_seen_ms(d, now),
		.seq = d->seq,
		.wait_ms = -1,
	};
	hw_item_write(r, as_transition ? "E" : "W", d, t);
}

static void refresh_full(struct hw_redis *r, const struct hw_device *d, struct hw_now now)
{
	struct hw_eval *e = &r->sink.eval;
	struct hw_id id = hw_device_id(d);
	int64_t timeout_ms = hw_monitor_timeout_ms(r->m, d);
	char watched[HW_WATCHED_MAX];
	int len = hw_watched_print(r, d, d->seq, watched);
	uint64_t form = hw_monitor_form(r->m, d);
	r->sink.light.n = 0;
	add_keys(r, id.text, id.len);
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_FULL_KIND, "F", 1);
	hw_eval_put(e, HW_AT_FULL_ID, id.text, id.len);
	hw_eval_put_int(e, HW_AT_FULL_SEQ, (int64_t)d->seq);
	hw_eval_put_text(e, HW_AT_FULL_STATE, hw_state_name(hw_device_state(d)));
	hw_eval_put_int(e, HW_AT_FULL_SINCE, d->since_ms);
	hw_eval_put_int(e, HW_AT_FULL_TTL, ttl_ms(r, timeout_ms));
	hw_eval_put(e, HW_AT_FULL_MINE, mine(r, d), 1);
	char parents[HW_PARENTS_TEXT];
	size_t parents_len = hw_monitor_known_parents(r->m, d, parents);
	struct learned learned = learned_of(r, d);
	struct hw_description described;
	hw_describe(r, id, hw_monitor_group_of(r->m, d), &described);
	struct hw_id captures = hw_monitor_captured(r->m, d);
	hw_eval_put_int(e, HW_AT_FULL_N,
	                (form ? 10U : 8U) + (len > 0 ? 2U : 0U) + (parents_len > 0 ? 2U : 0U) + learned_args(&learned) +
	                        extra_args(d) + (captures.len > 0 ? 2U : 0U) + description_args(&described));
	pair_int(e, "last_seen", hw_device_last_seen_ms(d, now));
	pair_int(e, "timeout", timeout_ms);
	pair(e, "group", hw_monitor_group_of(r->m, d)->name);
	pair(e, "source", source_of(d));
	pair_parents(e, parents, parents_len);
	pair_watched(e, watched, len);
	add_form(r, form);
	add_learned(r, d, &learned);
	add_extra(r, d);
	add_captures(r, captures);
	add_description(r, &described);
}

/* Begins a group of light items with its common values, unless the group before has the same values. */
static void begin_light(struct hw_redis *r, const struct hw_device *d, const struct learned *learned)
{
	struct hw_light *l = &r->sink.light;
	struct hw_eval *e = &r->sink.eval;
	struct hw_light c = {.timeout_ms = hw_monitor_timeout_ms(r->m, d),
	                     .group = hw_monitor_group_of(r->m, d),
	                     .source = source_of(d),
	                     .extra = extra_args(d) + (hw_monitor_form(r->m, d) ? 2U : 0U) + learned_args(learned)};
	c.ttl_ms = ttl_ms(r, c.timeout_ms);
	if (l->n > 0 && l->ttl_ms == c.ttl_ms && l->timeout_ms == c.timeout_ms && l->group == c.group &&
	    l->source == c.source && l->extra == c.extra)
		return;
	*l = c;
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_LIGHT_KIND, "L", 1);
	l->count_at = hw_eval_put_count(e, HW_AT_LIGHT_COUNT);
	hw_eval_put_int(e, HW_AT_LIGHT_TTL, c.ttl_ms);
	hw_eval_put_int(e, HW_AT_LIGHT_TIMEOUT, c.timeout_ms);
	hw_eval_put_text(e, HW_AT_LIGHT_GROUP, c.group->name);
	hw_eval_put_text(e, HW_AT_LIGHT_SOURCE, c.source);
	hw_eval_put_int(e, HW_AT_LIGHT_N, c.extra);
}

static void refresh_light(struct hw_redis *r, const struct hw_device *d, struct hw_now now)
{
	struct hw_eval *e = &r->sink.eval;
	struct hw_id id = hw_device_id(d);
	struct learned learned = learned_of(r, d);
	begin_light(r, d, &learned);
	add_key(r, HW_KEY_STATE, id.text, id.len);
	add_key(r, HW_KEY_CONNECTED, id.text, id.len);
	hw_eval_item(e);
	hw_eval_put_int(e, HW_AT_BEAT_SEQ, (int64_t)d->seq);
	hw_eval_put_int(e, HW_AT_BEAT_LAST_SEEN, hw_device_last_seen_ms(d, now));
	add_form(r, hw_monitor_form(r->m, d)); /* always together with the group */
	add_learned(r, d, &learned);
	add_extra(r, d);
	hw_eval_set_count(e, r->sink.light.count_at, ++r->sink.light.n);
}

/*
 * Whether this refresh should write the device's last_seen. One refresh in HW_PLAIN_TURNS timeouts does so, where a
 * timeout of more than an hour counts as an hour. The turns of the devices are spread evenly by their indices.
 */
static bool is_its_turn(const struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now)
{
	int64_t every_ms = hw_monitor_timeout_ms(r->m, d);
	every_ms = every_ms < HW_REFRESH_MAX_MS ? every_ms : HW_REFRESH_MAX_MS;
	uint32_t turn = (uint32_t)(now.mono.ns / HW_NS_PER_MS / every_ms) % HW_PLAIN_TURNS;
	return index * UINT32_C(2654435769) / (UINT32_MAX / HW_PLAIN_TURNS + 1) == turn;
}

static uint8_t fields_of(const struct hw_device *d)
{
	return (uint8_t)((d->flags & HW_FLAG_ONCE ? HW_NOTED_ONCE : 0) |
	                 (hw_device_own_timeout_ms(d) > 0 ? HW_NOTED_OWN_TIMEOUT : 0));
}

static bool has_our_form(const struct hw_redis *r, const struct hw_device *d)
{
	uint64_t form = hw_monitor_form(r->m, d);
	return form && form == hw_monitor_group_of(r->m, d)->form_hash;
}

bool hw_item_is_known(const struct hw_redis *r, const struct hw_device *d, uint32_t index)
{
	uint8_t noted = r->sink.noted[index], gone = HW_NOTED_FIELDS & (uint8_t)~fields_of(d);
	if (has_our_form(r, d) && !(noted & HW_NOTED_FORM))
		return false;
	return hw_device_state(d) == HW_STATE_ONLINE && mine(r, d)[0] == '1' && (noted & HW_NOTED_FULL) &&
	       !(noted & gone);
}

bool hw_item_is_plain(const struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now)
{
	return hw_item_is_known(r, d, index) && !(d->flags & HW_FLAG_LEARNED) && !r->conf.refresh_last_seen &&
	       !r->conf.keyspace && extra_args(d) == 0 && !is_its_turn(r, d, index, now);
}

/* Appends a refresh. A light refresh removes no field, and does not write keys that have no TTL. */
void hw_item_refresh(struct hw_redis *r, const struct hw_device *d, uint32_t index, struct hw_now now)
{
	uint8_t *noted = &r->sink.noted[index];
	if (hw_item_is_known(r, d, index))
		refresh_light(r, d, now);
	else
		refresh_full(r, d, now);
	uint8_t form = has_our_form(r, d) ? HW_NOTED_FORM : 0;
	*noted = (uint8_t)((*noted & ~(HW_NOTED_FIELDS | HW_NOTED_FORM)) | HW_NOTED_FULL | fields_of(d) | form);
}

void hw_item_acknowledge(struct hw_redis *r, const struct hw_pending_write *a)
{
	struct hw_eval *e = &r->sink.eval;
	const char *id = (const char *)a->id + 1;
	r->sink.common.n = 0;
	add_keys(r, id, a->id[0]);
	hw_eval_item(e);
	hw_eval_put(e, HW_AT_ACK_KIND, "A", 1);
	hw_eval_put(e, HW_AT_ACK_ID, id, a->id[0]);
}
