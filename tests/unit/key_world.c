/* SPDX-License-Identifier: MIT */
#include "key_world.h"

struct world *w;
unsigned checks;
struct key store[KEYS];
static size_t answered; /* how much of the log has been looked through for looks to answer */

void key_begin(const struct hw_group_spec *g, bool connect)
{
	struct hw_monitor_conf conf = world_conf();
	conf.key_group = "default";
	w = world_new(&conf, g, 1);
	answered = checks = 0;
	memset(store, 0, sizeof(store));
	if (connect)
		world_connect(w);
	hw_monitor_key_sight(w->m, w->now, true);
}

void key_set_up(void)
{
	struct hw_group_spec g = world_group("default", 30000);
	key_begin(&g, true);
}

void key_tear_down(void)
{
	world_free(w);
}

int find(const char *id)
{
	int i = 0;
	while (i < KEYS - 1 && store[i].id[0] && strcmp(store[i].id, id) != 0)
		i++;
	snprintf(store[i].id, sizeof(store[i].id), "%s", id);
	return i;
}

void look(const char *id, unsigned why)
{
	int i = find(id);
	int64_t ttl = HW_KEY_GONE;
	if (store[i].there && store[i].until_ns <= w->now.mono.ns)
		store[i].there = false;
	if (store[i].there)
		ttl = store[i].until_ns == INT64_MAX ? HW_KEY_NO_TTL : (store[i].until_ns - w->now.mono.ns) / MS;
	hw_monitor_key(w->m, w->now, why, id, strlen(id), ttl);
	world_drain(w);
}

void put_quietly(const char *id, int64_t ttl_ms)
{
	int i = find(id);
	store[i].written_ns = w->now.mono.ns;
	store[i].there = true;
	store[i].until_ns = ttl_ms < 0 ? INT64_MAX : w->now.mono.ns + ttl_ms * MS;
}

void put(const char *id, int64_t ttl_ms)
{
	put_quietly(id, ttl_ms);
	look(id, HW_KEY_WRITTEN);
}

void drop(const char *id, unsigned why)
{
	store[find(id)].there = false;
	look(id, why);
}

static void answer_checks(void)
{
	for (; answered < w->n_log; answered++) {
		if (w->log[answered].kind != HW_OUT_KEY_CHECK)
			continue;
		const struct hw_device *d = hw_registry_get(hw_monitor_registry(w->m), w->log[answered].device);
		char id[16];
		ck_assert_ptr_nonnull(d);
		snprintf(id, sizeof(id), "%.*s", (int)hw_device_id(d).len, hw_device_id(d).text);
		checks++;
		look(id, 0);
	}
}

void pass(int64_t ns)
{
	int64_t end = w->now.mono.ns + ns;
	while (w->now.mono.ns < end) {
		struct hw_mono due;
		world_drain(w);
		answer_checks();
		int64_t next = w->now.mono.ns + STEP_NS;
		/* An hour in which nothing is due goes by at once. */
		if (w->n_out == 0 && hw_monitor_due(w->m, w->now, &due) && due.ns > next)
			next = due.ns;
		world_until(w, next < end ? next : end);
	}
	answer_checks();
}

size_t transitions(enum hw_state s)
{
	return world_count(w, HW_OUT_TRANSITION, s);
}

int64_t last_ns(enum hw_state s, enum hw_reason r)
{
	int64_t at;
	const struct hw_transition *t = world_last(w, &at);
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(t->state, s);
	ck_assert_int_eq(t->reason, r);
	return at;
}

void offline_between(int64_t from, int64_t to)
{
	int64_t at = last_ns(HW_STATE_OFFLINE, HW_REASON_KEYSPACE);
	ck_assert_msg(at >= from && at <= to, "%.3f s after the first moment that is right, at most %.3f s",
	              (double)(at - from) / 1e9, (double)(to - from) / 1e9);
}
