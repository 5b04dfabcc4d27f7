/* SPDX-License-Identifier: MIT */
/* The counters of heartwheel-alert for /metrics. Each part counts the events that happen in it. */
#ifndef HW_ALERT_COUNTS_H
#define HW_ALERT_COUNTS_H

#include <stdint.h>

/* Values in Redis that cannot be used, because another program wrote them: alert_unusable_total{kind}. */
enum hw_alert_unusable {
	HW_ALERT_UNUSABLE_ENTRY,    /* an entry of a stream: skipped */
	HW_ALERT_UNUSABLE_DEVICE,   /* the hash device:state:ID of a device in device:offline; the device is left out */
	HW_ALERT_UNUSABLE_INCIDENT, /* a hash, a member or a message of an incident; left out */
	HW_ALERT_UNUSABLE_SILENCE,
	HW_ALERT_UNUSABLE_OFFSET, /* the stream is read from its end */
	HW_ALERT_UNUSABLE_GROUP,
	HW_ALERT_UNUSABLE_KEY, /* device:offline, device:events or device:unseen has another type */
	HW_ALERT_UNUSABLE_KINDS
};
const char *hw_alert_unusable_name(enum hw_alert_unusable k);

struct hw_alert_counts {
	uint64_t entries, commits, takes, loads;
	uint64_t unusable[HW_ALERT_UNUSABLE_KINDS];
	uint64_t gaps;
};

#endif
