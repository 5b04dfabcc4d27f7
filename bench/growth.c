/* SPDX-License-Identifier: MIT */
/*
 * Measures the memory and the time that a device takes in the core:
 *
 *     growth DEVICES HEARTBEATS [more]
 *
 * Prints in bytes of resident memory for a device:
 *
 *   memory     registry and wheel as the daemon has them, with ids of 14 bytes
 *
 * With `more` also in bytes:
 *
 *   reported   for a device that reports battery, rssi, ip, version and uptime
 *   keyed      for a device that is also known by a key
 *
 * And, unless HEARTBEATS is 0, in ns:
 *
 *   heartbeat  one device of a batch, in random order, from its topic on
 *   relink     an entry is due, but its device has sent a heartbeat: the entry moves, as it does once in a timeout, and
 *              the core returns the refresh
 *   expiry     an entry is due, the barriers return, and the core returns the transition to offline
 */
#include <stdlib.h>

#include "common.h"
#include "fleet.h"

#define REPORT   "{\"battery\":87,\"rssi\":-61,\"ip\":\"10.20.30.40\",\"version\":\"1.4.2\",\"uptime\":86400}"
#define PAUSE_MS 5000 /* between the first heartbeats and the second ones */

/* In ns for each. */
static double beat(struct fleet *f, struct fleet_chunk *c, uint32_t n, uint32_t beats)
{
	uint32_t order[FLEET_CHUNK];
	uint64_t state = 1;
	int64_t ns = 0;
	for (uint32_t done = 0; done < beats; done += FLEET_CHUNK) {
		bench_draw(order, FLEET_CHUNK, n, &state);
		fleet_write(c, order, FLEET_CHUNK, "");
		int64_t began = bench_ns();
		fleet_beat(f, c, FLEET_CHUNK, FLEET_BATCH);
		ns += bench_ns() - began;
	}
	return (double)ns / (double)((beats + FLEET_CHUNK - 1) / FLEET_CHUNK * FLEET_CHUNK);
}

/* Each device sends a first heartbeat and, from PAUSE_MS later on, a second one within an interval. Then all fall
 * silent. */
static void fall_silent(struct fleet *f, uint32_t n)
{
	uint64_t relinks = hw_monitor_stats(f->m)->relinks;
	int64_t ns = fleet_pass(f, (FLEET_TIMEOUT_MS - FLEET_INTERVAL_MS - 1000) * HW_NS_PER_MS);
	relinks = hw_monitor_stats(f->m)->relinks - relinks;
	if (relinks != n || f->offline > 0)
		abort();
	bench_say("relink", (double)ns / n);
	ns = fleet_pass(f, 2 * FLEET_INTERVAL_MS * HW_NS_PER_MS);
	if (f->offline != n)
		abort();
	bench_say("expiry", (double)ns / n);
}

/* Returns the bytes for a device after each device has sent the same report. */
static double reported(const uint32_t *order, uint32_t n, struct fleet_chunk *c)
{
	static struct fleet f;
	int64_t before = bench_rss();
	fleet_make(&f);
	for (uint32_t k = 0; k < n; k += FLEET_CHUNK) {
		unsigned some = n - k < FLEET_CHUNK ? n - k : FLEET_CHUNK;
		fleet_write(c, order + k, some, REPORT);
		fleet_beat(&f, c, some, FLEET_BATCH);
	}
	return (double)(bench_rss() - before) / n;
}

static double keyed(const uint32_t *order, uint32_t n, struct fleet_chunk *c)
{
	static struct fleet f;
	int64_t before = bench_rss();
	fleet_make_keyed(&f);
	for (uint32_t k = 0; k < n; k += FLEET_CHUNK) {
		unsigned some = n - k < FLEET_CHUNK ? n - k : FLEET_CHUNK;
		fleet_write(c, order + k, some, "");
		fleet_beat(&f, c, some, FLEET_BATCH);
		for (unsigned j = 0; j < some; j++) {
			hw_monitor_key(f.m, f.now, HW_KEY_WRITTEN, c->ids[j].text, c->ids[j].len, FLEET_TIMEOUT_MS);
			fleet_drain(&f);
		}
	}
	return (double)(bench_rss() - before) / n;
}

/* Memory that was freed before would be used again and not counted, so nothing is freed before this. */
static void tell_more(uint32_t n, struct fleet_chunk *c)
{
	uint32_t *order = bench_order(n, 0);
	bench_say("reported", reported(order, n, c));
	bench_say("keyed", keyed(order, n, c));
	free(order);
}

int main(int argc, char **argv)
{
	static struct fleet f;
	static struct fleet_chunk chunk;
	uint32_t n = (uint32_t)bench_number(argc, argv, 1), beats = (uint32_t)bench_number(argc, argv, 2);
	uint32_t *order = bench_order(n, 0);
	fleet_write(&chunk, order, n < FLEET_CHUNK ? n : FLEET_CHUNK, "");
	int64_t before = bench_rss();
	fleet_make(&f);
	fleet_beat_all(&f, &chunk, order, n, 0);
	bench_say("memory", (double)(bench_rss() - before) / n);
	free(order);
	if (argc > 3)
		tell_more(n, &chunk);
	if (beats > 0) {
		order = bench_order(n, 1);
		fleet_pass(&f, PAUSE_MS * HW_NS_PER_MS);
		fleet_beat_all(&f, &chunk, order, n,
		               0); /* a device's second heartbeat still takes another time than later ones */
		bench_say("heartbeat", beat(&f, &chunk, n, beats));
		fleet_beat_all(&f, &chunk, order, n, FLEET_INTERVAL_MS);
		fall_silent(&f, n);
		free(order);
	}
	fleet_free(&f);
	return 0;
}
