/* SPDX-License-Identifier: MIT */
/*
 * Runs the estimator of timeouts (src/core/learn.h), to compare it with other estimators on the same traces. The
 * program reads lines
 *
 *     device MISTAKES_PER_DAY MIN_MS MAX_MS          a new device; the device before is forgotten
 *     gap MS OFFLINE                                 a gap; OFFLINE is 1 if the device was called offline in it
 *
 * and answers each `gap` with the timeout of the next gap in ms. A timeout may be as short as one median gap.
 *
 *     learn speed [DEVICES]
 *
 * prints how long a gap takes, in ns of the thread's CPU time: for one device in the cache, and for DEVICES (1,000,000)
 * in random order. The wall clock would also count the programs that run in between on a busy machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "core/learn.h"

#define DAY_MS INT64_C(86400000)

static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void speed(uint32_t devices)
{
	struct hw_learn_rules rules;
	hw_learn_rules_init(&rules, 1000, DAY_MS, 1, 30 * DAY_MS, 2);
	struct hw_gaps *gaps = bench_memory(sizeof(*gaps) * devices);
	uint32_t *order = bench_order(devices, 1);
	int64_t now_ms = 1800000000000, sum = 0;
	const unsigned rounds = 20;
	for (unsigned round = 0; round < rounds; round++) {
		int64_t began = cpu_ns();
		for (uint32_t i = 0; i < devices; i++)
			sum += hw_learn_gap(&gaps[order[i]], &rules, now_ms, 30000 + (i * 2654435761u >> 22));
		if (round == rounds - 1 && devices > 1)
			bench_say("random_ns", (double)(cpu_ns() - began) / devices);
		now_ms += 30000;
	}
	if (devices == 1) {
		int64_t began = cpu_ns();
		for (uint32_t i = 0; i < 10000000; i++)
			sum += hw_learn_gap(gaps, &rules, now_ms += 30000, 30000 + (i * 2654435761u >> 22));
		bench_say("cached_ns", (double)(cpu_ns() - began) / 1e7);
	}
	if (sum == 0)
		puts("");
	free(order);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "speed") == 0) {
		speed(1);
		speed(argc > 2 ? (uint32_t)bench_number(argc, argv, 2) : 1000000);
		return EXIT_SUCCESS;
	}
	struct hw_gaps gaps = {{0}};
	struct hw_learn_rules rules = {0};
	int64_t now_ms = 1800000000000;
	char line[128];
	while (fgets(line, sizeof(line), stdin)) {
		double mistakes;
		int64_t min_ms, max_ms, gap_ms;
		if (sscanf(line, "device %lf %" SCNd64 " %" SCNd64, &mistakes, &min_ms, &max_ms) == 3 && mistakes > 0) {
			gaps = (struct hw_gaps){{0}};
			hw_learn_rules_init(&rules, min_ms, max_ms, 1, (int64_t)((double)DAY_MS / mistakes), 1);
		} else if (sscanf(line, "gap %" SCNd64, &gap_ms) == 1 && rules.unit_ms > 0) {
			printf("%" PRId64 "\n", hw_learn_gap(&gaps, &rules, now_ms += gap_ms, gap_ms));
			fflush(stdout);
		} else {
			fprintf(stderr,
			        "learn: neither 'device MISTAKES_PER_DAY MIN_MS MAX_MS' nor 'gap MS OFFLINE': %s",
			        line);
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}
