/* SPDX-License-Identifier: MIT */
/* The simulation of tasks: runs seeds, and prints each seed that breaks a promise. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "tasks_world.h"

struct options {
	uint64_t seed, runs;
	int lie, twin_lie, trouble; /* trouble -1: as the seed says */
	bool trace;
};

static int usage(FILE *out)
{
	fputs("usage: tasks_simulate [--seed N] [--runs N] [--lie N] [--twin N] [--trouble N] [--trace]\n"
	      "  --seed N     the first seed (default 1)\n"
	      "  --runs N     how many seeds, one after another (default 1)\n"
	      "  --lie N      what the wiring does wrong on purpose (enum tw_lie)\n"
	      "  --twin N     what the scripts' twin does wrong on purpose (enum twin_lie)\n"
	      "  --trouble N  this kind of trouble alone (enum tw_trouble)\n"
	      "  --trace      the events, line by line\n"
	      "exit status: 0 no breach, 1 a breach, 2 wrong usage\n",
	      out);
	return out == stderr ? 2 : 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
	                                      {"runs", required_argument, NULL, 'r'},
	                                      {"lie", required_argument, NULL, 'l'},
	                                      {"twin", required_argument, NULL, 'w'},
	                                      {"trouble", required_argument, NULL, 'k'},
	                                      {"trace", no_argument, NULL, 't'},
	                                      {NULL, 0, NULL, 0}};
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'r')
			o->runs = strtoull(optarg, NULL, 0);
		else if (c == 'l')
			o->lie = atoi(optarg);
		else if (c == 'w')
			o->twin_lie = atoi(optarg);
		else if (c == 'k')
			o->trouble = atoi(optarg);
		else if (c == 't')
			o->trace = true;
		else
			return usage(stderr);
	}
	bool known = o->lie < TW_LIES && o->twin_lie < TWIN_LIES && o->trouble < TW_TROUBLES;
	return optind < argc || !known ? usage(stderr) : -1;
}

static void add(struct tw_count *sum, const struct tw_count *c)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)c;
	for (size_t k = 0; k < sizeof(*sum) / sizeof(*to); k++)
		to[k] += from[k];
}

static void print(const struct options *o, uint64_t broken, const struct tw_count *c)
{
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " breaches; tasks %" PRIu64 ", sent %" PRIu64
	       ", again %" PRIu64 ", held %" PRIu64 ", complete %" PRIu64 ", failed %" PRIu64 ", expired %" PRIu64
	       ", cancelled %" PRIu64 ", late %" PRIu64 "; deaths %" PRIu64 ", clock held %" PRIu64
	       ", found overdue %" PRIu64 ", calls %" PRIu64 "; %.1f s of CPU\n",
	       o->runs, o->seed, broken, c->tasks, c->sends, c->retries, c->held, c->complete, c->failed, c->expired,
	       c->cancelled, c->late, c->deaths, c->holds, c->overdue, c->calls, (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
	struct options o = {.seed = 1, .runs = 1, .trouble = -1};
	static struct tw_world w;
	struct tw_count sum = {0};
	uint64_t broken = 0;
	int rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	for (uint64_t k = 0; k < o.runs; k++) {
		tw_init(&w, o.seed + k);
		if (o.trouble >= 0)
			tw_only(&w, (enum tw_trouble)o.trouble);
		tw_lie(&w, (enum tw_lie)o.lie, (enum twin_lie)o.twin_lie);
		w.trace = o.trace ? stdout : NULL;
		w.tell = stdout;
		tw_run(&w);
		broken += w.breaches > 0;
		add(&sum, &w.count);
		tw_fini(&w);
		fflush(stdout);
	}
	print(&o, broken, &sum);
	return broken ? 1 : 0;
}
