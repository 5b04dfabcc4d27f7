/* SPDX-License-Identifier: MIT */
/* See gather.h. The text of the list is written at each event, so that making the message is one copy. */
#include "notify/gather.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "http/json.h"

int hw_gather_init(struct hw_gather *g, const struct hw_monitor *m)
{
	*g = (struct hw_gather){.m = m, .devices = evbuffer_new(), .blind = evbuffer_new()};
	int rc = hw_digest_init(&g->digest, m);
	if (g->devices && g->blind && rc == 0)
		return 0;
	hw_gather_fini(g);
	return -ENOMEM;
}

void hw_gather_fini(struct hw_gather *g)
{
	if (g->devices)
		evbuffer_free(g->devices);
	if (g->blind)
		evbuffer_free(g->blind);
	free(g->counts);
	hw_digest_fini(&g->digest);
	*g = (struct hw_gather){.m = g->m};
}

static void begin(struct hw_gather *g, struct hw_now now)
{
	if (!g->any || now.wall_ms < g->from_ms)
		g->from_ms = now.wall_ms; /* a delayed begin may be earlier than other events */
	if (!g->any || now.wall_ms > g->to_ms)
		g->to_ms = now.wall_ms;
	g->any = true;
}

/* The counters of a group; NULL without memory. */
static uint64_t (*count_of(struct hw_gather *g, size_t group))[HW_REASONS]
{
	if (group >= g->n_groups) {
		size_t n = hw_monitor_groups(g->m)->n;
		void *grown = realloc(g->counts, n * sizeof(*g->counts));
		if (!grown)
			return NULL;
		g->counts = grown;
		memset(g->counts + g->n_groups, 0, (n - g->n_groups) * sizeof(*g->counts));
		g->n_groups = n;
	}
	return g->counts[group];
}

void hw_gather_transition(struct hw_gather *g, struct hw_now now, const struct hw_transition *t)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(g->m), t->device);
	if (!d)
		return;
	begin(g, now);
	hw_digest_transition(&g->digest, now, d, t);
	g->total[t->state]++;
	uint64_t(*counts)[HW_REASONS] = count_of(g, d->group);
	if (counts)
		counts[t->state][t->reason]++;
	if (g->listed == HW_NOTIFIER_LIST) {
		g->left_out++;
		return;
	}
	struct hw_json j;
	struct hw_id name = hw_device_id(d);
	hw_json_append(&j, g->devices);
	hw_json_open(&j, '{');
	hw_json_bytes(&j, "id", name.text, name.len);
	hw_json_text(&j, "state", hw_state_name(t->state));
	hw_json_text(&j, "reason", hw_reason_name(t->reason));
	hw_json_text(&j, "group", hw_monitor_group_of(g->m, d)->name);
	hw_json_int(&j, "time_ms", t->time_ms);
	hw_json_int(&j, "last_seen_ms", t->last_seen_ms);
	hw_json_uint(&j, "seq", t->seq);
	hw_json_close(&j, '}');
	if (hw_json_end(&j) < 0)
		g->left_out++;
	else
		g->listed++;
}

void hw_gather_blind(struct hw_gather *g, struct hw_now now, const struct hw_out *out)
{
	begin(g, now);
	hw_digest_blind(&g->digest, now, out);
	if (g->blind_listed == HW_NOTIFIER_BLIND) {
		g->blind_left_out++;
		return;
	}
	struct hw_json j;
	hw_json_append(&j, g->blind);
	hw_json_open(&j, '{');
	hw_json_bool(&j, "begun", out->blind.begun);
	hw_json_text(&j, "cause", hw_cause_name(out->blind.cause));
	hw_json_bool(&j, "lossy", out->blind.lossy);
	hw_json_int(&j, "time_ms", now.wall_ms);
	if (!out->blind.begun)
		hw_json_int(&j, "length_ms", out->blind.length_ns / HW_NS_PER_MS);
	hw_json_close(&j, '}');
	(void)hw_json_end(&j);
	g->blind_listed++;
}

/* --- sealing ------------------------------------------------------------------ */

static void add_counts(struct hw_gather *g, struct hw_json *j)
{
	hw_json_open_member(j, "counts", '[');
	for (size_t k = 0; k < g->n_groups * HW_STATES * HW_REASONS; k++) {
		size_t group = k / (HW_STATES * HW_REASONS), state = k / HW_REASONS % HW_STATES,
		       reason = k % HW_REASONS;
		uint64_t n = g->counts[group][state][reason];
		if (n == 0)
			continue;
		hw_json_open(j, '{');
		hw_json_text(j, "group", hw_monitor_groups(g->m)->all[group]->name);
		hw_json_text(j, "state", hw_state_name((enum hw_state)state));
		hw_json_text(j, "reason", hw_reason_name((enum hw_reason)reason));
		hw_json_uint(j, "count", n);
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
}

/* Writes the message as JSON. Moves the lists `devices` and `blind` into the message, so both are empty afterwards.
 * Returns 0 or -ENOMEM. */
static int write_json(struct hw_gather *g, const char *node_id, bool test, struct evbuffer *b)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(g->m);
	struct hw_blindness is = hw_monitor_blindness(g->m);
	struct hw_json j;
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_text(&j, "node", node_id);
	hw_json_uint(&j, "number", g->number);
	hw_json_int(&j, "from_ms", g->from_ms);
	hw_json_int(&j, "to_ms", g->to_ms);
	hw_json_uint(&j, "online", g->total[HW_STATE_ONLINE]);
	hw_json_uint(&j, "offline", g->total[HW_STATE_OFFLINE]);
	hw_json_uint(&j, "forgotten", g->total[HW_STATE_FORGOTTEN]);
	if (test)
		hw_json_bool(&j, "test", true);
	add_counts(g, &j);
	hw_json_array(&j, "devices", g->devices);
	hw_json_uint(&j, "devices_left_out", g->left_out);
	hw_json_array(&j, "blind", g->blind);
	hw_json_uint(&j, "blind_left_out", g->blind_left_out);
	hw_json_open_member(&j, "now", '{');
	hw_json_uint(&j, "online", s->count[HW_STATE_ONLINE]);
	hw_json_uint(&j, "offline", s->count[HW_STATE_OFFLINE]);
	if (is.blind)
		hw_json_text(&j, "blind", hw_cause_name(is.cause));
	else
		hw_json_bool(&j, "blind", false);
	hw_json_close(&j, '}');
	hw_json_close(&j, '}');
	return hw_json_end(&j);
}

int hw_gather_seal(struct hw_gather *g, const char *node_id, struct hw_notification *out)
{
	*out = (struct hw_notification){.json = evbuffer_new()};
	int rc = hw_digest_seal(&g->digest, node_id, g->from_ms, &out->fields);
	g->number++;
	if (out->json && rc == 0)
		rc = write_json(g, node_id, false, out->json);
	evbuffer_drain(g->devices, evbuffer_get_length(g->devices));
	evbuffer_drain(g->blind, evbuffer_get_length(g->blind));
	free(g->counts);
	struct hw_gather fresh = {.m = g->m,
	                          .devices = g->devices,
	                          .blind = g->blind,
	                          .number = g->number,
	                          .digest = g->digest,
	                          .blindness = g->blindness};
	*g = fresh;
	return hw_notification_finish(out, rc);
}

int hw_gather_test(struct hw_gather *g, const char *node_id, int64_t now_ms, struct hw_notification *out)
{
	struct hw_gather nothing = {.m = g->m, .from_ms = now_ms, .to_ms = now_ms};
	*out = (struct hw_notification){.json = evbuffer_new()};
	int rc = hw_digest_test(&g->digest, node_id, now_ms, &out->fields);
	if (out->json && rc == 0)
		rc = write_json(&nothing, node_id, true, out->json);
	return hw_notification_finish(out, rc);
}
