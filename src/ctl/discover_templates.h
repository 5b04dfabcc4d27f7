/* SPDX-License-Identifier: MIT */
/*
 * Makes templates: topics that differ in a few levels only become one template. Internal to the finding of discover;
 * pure.
 *
 * For each level of a topic, discover counts the topics that are equal in all other levels. The level with the highest
 * count becomes a wildcard, if its values may be ids. The resulting templates are treated in the same way, until
 * nothing changes. In a fleet with sites and lamps, the lamps become a wildcard first, then the sites. In the end, a
 * template that another one covers is merged into that one.
 *
 * Cost: a look-up for each level of each topic, in each of a few rounds.
 */
#ifndef HW_CTL_DISCOVER_TEMPLATES_H
#define HW_CTL_DISCOVER_TEMPLATES_H

#include "ctl/discover_levels.h"

#define HW_NO_TEMPLATE UINT32_MAX

struct hw_template {
	uint32_t topic; /* one of its topics: it has the template's fixed levels */
	uint32_t wild;  /* the levels that are wildcards; 0: a topic of its own */
	uint8_t levels;
};

struct hw_templates {
	struct hw_template *all;
	size_t n;
	uint32_t *of; /* of each topic; HW_NO_TEMPLATE */
};

/* Makes the templates of the topics for which `in[i]` is true. Returns 0 or -ENOMEM. */
int hw_templates_init(struct hw_templates *out, const struct hw_levels *l, const struct hw_topics *t, const bool *in);
void hw_templates_fini(struct hw_templates *out);

#endif
