/* SPDX-License-Identifier: MIT */
/*
 * Measures heartwheelctl discover without a broker: how fast it takes messages, how long the search for groups takes,
 * and how much memory both need. There are five conventions, each with a fifth of the topics.
 *
 *     discover [TOPICS [ROUNDS]]     50,000 topics, 60 messages on each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common.h"
#include "ctl/discover_find.h"

static int write_topic(char *topic, size_t room, uint32_t i)
{
	switch (i % 5) {
	case 0:
		return snprintf(topic, room, "tele/plug_%u/STATE", i);
	case 1:
		return snprintf(topic, room, "plant/meters/m-%06u/power", i);
	case 2:
		return snprintf(topic, room, "sites/s%u/lamps/%u/state", i / 5 % 40, i / 200);
	case 3:
		return snprintf(topic, room, "hall/unit-%05u/sensor/%u/value", i / 40, i / 5 % 8);
	default:
		return snprintf(topic, room, "shellyplus1-%06x/status/sys", i);
	}
}

int main(int argc, char **argv)
{
	static const char payload[] = "{\"time\":1790000000,\"w\":3,\"bat\":80,\"net\":{\"rssi\":-60}}";
	uint32_t n = argc > 1 ? (uint32_t)bench_number(argc, argv, 1) : 50000;
	uint32_t rounds = argc > 2 ? (uint32_t)bench_number(argc, argv, 2) : 60;
	struct hw_topics *t = hw_topics_new(1);
	struct hw_found found;
	char(*topics)[48] = bench_memory(sizeof(*topics) * n);
	uint8_t *lens = bench_memory(n);
	for (uint32_t i = 0; i < n; i++)
		lens[i] = (uint8_t)write_topic(topics[i], sizeof(topics[i]), i);
	int64_t began = bench_ns();
	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t i = 0; i < n; i++)
			if (hw_topics_add(t, topics[i], lens[i], payload, sizeof(payload) - 1, false,
			                  round * 1000 + i % 1000))
				return EXIT_FAILURE;
	bench_say("take_ns", (double)(bench_ns() - began) / n / rounds);
	began = bench_ns();
	if (hw_discover_find(t, 1, &found))
		return EXIT_FAILURE;
	bench_say("find_s", (double)(bench_ns() - began) * 1e-9);
	bench_say("groups", (double)found.n);
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	bench_say("memory_mb", (double)u.ru_maxrss / 1024);
	hw_found_fini(&found);
	hw_topics_free(t);
	return EXIT_SUCCESS;
}
