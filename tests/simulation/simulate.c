/* SPDX-License-Identifier: MIT */
/* The simulation's program: runs seeds, and prints each seed that breaks a promise. See README.md in this directory. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

struct options {
	uint64_t seed, runs;
	bool trace, hashes;
	struct sim_metrics *metrics;
};

static int usage(FILE *out)
{
	fputs("usage: simulate [--seed N] [--runs N] [--trace] [--hash] [--metrics]\n"
	      "  --seed N     the first seed (default 1)\n"
	      "  --runs N     how many seeds, one after another (default 1)\n"
	      "  --trace      what happens, line by line\n"
	      "  --hash       each seed's trace hash\n"
	      "  --metrics    how good the failure detector was over all runs\n"
	      "exit status: 0 no breach, 1 a breach, 2 wrong usage\n",
	      out);
	return out == stderr ? 2 : 0;
}

static bool number(const char *text, uint64_t *out)
{
	char *end;
	*out = strtoull(text, &end, 0);
	return *text && !*end;
}

static int parse(int argc, char **argv, struct options *o, struct sim_metrics *metrics)
{
	static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
	                                      {"runs", required_argument, NULL, 'r'},
	                                      {"trace", no_argument, NULL, 't'},
	                                      {"hash", no_argument, NULL, 'h'},
	                                      {"metrics", no_argument, NULL, 'm'},
	                                      {"help", no_argument, NULL, '?'},
	                                      {NULL, 0, NULL, 0}};
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			if (!number(optarg, &o->seed))
				return usage(stderr);
			break;
		case 'r':
			if (!number(optarg, &o->runs))
				return usage(stderr);
			break;
		case 't':
			o->trace = true;
			break;
		case 'h':
			o->hashes = true;
			break;
		case 'm':
			o->metrics = metrics;
			break;
		default:
			return usage(stderr);
		}
	}
	return optind < argc ? usage(stderr) : -1;
}

static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

int main(int argc, char **argv)
{
	struct options o = {.seed = 1, .runs = 1};
	struct sim_metrics metrics = {0};
	uint64_t broken = 0, events = 0, excused = 0, bounded = 0, hash = 0;
	double virtual_s = 0;
	int rc = parse(argc, argv, &o, &metrics);
	if (rc >= 0)
		return rc;
	for (uint64_t k = 0; k < o.runs; k++) {
		struct sim s;
		sim_init(&s, o.seed + k);
		s.trace = o.trace ? stdout : NULL;
		s.tell = stdout;
		s.metrics = o.metrics;
		sim_run(&s);
		broken += s.breaches > 0;
		events += s.events;
		excused += s.oracle.excused;
		bounded += s.oracle.bounded;
		hash ^= s.hash;
		virtual_s += (double)s.now / 1e9;
		if (o.hashes || o.trace)
			printf("seed %" PRIu64 ": hash %016" PRIx64 "\n", s.seed, s.hash);
		if (s.breaches)
			fflush(stdout);
		sim_fini(&s);
	}
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " breaches; %" PRIu64
	       " events, %.1f days, %.1f s of CPU, "
	       "hash %016" PRIx64 "; %" PRIu64 " mistakes by what a broker did not bring, %" PRIu64
	       " by the bound of three timeouts\n",
	       o.runs, o.seed, broken, events, virtual_s / 86400, cpu_s(), hash, excused, bounded);
	if (o.metrics)
		sim_metrics_print(&metrics, stdout);
	sim_metrics_fini(&metrics);
	return broken ? 1 : 0;
}
