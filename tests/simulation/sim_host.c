/* SPDX-License-Identifier: MIT */
/* See sim_host.h. */
#include "sim_host.h"

#include <event2/event.h>
#include <string.h>
#include <sys/random.h>

#include "absent.h"
#include "daemon/app.h"
#include "daemon/broker/broker.h"
#include "daemon/config/specs.h"
#include "daemon/context.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/retained.h"
#include "daemon/visibility/visibility.h"
#include "sim.h"

#define STALL_NS      (500 * HW_NS_PER_MS)
#define TIMER_LATE_NS 50000
#define SPINS_MAX     200

/* --- clocks ------------------------------------------------------------------ */

struct hw_now sim_host_now(const struct sim *s)
{
	const struct sim_host *h = &s->host;
	int64_t asleep_ns = h->slept_ns + (h->asleep ? s->now - h->asleep_since : 0);
	return (struct hw_now){.mono = {SIM_BOOTED_NS + s->now - asleep_ns},
	                       .wall_ms = SIM_WALL_MS + s->now / HW_NS_PER_MS + h->wall_offset_ms};
}

struct hw_now hw_app_now(void)
{
	return sim_host_now(sim_running);
}

int64_t hw_app_booted_ns(void)
{
	return hw_app_now().mono.ns + sim_running->host.slept_ns;
}

ssize_t getrandom(void *buf, size_t size, unsigned flags)
{
	unsigned char *to = buf;
	(void)flags;
	for (size_t i = 0; i < size; i++)
		to[i] = (unsigned char)(i + 1);
	return (ssize_t)size;
}

bool absent_traces(void)
{
	return sim_running && sim_running->trace;
}

void absent_trace(const char *text)
{
	fprintf(sim_running->trace, "%14.6f  \"%s\"\n", (double)sim_running->now / 1e9, text);
}

/* --- devices ----------------------------------------------------------------- */

bool sim_host_is_behind(const struct sim *s)
{
	for (uint32_t r = 0; r < s->plan.readers; r++)
		if (s->host.left[r])
			return true;
	return false;
}

const struct hw_device *sim_host_device(const struct sim *s, uint32_t device)
{
	const struct hw_registry *r = hw_monitor_registry(s->host.m);
	char id[16];
	int len = snprintf(id, sizeof(id), "d%u", device);
	uint32_t i = hw_registry_find(r, id, (size_t)len);
	return i == HW_NIL ? NULL : hw_registry_at(r, i);
}

uint32_t sim_host_number(const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	uint32_t n = 0;
	for (size_t k = 1; k < id.len; k++)
		n = n * 10 + (uint32_t)(id.text[k] - '0');
	return n;
}

/* --- events: a descriptor is the number of a connection ---------------------- */

struct event_base {
	int none;
};

struct event {
	uint32_t at; /* in sim_host.event */
	evutil_socket_t fd;
	event_callback_fn fn;
	void *arg;
	bool planned;
	uint32_t stamp;
};

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn fn, void *arg)
{
	struct sim_host *h = &sim_running->host;
	struct event *e = sim_calloc(1, sizeof(*e));
	(void)base, (void)what;
	*e = (struct event){.fd = fd, .fn = fn, .arg = arg};
	while (h->event[e->at])
		e->at++;
	return h->event[e->at] = e;
}

static void plan_timer(struct event *e, int64_t wait_ns)
{
	e->planned = true;
	e->stamp = ++sim_running->host.event_stamp;
	sim_at(sim_running, sim_running->now + wait_ns, SIM_DUE, e->at, e->stamp, 0);
}

int event_add(struct event *e, const struct timeval *tv)
{
	struct sim_host *h = &sim_running->host;
	if (!tv)
		return 0;
	int64_t wait_ns = tv->tv_sec * HW_NS_PER_S + tv->tv_usec * 1000;
	if (wait_ns == 0 && ++h->spins > SPINS_MAX)
		sim_breach(sim_running, "asks to be woken at once, again and again, and does nothing");
	h->timer_ns = wait_ns;
	plan_timer(e, wait_ns + TIMER_LATE_NS);
	return 0;
}

int event_del(struct event *e)
{
	e->planned = false;
	e->stamp = 0;
	return 0;
}

void event_active(struct event *e, int what, short n)
{
	(void)what, (void)n;
	plan_timer(e, 0);
}

void event_free(struct event *e)
{
	sim_running->host.event[e->at] = NULL;
	free(e);
}

static void call(struct sim *s, struct event *e, short what)
{
	sim_host_turn_begins(s);
	e->fn(e->fd, what, e->arg);
}

/* --- the loop ---------------------------------------------------------------- */

int hw_loop_init(struct hw_loop *l, const struct hw_loop_ops *ops, void *arg)
{
	static struct event_base base;
	*l = (struct hw_loop){.base = &base, .ops = ops, .arg = arg};
	sim_running->host.loop = l;
	return 0;
}

int hw_loop_start(struct hw_loop *l)
{
	(void)l;
	sim_at(sim_running, sim_running->now, SIM_TICK, 0, ++sim_running->host.tick_stamp, 0);
	return 0;
}

int hw_loop_run(struct hw_loop *l)
{
	(void)l;
	return 0;
}

void hw_loop_stop(struct hw_loop *l)
{
	(void)l;
	sim_breach(sim_running, "the daemon ends by itself");
}

void hw_loop_tick_every(struct hw_loop *l, unsigned ms)
{
	(void)l, (void)ms;
}

void hw_loop_fini(struct hw_loop *l)
{
	(void)l;
}

bool sim_host_is_awake(const struct sim *s)
{
	return s->host.m && !s->host.stopped && !s->host.asleep;
}

void sim_host_turn_begins(struct sim *s)
{
	s->host.loop->ops->on_turn(s->host.loop->arg);
}

void sim_host_on_due(struct sim *s, uint32_t at, uint32_t stamp)
{
	struct event *e = s->host.event[at];
	if (!sim_host_is_awake(s) || !e || e->stamp != stamp)
		return;
	e->planned = false;
	call(s, e, EV_TIMEOUT);
}

/* In a run of years, a tick is longer, and the connection of the barriers is closed most of the time. */
void sim_host_on_tick(struct sim *s, uint32_t stamp)
{
	struct sim_host *h = &s->host;
	if (!sim_host_is_awake(s) || stamp != h->tick_stamp)
		return;
	h->to_blind = s->lie == SIM_BLINDED && s->now > s->plan.trouble_ns / 2;
	sim_host_turn_begins(s);
	h->loop->ops->on_tick(h->loop->arg);
	if (s->plan.sparse && sim_chance(&s->random, 0.9) && s->now < sim_length(s) - 4 * s->plan.tick_ns)
		sim_mqtt_rest(s);
	sim_at(s, s->now + s->plan.tick_ns, SIM_TICK, 0, ++h->tick_stamp, 0);
}

void sim_host_on_pipe(struct sim *s, uint32_t k)
{
	if (!sim_host_is_awake(s) || !sim_mqtt_is_readable(s, k))
		return;
	for (int at = 0; at < SIM_EVENTS_MAX; at++)
		if (s->host.event[at] && s->host.event[at]->fd == (evutil_socket_t)k) {
			call(s, s->host.event[at], EV_READ);
			return;
		}
}

void sim_host_on_republish(struct sim *s)
{
	if (!sim_host_is_awake(s))
		return;
	hw_app_republish(s->host.app, hw_app_woke(s->host.app));
	hw_app_turn(s->host.app);
}

bool sim_host_stop_reader(struct sim *s, uint32_t r)
{
	if (!s->host.m || s->host.reader_stopped[r] >= 0)
		return false;
	s->host.reader_stopped[r] = sim_oracle_mono(s);
	return true;
}

/* The reader reports since when it stood still, and its pipe is read until it is empty. */
void sim_host_go_on_reader(struct sim *s, uint32_t r)
{
	int64_t since = s->host.reader_stopped[r];
	s->host.reader_stopped[r] = -1;
	if (since < 0)
		return;
	if (s->host.m && sim_oracle_mono(s) - since > STALL_NS)
		sim_mqtt_stalled(s, r, since);
	sim_host_on_pipe(s, r);
}

void sim_host_freeze(struct sim *s, bool suspended)
{
	struct sim_host *h = &s->host;
	if (suspended) {
		h->asleep = true;
		h->asleep_since = s->now;
	} else {
		h->stopped = true;
	}
}

static void call_timers(struct sim *s)
{
	for (int at = 0; at < SIM_EVENTS_MAX; at++)
		if (s->host.event[at] && s->host.event[at]->planned)
			sim_host_on_due(s, (uint32_t)at, s->host.event[at]->stamp);
}

/* The timer may be handled before the sockets, or after them. */
void sim_host_thaw(struct sim *s)
{
	struct sim_host *h = &s->host;
	if (h->asleep)
		h->slept_ns += s->now - h->asleep_since;
	h->asleep = h->stopped = false;
	s->store.disturbed_at = s->now;
	if (!h->m)
		return;
	if (sim_chance(&s->random, 0.5))
		call_timers(s);
	for (uint32_t k = 0; k < s->plan.readers + 2; k++)
		sim_host_on_pipe(s, k);
	call_timers(s);
	sim_redis_look(s);
	/* A timer of the monotonic clock continues where it was. */
	sim_at(s, s->now + sim_below(&s->random, HW_NS_PER_S < s->plan.tick_ns ? HW_NS_PER_S : s->plan.tick_ns),
	       SIM_TICK, 0, ++h->tick_stamp, 0);
}

void sim_host_forget(struct sim *s, uint32_t n)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%u", n);
	if (!sim_host_is_awake(s))
		return;
	hw_monitor_forget(s->host.m, hw_app_woke(s->host.app), id, (size_t)len);
	hw_app_turn(s->host.app);
}

/* --- configuration, start and end -------------------------------------------- */

static void configure(struct sim *s)
{
	static char names[][8] = {"default", "slow"}, status[][20] = {"nodes/{id}/status", "slow/{id}/status"};
	struct sim_host *h = &s->host;
	struct hw_group_spec spec[SIM_GROUPS_MAX];
	const struct hw_monitor_conf *conf = &s->plan.conf;
	h->settings = absent_settings();
	h->settings.groups = h->group;
	h->settings.n_groups = sim_plan_groups(s, spec);
	for (size_t g = 0; g < h->settings.n_groups; g++) {
		h->group[g] = absent_group(names[g], status[g]);
		h->group[g].heartbeat = (char **)(uintptr_t)spec[g].heartbeat;
		h->group[g].n_heartbeat = spec[g].n_heartbeat;
		h->group[g].whiles = (char **)(uintptr_t)spec[g].whiles;
		h->group[g].n_whiles = spec[g].n_whiles;
		h->group[g].batch = spec[g].batch;
		h->group[g].timeout_ms = spec[g].timeout_ms;
		h->group[g].timeout_max_ms = spec[g].timeout_max_ms;
		h->group[g].learn = spec[g].learn;
		h->group[g].timeout_min_ms = spec[g].timeout_min_ms;
		h->group[g].n_mistakes = spec[g].mistakes;
		h->group[g].mistakes_per_ms = spec[g].mistakes_per_ms;
		h->group[g].learn_gaps = spec[g].learn_gaps;
		h->group[g].goodbye_delay_ms = spec[g].goodbye_delay_ms;
		h->group[g].online_after = spec[g].online_after;
		h->group[g].parents = (char **)(uintptr_t)spec[g].parents;
		h->group[g].n_parents = spec[g].n_parents;
		h->group[g].child_proves = spec[g].child_proves;
		h->group[g].parent_death = spec[g].parent_death;
		h->group[g].canary = spec[g].canary;
	}
	h->settings.max_devices = conf->max_devices;
	h->settings.forget_after_ms = conf->forget_after_ms;
	h->settings.forget_once_after_ms = conf->forget_once_after_ms;
	h->settings.mqtt.protocol = 311;
	h->settings.mqtt.readers = conf->readers ? conf->readers : 1;
	h->settings.mqtt.reconnect_grace_ms = conf->grace_ms;
	h->settings.mqtt.barrier_slow_ms = conf->barrier_slow_ms;
	h->settings.mqtt.barrier_timeout_ms = conf->barrier_timeout_ms;
}

/* Applies the new configuration as src/daemon/config/reload.c does after reading it. */
void sim_host_reload(struct sim *s)
{
	struct hw_app *a = s->host.app;
	if (!sim_host_is_awake(s))
		return; /* the file is read at the start, or not at all */
	configure(s);
	struct hw_group_spec *specs = hw_app_group_specs(&s->host.settings);
	struct hw_monitor_conf conf = hw_app_monitor_conf(&s->host.settings, NULL);
	struct hw_now now = hw_app_woke(a);
	if (hw_monitor_reconfigure(a->monitor, now, &conf, specs, s->host.settings.n_groups))
		sim_breach(s, "a reload is refused");
	free(specs);
	hw_redis_reconfigured(a->redis);
	hw_app_upstream_ask(a);
	hw_app_log_blind(a, now);
	hw_app_subscribe(a, false);
	hw_app_turn(a);
}

void sim_host_init(struct sim *s)
{
	sim_running = s;
	s->host.published_at = sim_calloc(s->plan.devices, sizeof(*s->host.published_at));
}

static void end(struct sim *s)
{
	struct hw_app *a = s->host.app;
	s->host.app = NULL;
	s->host.m = NULL;
	hw_app_free(a);
}

void sim_host_fini(struct sim *s)
{
	end(s);
	free(s->host.published_at);
	for (uint32_t k = 0; k < SIM_READERS_MAX + 2; k++)
		sim_fifo_fini(&s->host.link[k].signs);
	sim_running = NULL;
}

void sim_host_on_start(struct sim *s)
{
	struct sim_host *h = &s->host;
	if (h->m)
		return;
	if (h->asleep) {
		sim_at(s, s->now + HW_NS_PER_S, SIM_START, 0, 0, 0);
		return;
	}
	configure(s);
	h->run++;
	h->store_lost = h->cut = h->to_blind = false;
	for (uint32_t r = 0; r < SIM_READERS_MAX; r++) {
		h->reader_stopped[r] = -1;
		h->left[r] = false;
		h->elements_taken[r] = 0;
	}
	h->to_forge = 0;
	h->slept_known_ns = 0;
	h->load_wanted = true;
	h->started_wall_ms = sim_host_now(s).wall_ms;
	h->mark_found_ms = 0;
	memset(h->published_at, 0, s->plan.devices * sizeof(*h->published_at));
	sim_mqtt_start(s);
	h->app = hw_app_new(NULL, &h->settings);
	h->m = h->app ? h->app->monitor : NULL;
	if (!h->m) {
		sim_breach(s, "no monitor");
		return;
	}
	sim_oracle_started(s);
	if (hw_app_start(h->app))
		sim_breach(s, "the daemon does not start");
	hw_app_run(h->app);
}

void sim_host_crash(struct sim *s)
{
	struct sim_host *h = &s->host;
	if (!h->m)
		return;
	sim_oracle_crashed(s);
	sim_store_crash(s);
	for (uint32_t k = 0; k < s->plan.readers + 2; k++) {
		sim_broker_leave(s, s->plan.devices + k);
		h->link[k].up = h->link[k].open = false;
		h->link[k].stamp++;
	}
	end(s);
	h->stopped = false;
}
