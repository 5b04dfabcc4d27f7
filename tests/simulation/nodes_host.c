/* SPDX-License-Identifier: MIT */
/*
 * A process of a host: the daemon's context (hw_app_new() to hw_app_free()), and a loop that replaces libevent and
 * src/run. The loop runs in steps of the world's time. What the process sends leaves the host at the end of its step.
 * If the process is stopped between a check and the write that follows, what it sends leaves the host when the process
 * resumes. This file also implements the lies (enum nw_lie) that no part below the wiring can tell.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <sys/random.h>

#include "absent.h"
#include "core/monitor_priv.h" /* for lies */
#include "daemon/app.h"
#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/retained_priv.h"
#include "nodes/nodes_priv.h" /* for lies */
#include "nodes_world.h"

#define TURNS_A_STEP 6

struct nw_host *nw_running;

/* --- clocks ------------------------------------------------------------------------------------------------------ */

struct hw_now nw_host_now(const struct nw_world *w, const struct nw_host *h)
{
	int64_t t = w->t - h->slept;
	return (struct hw_now){.mono = {h->mono_off + t + (int64_t)((double)t * h->drift)},
	                       .wall_ms = NW_WALL_MS + (w->t + h->wall_off) / HW_NS_PER_MS};
}

struct hw_now hw_app_now(void)
{
	return nw_host_now(nw_running->w, nw_running);
}

int64_t hw_app_booted_ns(void)
{
	return hw_app_now().mono.ns + nw_running->slept;
}

ssize_t getrandom(void *buf, size_t size, unsigned flags)
{
	unsigned char *to = buf;
	(void)flags;
	for (size_t i = 0; i < size; i++)
		to[i] = (unsigned char)(nw_running ? sim_draw(&nw_running->w->random) : i + 1);
	return (ssize_t)size;
}

bool nw_host_acts(const struct nw_world *w, const struct nw_host *h)
{
	return h->app && h->paused_until <= w->t;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

struct event {
	struct nw_host *h;
	struct event *next;
	evutil_socket_t fd;
	event_callback_fn fn;
	void *arg;
	bool added, active;
	int64_t at; /* of the host's monotonic clock; INT64_MAX: no timer */
};

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn fn, void *arg)
{
	struct event *e = nw_alloc(sizeof(*e));
	(void)what;
	*e = (struct event){.h = base->h, .next = base->h->events, .fd = fd, .fn = fn, .arg = arg, .at = INT64_MAX};
	base->h->events = e;
	return e;
}

int event_add(struct event *e, const struct timeval *tv)
{
	e->added = true;
	if (tv)
		e->at = nw_host_now(e->h->w, e->h).mono.ns + tv->tv_sec * HW_NS_PER_S + tv->tv_usec * 1000;
	return 0;
}

int event_del(struct event *e)
{
	e->added = e->active = false;
	e->at = INT64_MAX;
	return 0;
}

void event_active(struct event *e, int what, short n)
{
	(void)what, (void)n;
	e->active = true;
}

void event_free(struct event *e)
{
	struct event **at = &e->h->events;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

/* --- the loop ---------------------------------------------------------------------------------------------------- */

int hw_loop_init(struct hw_loop *l, const struct hw_loop_ops *ops, void *arg)
{
	*l = (struct hw_loop){.base = &nw_running->base, .ops = ops, .arg = arg};
	nw_running->base.h = nw_running;
	nw_running->loop = l;
	return 0;
}

int hw_loop_start(struct hw_loop *l)
{
	l->base->h->tick_ms = 1000;
	l->base->h->tick_at = hw_app_now().mono.ns;
	return 0;
}

int hw_loop_run(struct hw_loop *l)
{
	(void)l;
	return 0;
}

void hw_loop_stop(struct hw_loop *l)
{
	l->base->h->stopped_loop = true;
}

void hw_loop_tick_every(struct hw_loop *l, unsigned ms)
{
	l->base->h->tick_ms = ms;
	l->base->h->tick_at = hw_app_now().mono.ns + ms * HW_NS_PER_MS;
}

void hw_loop_fini(struct hw_loop *l)
{
	(void)l;
}

static bool is_due(const struct nw_host *h, const struct event *e, int64_t now)
{
	return e->active || now >= e->at || (e->added && e->fd >= 0 && nw_mqtt_readable(h, e->fd));
}

/* Returns the first event from `e` on that is due. The caller must not keep the event, because a callback may free
 * events. */
static struct event *next_due(const struct nw_host *h, struct event *e, int64_t now)
{
	while (e && !is_due(h, e, now))
		e = e->next;
	return e;
}

static bool has_work(const struct nw_host *h, int64_t now)
{
	return now >= h->tick_at || next_due(h, h->events, now);
}

#define AT_ONCE 32

/* Runs one turn of the loop: collects the events that are due, and calls them in random order. */
static void turn(struct nw_world *w, struct nw_host *h)
{
	int64_t now = hw_app_now().mono.ns;
	struct event *due[AT_ONCE];
	size_t n = 0;
	h->loop->ops->on_turn(h->loop->arg);
	for (struct event *e = next_due(h, h->events, now); e && n < AT_ONCE; e = next_due(h, e->next, now))
		due[n++] = e;
	for (size_t k = n; k > 1; k--) {
		size_t j = (size_t)sim_below(&w->random, (int64_t)k);
		struct event *e = due[j];
		due[j] = due[k - 1];
		due[k - 1] = e;
	}
	if (now >= h->tick_at) {
		h->tick_at = now + h->tick_ms * HW_NS_PER_MS;
		h->loop->ops->on_tick(h->loop->arg);
	}
	for (size_t k = 0; k < n; k++) {
		struct event *e = h->events;
		while (e && e != due[k])
			e = e->next;
		if (!e || !is_due(h, e, now))
			continue;
		short what = e->fd >= 0 && !e->active && now < e->at ? EV_READ : EV_TIMEOUT;
		e->active = false;
		e->at = INT64_MAX;
		e->fn(e->fd, what, e->arg);
	}
	w->count.turns++;
}

/* --- lies -------------------------------------------------------------------------------------------------------- */

static void settle_at_once(struct nw_host *h)
{
	struct hw_partitions *drained = &h->app->cluster->gate.drained;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partitions_has(drained, p))
			hw_nodes_flushed(h->app->cluster->nodes, hw_app_now(), p, true);
	*drained = (struct hw_partitions){{0}};
}

static void decide_all(struct nw_host *h)
{
	for (unsigned p = 0; p < HW_PARTITIONS && !h->app->life.loading; p++)
		hw_monitor_role(h->app->monitor, p, HW_ROLE_AUTHORITATIVE,
		                hw_nodes_fencing_token(h->app->cluster->nodes, p).epoch);
}

static void hear_all(struct nw_host *h)
{
	struct hw_monitor *m = h->app->monitor;
	for (size_t g = 0; g < m->groups.n; g++)
		m->groups.all[g]->unheard = false;
	for (uint32_t i = 0; i < hw_registry_bound(m->registry); i++)
		if (hw_registry_at(m->registry, i))
			hw_registry_at(m->registry, i)->form = HW_FORM_OURS;
}

static void lie(struct nw_world *w, struct nw_host *h)
{
	struct hw_app *a = h->app;
	if (w->lie == NW_LIE_FLUSHED)
		settle_at_once(h);
	else if (w->lie == NW_LIE_GATE)
		decide_all(h);
	else if (w->lie == NW_LIE_FENCE)
		a->retained->status.may_go = NULL;
	else if (w->lie == NW_LIE_SWEEP)
		a->monitor->gate.sweep.active = false;
	else if (w->lie == NW_LIE_REREAD)
		a->cluster->stream.keeping = true; /* nor is anything forgotten for that */
	else if (w->lie == NW_LIE_RELINK)
		a->cluster->stream.server = false;
	else if (w->lie == NW_LIE_PROOFS)
		a->monitor->family.lacks_until_ns = 0;
	else if (w->lie == NW_LIE_FORM)
		hear_all(h);
	else if (w->lie == NW_LIE_CONFIRM && hw_app_publisher_is_up(a))
		a->cluster->nodes->fence.confirmed = true;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Configures the group of the children. It differs from the first group only in its filters and its parent. */
static void configure_children(const struct nw_plan *p, struct nw_host *h)
{
	static char beats[] = "below/{gw}/{id}/heartbeat", goodbyes[] = "below/{gw}/{id}/status", name[] = "below",
		    other[] = "beyond/{gw}/{id}/heartbeat", others[] = "beyond/{gw}/{id}/status", parent[] = "{gw}",
		    *parents[] = {parent};
	bool lacks = h->is_deaf && p->differs == NW_OTHER_CHILDREN;
	h->below[0] = lacks ? other : beats;
	h->below[1] = lacks ? others : goodbyes;
	h->groups[1] = h->groups[0];
	h->groups[1].name = name;
	h->groups[1].heartbeat = h->below;
	h->groups[1].parents = parents;
	h->groups[1].n_parents = 1;
	h->groups[1].parent_death = p->family == NW_TAKES ? HW_PARENT_TAKE : HW_PARENT_NOTE;
	h->groups[1].child_proves = p->family == NW_PROVES;
}

static void configure(struct nw_world *w, struct nw_host *h)
{
	static char beats[] = "nodes/{id}/heartbeat", status[] = "nodes/{id}/status", dflt[] = "default",
		    other[] = "others", other_beats[] = "others/{id}/heartbeat", other_status[] = "others/{id}/status";
	const struct nw_plan *p = &w->plan;
	int64_t more_ms = p->other_timeouts ? h->index * 700 : 0;
	h->filters[0] = beats;
	h->filters[1] = status;
	h->ignored = other_beats;
	h->is_deaf = p->differs && h->index == p->hosts - 1;
	if (h->is_deaf && p->differs != NW_OTHER_CHILDREN) {
		h->filters[0] = other_beats;
		h->filters[1] = other_status;
	}
	h->groups[0] = absent_group(h->is_deaf && p->differs == NW_OTHER_NAMES ? other : dflt, status);
	h->groups[0].heartbeat = h->filters;
	h->groups[0].n_heartbeat = 2;
	h->groups[0].ignore = &h->ignored;
	h->groups[0].n_ignore = h->has_changed;
	h->groups[0].timeout_ms = p->timeout_ms + more_ms;
	h->groups[0].timeout_max_ms = 86400000;
	h->groups[0].online_after = p->online_after;
	configure_children(p, h);
	h->settings = absent_settings();
	h->settings.node_id = (char *)nw_names[h->name];
	h->settings.max_devices = 1000;
	h->settings.cluster_mode = HW_CLUSTER_MIRROR;
	h->settings.cluster_lease_ms = p->lease_ms;
	h->settings.groups = h->groups;
	h->settings.n_groups = p->family ? 2 : 1;
	h->settings.mqtt.protocol = 5;
	h->settings.mqtt.keepalive_ms = p->keepalive_ms;
	h->settings.mqtt.barrier_slow_ms = 250;
	h->settings.mqtt.barrier_timeout_ms = 2000;
	h->settings.mqtt.reconnect_grace_ms = p->grace_ms;
}

static void start(struct nw_world *w, struct nw_host *h)
{
	nw_trace(w, "%s: starts", nw_names[h->name]);
	configure(w, h);
	h->stopped_loop = h->stopping = h->froze = false;
	h->starts++;
	h->looped = h->started = w->t;
	memset(h->heard, 0, sizeof(h->heard));
	memset(h->knew, 0, sizeof(h->knew));
	memset(h->in_a_row, 0, sizeof(h->in_a_row));
	memset(h->heard_sight, 0, sizeof(h->heard_sight));
	memset(h->heard_seen, 0, sizeof(h->heard_seen));
	memset(h->missed, 0, sizeof(h->missed));
	memset(h->bye, 0, sizeof(h->bye));
	memset(h->false_bye, 0, sizeof(h->false_bye));
	h->sight = h->unasked = 0;
	h->mute_since = w->t;
	nw_links_begin(w, h);
	h->app = hw_app_new(NULL, &h->settings);
	if (!h->app || hw_app_start(h->app))
		nw_alloc(SIZE_MAX);
	h->run = h->app->life.run_id;
	hw_app_run(h->app);
}

/* Ends the process. What the process has sent still arrives, and its connections are closed after that. */
void nw_host_end(struct nw_world *w, struct nw_host *h)
{
	static const struct hw_partitions all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	if (!h->app)
		return;
	nw_trace(w, "%s: is gone", nw_names[h->name]);
	for (int k = 0; k < NW_WIRES; k++)
		nw_wire_clear(&h->sent[k]);
	nw_mqtt_drop(w, h, NW_C_SESSION);
	nw_mqtt_drop(w, h, NW_C_READER);
	nw_mqtt_drop(w, h, NW_C_BARRIERS);
	nw_oracle_forgets(w, h, &all);
	nw_running = h;
	hw_app_free(h->app);
	nw_running = NULL;
	h->app = NULL;
	h->loop = NULL;
	nw_wire_clear(&h->wire[NW_READ]);
	nw_wire_clear(&h->wire[NW_FROM_BROKER]);
	nw_wire_clear(&h->wire[NW_FROM_BARRIERS]);
	nw_wire_clear(&h->wire[NW_FROM_EVICT]);
	for (int k = 0; k < NW_LINKS; k++)
		nw_wire_clear(&h->wire[NW_FROM_REDIS + k]);
}

void nw_host_stop(struct nw_world *w, struct nw_host *h)
{
	nw_trace(w, "%s: stops", nw_names[h->name]);
	h->stopping = true;
	h->stop_by = w->t + 15 * HW_NS_PER_S;
	nw_running = h;
	h->loop->ops->on_stop(h->loop->arg, 15);
	nw_running = NULL;
}

void nw_host_pause(struct nw_world *w, struct nw_host *h, int64_t until, bool suspends)
{
	nw_trace(w, "%s: %s for %.2f s", nw_names[h->name], suspends ? "sleeps" : "stands",
	         (double)(until - w->t) / 1e9);
	if (h->paused_until <= w->t)
		h->paused_at = w->t;
	h->paused_until = until;
	h->suspends |= suspends;
}

/* --- a step ------------------------------------------------------------------------------------------------------ */

void nw_put(struct nw_host *h, enum nw_wires wire, struct nw_msg msg)
{
	nw_wire_push(&h->sent[wire], msg);
}

static void flush(struct nw_world *w, struct nw_host *h)
{
	for (int k = 0; k < NW_WIRES; k++)
		while (h->sent[k].n)
			nw_send(w, h, (enum nw_wires)k, nw_wire_pop(&h->sent[k]));
}

/* Ends a pause. If the machine was suspended, all clocks but one stood still in the pause. Returns the time at which
 * the process should have continued. */
static int64_t end_pause(struct nw_world *w, struct nw_host *h)
{
	int64_t slept = h->suspends ? w->t - h->paused_at : 0;
	int64_t planned = nw_host_now(w, h).mono.ns - (w->t - h->paused_at);
	h->slept += slept;
	h->paused_at = 0;
	h->suspends = false;
	return planned;
}

/* Resumes the process. Its threads and its loop run in either order. */
static void wake(struct nw_world *w, struct nw_host *h)
{
	if (!h->paused_at)
		return;
	int64_t planned = end_pause(w, h);
	if (sim_chance(&w->random, 0.5))
		nw_mqtt_reader_step(w, h, planned);
}

static void look(struct nw_world *w, struct nw_host *h)
{
	int64_t now = hw_app_now().mono.ns;
	for (int i = 0; i < TURNS_A_STEP && !h->stopped_loop && has_work(h, now); i++) {
		lie(w, h);
		turn(w, h);
		nw_sink_pump(h);
	}
}

static void freeze(struct nw_world *w, struct nw_host *h)
{
	double rate = w->plan.rate[NW_PAUSE] / 3;
	if (w->trouble_end <= w->t || rate == 0 || !sim_chance(&w->random, rate * NW_STEP_NS / 1e9))
		return;
	int64_t until = w->t + sim_spread(&w->random, w->plan.lease_ms / 20, 3 * w->plan.lease_ms) * HW_NS_PER_MS;
	nw_host_pause(w, h, until, false);
	w->last_event = until > w->last_event ? until : w->last_event;
}

static void finish(struct nw_world *w, struct nw_host *h)
{
	if (h->stopped_loop || (h->stopping && w->t >= h->stop_by)) {
		flush(w, h);
		nw_host_end(w, h);
		h->starts_at = w->t + sim_between(&w->random, 100, 4000) * HW_NS_PER_MS;
		return;
	}
	freeze(w, h);
	if (h->paused_until <= w->t)
		flush(w, h);
}

void nw_host_step(struct nw_world *w, struct nw_host *h)
{
	if (!h->app && (w->t < h->starts_at || h->paused_until > w->t))
		return;
	if (!h->app && h->paused_at)
		end_pause(w, h); /* the process ended during the pause */
	nw_running = h;
	if (!h->app)
		start(w, h);
	if (nw_host_acts(w, h)) {
		flush(w, h); /* sends what the process had decided before it was stopped */
		wake(w, h);
		nw_mqtt_step(w, h);
		nw_links_step(w, h);
		look(w, h);
		finish(w, h);
	}
	nw_running = NULL;
}
