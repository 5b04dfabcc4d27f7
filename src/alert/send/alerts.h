/* SPDX-License-Identifier: MIT */
/*
 * The alerts of an alertmanager receiver. Each alert is posted to each server once a minute, because an Alertmanager
 * loses its alerts when it restarts.
 *
 * An open alert is posted with an end a day from now, so it stays open for a day while heartwheel-alert does not run. A
 * closed alert ends at the time at which its incident was closed, and is posted for 15 min more. Internal to
 * src/alert/send.
 *
 * Cost: about 1 KB for each alert; a look-up is a search in a sorted array.
 */
#ifndef HW_ALERT_SEND_ALERTS_H
#define HW_ALERT_SEND_ALERTS_H

#include "alert/send/message.h"

#define HW_ALERT_ENDS_MS   INT64_C(86400000)
#define HW_ALERT_CLOSED_MS 900000 /* how long a closed alert is posted */
#define HW_ALERT_BATCH     200    /* alerts of a post */

struct evbuffer;

struct hw_alert {
	char id[HW_INCIDENT_ID + 1];
	int64_t since_ms, closed_ms; /* closed_ms 0: open */
	char *labels, *notes;        /* JSON objects, owned */
};

struct hw_alerts {
	struct hw_alert *at; /* by id */
	size_t n, cap;
};

/* Adds an alert, or changes all of an alert except its labels. Returns the alert; NULL if there is no memory. */
struct hw_alert *hw_alerts_put(struct hw_alerts *a, const struct hw_send_incident *i, int64_t now_ms);
/* Removes alerts that closed more than 15 min ago. */
void hw_alerts_expire(struct hw_alerts *a, int64_t now_ms);
/* Appends up to HW_ALERT_BATCH alerts whose ids are greater than `after` to `b`, and sets `after` to the last of
 * them. Returns how many, or -ENOMEM. */
int hw_alerts_batch(const struct hw_alerts *a, char after[HW_INCIDENT_ID + 1], int64_t now_ms, struct evbuffer *b);
int hw_alert_write(const struct hw_alert *alert, int64_t now_ms, struct evbuffer *b);
void hw_alerts_fini(struct hw_alerts *a);

#endif
