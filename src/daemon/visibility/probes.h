/* SPDX-License-Identifier: MIT */
/* Sends probes: over MQTT on nodes/{id}/pending, or as a GET of the group's URL. The core decides which device gets a
 * probe, and when. Probes that cannot be sent in time are dropped and counted. */
#ifndef HW_PROBES_H
#define HW_PROBES_H

#include "daemon/context.h"

/* The publish id of probes; no sink has it. */
#define HW_PROBE_PUBLISH_ID UINT64_C(1)

/* Sets a->probes. Returns 0 or -ENOMEM. */
int hw_app_probes_new(struct hw_app *a);
void hw_app_probes_free(struct hw_app *a);

/* The topic of the answers. */
const char *hw_app_probe_answers(const struct hw_app *a);

void hw_app_probe(struct hw_app *a, struct hw_now now, const struct hw_out *out);
/* The publisher's library refused a probe. */
void hw_app_probe_refused(struct hw_app *a, const char *why);

struct hw_probe_counts {
	uint64_t sent, answered, dropped;
};
struct hw_probe_counts hw_app_probe_counts(const struct hw_app *a);

#endif
