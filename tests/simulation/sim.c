/* SPDX-License-Identifier: MIT */
/* See sim.h. */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct sim *sim_running;

void sim_init(struct sim *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->random.state = seed;
	s->hash = UINT64_C(0xcbf29ce484222325);
	sim_plan_draw(s);
}

void sim_fini(struct sim *s)
{
	sim_host_fini(s);
	sim_store_fini(s);
	sim_fleet_fini(s);
	sim_broker_fini(s);
	sim_oracle_fini(s);
	sim_world_fini(s);
	sim_queue_fini(&s->queue);
}

static void hash(struct sim *s, uint64_t v)
{
	for (int k = 0; k < 64; k += 8)
		s->hash = (s->hash ^ (v >> k & 0xff)) * UINT64_C(0x100000001b3); /* FNV-1a */
}

void sim_note(const struct sim *s, const char *what, int64_t a, int64_t b)
{
	if (s->trace)
		fprintf(s->trace, "%14.6f  %-16s %" PRId64 " %" PRId64 "\n", (double)s->now / 1e9, what, a, b);
}

void sim_trace(struct sim *s, const char *what, int64_t a, int64_t b)
{
	hash(s, (uint64_t)s->now);
	for (const char *c = what; *c; c++)
		hash(s, (uint8_t)*c);
	hash(s, (uint64_t)a);
	hash(s, (uint64_t)b);
	sim_note(s, what, a, b);
}

void sim_breach(struct sim *s, const char *format, ...)
{
	s->over = true;
	if (s->breaches++ || !s->tell)
		return;
	va_list args;
	fprintf(s->tell, "seed %" PRIu64 ": %.6f s: ", s->seed, (double)s->now / 1e9);
	va_start(args, format);
	vfprintf(s->tell, format, args);
	va_end(args);
	fputc('\n', s->tell);
}

static void happen(struct sim *s, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_BEAT:
		sim_fleet_on_beat(s, ev->who, ev->stamp);
		break;
	case SIM_DIAL:
		sim_fleet_on_dial(s, ev->who, ev->stamp);
		break;
	case SIM_CLOSED:
		sim_fleet_on_closed(s, ev->who, ev->stamp);
		break;
	case SIM_LIFE:
		sim_fleet_on_life(s, ev->who, (enum sim_turn)ev->arg);
		break;
	case SIM_IN:
		sim_broker_on_in(s, ev->who, ev->stamp);
		break;
	case SIM_SERVE:
		sim_broker_on_serve(s, ev->stamp);
		break;
	case SIM_LAPSE:
		sim_broker_on_lapse(s, ev->who, ev->stamp);
		break;
	case SIM_PIPE:
		sim_host_on_pipe(s, ev->who);
		break;
	case SIM_DUE:
		sim_host_on_due(s, ev->who, ev->stamp);
		break;
	case SIM_TICK:
		sim_host_on_tick(s, ev->stamp);
		break;
	case SIM_HOST_DIAL:
		sim_mqtt_on_dial(s, ev->who, ev->stamp);
		break;
	case SIM_HOST_CLOSED:
		sim_mqtt_on_closed(s, ev->who, ev->stamp);
		break;
	case SIM_START:
		sim_host_on_start(s);
		break;
	case SIM_LOAD:
		sim_redis_on_load(s, ev->stamp);
		break;
	case SIM_REDIS:
		sim_redis_look(s);
		break;
	case SIM_STORE:
		sim_store_on_due(s);
		break;
	case SIM_TROUBLE:
		sim_trouble_begin(s, ev->who);
		break;
	case SIM_TROUBLE_OVER:
		sim_trouble_end(s, ev->who);
		break;
	case SIM_PAUSE:
		sim_broker_on_pause(s);
		break;
	case SIM_REPUBLISH:
		sim_host_on_republish(s);
		break;
	case SIM_END:
		s->over = true;
		sim_oracle_finish(s);
	}
}

/* Whether the monitor can notice this event of a device's connection. It can notice only that a new connection
 * replaces an old one, because the broker then publishes the old one's will. */
static bool concerns_monitor(enum sim_kind kind)
{
	return kind != SIM_BEAT && kind != SIM_CLOSED && kind != SIM_IN;
}

void sim_run(struct sim *s)
{
	struct sim_event ev;
	sim_oracle_init(s);
	sim_world_init(s);
	sim_broker_init(s);
	sim_fleet_init(s);
	sim_host_init(s);
	sim_store_init(s);
	sim_at(s, 0, SIM_START, 0, 0, 0);
	sim_plan_begin(s);
	while (!s->over && sim_queue_pop(&s->queue, &ev)) {
		if (ev.at > s->now) /* or a turn of the loop has taken longer than until then */
			s->now = ev.at;
		s->events++;
		happen(s, &ev);
		if (concerns_monitor(ev.kind))
			sim_world_look(s);
	}
	hash(s, s->events);
}
