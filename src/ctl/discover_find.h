/* SPDX-License-Identifier: MIT */
/* Finds the groups of devices in the topics that heartwheelctl discover has received. Pure. */
#ifndef HW_CTL_DISCOVER_FIND_H
#define HW_CTL_DISCOVER_FIND_H

#include "ctl/discover_topics.h"

#define HW_FOUND_MAX  256 /* groups */
#define HW_FOUND_REST 20  /* prefixes of topics that are in no group */

/* A list of texts on the heap. */
struct hw_found_list {
	char **at;
	size_t n;
};

struct hw_found_group {
	char *name;
	const char *preset;         /* static; NULL: a convention of its own */
	const char *example;        /* a topic of a device, borrowed from the table */
	struct hw_found_list lines; /* "key = value", without the timeout */
	struct hw_found_list notes; /* comments */
	uint32_t devices;           /* heard live */
	uint32_t twice;             /* of these, those that were heard twice */
	uint32_t goodbyes;          /* devices with a topic for goodbyes */
	char *goodbye;              /* where: "../LWT Offline"; NULL: nowhere */
	int64_t median_ms, p90_ms;  /* of the gaps; 0: none */
	int64_t timeout_ms;         /* 0: the preset's */
};

/* Topics that are in no group, by their first level. */
struct hw_found_rest {
	char *prefix;
	uint32_t topics, commands, retained; /* of these, messages to devices; never heard live */
};

struct hw_found {
	struct hw_found_group *groups; /* in the order of the file */
	size_t n;
	struct hw_found_rest rest[HW_FOUND_REST];
	size_t n_rest;
	uint32_t more; /* topics that are in no group, and not in `rest` */
};

/* Returns 0 or -ENOMEM. The topics must outlive the result. */
int hw_discover_find(const struct hw_topics *t, uint64_t seed, struct hw_found *out);
void hw_found_fini(struct hw_found *f);

#endif
