/* SPDX-License-Identifier: MIT */
/* The simulation of several nodes: runs seeds, and prints each seed that breaks a promise. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "nodes_world.h"

struct options {
	uint64_t seed, runs;
	int lie, scene, trouble; /* trouble -1: as the seed says */
	bool trace, harsh, stop;
};

static int usage(FILE *out)
{
	fputs("usage: nodes_simulate [--seed N] [--runs N] [--lie N] [--trouble N] [--scene N] [--harsh] [--stop] "
	      "[--trace]\n"
	      "  --seed N     the first seed (default 1)\n"
	      "  --runs N     how many seeds, one after another (default 1)\n"
	      "  --lie N      what the wiring does wrong on purpose (enum nw_lie)\n"
	      "  --trouble N  this kind of trouble alone (enum nw_trouble)\n"
	      "  --scene N    this scene alone (enum nw_scene)\n"
	      "  --harsh      all trouble, often\n"
	      "  --stop       at the first breach\n"
	      "  --trace      what happens, line by line\n"
	      "exit status: 0 no breach, 1 a breach, 2 wrong usage\n",
	      out);
	return out == stderr ? 2 : 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
	                                      {"runs", required_argument, NULL, 'r'},
	                                      {"lie", required_argument, NULL, 'l'},
	                                      {"trouble", required_argument, NULL, 'k'},
	                                      {"trace", no_argument, NULL, 't'},
	                                      {"harsh", no_argument, NULL, 'h'},
	                                      {"stop", no_argument, NULL, 'x'},
	                                      {"scene", required_argument, NULL, 'c'},
	                                      {NULL, 0, NULL, 0}};
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'r')
			o->runs = strtoull(optarg, NULL, 0);
		else if (c == 'l')
			o->lie = atoi(optarg);
		else if (c == 'k')
			o->trouble = atoi(optarg);
		else if (c == 'c')
			o->scene = atoi(optarg);
		else if (c == 'x')
			o->stop = true;
		else if (c == 'h')
			o->harsh = true;
		else if (c == 't')
			o->trace = true;
		else
			return usage(stderr);
	}
	return optind < argc || o->lie >= NW_LIES || o->trouble >= NW_TROUBLES || o->scene >= NW_SCENES ? usage(stderr)
	                                                                                                : -1;
}

static void add(struct nw_count *sum, const struct nw_count *c)
{
	sum->takeovers += c->takeovers;
	sum->evictions += c->evictions;
	sum->removals += c->removals;
	sum->handovers += c->handovers;
	sum->entries += c->entries;
	sum->statuses += c->statuses;
	sum->fenced += c->fenced;
	sum->failovers += c->failovers;
	sum->deaths += c->deaths;
	sum->turns += c->turns;
	sum->reads += c->reads;
}

static void print(const struct options *o, uint64_t broken, const struct nw_count *c)
{
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " breaches; partitions claimed %" PRIu64
	       ", handed over %" PRIu64 "; removals %" PRIu64 ", evictions %" PRIu64 ", failovers %" PRIu64
	       ", deaths %" PRIu64 ", entries %" PRIu64 ", statuses %" PRIu64 ", fenced %" PRIu64
	       ", devices read again %" PRIu64 "; %.1f s of CPU\n",
	       o->runs, o->seed, broken, c->takeovers, c->handovers, c->removals, c->evictions, c->failovers, c->deaths,
	       c->entries, c->statuses, c->fenced, c->reads, (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
	struct options o = {.seed = 1, .runs = 1, .trouble = -1};
	static struct nw_world w;
	struct nw_count sum = {0};
	uint64_t broken = 0;
	int rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	for (uint64_t k = 0; k < o.runs && !(o.stop && broken); k++) {
		nw_init(&w, o.seed + k);
		if (o.harsh)
			nw_plan_harsh(&w);
		if (o.trouble >= 0)
			nw_plan_only(&w, (enum nw_trouble)o.trouble);
		if (o.scene)
			nw_plan_scene(&w, (enum nw_scene)o.scene);
		w.lie = (enum nw_lie)o.lie;
		w.trace = o.trace ? stdout : NULL;
		w.tell = stdout;
		nw_run(&w);
		broken += w.breaches > 0;
		add(&sum, &w.count);
		nw_fini(&w);
		fflush(stdout);
	}
	print(&o, broken, &sum);
	return broken ? 1 : 0;
}
