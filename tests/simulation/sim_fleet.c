/* SPDX-License-Identifier: MIT */
/* See sim_fleet.h. */
#include "sim_fleet.h"

#include "sim.h"

#define BACKOFF_MIN_NS HW_NS_PER_S
#define TIGHT_NS       (40 * HW_NS_PER_MS)

static struct sim_device *at(struct sim *s, uint32_t i)
{
	return &s->fleet.device[i];
}

void sim_fleet_init(struct sim *s)
{
	const struct sim_plan *p = &s->plan;
	s->fleet.device = sim_calloc(p->devices, sizeof(*s->fleet.device));
	for (uint32_t i = 0; i < p->devices; i++) {
		struct sim_device *d = at(s, i);
		d->group = p->groups > 1 && sim_chance(&s->random, 0.4) ? 1 : 0;
		double beats = 1.2 + 4 * sim_unit(&s->random); /* a timeout */
		d->interval_ns = p->interval_ns ? p->interval_ns : (int64_t)((double)p->timeout_ns[d->group] / beats);
		if (p->tight)
			d->interval_ns = (int64_t)((double)(p->timeout_ns[d->group] - TIGHT_NS) / (1 + p->jitter)) -
			                 p->delay_max_ns;
		d->jitter = p->jitter;
		d->loss = sim_chance(&s->random, p->lossy_share) ? p->loss : 0;
		d->delay_ns = sim_spread(&s->random, HW_NS_PER_MS / 2, p->delay_max_ns);
		d->keepalive_ns = sim_between(&s->random, 10, 60) * HW_NS_PER_S;
		/* A bridge does not pass wills on. */
		d->will = sim_chance(&s->random, p->wills) && !p->bridge[d->group];
		if (sim_chance(&s->random, p->sleepers))
			d->nap_ns = p->timeout_ns[d->group] * sim_between(&s->random, 1, 8);
		d->nap_spare_ms = 500;
		d->traffic.kind = (enum sim_traffic_kind)(i % SIM_TRAFFIC_KINDS);
		d->gateway = i;
		d->powered = d->reachable = true;
		sim_at(s, sim_below(&s->random, d->interval_ns) + 1, SIM_LIFE, i, 0, SIM_RETURNS);
	}
	sim_gateway_place(s);
}

void sim_fleet_fini(struct sim *s)
{
	sim_gateway_fini(s);
	free(s->fleet.device);
}

/* --- heartbeats -------------------------------------------------------------- */

static int64_t delay(struct sim *s, const struct sim_device *d)
{
	return d->delay_ns + sim_below(&s->random, d->delay_ns);
}

static void send(struct sim *s, uint32_t i, int64_t timeout_ms)
{
	struct sim_device *d = at(s, i);
	d->beats++;
	if (sim_chance(&s->random, d->loss) || !d->reachable || !d->connected || s->broker.away[d->group])
		return;
	sim_broker_send(s, i, (struct sim_packet){.what = SIM_HEARTBEAT, .device = i, .timeout_ms = timeout_ms},
	                delay(s, d));
}

static void send_list(struct sim *s, uint32_t gateway, struct sim_packet list)
{
	struct sim_device *d = at(s, gateway);
	if (!sim_chance(&s->random, d->loss) && d->reachable && d->connected)
		sim_broker_send(s, gateway, list, delay(s, d));
}

/* A sleeper announces the longest time for which it will be silent, and withdraws it when it wakes. */
int64_t sim_fleet_says(struct sim *s, struct sim_device *d, int64_t *timeout_ms)
{
	*timeout_ms = -1;
	if (s->plan.learns)
		return sim_traffic_gap_ns(&d->traffic, &s->random);
	if (d->nap_ns == 0)
		return d->interval_ns;
	if (d->until_nap == 0) {
		d->until_nap = (uint32_t)sim_between(&s->random, 2, 6);
		*timeout_ms = 0;
	} else if (--d->until_nap == 0) {
		*timeout_ms = d->nap_ns / HW_NS_PER_MS + d->nap_ns / HW_NS_PER_MS / 8 + d->nap_spare_ms;
		return d->nap_ns;
	}
	return d->interval_ns;
}

static int64_t beat(struct sim *s, uint32_t i)
{
	struct sim_device *d = at(s, i);
	if (d->speaks) {
		send_list(s, i, sim_gateway_heard(s, i));
		return d->interval_ns;
	}
	int64_t timeout_ms, wait_ns = sim_fleet_says(s, d, &timeout_ms);
	send(s, i, timeout_ms);
	return wait_ns;
}

static void plan_beat(struct sim *s, uint32_t i, int64_t wait_ns)
{
	struct sim_device *d = at(s, i);
	double off = (2 * sim_unit(&s->random) - 1) * d->jitter;
	sim_at(s, s->now + wait_ns + (int64_t)((double)d->interval_ns * off), SIM_BEAT, i, d->life, 0);
}

void sim_fleet_on_beat(struct sim *s, uint32_t i, uint32_t life)
{
	struct sim_device *d = at(s, i);
	if (d->life != life || !d->beating)
		return;
	plan_beat(s, i, beat(s, i));
}

/* Sends a heartbeat at once. The next ones follow at the usual interval. */
static void beat_now(struct sim *s, uint32_t i)
{
	at(s, i)->life++;
	sim_fleet_on_beat(s, i, at(s, i)->life);
}

/* --- connections ------------------------------------------------------------- */

static void redial(struct sim *s, uint32_t i)
{
	struct sim_device *d = at(s, i);
	d->backoff_ns = d->backoff_ns == 0                           ? BACKOFF_MIN_NS
	                : 2 * d->backoff_ns < s->plan.backoff_max_ns ? 2 * d->backoff_ns
	                                                             : s->plan.backoff_max_ns;
	sim_at(s, s->now + d->backoff_ns / 2 + sim_below(&s->random, d->backoff_ns), SIM_DIAL, i, d->life, 0);
}

/* Sleepers say that they are awake. */
static void wake_all(struct sim *s, uint32_t i)
{
	at(s, i)->until_nap = 0;
	for (uint32_t k = 0; at(s, i)->speaks && k < s->plan.devices; k++)
		if (at(s, k)->gateway == i) {
			at(s, k)->until_nap = 0;
			at(s, k)->naps_until = 0;
		}
}

void sim_fleet_on_dial(struct sim *s, uint32_t i, uint32_t life)
{
	struct sim_device *d = at(s, i);
	if (d->life != life || !d->powered || !d->beating || d->connected)
		return;
	if (!d->reachable || !sim_broker_connect(s, i, d->keepalive_ns, d->will)) {
		redial(s, i);
		return;
	}
	d->connected = true;
	d->backoff_ns = 0;
	wake_all(s, i);
	beat_now(s, i);
}

void sim_fleet_on_closed(struct sim *s, uint32_t i, uint32_t conn)
{
	struct sim_device *d = at(s, i);
	if (s->broker.client[i].conn != conn || !d->reachable)
		return;
	d->connected = false;
	d->life++; /* what it would have sent has nowhere to go */
	if (d->powered && d->beating)
		redial(s, i);
}

/* --- life and death ---------------------------------------------------------- */

static void lapse(struct sim *s, uint32_t i)
{
	const struct sim_device *d = at(s, i);
	int64_t wait_ns = d->keepalive_ns / 2 + sim_below(&s->random, d->keepalive_ns);
	sim_at(s, s->now + wait_ns, SIM_LAPSE, i, s->broker.client[i].conn, 0);
}

/* Calls `tell` for the device. If the device is a gateway, also calls it for all devices that the gateway hears. */
static void tell_behind(struct sim *s, uint32_t i, void (*tell)(struct sim *s, uint32_t device))
{
	for (uint32_t k = 0; at(s, i)->speaks && k < s->plan.devices; k++)
		if (k != i && at(s, k)->gateway == i && at(s, k)->beating)
			tell(s, k);
}

/* A device behind a gateway dies: the gateway no longer lists it, and perhaps sends a goodbye for it. */
static void die_behind(struct sim *s, uint32_t i, enum sim_turn how)
{
	struct sim_device *d = at(s, i);
	d->beating = d->powered = false;
	if (!at(s, d->gateway)->beating)
		return;
	sim_oracle_died(s, i);
	if (how == SIM_SAYS_GOODBYE && d->reachable)
		send_list(s, d->gateway, sim_gateway_goodbye(s, i));
}

static void say_goodbye(struct sim *s, uint32_t i)
{
	const struct sim_device *d = at(s, i);
	struct sim_packet p = {.what = SIM_GOODBYE, .device = i};
	if (s->broker.away[d->group])
		return;
	sim_broker_send(s, i, d->speaks ? sim_gateway_goodbyes(s, i) : p, delay(s, d));
}

static void die(struct sim *s, uint32_t i, enum sim_turn how)
{
	struct sim_device *d = at(s, i);
	if (!d->beating)
		return;
	if (d->gateway != i) {
		die_behind(s, i, how);
		return;
	}
	d->beating = false;
	d->life++;
	sim_oracle_died(s, i);
	tell_behind(s, i, sim_oracle_died);
	if (how == SIM_HANGS)
		return;
	d->powered = false;
	if (!d->connected)
		return;
	d->connected = false;
	if (how == SIM_LOSES_POWER || !d->reachable) {
		lapse(s, i);
		return;
	}
	if (how == SIM_SAYS_GOODBYE)
		say_goodbye(s, i);
	enum sim_what end = how == SIM_SAYS_GOODBYE ? SIM_DISCONNECT : SIM_ABORT;
	sim_broker_send(s, i, (struct sim_packet){.what = end, .device = i}, delay(s, d));
}

static void get_net(struct sim *s, uint32_t i)
{
	struct sim_device *d = at(s, i);
	if (d->reachable)
		return;
	d->reachable = true;
	if (!d->connected || s->broker.client[i].connected)
		return; /* it dials anyway, or was not missed */
	d->connected = false;
	d->life++;
	if (d->beating)
		redial(s, i);
}

static void come_back(struct sim *s, uint32_t i)
{
	struct sim_device *d = at(s, i);
	if (d->beating)
		return;
	d->beating = d->powered = true;
	if (d->gateway != i) {
		d->until_nap = 0;
		d->naps_until = 0;
		if (at(s, d->gateway)->beating)
			sim_oracle_returned(s, i);
		return;
	}
	d->life++;
	sim_oracle_returned(s, i);
	tell_behind(s, i, sim_oracle_returned);
	if (d->connected)
		beat_now(s, i);
	else
		sim_fleet_on_dial(s, i, d->life);
}

void sim_fleet_on_life(struct sim *s, uint32_t i, enum sim_turn turn)
{
	struct sim_device *d = at(s, i);
	switch (turn) {
	case SIM_RETURNS:
		come_back(s, i);
		break;
	case SIM_LOSES_NET:
		if (d->reachable && d->connected)
			lapse(s, i);
		d->reachable = false;
		break;
	case SIM_GETS_NET:
		get_net(s, i);
		break;
	default:
		die(s, i, turn);
	}
}
