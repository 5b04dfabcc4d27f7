/* SPDX-License-Identifier: MIT */
/* Single devices. Cost: a look-up. */
#include <event2/buffer.h>
#include <event2/http.h>
#include <string.h>

#include "control/labels.h"
#include "control/parts.h"
#include "heartwheel/unseen.h"
#include "http/json.h"
#include "http/query.h"

/* --- a device */

bool hw_device_visible(const struct hw_device *d)
{
	enum hw_state s = hw_device_state(d);
	return s == HW_STATE_ONLINE || s == HW_STATE_OFFLINE;
}

static const char *const sources[] = {"mqtt", "mqtt", "key", "both"};

/* With several nodes: the node that owns the device. */
static void write_owner(struct hw_json *j, const struct hw_control *c, const struct hw_device *d)
{
	if (c->ops->owner)
		hw_json_text(j, "node", c->ops->owner(c->arg, d));
}

/* Writes what was learned from the gaps between a device's heartbeats, in a group that learns. 0: too few were seen. */
static void write_learned(struct hw_json *j, const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_learned l;
	if (!hw_monitor_learned(m, d, &l))
		return;
	hw_json_int(j, "learned_ms", l.timeout_ms);
	hw_json_uint(j, "gaps_seen", l.gaps_seen);
	hw_json_int(j, "median_gap_ms", l.median_gap_ms);
	hw_json_int(j, "largest_gap_ms", l.largest_gap_ms);
	hw_json_uint(j, "learned_mistakes", l.mistakes);
}

void hw_write_device(struct hw_json *j, const struct hw_control *c, struct hw_now now, const struct hw_device *d)
{
	const struct hw_monitor *m = c->monitor;
	struct hw_id id = hw_device_id(d);
	hw_json_bytes(j, "id", id.text, id.len);
	hw_json_text(j, "state", hw_state_name(hw_device_state(d)));
	hw_json_int(j, "since_ms", d->since_ms);
	hw_json_int(j, "last_seen_ms", hw_device_last_seen_ms(d, now)); /* 0: never */
	struct hw_timeout timeout = hw_monitor_timeout(m, d);
	hw_json_int(j, "timeout_ms", timeout.ms);
	hw_json_text(j, "timeout_from", hw_timeout_from_name(timeout.from));
	hw_json_text(j, "reason", hw_reason_name(hw_device_reason(d)));
	hw_json_text(j, "group", hw_monitor_group_of(m, d)->name);
	hw_json_text(j, "source", sources[hw_device_source(d)]);
	write_owner(j, c, d);
	hw_json_uint(j, "seq", d->seq);
	write_learned(j, m, d);
	hw_write_labels(j, c, id);
}

void hw_write_unseen(struct hw_json *j, const struct hw_control *c, const struct hw_expected_view *v)
{
	const struct hw_group *g = hw_monitor_expected_group(c->monitor, v);
	hw_json_bytes(j, "id", v->id.text, v->id.len);
	hw_json_text(j, "state", hw_state_name(HW_STATE_UNSEEN));
	hw_json_int(j, "since_ms", v->at_ms);
	hw_json_int(j, "last_seen_ms", 0);
	hw_json_int(j, "timeout_ms", v->timeout_ms ? v->timeout_ms : g->timeout_ms);
	hw_json_text(j, "timeout_from", hw_timeout_from_name(v->timeout_ms ? HW_TIMEOUT_INVENTORY : HW_TIMEOUT_GROUP));
	hw_json_text(j, "reason", hw_reason_name(HW_REASON_NEVER_SEEN));
	hw_json_text(j, "group", g->name);
	hw_json_int(j, "expected_since_ms", v->since_ms);
	hw_write_labels(j, c, v->id);
}

uint32_t hw_unseen_after(const struct hw_control *c, const char *id, size_t len)
{
	const struct hw_expected *e = hw_monitor_expected(c->monitor);
	uint32_t i = hw_expected_find(e, id, len);
	struct hw_expected_view v =
		i == HW_NIL ? (struct hw_expected_view){.state = HW_EXPECTED_RESTS} : hw_expected_at(e, i);
	return v.state == HW_EXPECTED_UNSEEN ? hw_expected_unseen(e) - v.place : HW_NIL;
}

static void write_ids(struct hw_json *j, const char *name, const char *text, size_t len)
{
	hw_json_open_member(j, name, '[');
	for (const char *end; len > 0; len -= (size_t)(end - text), text = end) {
		const char *newline = memchr(text, '\n', len);
		end = newline ? newline + 1 : text + len;
		hw_json_item_bytes(j, text, (size_t)((newline ? newline : end) - text));
	}
	hw_json_close(j, ']');
}

static void write_event_parents(struct hw_json *j, const struct hw_event *e)
{
	if (e->parents_len == 0)
		return;
	write_ids(j, "parents", e->parents, e->parents_len);
	if (e->wait_ms >= 0)
		hw_json_int(j, "wait_ms", e->wait_ms);
}

/* An unknown parent has the state null. */
static void write_parents(struct hw_json *j, const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	unsigned n = hw_monitor_parents(m, d, v);
	hw_json_open_member(j, "parents", '[');
	for (unsigned k = 0; k < n; k++) {
		hw_json_open(j, '{');
		hw_json_bytes(j, "id", v[k].id.text, v[k].id.len);
		hw_json_text(j, "state", v[k].known ? hw_state_name(v[k].state) : NULL);
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
	hw_json_uint(j, "children", hw_monitor_children(m, d));
}

/*
 * Writes a transition. Timeout, source, name, labels and note are the device's present ones. For a forgotten device,
 * timeout and source are left out. `node` is the node that made the transition.
 */
void hw_write_event(struct hw_json *j, const struct hw_control *c, const struct hw_event *e)
{
	const struct hw_monitor *m = c->monitor;
	const struct hw_registry *r = hw_monitor_registry(m);
	uint32_t index = hw_registry_find(r, e->id, e->id_len);
	const struct hw_device *d = index == HW_NIL ? NULL : hw_registry_at(r, index);
	hw_json_bytes(j, "id", e->id, e->id_len);
	hw_json_text(j, "state", hw_state_name(e->state));
	hw_json_int(j, "since_ms", e->time_ms);
	hw_json_int(j, "last_seen_ms", e->last_seen_ms);
	if (d)
		hw_json_int(j, "timeout_ms", hw_monitor_timeout_ms(m, d));
	else
		hw_json_null(j, "timeout_ms");
	hw_json_text(j, "reason", hw_reason_name(e->reason));
	hw_json_bytes(j, "group", e->group, e->group_len);
	hw_json_text(j, "source", d ? sources[hw_device_source(d)] : NULL);
	if (c->ops->owner)
		hw_json_bytes(j, "node", e->node, e->node_len);
	hw_json_uint(j, "seq", e->seq);
	write_event_parents(j, e);
	hw_write_labels(j, c, (struct hw_id){e->id, e->id_len});
}

void hw_write_parent_ids(struct hw_json *j, const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	unsigned n = hw_monitor_parents(m, d, v), known = 0;
	for (unsigned k = 0; k < n; k++)
		known += v[k].known;
	if (known == 0)
		return;
	hw_json_open_member(j, "parents", '[');
	for (unsigned k = 0; k < n; k++)
		hw_json_item_bytes(j, v[k].id.text, v[k].id.len);
	hw_json_close(j, ']');
}

/* Writes the members that only the answer about a single device has: its report, and its place in the wheel. */
static void write_details(struct hw_json *j, const struct hw_monitor *m, struct hw_now now, const struct hw_device *d,
                          uint32_t index)
{
	int64_t due_in = hw_monitor_due_in_ms(m, now, d);
	struct hw_report report = hw_device_report(d);
	hw_json_report(j, &report);
	if (due_in == INT64_MAX)
		hw_json_null(j, "due_in_ms");
	else
		hw_json_int(j, "due_in_ms", due_in);
	if (d->node.place > HW_PLACE_LEVEL3) { /* a suspect waits on a queue */
		hw_json_null(j, "wheel");
		hw_json_null(j, "level");
		hw_json_null(j, "slot");
		hw_json_null(j, "rounds");
		return;
	}
	const struct hw_wheel *w = hw_monitor_wheel_of(m, d);
	struct hw_wheel_spot spot = hw_wheel_where(w, index);
	hw_json_text(j, "wheel", w == hw_monitor_key_wheel(m) ? "keys" : "heartbeats");
	hw_json_int(j, "level", spot.level);
	hw_json_int(j, "slot", spot.slot);
	hw_json_uint(j, "rounds", spot.rounds);
}

struct hw_device *hw_find_device(struct hw_control *c, struct evhttp_request *req, const char *rest, uint32_t *index)
{
	const struct hw_registry *r = hw_monitor_registry(c->monitor);
	char id[HW_ID_MAX + 1];
	int len = hw_percent_decode(rest, strlen(rest), false, id, sizeof(id));
	if (len < 0 || !hw_id_valid(id, (size_t)len)) {
		hw_reply_error(req, HTTP_BADREQUEST, "not a valid device id");
		return NULL;
	}
	*index = hw_registry_find(r, id, (size_t)len);
	struct hw_device *d = *index == HW_NIL ? NULL : hw_registry_at(r, *index);
	if (!d || !hw_device_visible(d)) {
		bool expected = hw_expected_find(hw_monitor_expected(c->monitor), id, (size_t)len) != HW_NIL;
		hw_reply_error(req, HTTP_NOTFOUND, expected ? "expected, and not heard yet" : "no such device");
		return NULL;
	}
	return d;
}

/* Answers the request if the device is unseen. */
static bool serve_unseen(struct hw_control *c, struct evhttp_request *req, const char *rest)
{
	const struct hw_expected *e = hw_monitor_expected(c->monitor);
	char id[HW_ID_MAX + 1];
	int len = hw_percent_decode(rest, strlen(rest), false, id, sizeof(id));
	uint32_t i = len < 0 ? HW_NIL : hw_expected_find(e, id, (size_t)len);
	struct hw_json j;
	if (i == HW_NIL || hw_expected_at(e, i).state != HW_EXPECTED_UNSEEN)
		return false;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return true;
	struct hw_expected_view v = hw_expected_at(e, i);
	hw_write_unseen(&j, c, &v);
	hw_answer_end(req, &j, body);
	return true;
}

void hw_serve_device(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_now now = c->ops->now(c->arg);
	struct hw_json j;
	uint32_t index;
	if (serve_unseen(c, req, rest))
		return;
	struct hw_device *d = hw_find_device(c, req, rest, &index);
	if (!d)
		return;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_write_device(&j, c, now, d);
	write_parents(&j, c->monitor, d);
	write_details(&j, c->monitor, now, d, index);
	hw_answer_end(req, &j, body);
}
