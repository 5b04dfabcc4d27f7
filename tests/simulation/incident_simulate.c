/* SPDX-License-Identifier: MIT */
/* The simulation of incidents: runs seeds, and prints each seed that breaks an invariant. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "incident_world.h"

static int usage(FILE *out)
{
	fputs("usage: incident_simulate [--seed N] [--runs N] [--lie N] [--trace]\n"
	      "  --seed N   the first seed (default 1)\n"
	      "  --runs N   how many seeds, one after another (default 1)\n"
	      "  --lie N    what the host does wrong on purpose (enum iw_lie)\n"
	      "  --trace    the events, line by line\n"
	      "exit status: 0 no breach, 1 a breach, 2 wrong usage\n",
	      out);
	return out == stderr ? 2 : 0;
}

static void add(struct iw_count *sum, const struct iw_count *c)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)c;
	for (size_t k = 0; k < sizeof(*sum) / sizeof(*to); k++)
		to[k] += from[k];
}

static void print(uint64_t seed, uint64_t runs, uint64_t broken, const struct iw_count *c)
{
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " breaches; entries %" PRIu64 ", messages %" PRIu64
	       ", opened %" PRIu64 ", ends %" PRIu64 ", merged %" PRIu64 ", flapping %" PRIu64 ", repeated %" PRIu64
	       ", restarts %" PRIu64 " (%" PRIu64 " commits lost), silences %" PRIu64 ", planned outages %" PRIu64
	       "; %.1f s of CPU\n",
	       runs, seed, broken, c->entries, c->messages, c->opened, c->ends, c->merged, c->flapping, c->repeated,
	       c->restarts, c->commits_lost, c->silences, c->planned, (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
	                                      {"runs", required_argument, NULL, 'r'},
	                                      {"lie", required_argument, NULL, 'l'},
	                                      {"trace", no_argument, NULL, 't'},
	                                      {NULL, 0, NULL, 0}};
	static struct iw_world w;
	struct iw_count sum = {0};
	uint64_t seed = 1, runs = 1, broken = 0;
	int c;
	w.tell = stdout;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'r')
			runs = strtoull(optarg, NULL, 0);
		else if (c == 'l')
			w.lie = (enum iw_lie)atoi(optarg);
		else if (c == 't')
			w.trace = stdout;
		else
			return usage(stderr);
	}
	if (optind < argc || w.lie >= IW_LIES)
		return usage(stderr);
	for (uint64_t k = 0; k < runs; k++) {
		iw_init(&w, seed + k);
		iw_run(&w);
		broken += w.breaches > 0;
		add(&sum, &w.count);
		fflush(stdout);
	}
	print(seed, runs, broken, &sum);
	return broken ? 1 : 0;
}
