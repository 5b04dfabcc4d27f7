/* SPDX-License-Identifier: MIT */
/* The host's way in, but for messages (sim_feed.c): connections, the store, its start and its end. See sim_host.h. */
#include <string.h>

#include "sim.h"
#include "sim_host_priv.h"

#define LOAD_CHUNK       5
#define LOAD_PATIENCE_NS (5 * HW_NS_PER_S)
#define BACKOFF_MAX_NS   (60 * HW_NS_PER_S)
#define KEEPALIVE_NS     (30 * HW_NS_PER_S)

/* --- read empty -------------------------------------------------------------- */

void sim_host_note_empty(struct sim *s)
{
	for (uint32_t r = 0; r < s->plan.readers; r++)
		/* It has not said so yet: a stall of the loop's goes on for it. */
		if (s->host.reader_stopped[r] >= 0 || sim_feed_has_left(s, r))
			return;
	hw_monitor_drained(s->host.m, sim_host_now(s));
	sim_oracle_watch(s);
}

/* --- connections ------------------------------------------------------------- */

static void redial(struct sim *s, uint32_t k)
{
	struct sim_link *l = &s->host.link[k];
	l->wait_ns = l->wait_ns == 0 ? HW_NS_PER_S : 2 * l->wait_ns < BACKOFF_MAX_NS ? 2 * l->wait_ns : BACKOFF_MAX_NS;
	sim_at(s, s->now + l->wait_ns / 2 + sim_below(&s->random, l->wait_ns), SIM_HOST_DIAL, k, ++l->stamp, 0);
}

static void tell_link(struct sim *s, uint32_t k, bool up)
{
	struct hw_now now = sim_host_now(s);
	s->host.link[k].up = up;
	if (k > s->plan.readers)
		return;
	sim_oracle_link(s, k, up);
	if (k < s->plan.readers)
		hw_monitor_link(s->host.m, now, k, up);
	else
		hw_monitor_publisher(s->host.m, now, up);
	sim_oracle_watch(s);
}

void sim_host_down(struct sim *s, uint32_t k)
{
	if (!s->host.link[k].up)
		return;
	if (k < s->plan.readers)
		sim_feed_forget(s, k);
	tell_link(s, k, false);
	redial(s, k);
}

void sim_host_rest_publisher(struct sim *s)
{
	uint32_t k = s->plan.readers;
	if (!s->host.link[k].up)
		return;
	sim_broker_leave(s, s->plan.devices + k);
	tell_link(s, k, false);
	int64_t wait_ns = sim_below(&s->random, s->plan.timeout_ns[0] / 8);
	int64_t latest_ns = sim_length(s) - 3 * s->plan.tick_ns - s->now;
	sim_at(s, s->now + (wait_ns < latest_ns ? wait_ns : latest_ns), SIM_HOST_DIAL, k, ++s->host.link[k].stamp, 0);
}

void sim_host_on_dial(struct sim *s, uint32_t k, uint32_t stamp)
{
	struct sim_host *h = &s->host;
	if (!h->m || stamp != h->link[k].stamp || h->link[k].up)
		return;
	bool stands = k < s->plan.readers && h->reader_stopped[k] >= 0;
	if (h->stopped || h->asleep || stands || !sim_broker_connect(s, s->plan.devices + k, KEEPALIVE_NS, false)) {
		redial(s, k);
		return;
	}
	sim_host_woke(s);
	h->link[k].wait_ns = 0;
	tell_link(s, k, true);
	if (k > s->plan.readers)
		sim_host_republish(s);
	sim_host_turn(s);
}

void sim_host_on_closed(struct sim *s, uint32_t k, uint32_t conn)
{
	struct sim_host *h = &s->host;
	if (!h->m || s->broker.client[s->plan.devices + k].conn != conn)
		return;
	if (h->stopped || h->asleep) {
		sim_at(s, s->now + HW_NS_PER_S / 4, SIM_HOST_CLOSED, k, conn, 0);
		return;
	}
	sim_host_woke(s);
	sim_host_down(s, k);
	sim_host_turn(s);
}

static void lose(struct sim *s, uint32_t k)
{
	if (!s->host.link[k].up)
		return;
	sim_broker_leave(s, s->plan.devices + k);
	sim_host_woke(s);
	sim_host_down(s, k);
	sim_host_turn(s);
}

void sim_host_lose_publisher(struct sim *s, bool barriers, bool statuses)
{
	if (!s->host.m || s->host.stopped || s->host.asleep)
		return;
	if (barriers)
		lose(s, s->plan.readers);
	if (statuses)
		lose(s, s->plan.readers + 1);
}

void sim_host_forget(struct sim *s, uint32_t n)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%u", n);
	if (!s->host.m || s->host.stopped || s->host.asleep)
		return;
	sim_host_woke(s);
	hw_monitor_forget(s->host.m, sim_host_now(s), id, (size_t)len);
	sim_host_turn(s);
}

/* --- the store --------------------------------------------------------------- */

static void load_one(struct sim *s, uint32_t n)
{
	static const char *const names[] = {"default", "slow"};
	const struct sim_record *r = &s->store.record[n];
	char id[16];
	if (!r->known) {
		sim_oracle_unknown(s, n);
		return;
	}
	int len = snprintf(id, sizeof(id), "d%u", n);
	int64_t down_ms = s->host.started_wall_ms - s->host.mark_found_ms;
	struct hw_stored d = {.id = id,
	                      .id_len = (size_t)len,
	                      .state = r->state,
	                      .reason = r->reason,
	                      .since_ms = r->since_ms,
	                      .last_seen_ms = r->last_seen_ms,
	                      .own_timeout_ms = r->own_timeout_ms,
	                      .down_ms = s->host.mark_found_ms && down_ms > 0 ? down_ms : 0,
	                      .group = names[r->group],
	                      .seq = r->seq,
	                      .once = r->once};
	sim_oracle_loaded(s, n, r);
	if (hw_monitor_load(s->host.m, sim_host_now(s), &d))
		sim_breach(s, "d%u could not be loaded", n);
	sim_host_drain(s, 0);
}

void sim_host_reconcile(struct sim *s)
{
	if (!s->host.m || s->host.load_wanted)
		return;
	const struct hw_registry *r = hw_monitor_registry(s->host.m);
	for (uint32_t i = 0; i < hw_registry_bound(r); i++)
		if (hw_registry_at(r, i))
			sim_host_rewrite(s, hw_registry_ref(r, i));
}

static void load_over(struct sim *s)
{
	struct sim_host *h = &s->host;
	h->loading = h->load_wanted = false;
	hw_monitor_loaded(h->m);
	sim_host_turn(s);
	sim_host_republish(s);
	sim_host_reconcile(s);
}

void sim_host_on_load(struct sim *s, uint32_t run)
{
	struct sim_host *h = &s->host;
	if (!h->m || run != h->run || !h->load_wanted)
		return;
	if (h->stopped || h->asleep || s->store.away) {
		if (h->loading && !h->stopped && !h->asleep && h->load_at == 0 &&
		    s->now - s->oracle.started > LOAD_PATIENCE_NS) {
			h->loading = false;
			sim_oracle_amnesia(s);
			hw_monitor_loaded(h->m);
			sim_host_turn(s);
		}
		sim_at(s, s->now + HW_NS_PER_S / 2, SIM_LOAD, 0, run, 0);
		return;
	}
	if (h->load_at == 0)
		h->mark_found_ms = s->store.mark_ms;
	for (int k = 0; k < LOAD_CHUNK && h->load_at < s->plan.devices; k++)
		load_one(s, h->load_at++);
	if (h->load_at < s->plan.devices)
		sim_at(s, s->now + s->plan.load_pace_ns, SIM_LOAD, 0, run, 0);
	else
		load_over(s);
}

/* --- reloads ----------------------------------------------------------------- */

void sim_host_reload(struct sim *s)
{
	struct hw_group_spec groups[SIM_GROUPS_MAX];
	if (!s->host.m || s->host.stopped || s->host.asleep)
		return; /* it reads the file when it starts, or not at all */
	sim_host_woke(s);
	if (hw_monitor_reconfigure(s->host.m, sim_host_now(s), &s->plan.conf, groups, sim_plan_groups(s, groups)))
		sim_breach(s, "a reload is refused");
	sim_host_turn(s);
}

/* --- start and end ----------------------------------------------------------- */

void sim_host_init(struct sim *s)
{
	s->host.pending = sim_calloc(s->plan.devices, sizeof(*s->host.pending));
	sim_feed_init(s);
}

void sim_host_fini(struct sim *s)
{
	hw_monitor_free(s->host.m);
	free(s->host.pending);
	sim_feed_fini(s);
}

void sim_host_on_start(struct sim *s)
{
	struct sim_host *h = &s->host;
	struct hw_now now = sim_host_now(s);
	static const uint8_t key[16] = {4, 2};
	struct hw_group_spec groups[SIM_GROUPS_MAX];
	if (h->m)
		return;
	if (h->asleep) {
		sim_at(s, s->now + HW_NS_PER_S, SIM_START, 0, 0, 0);
		return;
	}
	h->m = hw_monitor_new(&s->plan.conf, groups, sim_plan_groups(s, groups), key, now);
	if (!h->m)
		sim_breach(s, "no monitor");
	h->run++;
	h->store_lost = false;
	for (uint32_t r = 0; r < SIM_READERS_MAX; r++)
		h->reader_stopped[r] = -1;
	h->pace = (struct hw_pace){0};
	h->mark_told_ms = 0;
	h->to_forge = 0;
	h->load_at = 0;
	h->loading = h->load_wanted = true;
	h->started_wall_ms = now.wall_ms;
	memset(h->pending, 0, s->plan.devices * sizeof(*h->pending));
	sim_oracle_started(s);
	h->link[s->plan.readers + 1].wait_ns = 0;
	sim_at(s, s->now + HW_NS_PER_S / 40, SIM_HOST_DIAL, s->plan.readers + 1, ++h->link[s->plan.readers + 1].stamp,
	       0);
	for (uint32_t k = 0; k <= s->plan.readers; k++) {
		h->link[k].wait_ns = 0;
		sim_at(s, s->now + sim_below(&s->random, HW_NS_PER_S / 20), SIM_HOST_DIAL, k, ++h->link[k].stamp, 0);
	}
	sim_at(s, s->now + sim_below(&s->random, HW_NS_PER_S / 10), SIM_LOAD, 0, h->run, 0);
	sim_host_tick(s);
}

void sim_host_crash(struct sim *s)
{
	struct sim_host *h = &s->host;
	if (!h->m)
		return;
	sim_oracle_crashed(s);
	sim_store_crash(s);
	for (uint32_t r = 0; r < s->plan.readers; r++)
		sim_feed_forget(s, r);
	for (uint32_t k = 0; k < s->plan.readers + 2; k++) {
		sim_broker_leave(s, s->plan.devices + k);
		h->link[k].up = false;
		h->link[k].stamp++;
	}
	hw_monitor_free(h->m);
	h->m = NULL;
	h->stopped = false;
}
