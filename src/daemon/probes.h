/* SPDX-License-Identifier: MIT */
/*
 * Probes on their way out: over MQTT on nodes/{id}/pending, or as a GET of the group's URL. Whom to ask, and when, is
 * the core's; what cannot be asked in time is dropped, and counted.
 */
#ifndef HW_PROBES_H
#define HW_PROBES_H

#include "context.h"

/* Of a token of the publisher's: one that is no sink's. */
#define HW_PROBE_TOKEN UINT64_C(1)

/* Before the first reader: the topic of answers. */
void hw_app_probes_init(struct hw_app *a);
void hw_app_probes_free(struct hw_app *a);

void hw_app_probe(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* The library would not take it. */
void hw_app_probe_refused(struct hw_app *a, const char *why);

struct hw_probe_counts {
	uint64_t sent, answered, dropped;
};
struct hw_probe_counts hw_app_probe_counts(const struct hw_app *a);

#endif
