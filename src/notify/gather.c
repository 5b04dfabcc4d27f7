/* SPDX-License-Identifier: MIT */
/* See gather.h. The text of a list is written as things happen, so that sealing is one copy. */
#include "notify/gather.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		g->from_ms = now.wall_ms; /* a begin that waited is earlier than what was gathered meanwhile */
	if (!g->any || now.wall_ms > g->to_ms)
		g->to_ms = now.wall_ms;
	g->any = true;
}

/* `room` for a text of `len` bytes as JSON: six times as long at most. */
static const char *quoted(const char *text, size_t len, char *room, size_t cap)
{
	return hw_json_quote(text, len, room, cap) < cap ? room : "\"\"";
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
	char id[6 * HW_ID_MAX + 3], group[6 * 64 + 3];
	struct hw_id name = hw_device_id(d);
	const char *group_name = hw_monitor_group_of(g->m, d)->name;
	int rc = evbuffer_add_printf(
		g->devices,
		"%s{\"id\":%s,\"state\":\"%s\",\"reason\":\"%s\",\"group\":%s,\"time_ms\":%lld,\"last_seen_ms\":%lld,"
		"\"seq\":%llu}",
		g->listed ? "," : "", quoted(name.text, name.len, id, sizeof(id)), hw_state_name(t->state),
		hw_reason_name(t->reason), quoted(group_name, strlen(group_name), group, sizeof(group)),
		(long long)t->time_ms, (long long)t->last_seen_ms, (unsigned long long)t->seq);
	if (rc < 0)
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
	evbuffer_add_printf(g->blind, "%s{\"begun\":%s,\"cause\":\"%s\",\"lossy\":%s,\"time_ms\":%lld",
	                    g->blind_listed ? "," : "", out->blind.begun ? "true" : "false",
	                    hw_cause_name(out->blind.cause), out->blind.lossy ? "true" : "false",
	                    (long long)now.wall_ms);
	if (!out->blind.begun)
		evbuffer_add_printf(g->blind, ",\"length_ms\":%lld", (long long)out->blind.length_ns / HW_NS_PER_MS);
	evbuffer_add(g->blind, "}", 1);
	g->blind_listed++;
}

/* --- sealing ------------------------------------------------------------------ */

static void add_counts(struct hw_gather *g, struct evbuffer *b)
{
	char name[6 * 64 + 3];
	bool first = true;
	for (size_t k = 0; k < g->n_groups * HW_STATES * HW_REASONS; k++) {
		size_t group = k / (HW_STATES * HW_REASONS), state = k / HW_REASONS % HW_STATES,
		       reason = k % HW_REASONS;
		uint64_t n = g->counts[group][state][reason];
		if (n == 0)
			continue;
		const char *text = hw_monitor_groups(g->m)->all[group]->name;
		evbuffer_add_printf(b, "%s{\"group\":%s,\"state\":\"%s\",\"reason\":\"%s\",\"count\":%llu}",
		                    first ? "" : ",", quoted(text, strlen(text), name, sizeof(name)),
		                    hw_state_name((enum hw_state)state), hw_reason_name((enum hw_reason)reason),
		                    (unsigned long long)n);
		first = false;
	}
}

static void add_now(const struct hw_gather *g, struct evbuffer *b)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(g->m);
	struct hw_blindness is = hw_monitor_blindness(g->m);
	const char *quote = is.blind ? "\"" : "";
	evbuffer_add_printf(b, "\"now\":{\"online\":%u,\"offline\":%u,\"blind\":%s%s%s}}", s->count[HW_STATE_ONLINE],
	                    s->count[HW_STATE_OFFLINE], quote, is.blind ? hw_cause_name(is.cause) : "false", quote);
}

static void add_head(const struct hw_gather *g, struct evbuffer *b, const char *node_id, uint64_t number)
{
	char node[6 * 64 + 3];
	evbuffer_add_printf(b,
	                    "{\"node\":%s,\"number\":%llu,\"from_ms\":%lld,\"to_ms\":%lld,\"online\":%llu,"
	                    "\"offline\":%llu,\"forgotten\":%llu,",
	                    quoted(node_id, strlen(node_id), node, sizeof(node)), (unsigned long long)number,
	                    (long long)g->from_ms, (long long)g->to_ms, (unsigned long long)g->total[HW_STATE_ONLINE],
	                    (unsigned long long)g->total[HW_STATE_OFFLINE],
	                    (unsigned long long)g->total[HW_STATE_FORGOTTEN]);
}

static void add_body(struct hw_gather *g, struct evbuffer *b)
{
	evbuffer_add(b, "\"counts\":[", 10);
	add_counts(g, b);
	evbuffer_add(b, "],\"devices\":[", 13);
	evbuffer_add_buffer(b, g->devices);
	evbuffer_add_printf(b, "],\"devices_left_out\":%llu,\"blind\":[", (unsigned long long)g->left_out);
	evbuffer_add_buffer(b, g->blind);
	evbuffer_add_printf(b, "],\"blind_left_out\":%llu,", (unsigned long long)g->blind_left_out);
	add_now(g, b);
}

int hw_gather_seal(struct hw_gather *g, const char *node_id, struct hw_telling *out)
{
	*out = (struct hw_telling){.json = evbuffer_new()};
	int rc = hw_digest_seal(&g->digest, node_id, g->from_ms, &out->fields);
	g->number++;
	if (out->json) {
		add_head(g, out->json, node_id, g->number);
		add_body(g, out->json);
	}
	evbuffer_drain(g->devices, evbuffer_get_length(g->devices));
	evbuffer_drain(g->blind, evbuffer_get_length(g->blind));
	free(g->counts);
	struct hw_gather anew = {.m = g->m,
	                         .devices = g->devices,
	                         .blind = g->blind,
	                         .number = g->number,
	                         .digest = g->digest,
	                         .blindness = g->blindness};
	*g = anew;
	return hw_telling_finish(out, rc);
}

int hw_gather_test(struct hw_gather *g, const char *node_id, int64_t now_ms, struct hw_telling *out)
{
	struct hw_gather nothing = {.m = g->m, .from_ms = now_ms, .to_ms = now_ms};
	*out = (struct hw_telling){.json = evbuffer_new()};
	int rc = hw_digest_test(&g->digest, node_id, now_ms, &out->fields);
	if (out->json) {
		add_head(&nothing, out->json, node_id, 0);
		evbuffer_add_printf(out->json, "\"test\":true,\"counts\":[],\"devices\":[],\"devices_left_out\":0,"
		                               "\"blind\":[],\"blind_left_out\":0,");
		add_now(g, out->json);
	}
	return hw_telling_finish(out, rc);
}
