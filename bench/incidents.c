/* SPDX-License-Identifier: MIT */
/*
 * Measures the engine of incidents in virtual time:
 *
 *     incidents gateways N CHILDREN    each gateway fails once, with its children, in any order of deadlines
 *     incidents flapping N HOURS       each device has a transition each 30 s
 *     incidents mass N                 all devices of a group go offline, and return
 *
 * Prints what the receiver was sent, the CPU time for an entry with its changes, and the memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "incident/incidents.h"

#define BEGIN_MS INT64_C(1790000000000)
#define BATCH    1000 /* entries a commit */

struct event {
	int64_t at;
	uint32_t gateway, child; /* child 0: the gateway itself */
	bool offline;
	int64_t wait_ms;
};

static struct hw_incidents *engine;
static int64_t now_ms;
static uint64_t news[HW_NEWS_KINDS], of_children, messages, changes, entries;
static int64_t longest_ns, spent_ns;

/* CPU time: the engine waits for nothing. */
static int64_t cpu_ns(void)
{
	return (int64_t)clock() * (HW_NS_PER_S / CLOCKS_PER_SEC);
}

static struct hw_now now(void)
{
	return (struct hw_now){{(now_ms + 1000) * HW_NS_PER_MS}, BEGIN_MS + now_ms};
}

static void begin(unsigned mass)
{
	static const struct hw_receiver_conf receiver = {
		.name = "ops", .kinds = 0x1f, .interval_ms = 10000, .each = false};
	struct hw_incidents_conf conf = {.mass = mass,
	                                 .mass_share = 20,
	                                 .mass_window_ms = 60000,
	                                 .flap_start = 6,
	                                 .flap_end = 2,
	                                 .flap_half_ms = 1200000,
	                                 .max_incidents = 100000,
	                                 .seed = 1,
	                                 .receivers = &receiver,
	                                 .n_receivers = 1};
	engine = hw_incidents_new(&conf, now());
	if (!engine || hw_incidents_loaded(engine, now(), false) != 0)
		abort();
}

static void take_message(const struct hw_incident_message *m)
{
	for (size_t k = 0; k < m->n; k++) {
		const struct hw_incident_view *v = &m->news[k].incident;
		news[m->news[k].what]++;
		of_children += v->device && v->device[0] == 'c';
	}
	for (unsigned k = 0; k < HW_NEWS_KINDS; k++)
		news[k] += m->more[k];
	messages++;
	hw_incidents_done(engine, now(), m->name, m->number);
}

/* Does what follows a batch: steps of the engine, messages, changes. */
static void turn(void)
{
	struct hw_incident_message m;
	struct hw_change c;
	while (hw_incidents_step(engine, now()))
		;
	while (hw_incidents_message(engine, now(), &m))
		take_message(&m);
	while (hw_incidents_change(engine, &c))
		changes++;
}

static void pass(int64_t ms)
{
	for (int64_t end = now_ms + ms; now_ms < end; now_ms += 1000)
		turn();
}

static void entry(const char *id, bool offline, const char *parent, int64_t wait_ms)
{
	static uint64_t seq;
	struct hw_incident_entry e = {.id = id,
	                              .group = parent ? "pumps" : "gates",
	                              .node = "n1",
	                              .parents = parent,
	                              .fact = offline ? HW_FACT_OFFLINE : HW_FACT_ONLINE,
	                              .time_ms = BEGIN_MS + now_ms,
	                              .timeout_ms = 60000,
	                              .wait_ms = wait_ms,
	                              .seq = ++seq};
	entries++;
	if (hw_incidents_entry(engine, now(), &e) != 0)
		abort();
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void play(const struct event *e)
{
	char id[32], parent[16];
	snprintf(parent, sizeof(parent), "g%" PRIu32, e->gateway);
	snprintf(id, sizeof(id), "c%" PRIu32 "-%" PRIu32, e->gateway, e->child);
	if (e->child == 0)
		entry(parent, e->offline, NULL, -1);
	else
		entry(id, e->offline, parent, e->wait_ms);
}

static void add_gateway(struct event *to, uint32_t g, uint32_t children, uint64_t *random)
{
	uint32_t draws[2];
	bench_draw(draws, 1, 600000, random);
	int64_t fails = draws[0], deadline = fails + 60000, returns = fails + 1200000;
	*to++ = (struct event){deadline, g, 0, true, -1};
	*to++ = (struct event){returns, g, 0, false, -1};
	for (uint32_t c = 1; c <= children; c++) {
		bench_draw(draws, 2, 30000, random);
		int64_t at = fails + 10000 + 4 * (int64_t)draws[0]; /* a timeout of 10 to 130 s */
		*to++ = (struct event){at, g, c, true, at < deadline ? deadline - at : -1};
		*to++ = (struct event){returns + draws[1], g, c, false, -1};
	}
}

static void run_gateways(uint32_t n, uint32_t children)
{
	size_t all = (size_t)n * 2 * (children + 1);
	struct event *events = bench_memory(all * sizeof(*events));
	uint64_t random = 1;
	for (uint32_t g = 0; g < n; g++)
		add_gateway(events + (size_t)g * 2 * (children + 1), g, children, &random);
	qsort(events, all, sizeof(*events), by_time);
	begin(0);
	int64_t from = cpu_ns(), next = 0;
	for (size_t k = 0; k < all; k++) {
		for (; next <= events[k].at; next += 100) {
			now_ms = next;
			turn();
		}
		now_ms = events[k].at;
		play(&events[k]);
	}
	spent_ns = cpu_ns() - from;
	pass(3600000);
}

static void run_flapping(uint32_t n, uint32_t hours)
{
	char id[32];
	begin(0);
	for (now_ms = 0; now_ms < (int64_t)hours * 3600000; now_ms += 1000) {
		for (uint32_t k = (uint32_t)(now_ms / 1000 % 30); k < n; k += 30) {
			snprintf(id, sizeof(id), "d%" PRIu32, k);
			entry(id, now_ms / 30000 % 2 == k / 30 % 2, NULL, -1);
		}
		turn();
	}
}

static void run_mass(uint32_t n)
{
	char id[32];
	begin(20);
	int64_t before = bench_rss(), from = cpu_ns();
	for (int offline = 1; offline >= 0; offline--) {
		for (uint32_t k = 0; k < n; k++) {
			snprintf(id, sizeof(id), "device-%07" PRIu32, k);
			entry(id, offline == 1, NULL, -1);
			if (k % BATCH != BATCH - 1)
				continue;
			int64_t batch = cpu_ns();
			now_ms++;
			turn();
			batch = cpu_ns() - batch;
			longest_ns = batch > longest_ns ? batch : longest_ns;
		}
		if (offline)
			bench_say("bytes", (double)(bench_rss() - before) / n);
		pass(11000);
	}
	spent_ns = cpu_ns() - from;
	pass(3600000);
	bench_say("longest_ms", (double)longest_ns / 1e6);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	uint32_t n = (uint32_t)bench_number(argc, argv, 2);
	if (strcmp(argv[1], "gateways") == 0)
		run_gateways(n, (uint32_t)bench_number(argc, argv, 3));
	else if (strcmp(argv[1], "flapping") == 0)
		run_flapping(n, (uint32_t)bench_number(argc, argv, 3));
	else
		run_mass(n);
	uint64_t all = 0;
	for (unsigned k = 0; k < HW_NEWS_KINDS; k++)
		all += news[k];
	bench_say("entries", (double)entries);
	bench_say("opened", (double)news[HW_NEWS_OPENED]);
	bench_say("closed", (double)news[HW_NEWS_CLOSED]);
	bench_say("news", (double)all);
	bench_say("children", (double)of_children);
	bench_say("messages", (double)messages);
	bench_say("changes", (double)changes);
	if (spent_ns)
		bench_say("entry_ns", (double)spent_ns / (double)entries);
	hw_incidents_free(engine);
	return 0;
}
