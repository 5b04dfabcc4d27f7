/* SPDX-License-Identifier: MIT */
/*
 * A program for callgrind, which counts the instructions of one function at a time:
 *
 *     instructions DEVICES HEARTBEATS
 *
 * count_heartbeats(): HEARTBEATS of known devices in random order, from the topic and an empty payload.
 * count_reports(): the same with a JSON object of seven members, all of which have a meaning. count_expiries(): each of
 * DEVICES has fallen silent since; from the time at which its entry is due until the core returns the transition. Key
 * and order are fixed and time is virtual, so the counts are the same in each run.
 */
#include <stdlib.h>

#include "common.h"
#include "fleet.h"

/* A heartbeat as a real device sends it. */
#define REPORT                                                                                                         \
	"{\"time\":1700000000,\"online\":true,\"battery\":87,\"rssi\":-67.5,\"ip\":\"192.168.17.42\",\"version\":\"2." \
	"4.1\","                                                                                                       \
	"\"uptime\":86400}"

/* Not static, so that the compiler keeps these functions under their names, and callgrind finds them. */
void count_heartbeats(struct fleet *f, struct fleet_chunk *c);
void count_reports(struct fleet *f, struct fleet_chunk *c);
void count_expiries(struct fleet *f);

__attribute__((noinline)) void count_heartbeats(struct fleet *f, struct fleet_chunk *c)
{
	fleet_beat(f, c, FLEET_CHUNK, FLEET_BATCH);
}

__attribute__((noinline)) void count_reports(struct fleet *f, struct fleet_chunk *c)
{
	fleet_beat(f, c, FLEET_CHUNK, FLEET_BATCH);
}

__attribute__((noinline)) void count_expiries(struct fleet *f)
{
	fleet_pass(f, 2 * FLEET_INTERVAL_MS * HW_NS_PER_MS);
}

static void fleet_beat_chunk(struct fleet *f, struct fleet_chunk *c)
{
	fleet_beat(f, c, FLEET_CHUNK, FLEET_BATCH);
}

typedef void count(struct fleet *f, struct fleet_chunk *c);

static void beat_some(struct fleet *f, count *all, uint32_t n, uint32_t beats, const char *payload)
{
	static struct fleet_chunk chunk;
	uint32_t some[FLEET_CHUNK];
	uint64_t state = 1;
	for (uint32_t done = 0; done < beats; done += FLEET_CHUNK) {
		bench_draw(some, FLEET_CHUNK, n, &state);
		fleet_write(&chunk, some, FLEET_CHUNK, payload);
		all(f, &chunk);
	}
}

int main(int argc, char **argv)
{
	static struct fleet f;
	static struct fleet_chunk chunk;
	uint32_t n = (uint32_t)bench_number(argc, argv, 1), beats = (uint32_t)bench_number(argc, argv, 2);
	uint32_t *order = bench_order(n, 0);
	fleet_make(&f);
	for (int k = 0; k < 2; k++) /* a device's second heartbeat still takes another time than later ones */
		fleet_beat_all(&f, &chunk, order, n, 0);
	beat_some(&f, count_heartbeats, n, beats, "");
	beat_some(&f, fleet_beat_chunk, n, beats, REPORT); /* the first of a device makes room for what it reports */
	beat_some(&f, count_reports, n, beats, REPORT);
	fleet_pass(&f, (FLEET_TIMEOUT_MS - 1000) * HW_NS_PER_MS);
	if (f.offline > 0)
		abort();
	count_expiries(&f);
	if (f.offline != n)
		abort();
	free(order);
	fleet_free(&f);
	return 0;
}
