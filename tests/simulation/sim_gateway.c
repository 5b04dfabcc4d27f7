/* SPDX-License-Identifier: MIT */
/* See sim_gateway.h. */
#include "sim_gateway.h"

#include "sim.h"

#define ELEMENT_MAX 80 /* bytes of text */

/* --- who is behind which ----------------------------------------------------- */

static void put_behind(struct sim_device *d, const struct sim_device *gateway, uint32_t which)
{
	d->gateway = which;
	d->interval_ns = gateway->interval_ns;
	/* The gateway reports the device only with its next list. */
	d->nap_spare_ms += gateway->interval_ns / HW_NS_PER_MS * 5 / 4;
}

static void place_group(struct sim *s, unsigned g)
{
	uint32_t gateway[SIM_GATEWAYS_MAX], n = 0;
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		struct sim_device *d = &s->fleet.device[i];
		if (d->group != g)
			continue;
		if (n < s->plan.gateways) {
			gateway[n++] = i;
			d->speaks = true;
			d->nap_ns = 0;
		} else {
			put_behind(d, &s->fleet.device[gateway[i % n]], gateway[i % n]);
		}
	}
}

void sim_gateway_place(struct sim *s)
{
	for (unsigned g = 0; g < s->plan.groups; g++)
		if (s->plan.batch[g])
			place_group(s, g);
}

void sim_gateway_fini(struct sim *s)
{
	struct sim_lists *all = &s->fleet.lists;
	for (size_t k = 0; k < all->n; k++) {
		free(all->list[k].element);
		free(all->list[k].text);
	}
	free(all->list);
}

/* --- lists ------------------------------------------------------------------- */

static void *fit(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p) {
		fprintf(stderr, "simulate: out of memory\n");
		exit(2);
	}
	return p;
}

static void begin(const struct sim *s, struct sim_list *l)
{
	l->element = sim_calloc(s->plan.devices, sizeof(*l->element));
	l->text = sim_calloc(s->plan.devices + 1, ELEMENT_MAX);
	l->n = 0;
	l->len = 1;
	l->text[0] = '[';
}

/* Writes an element of a list: an object, or only the id if that is sufficient; the lists have some of each kind. */
static int write_element(char *text, const struct sim_element *e)
{
	if (e->goodbye)
		return snprintf(text, ELEMENT_MAX, "{\"id\":\"d%u\",\"online\":false}", e->device);
	if (e->timeout_ms >= 0)
		return snprintf(text, ELEMENT_MAX, "{\"id\":\"d%u\",\"timeout\":%lld.%03lld}", e->device,
		                (long long)(e->timeout_ms / 1000), (long long)(e->timeout_ms % 1000));
	return snprintf(text, ELEMENT_MAX, e->device % 3 ? "\"d%u\"" : "{\"id\":\"d%u\"}", e->device);
}

static void add(struct sim_list *l, uint32_t device, int64_t timeout_ms, bool goodbye)
{
	struct sim_element *e = &l->element[l->n];
	*e = (struct sim_element){.device = device, .timeout_ms = timeout_ms, .goodbye = goodbye};
	if (l->n++ > 0)
		l->text[l->len++] = ',';
	l->len += (size_t)write_element(l->text + l->len, e);
	e->end = l->len;
}

static struct sim_packet end(struct sim *s, struct sim_list *l, uint32_t gateway)
{
	struct sim_lists *all = &s->fleet.lists;
	l->text[l->len++] = ']';
	l->text = fit(l->text, l->len);
	l->element = fit(l->element, (l->n + 1) * sizeof(*l->element));
	if (all->n == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 64;
		all->list = fit(all->list, all->cap * sizeof(*all->list));
	}
	all->list[all->n] = *l;
	return (struct sim_packet){.what = SIM_LIST, .device = gateway, .number = all->n++};
}

struct sim_packet sim_gateway_heard(struct sim *s, uint32_t gateway)
{
	struct sim_list l;
	begin(s, &l);
	for (uint32_t i = 0; i < s->plan.devices; i++) {
		struct sim_device *d = &s->fleet.device[i];
		int64_t timeout_ms, quiet_ns;
		if (d->gateway != gateway || !d->beating || d->naps_until > s->now)
			continue;
		quiet_ns = sim_fleet_says(s, d, &timeout_ms);
		d->naps_until = timeout_ms > 0 ? s->now + quiet_ns : 0;
		d->beats++;
		if (i == gateway || (d->reachable && !sim_chance(&s->random, d->loss)))
			add(&l, i, timeout_ms, false);
	}
	return end(s, &l, gateway);
}

struct sim_packet sim_gateway_goodbyes(struct sim *s, uint32_t gateway)
{
	struct sim_list l;
	begin(s, &l);
	for (uint32_t i = 0; i < s->plan.devices; i++)
		if (s->fleet.device[i].gateway == gateway)
			add(&l, i, -1, true);
	return end(s, &l, gateway);
}

struct sim_packet sim_gateway_goodbye(struct sim *s, uint32_t device)
{
	struct sim_list l;
	begin(s, &l);
	add(&l, device, -1, true);
	return end(s, &l, s->fleet.device[device].gateway);
}

const struct sim_list *sim_list_of(const struct sim *s, const struct sim_packet *p)
{
	return &s->fleet.lists.list[p->number];
}

/* --- what the oracle is told of them ----------------------------------------- */

void sim_list_arrived(struct sim *s, const struct sim_packet *p)
{
	struct sim_list *l = &s->fleet.lists.list[p->number];
	for (size_t k = 0; k < l->n; k++) {
		struct sim_element *e = &l->element[k];
		if (e->goodbye)
			sim_oracle_goodbye(s, e->device);
		else
			e->number = sim_oracle_arrived(s, e->device);
	}
}

void sim_list_lost(struct sim *s, const struct sim_packet *p, bool muted)
{
	const struct sim_list *l = sim_list_of(s, p);
	for (size_t k = 0; k < l->n; k++)
		if (!l->element[k].goodbye)
			sim_oracle_lost(s, l->element[k].device, l->element[k].number, muted);
}
