/* SPDX-License-Identifier: MIT */
/*
 * A small world around a monitor, for tests: virtual time, one source of evidence unless a test adds others, a broker
 * that sends barriers back after `rtt` unless a test forbids it, and a log of all outputs. Header only; each
 * test program has its own copy.
 */
#ifndef WORLD_H
#define WORLD_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/monitor.h"

#define MS             HW_NS_PER_MS
#define S              HW_NS_PER_S
#define WORLD_BARRIERS 256
#define WORLD_LOG      65536

struct world {
	struct hw_monitor *m;
	struct hw_now now;
	int64_t rtt_ns;   /* of barriers */
	bool swallow;     /* barriers do not come back */
	bool silent;      /* the broker acknowledges no barrier */
	unsigned back_on; /* on which sources they do: a bit each; at first on source 0 */
	const char *deny; /* canaries on topics with this in them do not come back; NULL: all do */
	bool refuses;     /* ... and the broker says that it refuses them */
	struct {
		uint64_t number;
		int64_t at_ns;
		char topic[64]; /* of a canary; "": it is a barrier */
		int64_t seq;
	} out[WORLD_BARRIERS];
	int n_out;
	uint64_t barriers, canaries;
	struct hw_out log[WORLD_LOG];
	int64_t log_ns[WORLD_LOG]; /* monotonic */
	size_t n_log;
	unsigned budget;
};

static const uint8_t world_key[16] = {1, 2, 3};
static const char *const world_filter[] = {"nodes/{id}/heartbeat", "nodes/{id}/status"};

static inline struct hw_group_spec world_group(const char *name, int64_t timeout_ms)
{
	return (struct hw_group_spec){.name = name,
	                              .heartbeat = world_filter,
	                              .n_heartbeat = 2,
	                              .status = "nodes/{id}/status",
	                              .timeout_ms = timeout_ms,
	                              .timeout_max_ms = 86400000};
}

static inline struct hw_monitor_conf world_conf(void)
{
	return (struct hw_monitor_conf){.max_devices = 100000,
	                                .forget_after_ms = INT64_C(30) * 86400000,
	                                .forget_once_after_ms = 86400000,
	                                .grace_ms = 0,
	                                .barrier_slow_ms = 250,
	                                .barrier_timeout_ms = 5000,
	                                .readers = 1,
	                                .ttl_factor = 3};
}

/* On every step of virtual time: a ck_assert() that holds costs a system call. */
#define world_must(holds)                                                                                              \
	do {                                                                                                           \
		if (!(holds))                                                                                          \
			ck_abort_msg("not so: " #holds);                                                               \
	} while (0)

static inline void world_take_canary(struct world *w, const struct hw_out *out)
{
	w->canaries++;
	bool denied = w->deny && strstr(out->canary.topic, w->deny);
	if (denied && w->refuses)
		hw_monitor_canary_answer(w->m, out->canary.group, out->canary.filter, HW_CANARY_REFUSED);
	if (w->swallow || denied)
		return;
	world_must(w->n_out < WORLD_BARRIERS && strlen(out->canary.topic) < sizeof(w->out[0].topic));
	strcpy(w->out[w->n_out].topic, out->canary.topic);
	w->out[w->n_out].seq = out->canary.seq;
	w->out[w->n_out++].at_ns = w->now.mono.ns + w->rtt_ns;
}

static inline void world_take(struct world *w, const struct hw_out *out)
{
	if (out->kind == HW_OUT_CANARY) {
		world_take_canary(w, out);
		return;
	}
	if (out->kind == HW_OUT_BARRIER) {
		w->barriers++;
		if (!w->silent)
			hw_monitor_barrier_taken(w->m, w->now.mono);
		if (!w->swallow) {
			world_must(w->n_out < WORLD_BARRIERS);
			w->out[w->n_out].number = out->barrier;
			w->out[w->n_out].topic[0] = '\0';
			w->out[w->n_out++].at_ns = w->now.mono.ns + w->rtt_ns;
		}
		return;
	}
	world_must(w->n_log < WORLD_LOG);
	w->log_ns[w->n_log] = w->now.mono.ns;
	w->log[w->n_log++] = *out;
}

static inline void world_drain(struct world *w)
{
	struct hw_out out;
	unsigned left;
	do {
		left = w->budget;
		while (hw_monitor_next(w->m, w->now, &left, &out))
			world_take(w, &out);
	} while (left == 0);
}

static inline void world_say(struct world *w, const char *topic, const char *payload, bool retained);

/* The first of what is under way comes back. */
static inline void world_back(struct world *w)
{
	uint64_t number = w->out[0].number;
	char topic[64], payload[128];
	strcpy(topic, w->out[0].topic);
	snprintf(payload, sizeof(payload), "{\"by\":\"w\",\"seq\":%lld,\"canary\":true}", (long long)w->out[0].seq);
	memmove(w->out, w->out + 1, (size_t)--w->n_out * sizeof(*w->out));
	if (topic[0])
		world_say(w, topic, payload, false);
	else
		for (unsigned i = 0; w->back_on >> i; i++)
			if (w->back_on >> i & 1)
				hw_monitor_barrier(w->m, w->now, i, number);
}

/* Time passes to `ns` (monotonic), with barriers coming back and the monitor woken when it asks to be. */
static inline void world_until(struct world *w, int64_t ns)
{
	for (;;) {
		world_drain(w);
		struct hw_mono due;
		int64_t next = ns;
		if (hw_monitor_due(w->m, w->now, &due) && due.ns < next)
			next = due.ns;
		if (w->n_out && w->out[0].at_ns < next)
			next = w->out[0].at_ns;
		if (next < w->now.mono.ns)
			next = w->now.mono.ns;
		w->now.wall_ms += next / MS - w->now.mono.ns / MS;
		bool stuck = next == w->now.mono.ns && next >= ns && !(w->n_out && w->out[0].at_ns <= next);
		w->now.mono.ns = next;
		if (w->n_out && w->out[0].at_ns <= next) {
			world_back(w);
			continue;
		}
		if (stuck || next >= ns) {
			world_drain(w);
			if (!(w->n_out && w->out[0].at_ns <= ns))
				return;
		}
	}
}

static inline void world_pass(struct world *w, int64_t ns)
{
	world_until(w, w->now.mono.ns + ns);
}

static inline struct world *world_new(const struct hw_monitor_conf *conf, const struct hw_group_spec *groups, size_t n)
{
	struct world *w = calloc(1, sizeof(*w));
	ck_assert_ptr_nonnull(w);
	w->now = (struct hw_now){.mono = {1000 * S}, .wall_ms = 1700000000000};
	w->rtt_ns = 2 * MS;
	w->budget = 64;
	w->back_on = 1;
	w->m = hw_monitor_new(conf, groups, n, world_key, w->now);
	ck_assert_ptr_nonnull(w->m);
	return w;
}

/* Of one group, `default`, with a timeout of 30 s. */
static inline struct world *world_of_one(const struct hw_monitor_conf *conf)
{
	struct hw_group_spec g = world_group("default", 30000);
	return world_new(conf, &g, 1);
}

static inline void world_connect(struct world *w)
{
	hw_monitor_publisher(w->m, w->now, true);
	hw_monitor_link(w->m, w->now, 0, true);
	world_drain(w);
}

static inline void world_free(struct world *w)
{
	hw_monitor_free(w->m);
	free(w);
}

/* The same, connected; the grace of its start, 15 s, is over. */
static inline struct world *world_past_grace(void)
{
	struct hw_monitor_conf conf = world_conf();
	conf.grace_ms = 15000;
	struct world *w = world_of_one(&conf);
	world_connect(w);
	world_pass(w, 16 * S);
	ck_assert(!hw_blind_now(hw_monitor_blind(w->m)));
	return w;
}

static inline void world_say(struct world *w, const char *topic, const char *payload, bool retained)
{
	struct hw_message msg = {.topic = topic,
	                         .topic_len = strlen(topic),
	                         .payload = payload,
	                         .payload_len = strlen(payload),
	                         .retained = retained};
	hw_monitor_arrived(w->m, w->now, 0);
	while (hw_monitor_messages(w->m, w->now, &msg, 1) == 0)
		world_drain(w);
	world_drain(w);
}

static inline void world_beat(struct world *w, const char *id, const char *payload)
{
	char topic[512];
	snprintf(topic, sizeof(topic), "nodes/%s/heartbeat", id);
	world_say(w, topic, payload, false);
}

static inline struct hw_device *world_device(struct world *w, const char *id)
{
	uint32_t i = hw_registry_find(hw_monitor_registry(w->m), id, strlen(id));
	return i == HW_NIL ? NULL : hw_registry_at(hw_monitor_registry(w->m), i);
}

static inline bool world_is(struct world *w, const char *id, enum hw_state state)
{
	const struct hw_device *d = world_device(w, id);
	return d && hw_device_state(d) == state;
}

/* The parents of a device as "id id", with a ? after an unknown one. */
static inline const char *world_parents(struct world *w, const char *id)
{
	static char text[512];
	struct hw_parent_view v[HW_PARENTS_MAX];
	size_t at = 0;
	unsigned n = hw_monitor_parents(w->m, world_device(w, id), v);
	text[0] = '\0';
	for (unsigned k = 0; k < n; k++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s%s", k ? " " : "", (int)v[k].id.len,
		                       v[k].id.text, v[k].known ? "" : "?");
	return text;
}

/* How many outs of a kind there were; of transitions only those into `state`. */
static inline size_t world_count(const struct world *w, enum hw_out_kind kind, enum hw_state state)
{
	size_t n = 0;
	for (size_t k = 0; k < w->n_log; k++)
		n += w->log[k].kind == kind && (kind != HW_OUT_TRANSITION || w->log[k].transition.state == state);
	return n;
}

/* The last transition. */
static inline const struct hw_transition *world_last(const struct world *w, int64_t *at_ns)
{
	for (size_t k = w->n_log; k-- > 0;)
		if (w->log[k].kind == HW_OUT_TRANSITION) {
			if (at_ns)
				*at_ns = w->log_ns[k];
			return &w->log[k].transition;
		}
	return NULL;
}

#endif
