/* SPDX-License-Identifier: MIT */
/*
 * Replaces src/redis (src/redis/redis.h) for the wiring, on top of the simulated store: transitions and refreshes
 * become orders (most refreshes are plain, and gather first), the link follows the state of the store, a load comes in
 * parts, and a missing sight record is noticed within a second. There is no outbox, because no device is forgotten
 * while the broker is away.
 */
#include "redis/redis.h"

#include <errno.h>
#include <string.h>

#include "redis/tail.h"
#include "sim.h"

#define LOAD_CHUNK  5
#define GATHER_NS   (250 * HW_NS_PER_MS)
#define PLAIN_TURNS 16

struct hw_redis {
	struct sim *s;
	const struct hw_redis_ops *ops;
	void *arg;
	bool up;
	bool was_up;                     /* it was up, or the wiring knows that the store is unreachable */
	hw_redis_nodes_seen *nodes_seen; /* the callback that waits for its answer; NULL: none waits */
	bool asked;                      /* the load was requested */
	uint32_t load_at;
	int64_t seen_ms;
	int ttl_factor;
	bool keyless; /* the refresh that is given follows a plain one that found no key */
	uint8_t *
		turn; /* owned, for each device. 0: the next refresh is full; otherwise it counts the plain refreshes */
	bool *waiting;     /* owned, for each device: its refresh waits for others */
	int64_t gather_at; /* when the waiting refreshes are sent; 0: none waits */
	struct hw_mono down_since;
	uint64_t published; /* P as it was written last; 0: not in this run */
	struct hw_redis_stats stats;
};

static struct hw_device *device_of(const struct sim *s, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(s->host.m), ref);
}

static void give(struct sim *s, struct hw_ref ref, enum sim_order_kind kind)
{
	const struct hw_device *d = device_of(s, ref);
	struct hw_redis *r = s->host.redis;
	struct sim_order o = {
		.kind = kind, .device = sim_host_number(d), .ref = ref, .record = sim_store_picture(s, d)};
	o.ttl_ns = hw_ttl_ms(hw_monitor_timeout_ms(s->host.m, d), r->ttl_factor) * HW_NS_PER_MS;
	o.instead = kind == SIM_REFRESH && r->keyless;
	bool refreshes = kind == SIM_REFRESH || kind == SIM_PLAIN;
	r->turn[o.device] = refreshes && o.record.own_timeout_ms == 0 ? r->turn[o.device] % PLAIN_TURNS + 1 : 0;
	sim_store_give(s, o);
}

/* --- what is given ----------------------------------------------------------- */

/* A transition that the core did not make is a state that is written once more, with a greater seq. */
bool hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t)
{
	const struct hw_transition *shown = &r->s->host.shown;
	bool of_core = shown->device.index == t->device.index && shown->seq == t->seq;
	(void)now;
	give(r->s, t->device, of_core ? SIM_EDGE : SIM_REWRITE);
	return true;
}

void hw_redis_refresh(struct hw_redis *r, struct hw_ref device)
{
	struct sim *s = r->s;
	const struct hw_device *d = device_of(s, device);
	if (!r->up || !d)
		return;
	if (r->turn[sim_host_number(d)] == 0 || hw_device_own_timeout_ms(d) != 0) {
		give(s, device, SIM_REFRESH);
		return;
	}
	r->waiting[sim_host_number(d)] = true;
	if (!r->gather_at) {
		r->gather_at = s->now + GATHER_NS;
		sim_at(s, r->gather_at, SIM_REDIS, 0, 0, 0);
	}
}

/* Gives the refreshes that have waited long enough. */
static void give_gathered(struct sim *s, struct hw_redis *r)
{
	if (!r->gather_at || s->now < r->gather_at)
		return;
	r->gather_at = 0;
	for (uint32_t n = 0; n < s->plan.devices; n++) {
		const struct hw_device *d = r->waiting[n] ? sim_host_device(s, n) : NULL;
		r->waiting[n] = false;
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL || hw_device_state(d) == HW_STATE_FORGOTTEN)
			continue;
		bool plain = hw_device_state(d) == HW_STATE_ONLINE && r->turn[n] % PLAIN_TURNS != 0;
		give(s,
		     hw_registry_ref(hw_monitor_registry(s->host.m),
		                     (uint32_t)(d - hw_registry_base(hw_monitor_registry(s->host.m)))),
		     plain ? SIM_PLAIN : SIM_REFRESH);
	}
}

void sim_redis_without_key(struct sim *s, struct hw_ref ref)
{
	struct hw_redis *r = s->host.redis;
	const struct hw_device *d = device_of(s, ref);
	if (s->lie == SIM_KEYLESS || !d || hw_device_state(d) == HW_STATE_PROVISIONAL)
		return;
	r->keyless = true;
	give(s, ref, SIM_REFRESH);
	r->keyless = false;
}

void hw_redis_cleared(struct hw_redis *r, const char *id, size_t id_len)
{
	(void)r, (void)id, (void)id_len;
}

void hw_redis_write_published(struct hw_redis *r, unsigned partition, uint64_t p)
{
	(void)partition;
	r->published = p;
	sim_store_give(r->s, (struct sim_order){.kind = SIM_PUBLISHED, .published = p});
}

bool hw_redis_published_idle(const struct hw_redis *r)
{
	(void)r;
	return true;
}

/* The load does it. */
int hw_redis_read_published(struct hw_redis *r)
{
	(void)r;
	return -ENOTCONN;
}

/* Checks, each second, whether the sight record is missing although it must exist. */
void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	struct sim *s = r->s;
	if (!blind && !s->host.load_wanted)
		r->seen_ms = now.wall_ms;
	if (!r->up)
		return;
	if (s->host.store_lost && !s->host.load_wanted) {
		s->host.store_lost = false;
		sim_redis_reconcile(s);
		if (r->published)
			hw_redis_write_published(r, 0, r->published);
		r->ops->on_emptied(r->arg);
	}
	if (r->seen_ms)
		sim_store_give(s, (struct sim_order){.kind = SIM_MARK, .mark_ms = r->seen_ms});
}

/* --- what is answered -------------------------------------------------------- */

void sim_redis_confirmed(struct sim *s, struct hw_ref ref, uint64_t seq)
{
	sim_host_turn_begins(s);
	s->host.redis->ops->on_confirmed(s->host.redis->arg, ref, seq);
}

void sim_redis_newer(struct sim *s, struct hw_ref ref, uint64_t stored_seq)
{
	sim_host_turn_begins(s);
	s->host.redis->ops->on_newer(s->host.redis->arg, ref, stored_seq);
}

void sim_redis_rewrite(struct sim *s, struct hw_ref ref)
{
	const struct hw_device *d = device_of(s, ref);
	if (d && hw_device_state(d) != HW_STATE_PROVISIONAL)
		give(s, ref, SIM_REWRITE);
}

void sim_redis_reconcile(struct sim *s)
{
	if (!s->host.m || s->host.load_wanted)
		return;
	const struct hw_registry *r = hw_monitor_registry(s->host.m);
	for (uint32_t i = 0; i < hw_registry_bound(r); i++)
		if (hw_registry_at(r, i))
			sim_redis_rewrite(s, hw_registry_ref(r, i));
}

/* --- the link ---------------------------------------------------------------- */

static void connected(struct sim *s, struct hw_redis *r)
{
	r->up = r->was_up = true;
	r->down_since = (struct hw_mono){0};
	memset(r->turn, 0, s->plan.devices);
	s->store.disturbed_at = s->now;
	if (!s->host.mark_found_ms && s->host.load_wanted && r->load_at == 0)
		s->host.mark_found_ms = s->store.mark_ms;
	if (r->published) /* src/redis/sink.c sends P before the transitions that wait */
		s->store.published = r->published;
	sim_host_turn_begins(s);
	r->ops->on_link(r->arg, true, "connected");
	sim_redis_reconcile(s);
}

static void lost(struct sim *s, struct hw_redis *r)
{
	r->up = s->host.cut = false;
	r->was_up = true;
	r->down_since = sim_host_now(s).mono;
	sim_host_turn_begins(s);
	r->ops->on_link(r->arg, false, "the store is away");
}

static void answer_nodes(struct hw_redis *r)
{
	hw_redis_nodes_seen *fn = r->nodes_seen;
	r->nodes_seen = NULL;
	fn(r->arg, false, 0);
}

void sim_redis_look(struct sim *s)
{
	struct hw_redis *r = s->host.redis;
	if (sim_host_is_awake(s) && (s->host.cut || (!r->up && !r->was_up && s->store.away)))
		lost(s, r);
	if (sim_host_is_awake(s) && !r->up && !s->store.away)
		connected(s, r);
	if (sim_host_is_awake(s) && r->up && r->nodes_seen)
		answer_nodes(r);
	if (sim_host_is_awake(s) && r->up)
		give_gathered(s, r);
	sim_store_on_due(s);
}

/* Answers once that there are no nodes. */
int hw_redis_read_nodes(struct hw_redis *r, hw_redis_nodes_seen *fn)
{
	if (!r->up)
		return -ENOTCONN;
	if (!r->asked)
		r->nodes_seen = fn;
	sim_at(r->s, r->s->now, SIM_REDIS, 0, 0, 0);
	return 0;
}

bool hw_redis_enter(struct hw_redis *r, hw_redis_monitors_seen *fn)
{
	(void)r, (void)fn;
	return false;
}

bool hw_redis_read_monitors(struct hw_redis *r, hw_redis_monitors_seen *fn)
{
	(void)r, (void)fn;
	return false;
}

bool hw_redis_may_be_replaced(const struct hw_redis *r)
{
	(void)r;
	return false;
}

void hw_redis_withhold(struct hw_redis *r, bool withheld)
{
	(void)r, (void)withheld;
}

bool hw_redis_leave(struct hw_redis *r)
{
	(void)r;
	return true;
}

/* --- the load ---------------------------------------------------------------- */

static void load_one(struct sim *s, struct hw_redis *r, uint32_t n)
{
	static const char *const names[] = {"default", "slow"};
	const struct sim_record *x = &s->store.record[n];
	char id[16];
	if (!x->known) {
		sim_oracle_unknown(s, n);
		return;
	}
	int len = snprintf(id, sizeof(id), "d%u", n);
	int64_t down_ms = s->host.started_wall_ms - s->host.mark_found_ms;
	struct hw_stored d = {.id = id,
	                      .id_len = (size_t)len,
	                      .state = x->state,
	                      .reason = x->reason,
	                      .since_ms = x->since_ms,
	                      .last_seen_ms = x->last_seen_ms,
	                      .own_timeout_ms = x->own_timeout_ms,
	                      .down_ms = s->host.mark_found_ms && down_ms > 0 ? down_ms : 0,
	                      .group = names[x->group],
	                      .gaps = *x->gaps ? x->gaps : NULL,
	                      .seq = x->seq,
	                      .once = x->once};
	sim_oracle_loaded(s, n, x);
	r->ops->on_device(r->arg, &d);
	if (!sim_host_device(s, n))
		sim_breach(s, "d%u could not be loaded", n);
}

static void load_published(struct hw_redis *r)
{
	uint64_t p[HW_PARTITIONS];
	for (unsigned k = 0; k < HW_PARTITIONS; k++)
		p[k] = r->s->store.published;
	r->ops->on_published(r->arg, p);
}

void sim_redis_on_load(struct sim *s, uint32_t run)
{
	struct hw_redis *r = s->host.redis;
	if (!s->host.m || run != s->host.run || !s->host.load_wanted)
		return;
	if (!sim_host_is_awake(s) || !r->up) {
		sim_at(s, s->now + HW_NS_PER_S / 2, SIM_LOAD, 0, run, 0);
		return;
	}
	sim_host_turn_begins(s);
	for (int k = 0; k < LOAD_CHUNK && r->load_at < s->plan.devices; k++)
		load_one(s, r, r->load_at++);
	if (r->load_at < s->plan.devices) {
		sim_at(s, s->now + s->plan.load_pace_ns, SIM_LOAD, 0, run, 0);
		return;
	}
	load_published(r);
	s->host.load_wanted = false;
	r->ops->on_loaded(r->arg, s->plan.devices, 0, "", true);
	sim_redis_reconcile(s);
}

void hw_redis_load(struct hw_redis *r)
{
	if (r->asked)
		return;
	r->asked = true;
	sim_at(r->s, r->s->now, SIM_LOAD, 0, r->s->host.run, 0);
}

void hw_redis_load_late(struct hw_redis *r)
{
	hw_redis_load(r);
}

/* --- the object -------------------------------------------------------------- */

struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg)
{
	struct sim *s = sim_running;
	struct hw_redis *r = s->host.redis = sim_calloc(1, sizeof(*r));
	(void)base, (void)m;
	*r = (struct hw_redis){.s = s, .ops = ops, .arg = arg, .down_since = sim_host_now(s).mono};
	r->ttl_factor = conf->ttl_factor;
	r->turn = sim_calloc(s->plan.devices, sizeof(*r->turn));
	r->waiting = sim_calloc(s->plan.devices, sizeof(*r->waiting));
	s->store.disturbed_at = s->now;
	sim_at(s, s->now + sim_below(&s->random, HW_NS_PER_S / 10), SIM_REDIS, 0, 0, 0);
	return r;
}

void hw_redis_free(struct hw_redis *r)
{
	r->s->host.redis = NULL;
	free(r->turn);
	free(r->waiting);
	free(r);
}

bool hw_redis_up(const struct hw_redis *r)
{
	return r->up;
}

struct hw_mono hw_redis_down_since(const struct hw_redis *r)
{
	return r->down_since;
}

/* Returns how much room the sink has. The room limits how many devices are judged in a turn, and some seeds have
 * little room. */
const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r)
{
	struct hw_redis *own = r->s->host.redis;
	own->stats.waiting = own->stats.waiting_ends = r->s->store.edges;
	own->stats.done = r->s->store.edges_done;
	own->stats.room = r->s->plan.budget;
	own->stats.oldest_transition_ms = sim_store_oldest_ms(r->s);
	return &own->stats;
}

int64_t hw_redis_old_seen_ms(const struct hw_redis *r)
{
	return r->s->host.mark_found_ms;
}

/* --- of a cluster, which this world does not have ---------------------------- */

void hw_redis_compare(struct hw_redis *r)
{
	(void)r;
}

bool hw_redis_is_comparing(const struct hw_redis *r)
{
	(void)r;
	return false;
}

bool hw_redis_has_sight_record(const struct hw_redis *r)
{
	(void)r;
	return true;
}

bool hw_redis_doubts(struct hw_redis *r)
{
	(void)r;
	return false;
}

int hw_redis_fence(struct hw_redis *r, hw_redis_fenced *fn, void *arg)
{
	(void)r, (void)fn, (void)arg;
	return -ENOTCONN;
}

const char *hw_redis_server(const struct hw_redis *r)
{
	(void)r;
	return "";
}

int hw_redis_read_device(struct hw_redis *r, const char *id, size_t id_len, bool again)
{
	(void)r, (void)id, (void)id_len, (void)again;
	return -ENOTCONN;
}

bool hw_redis_is_reading_again(const struct hw_redis *r)
{
	(void)r;
	return false;
}
